"""Gzip whose damage is no exception: all before it is given out, and it becomes a problem."""

import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol, cast

from isal import isal_zlib

from rl_insight.problems import Problems
from rl_insight.readers.gzip_head import GZIP_MAGIC

# The stubs of isal say that its error is an instance.
_DAMAGE = (cast(type[Exception], isal_zlib.error), zlib.error)
_GZIP_HEADER = 31  # zlib's number for "gzip container, 32 kB window"

# Packed bytes per read and unpacked bytes per call. Measured on 280 MB: 0.15 s of CPU at these
# sizes, up to twice that at 1 MB and above, where the pieces no longer fit the caches.
_READ_BYTES = 64 << 10
UNPACK_BYTES = 256 << 10


class Source(Protocol):
    """What bytes are read from."""

    def read(self, limit: int, /) -> bytes:
        """At most `limit` bytes; empty only at the end."""


class _Unpacker:
    """Unpacks gzip members one after the other (RFC 1952 section 2.2 allows several).

    `ending` tells after the end how it came: "" (well), "truncated" or "trailing".
    """

    def __init__(self, packed: Source, decompressor: Callable[[int], Any]) -> None:
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
            wanted = min(limit, UNPACK_BYTES)
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


class GzipStream:
    """The unpacked bytes of `file`, which stands at the beginning of a gzip.

    `problems` gets `gzip_truncated`, `gzip_corrupt` and `gzip_trailing`, each with its offset in
    the unpacked bytes.
    """

    def __init__(self, file: BinaryIO, problems: Problems) -> None:
        self._file = file
        self._problems = problems
        self._unpacker: _Unpacker | None = _Unpacker(file, isal_zlib.decompressobj)
        self._delivered = 0
        self._careful = False

    def read(self, limit: int) -> bytes:
        """At most `limit` bytes; empty only at the end, or where the damage begins."""
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
