"""The bytes of one input file, unpacked and decoded to UTF-8, in bounded memory.

A file is what its first bytes say, never what its name says: gzip content under a plain `.json`
name and plain JSON under `.json.gz` both occur. Damage is no exception: every byte before it is
given out, and the damage becomes a problem that says where it is.
"""

import codecs
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self, cast

from isal import isal_zlib

from rl_insight.errors import ReadError
from rl_insight.problems import READ_FAILED, Problems
from rl_insight.readers.gzip_head import GZIP_MAGIC
from rl_insight.readers.pseudo_files import holds_bytes

# The stubs of isal say that its error is an instance.
_DAMAGE = (cast(type[Exception], isal_zlib.error), zlib.error)
_GZIP_HEADER = 31  # zlib's number for "gzip container, 32 kB window"

# Packed bytes per read and unpacked bytes per call. Measured on 280 MB: 0.15 s of CPU at these
# sizes, up to twice that at 1 MB and above, where the pieces no longer fit the caches.
_READ_BYTES = 64 << 10
_UNPACK_BYTES = 256 << 10

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


class _Source(Protocol):
    def read(self, limit: int, /) -> bytes:
        """At most `limit` bytes; empty only at the end."""


class _Unpacker:
    """Unpacks gzip members one after the other (RFC 1952 section 2.2 allows several).

    `ending` tells after the end how it came: "" (well), "truncated" or "trailing".
    """

    def __init__(self, packed: _Source, decompressor: Callable[[int], Any]) -> None:
        self._packed = packed
        self._decompressor = decompressor
        self._member = decompressor(_GZIP_HEADER)
        self._input = b""
        self._draining = False
        self._done = False
        self.ending = ""

    def read(self, limit: int) -> bytes:
        """At most `limit` bytes; empty only at the end. Raises one of `_DAMAGE` on damage."""
        while not self._done:
            # After a full piece the decompressor may hold more, even when all input is taken.
            if not self._input and not self._draining:
                self._input = self._packed.read(_READ_BYTES)
                if not self._input:
                    self._done, self.ending = True, "truncated"
                    break
            wanted = min(limit, _UNPACK_BYTES)
            piece: bytes = self._member.decompress(self._input, wanted)
            self._input = self._member.unconsumed_tail
            self._draining = len(piece) == wanted
            if self._member.eof:
                self._next_member()
            if piece:
                return piece
        return b""

    def _next_member(self) -> None:
        # Writers to tape and some file systems pad with zero bytes after a member.
        left = self._member.unused_data.lstrip(b"\0")
        while len(left) < len(GZIP_MAGIC):
            more = self._packed.read(_READ_BYTES)
            if not more:
                break
            left = (left + more).lstrip(b"\0")
        if left.startswith(GZIP_MAGIC):
            self._member = self._decompressor(_GZIP_HEADER)
            self._input, self._draining = left, False
        else:
            self._done, self.ending = True, "trailing" if left else ""


class _Gzip:
    """A gzip file whose damage is a problem and not an exception."""

    def __init__(self, file: BinaryIO, problems: Problems) -> None:
        self._file = file
        self._problems = problems
        self._unpacker: _Unpacker | None = _Unpacker(file, isal_zlib.decompressobj)
        self._delivered = 0
        self._careful = False

    def read(self, limit: int) -> bytes:
        if self._unpacker is None:
            return b""
        try:
            piece = self._read_up_to_damage(limit)
        except _DAMAGE as error:
            return self._stop("gzip_corrupt", f"cannot be unpacked from here on: {error}")
        if not piece:
            return self._end(self._unpacker.ending)
        self._delivered += len(piece)
        return piece

    def _read_up_to_damage(self, limit: int) -> bytes:
        """As `_Unpacker.read`; raises, or ends, only when all before the damage is given out.

        The call that meets damage throws away all that it had unpacked, up to 256 kB: in a small
        file everything, and the end even where only the checksum is wrong. So unpack anew up to
        the last good call and go on byte by byte. The slower zlib of the standard library goes up
        to the damage then, and loses one byte; isal looks far ahead, and where the data breaks off
        it may keep a byte, the last brace of an event.
        """
        assert self._unpacker is not None
        if not self._careful:
            try:
                piece = self._unpacker.read(limit)
                if piece or self._unpacker.ending != "truncated":
                    return piece
            except _DAMAGE:
                pass
            self._careful = True
            self._file.seek(0)
            self._unpacker = _Unpacker(self._file, zlib.decompressobj)
            left = self._delivered
            while left and (piece := self._unpacker.read(left)):
                left -= len(piece)
        return self._unpacker.read(1)

    def _end(self, ending: str) -> bytes:
        if ending == "truncated":
            return self._stop("gzip_truncated", "the packed data breaks off here")
        if ending == "trailing":
            return self._stop("gzip_trailing", "what follows the packed data is not gzip")
        return b""

    def _stop(self, code: str, why: str) -> bytes:
        self._unpacker = None
        self._problems.add(code, "warning", 1, self._delivered, why)
        return b""


class _AsUtf8:
    """UTF-16 or UTF-32 text (JSON that went through a Windows shell) as UTF-8."""

    def __init__(self, source: _Source, encoding: str) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._ready = b""

    def read(self, limit: int) -> bytes:
        while not self._ready:
            piece = self._source.read(_UNPACK_BYTES)
            self._ready = self._decoder.decode(piece, final=not piece).encode(errors="replace")
            if not piece:
                break
        piece, self._ready = self._ready[:limit], self._ready[limit:]
        return piece


class _PutBack:
    """A source of which the first bytes were looked at and are given out again."""

    def __init__(self, head: bytes, source: _Source) -> None:
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
        self._source: _Source = self._file
        try:
            self._source = self._sniff() if holds_bytes(self._file) else io.BytesIO()
        except OSError as error:
            self._file.close()
            raise ReadError(f"{path} cannot be read: {error.strerror}") from error

    def _sniff(self) -> _Source:
        packed = self._file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        if packed and self._max_bytes is None:
            size = self._file.seek(0, io.SEEK_END)
            self._max_bytes = max(FREE_BYTES, MOST_TIMES * size)
            self._why = (
                f"its {size:,} bytes unpack to more than {self._max_bytes:,}, which only damage or "
                "intent does; to read all of it, unpack it with gunzip"
            )
        self._file.seek(0)
        source: _Source = _Gzip(self._file, self._problems) if packed else self._file
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
