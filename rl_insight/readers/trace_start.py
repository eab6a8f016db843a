"""Where a trace begins in a file that does not begin as a trace does."""

import re

import msgspec

from rl_insight.readers.not_json import named_kind

_TRACE = re.compile(rb'\[\s*\{\s*"|\{\s*"')
_TELLING = re.compile(rb'"ph"\s*:|"traceEvents"\s*:')
_LARGEST_EVENT = 65_536
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def behind_other_text(buffer: bytearray, start: int, end: int) -> int | None:
    """Where a trace begins behind what a program printed into the file, or a hole of zero bytes.

    None where none begins in `buffer[start:end]`, and in files of another kind, which may hold
    traces of several ranks.
    """
    if named_kind(bytes(buffer[start : min(end, start + 512)])) is not None:
        return None
    if _TELLING.search(buffer, start, end) is None:
        return None
    found = _TRACE.search(buffer, start, end)
    return None if found is None else found.start()


def is_bare_event(buffer: bytearray, start: int, end: int) -> bool:
    """Whether a line with an event stands there, as where each line is one, without a list."""
    stop = buffer.find(b"\n", start, min(end, start + _LARGEST_EVENT))
    if stop < 0:
        return False
    try:
        keys = _KEYS.decode(bytes(buffer[start:stop]).rstrip(b" \t\r,"))
    except (msgspec.MsgspecError, RecursionError):
        return False
    return {"ph", "pid"} <= keys.keys() and "traceEvents" not in keys
