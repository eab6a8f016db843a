"""The members of a JSON object, one after the other, from a window on a stream."""

import re
from typing import Any

import msgspec

from rl_insight.readers.event_decoding import example
from rl_insight.readers.json_text import COMMAS, Lexer, end_of
from rl_insight.readers.repair import repairs
from rl_insight.readers.window import Window

_KEY = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+:\s*+(?=\S)', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,{}\[\]\"]*+")
_BRACKETED = frozenset(b'{["')
_KEY_LIMIT = 64 << 10
# Read this much at a time: a value that is kept has to be in the window as a whole.
_STEP = 256 << 10


class Members:
    """Walks over the members of the object whose opening brace has just been passed.

    Values pass by in pieces and are not held, unless they are asked for.
    """

    def __init__(self, window: Window) -> None:
        self._window = window

    def next_key(self) -> str | None:
        """The next key, or None at the end of the object, or where no key can be read.

        Stands at the value after it; after None at the closing brace, at what is no key, or at
        the end of the stream.
        """
        window = self._window
        self.skip(COMMAS)
        limit = _STEP
        while True:
            key = _KEY.match(window.buffer, window.start, window.end)
            if key is not None:
                window.start = key.end()
                try:
                    return str(msgspec.json.decode(key[1]))
                except msgspec.MsgspecError:
                    return key[1].decode("utf-8", "replace")
            first = window.buffer[window.start : window.start + 1]
            if first != b'"' or window.unread > _KEY_LIMIT or not window.fill(limit):
                return None
            limit += _STEP

    def skip(self, pattern: re.Pattern[bytes]) -> bytes:
        """Pass over what `pattern` matches, however long; returns the next byte, or none."""
        window = self._window
        while True:
            window.start = end_of(pattern, window.buffer, window.start, window.end)
            if window.start < window.end or not window.fill(_STEP):
                return bytes(window.buffer[window.start : min(window.start + 1, window.end)])

    def text(self, keep_bytes: int) -> bytes | None:
        """Pass over one value; returns its text when that has at most `keep_bytes`, else None.

        Raises EOFError when the stream ends before the value does.
        """
        window = self._window
        lexer = Lexer()
        bracketed = window.buffer[window.start] in _BRACKETED
        position = window.start
        keep = True
        while True:
            if bracketed:
                end = lexer.run(window.buffer, position, window.end)
                position = lexer.position
            else:
                position = end_of(_SCALAR, window.buffer, position, window.end)
                end = position if position < window.end else -1
            seen = (end if end >= 0 else position) - window.start
            keep = keep and seen <= keep_bytes
            if end >= 0:
                break
            if not keep:
                window.start, seen = position, 0
            if not window.fill(window.unread + _STEP):
                window.start = window.end
                raise EOFError
            position = window.start + seen
        text = bytes(memoryview(window.buffer)[window.start : end]) if keep else None
        window.start = end
        return text

    def seek(self, pattern: re.Pattern[bytes]) -> bool:
        """Pass over everything up to the first match of `pattern`, if there is one."""
        window = self._window
        while True:
            found = pattern.search(window.buffer, window.start, window.end)
            if found is not None:
                window.start = found.start()
                return True
            window.start = max(window.start, window.end - _KEY_LIMIT)
            if not window.fill(window.unread + _STEP):
                return False


def decode_loosely(text: bytes) -> Any:
    """The value of JSON text, repaired where it must be. Raises ValueError when it cannot be."""
    for attempt in (text, *(repaired for repaired, _ in repairs(text))):
        try:
            return msgspec.json.decode(attempt)
        except (msgspec.MsgspecError, RecursionError):
            continue
    raise ValueError(f"no JSON: {example(text)}")
