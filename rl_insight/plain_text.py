"""Text for people, of which parts come from files: what a terminal and a page have in common."""

import re

# Escape sequences (ECMA-48, 5.4 and 5.6): CSI, OSC and other strings up to their terminator, and
# two-character ones.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_COMMAND = re.compile(r"(?:[ (]|\A)(?:rl-insight preprocess|nsys export|QdstrmImporter) ")


def without_escapes(text: str) -> str:
    """`text` without the sequences that a terminal obeys; single control characters stay."""
    return _ESCAPE.sub("", text)


def holds_command(text: str) -> bool:
    """Whether a sentence holds a command to be copied, which must not be cut anywhere."""
    return _COMMAND.search(text) is not None


def shown(value: object) -> str:
    """`value` as it may stand in an error text: quoted, and short."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `2 files`, `12,345 files`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
