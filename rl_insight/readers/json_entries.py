"""The members of a JSON object as large as it may be, one after the other."""

import re
from collections.abc import Generator, Iterator
from pathlib import Path

import msgspec

from rl_insight.problems import Problems
from rl_insight.readers.bytestream import ByteStream
from rl_insight.readers.json_members import Members
from rl_insight.readers.json_text import SPACE
from rl_insight.readers.window import Window

DAMAGED = "json_damaged"

# Members are decoded together where so much text can be cut between two of them.
_BLOCK_BYTES = 1 << 20
_NO_OBJECT = "it holds no JSON object"
_DAMAGE = "it is damaged: here stands no key"
_CUT = "it breaks off"

_INDENTED_KEY = re.compile(rb'(?:,?(\s*\n[ \t]*+))"')
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])

Entry = tuple[str, bytes | None]


def entries(
    path: Path, problems: Problems, keep_bytes: int, inside: str | None = None
) -> Iterator[Entry]:
    """Each key of the object in the file at `path`, with the text of its value.

    The text is None where it has more than `keep_bytes`; memory is bounded by a small multiple of
    that. The object under the key `inside` comes as its own members, in its place. Where the text
    breaks off or is damaged, `problems` gets DAMAGED with the offset, and the rest is left.
    Raises ReadError when the file cannot be opened.
    """
    with ByteStream(path, problems) as stream:
        window = Window(stream)
        members = Members(window)
        if members.skip(SPACE) != b"{":
            problems.add(DAMAGED, "warning", 1, window.offset(window.start), _NO_OBJECT)
            return
        window.start += 1
        depth = 1
        # Where a block did not decode, it is tried again behind it only: else time is quadratic.
        try_at = 0
        while depth:
            if (inside is None or depth > 1) and window.offset(window.start) >= try_at:
                try_at = yield from _blocks(window, keep_bytes)
            key = members.next_key()
            if key is None:
                if members.skip(SPACE) != b"}":
                    why = _DAMAGE if window.unread else _CUT
                    problems.add(DAMAGED, "warning", 1, window.offset(window.start), why)
                    return
                window.start += 1
                depth -= 1
            elif key == inside and depth == 1 and window.buffer[window.start] == ord("{"):
                window.start += 1
                depth += 1
            else:
                start = window.offset(window.start)
                try:
                    text = members.text(keep_bytes)
                except EOFError:
                    problems.add(DAMAGED, "warning", 1, start, _CUT)
                    return
                yield key, text


def _blocks(window: Window, keep_bytes: int) -> Generator[Entry, None, int]:
    """The members of the object that stands in `window`, as far as they decode many at a time.

    Each member of an indented object begins a line, and nothing inside one begins so: a string has
    no line break, and what is deeper stands further to the right. Returns from which offset it may
    be tried again.
    """
    window.fill(_BLOCK_BYTES)
    first = _INDENTED_KEY.match(window.buffer, window.start, window.end)
    if first is None:
        return window.offset(window.end)
    between = b"," + first[1] + b'"'
    begin = first.start(1)
    while True:
        cut = window.buffer.rfind(between, begin, window.end)
        if cut < 0:
            return window.offset(window.end)
        with memoryview(window.buffer) as view:
            block = b"".join((b"{", view[begin:cut], b"}"))
        try:
            found = _MEMBERS.decode(block)
        except msgspec.MsgspecError:
            return window.offset(cut)
        window.start = cut
        for key, raw in found.items():
            text = bytes(raw)
            yield key, text if len(text) <= keep_bytes else None
        if not window.fill(_BLOCK_BYTES):
            return window.offset(window.end)
        begin = window.start + 1
