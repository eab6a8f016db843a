"""Second tries at the text of one JSON value that does not decode.

Each kind of damage was seen in files that real producers left; the sentence beside each says what
it is. A repair never guesses a number: what cannot be told becomes null or a replacement
character.
"""

import re
from collections.abc import Iterator
from functools import partial

# Whole strings, so that the rest is text outside them, and what is wrong out there.
_TOKEN = re.compile(
    r'"(?P<string>[^"\\]*+(?:\\.[^"\\]*+)*+)"'
    # libkineto prints C++'s inf and nan bare (pytorch/kineto#105), Python's json Infinity and NaN
    r"|(?P<word>[-+]?\b(?:inf(?:inity)?|nan(?:\(\w*\))?)\b)"
    # beyond a double
    r"|(?P<huge>-?\b\d+(?:\.\d+)?[eE]\+?\d{3,}\b)"
    r"|(?P<comma>,(?=\s*[}\],]))",
    re.IGNORECASE | re.DOTALL,
)
_CONTROL = re.compile(r"[\x00-\x1f]")
# A backslash that begins no escape (a bare Windows path), or half a surrogate pair.
_BAD_ESCAPE = re.compile(
    r"\\(?:"
    r"(?P<high>u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2}))"
    r"|(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<low>u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<good>[\"\\/bfnrt]|u[0-9a-fA-F]{4})"
    r"|)",
)
# The text of a known key up to the quote that a next key or the closing brace follows, and a key
# that lost its opening quote.
_QUOTED = re.compile(
    r'("(?:name|cat|ph|Call stack|Module Hierarchy)"\s*:\s*")'
    r'(.*?)(?="\s*(?:,\s*"[^"\\\n]{1,64}"\s*:|\}))',
    re.DOTALL,
)
_STRAY_QUOTE = re.compile(r'(?<!\\)((?:\\\\)*)"')
_HALF_KEY = re.compile(r"([,{]\s*)([A-Za-z_]\w{0,63})\"(?=\s*:)")

# Looking for the closing quote goes through the text again for every key.
_QUOTE_REPAIR_LIMIT = 64 << 10


def repairs(text: bytes, unknown: str = "null") -> Iterator[tuple[bytes, bool]]:
    """The text again, repaired a little more each time; False marks what may be mistaken.

    `unknown` is put in the place of a number that cannot be told.
    """
    repair = partial(_repair_token, unknown)
    # Names with bytes that are no UTF-8 (pytorch/kineto#80).
    readable = text.decode("utf-8", "replace")
    yield _TOKEN.sub(repair, readable).encode(), True
    if len(text) <= _QUOTE_REPAIR_LIMIT:
        # Quotes that the producer did not escape (pytorch/pytorch#113001) or lost (#33961).
        readable = _HALF_KEY.sub(r'\1"\2"', readable)
        readable = _QUOTED.sub(lambda found: found[1] + _escape_quotes(found[2]), readable)
        yield _TOKEN.sub(repair, readable).encode(), False


def _repair_token(unknown: str, found: re.Match[str]) -> str:
    if found["string"] is not None:
        return f'"{_repair_string(found["string"])}"'
    if found["comma"] is not None:
        return ""
    if found["huge"] is not None and float(found["huge"]) not in (float("inf"), float("-inf")):
        return found["huge"]
    return unknown


def _repair_string(text: str) -> str:
    text = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return _BAD_ESCAPE.sub(_repair_escape, text) if "\\" in text else text


def _repair_escape(found: re.Match[str]) -> str:
    if found["pair"] or found["good"]:
        return found[0]
    return "\\ufffd" if found["high"] or found["low"] else "\\\\"


def _escape_quotes(text: str) -> str:
    return _STRAY_QUOTE.sub(r'\1\\"', text)
