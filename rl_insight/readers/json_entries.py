"""The members of a JSON object as large as it may be, one after the other."""

from collections.abc import Iterator
from pathlib import Path

from rl_insight.problems import Problems
from rl_insight.readers.bytestream import ByteStream
from rl_insight.readers.json_members import Members
from rl_insight.readers.json_text import SPACE
from rl_insight.readers.window import Window

DAMAGED = "json_damaged"


def entries(
    path: Path, problems: Problems, keep_bytes: int, inside: str | None = None
) -> Iterator[tuple[str, bytes | None]]:
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
        while depth:
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


_NO_OBJECT = "it holds no JSON object"
_DAMAGE = "it is damaged: here stands no key"
_CUT = "it breaks off"
