"""Texts for a terminal: names come from files and folders of unknown origin."""

import re
import unicodedata

from rl_insight.plain_text import without_escapes

# Control characters, invisible marks (among them those that turn the writing direction), lone
# surrogates and line separators: none of them may reach a terminal from a name.
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def printable(text: str, limit: int = 300) -> str:
    """`text` on one line of at most `limit` characters, with nothing that a terminal obeys."""
    clean = re.sub(r"[\t\r\n\v\f\x85\u2028\u2029]+", " ", without_escapes(text))
    if not clean.isascii() or not clean.isprintable():
        clean = "".join("\N{REPLACEMENT CHARACTER}" if _unsafe(c) else c for c in clean)
    return clean if len(clean) <= limit else f"{clean[: limit - 1]}…"


def duration(seconds: float) -> str:
    """A time that passed, as a person says it: `0.8 s`, `12 s`, `3 min 05 s`, `1 h 02 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def _unsafe(character: str) -> bool:
    return unicodedata.category(character) in _UNSAFE
