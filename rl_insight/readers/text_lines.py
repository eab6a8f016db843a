"""The lines of a text file that nobody checked, in bounded memory."""

from collections.abc import Iterator
from pathlib import Path

from rl_insight.errors import ReadError
from rl_insight.problems import Problems
from rl_insight.readers.bytestream import ByteStream

MAX_LINE_BYTES = 1 << 20

_STEP = 256 << 10


def lines(path: Path, problems: Problems, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[str]:
    """The lines of the file at `path`, with their ends; bytes that are no UTF-8 become `�`.

    The file may be gzipped. `problems` gets what `ByteStream` notes. Raises ReadError when it
    cannot be opened, and when a line has more than `max_line_bytes`.
    """
    number = 0
    left = b""
    piece = memoryview(bytearray(_STEP))
    with ByteStream(path, problems) as stream:
        while got := stream.readinto(piece):
            *whole, left = (left + piece[:got]).split(b"\n")
            for line in whole:
                number += 1
                yield line.decode("utf-8", "replace") + "\n"
            if len(left) > max_line_bytes:
                raise ReadError(f"line {number + 1:,} has more than {max_line_bytes:,} bytes")
    if left:
        yield left.decode("utf-8", "replace")
