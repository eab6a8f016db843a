"""The two ends of a gzip: whether it is whole, and what text stands there.

A gzip that fits into what was read is unpacked and so known for sure. Of a longer one only the last
four bytes can be asked, the size of its content modulo 2^32 (RFC 1952, section 2.3.1): where it was
cut they are any number, which is told from how much the beginning shrank. Beyond some ten megabytes
nearly any number could be true, and nothing is said.
"""

import zlib
from dataclasses import dataclass
from typing import Final, cast

from isal import isal_zlib

from rl_insight.data.ailment import Ailment
from rl_insight.readers.gzip_head import GZIP_MAGIC

_DAMAGE = (cast(type[Exception], isal_zlib.error), zlib.error)

# A header of gzip and a window of 32 kB (zlib.h, inflateInit2).
_GZIP = 31
_TEXT_BYTES = 65_536
# What is unpacked of one file: a bomb of 64 kB would have 64 MB.
_MOST_BYTES = 4 << 20
_TRAILER_BYTES = 8
# How much better or worse the rest may shrink than the beginning.
_SPREAD = 8.0
# zlib's technical details: deflate makes nothing smaller than by this.
_STRONGEST = 1032.0
_MODULUS = 1 << 32

_DAMAGED: Final = Ailment(
    "gzip_damaged",
    "the gzip is damaged inside: it does not unpack to what its check sum says; copy it again",
)
_TRAILING: Final = Ailment(
    "gzip_trailing", "something else follows the packed data; it is passed over"
)


@dataclass(frozen=True, slots=True)
class GzipEnds:
    """The text at the ends, at most 64 kB each; `tail` is empty where it cannot be seen.

    `complete` is True when the whole was unpacked and is sound.
    """

    head: bytes
    tail: bytes = b""
    complete: bool = False
    wrong: Ailment | None = None


def gzip_ends(head: bytes, tail: bytes, size: int) -> GzipEnds:
    """Look at a gzip of `size` bytes that begins with `head` and ends with `tail`."""
    if size <= len(head):
        return _whole(head)
    unpacker = isal_zlib.decompressobj(_GZIP)
    try:
        text = unpacker.decompress(head, _TEXT_BYTES)
    except _DAMAGE:
        return GzipEnds(b"", wrong=_DAMAGED)
    taken = len(head) - len(unpacker.unconsumed_tail)
    if unpacker.eof or not text or not taken:
        return GzipEnds(text)  # several members, of which the first is short
    if _is_cut(len(text) / taken, tail, size):
        return GzipEnds(text, wrong=_cut("the gzip seems to have no end"))
    return GzipEnds(text)


def _whole(packed: bytes) -> GzipEnds:
    """A gzip of any number of members, unpacked up to a limit."""
    head, tail, total = b"", b"", 0
    while packed.startswith(GZIP_MAGIC):
        unpacker = isal_zlib.decompressobj(_GZIP)
        while not unpacker.eof:
            try:
                text = unpacker.decompress(packed, _TEXT_BYTES)
            except _DAMAGE:
                return GzipEnds(head, wrong=_DAMAGED)
            packed = unpacker.unconsumed_tail
            if not text and not packed and not unpacker.eof:
                return GzipEnds(head, wrong=_cut("the gzip has no end"))
            if len(head) < _TEXT_BYTES:
                head += text[: _TEXT_BYTES - len(head)]
            tail = text if len(text) == _TEXT_BYTES else (tail + text)[-_TEXT_BYTES:]
            total += len(text)
            if total > _MOST_BYTES:
                return GzipEnds(head)
        packed = unpacker.unused_data
    # Zero bytes may pad the last block of a tape or a disk.
    wrong = _TRAILING if packed.strip(b"\0") else None
    return GzipEnds(head, tail, complete=True, wrong=wrong)


def _cut(what: str) -> Ailment:
    how = "its writer was killed, or a copy was cut"
    return Ailment("gzip_cut", f"{what}: {how}", kept="what can be unpacked of it is read")


def _is_cut(shrunk: float, tail: bytes, size: int) -> bool:
    """Whether the size that the last bytes tell is none that such a file may have."""
    if tail.rfind(GZIP_MAGIC + b"\x08") >= 0:
        return False  # several members, of which only the last one's size is told
    told = int.from_bytes(tail[-4:], "little")
    body = size - _TRAILER_BYTES
    least = int(body * max(shrunk / _SPREAD, 0.9))
    most = int(body * min(shrunk * _SPREAD, _STRONGEST))
    return most - least < _MODULUS and (told - least) % _MODULUS > most - least
