"""Text from files, made harmless and short before people look at it.

Role, stage and file names come from the input and may hold anything: terminal escapes, line
breaks, marks that turn the writing direction, thousands of characters. What is left here is one
line of visible text. Escaping for HTML, SVG or matplotlib is the drawing's own business.
"""

import unicodedata
from datetime import UTC, datetime

from rl_insight.plain_text import without_escapes

LABEL_LIMIT = 48
NAME_LIMIT = 120
SENTENCE_LIMIT = 400

_NS = 1_000_000_000


def plain(text: str, limit: int = NAME_LIMIT) -> str:
    """`text` as one visible line of at most `limit` characters, its middle left out if longer."""
    # Nothing beyond this can reach the result, and a name of megabytes must not cost time.
    clipped = text if len(text) <= 8 * limit else text[: 4 * limit] + text[-4 * limit :]
    visible = "".join(map(_visible, without_escapes(clipped)))
    line = " ".join(visible.split()) or "(no name)"
    return shorten(line, limit)


def shorten(line: str, limit: int) -> str:
    """`line` with its middle replaced by an ellipsis where it is longer than `limit`.

    Both ends stay because ranks and step numbers stand at the end of names.
    """
    if len(line) <= limit:
        return line
    tail = (limit - 1) * 2 // 5
    return f"{line[: limit - 1 - tail]}…{line[len(line) - tail :]}"


def utc(time_ns: int) -> str:
    """Unix time in nanoseconds as `2026-08-14 12:27:31.089 UTC`; plain seconds out of range."""
    seconds, rest = divmod(time_ns, _NS)
    try:
        date = datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return f"{seconds} s since 1970"
    return f"{date:%Y-%m-%d %H:%M:%S}.{rest // 1_000_000:03d} UTC"


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Zl", "Zp", "Zs") or character in "\t\n\r\v\f":
        return " "
    # Controls, direction and zero-width marks, surrogates, private and unassigned code points.
    return "" if category.startswith("C") else character
