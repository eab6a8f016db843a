"""The bytes of one input file, unpacked and decoded to UTF-8, in bounded memory.

A file is what its first bytes say, never what its name says: gzip content under a plain `.json`
name and plain JSON under `.json.gz` both occur. Damage is no exception: every byte before it is
given out, and the damage becomes a problem that says where it is.
"""

import codecs
import io
from pathlib import Path
from types import TracebackType
from typing import Self

from rl_insight.errors import ReadError
from rl_insight.problems import READ_FAILED, Problems
from rl_insight.readers.gzip_head import GZIP_MAGIC
from rl_insight.readers.gzip_stream import UNPACK_BYTES, GzipStream, Source
from rl_insight.readers.pseudo_files import holds_bytes

# Unpacked bytes of a gzip that nobody minds, and how many times its own size beyond them. Traces
# are packed to a tenth or a thirtieth, zeros to a thousandth: some hundred megabytes could go on
# for hours. A file that its owner unpacked has no such limit.
FREE_BYTES = 16 << 30
MOST_TIMES = 100

# By the first bytes; those of UTF-32 begin as UTF-16 does.
_ENCODINGS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    b"{\0\0\0": "utf-32-le",
    b"[\0\0\0": "utf-32-le",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"{\0": "utf-16-le",
    b"[\0": "utf-16-le",
    b"\0{": "utf-16-be",
    b"\0[": "utf-16-be",
}
_HEAD_BYTES = 4


class _AsUtf8:
    """UTF-16 or UTF-32 text (JSON that went through a Windows shell) as UTF-8."""

    def __init__(self, source: Source, encoding: str) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._ready = b""

    def read(self, limit: int) -> bytes:
        while not self._ready:
            piece = self._source.read(UNPACK_BYTES)
            self._ready = self._decoder.decode(piece, final=not piece).encode(errors="replace")
            if not piece:
                break
        piece, self._ready = self._ready[:limit], self._ready[limit:]
        return piece


class _PutBack:
    """A source of which the first bytes were looked at and are given out again."""

    def __init__(self, head: bytes, source: Source) -> None:
        self._head = head
        self.source = source

    @property
    def is_given_out(self) -> bool:
        """Whether there is nothing left but the source."""
        return not self._head

    def read(self, limit: int) -> bytes:
        if not self._head:
            return self.source.read(limit)
        piece, self._head = self._head[:limit], self._head[limit:]
        return piece


class ByteStream:
    """The unpacked bytes of the file at `path`; use it as a context manager.

    `problems` gets `gzip_truncated`, `gzip_corrupt`, `gzip_trailing`, `read_failed`, `utf16`,
    `utf32` and `too_large`, each with its offset in the unpacked bytes. `max_bytes` ends the stream
    after so many of them; without it only a gzip has an end, after FREE_BYTES or MOST_TIMES its
    size. Memory is bounded in any case.

    `origin` is the offset of the first byte given out: 3 after a UTF-8 byte order mark, else 0.

    Raises ReadError when the file cannot be opened.
    """

    def __init__(self, path: Path, problems: Problems, max_bytes: int | None = None) -> None:
        self._problems = problems
        self._max_bytes = max_bytes
        self._why = f"more than the limit of {max_bytes} bytes when unpacked"
        self.origin = 0
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise ReadError(f"{path} cannot be opened: {error.strerror}") from error
        self._delivered = 0
        self._source: Source = self._file
        try:
            self._source = self._sniff() if holds_bytes(self._file) else io.BytesIO()
        except OSError as error:
            self._file.close()
            raise ReadError(f"{path} cannot be read: {error.strerror}") from error

    def _sniff(self) -> Source:
        packed = self._file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        if packed and self._max_bytes is None:
            size = self._file.seek(0, io.SEEK_END)
            self._max_bytes = max(FREE_BYTES, MOST_TIMES * size)
            self._why = (
                f"its {size:,} bytes unpack to more than {self._max_bytes:,}, which only damage or "
                "intent does; to read all of it, unpack it with gunzip"
            )
        self._file.seek(0)
        source: Source = GzipStream(self._file, self._problems) if packed else self._file
        head = b""
        while len(head) < _HEAD_BYTES and (more := source.read(_HEAD_BYTES - len(head))):
            head += more
        if head.startswith(codecs.BOM_UTF8):
            self.origin = self._delivered = len(codecs.BOM_UTF8)
            return _PutBack(head[self.origin :], source)
        source = _PutBack(head, source)
        encoding = _ENCODINGS.get(head) or _ENCODINGS.get(head[:2])
        if encoding is None:
            return source
        code = "utf32" if encoding.startswith("utf-32") else "utf16"
        self._problems.add(code, "info", 1, 0, "offsets count the bytes after a change to UTF-8")
        return _AsUtf8(source, encoding)

    def readinto(self, target: memoryview) -> int:
        """Fill `target`; returns how many bytes, fewer than it holds only at the end."""
        filled = 0
        room = len(target)
        if self._max_bytes is not None:
            # One byte more than allowed tells a stream that goes on from one that just fits.
            room = min(room, self._max_bytes - self._delivered + 1)
        while filled < room:
            try:
                got = self._read_into(target[filled:room])
            except OSError as error:
                where = self._delivered + filled
                self._problems.add(READ_FAILED, "warning", 1, where, error.strerror)
                self._source = io.BytesIO()
                break
            if not got:
                break
            filled += got
        self._delivered += filled
        if self._max_bytes is not None and self._delivered > self._max_bytes:
            self._problems.add("too_large", "warning", 1, self._max_bytes, self._why)
            self._source = io.BytesIO()
            self._delivered -= 1
            filled -= 1
        return filled

    def _read_into(self, target: memoryview) -> int:
        """Give out what one call of the source gives, at most as much as `target` holds."""
        source = self._source
        if isinstance(source, _PutBack) and source.is_given_out:
            source = self._source = source.source
        if isinstance(source, io.FileIO):
            # Straight to its place: a new object for each block costs as much as the reading.
            return source.readinto(target)
        piece = source.read(len(target))
        target[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
