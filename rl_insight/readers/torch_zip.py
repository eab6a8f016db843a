"""The zip archives that torch writes: their entries, straight from the bytes of the file.

A dump holds thousands of files of two kilobytes each, and the standard library's reader, made for
large archives, would take most of the time. This one reads the central directory (APPNOTE.TXT 4.3)
and hands out the stored bytes where they lie. Archives over several disks and encrypted entries are
refused; nothing is salvaged from an archive whose directory was cut off.
"""

import struct
import zlib
from bisect import bisect_right

from rl_insight.errors import ReadError

MAGIC = b"PK\x03\x04"

_EOCD = struct.Struct("<4s4H2LH")
_EOCD64_LOCATOR = struct.Struct("<4sLQL")
_EOCD64 = struct.Struct("<4sQ2H2L4Q")
# Signature, flags, method, CRC, packed and unpacked size, lengths of name, extra field and comment,
# position of the local header; the rest is nobody's concern.
_CENTRAL = struct.Struct("<4s4x2H4x3L3H8xL")
_TWO_LENGTHS = struct.Struct("<2H")

_LOCAL_SIZE = 30
_LONGEST_COMMENT = 0xFFFF
_IN_ZIP64 = 0xFFFFFFFF
_ZIP64_FIELD = 1
_ENCRYPTED = 0x1
_STORED, _DEFLATED = 0, 8

# A file of a dump has some ten; a recording of an inference engine, two for each of its tensors.
_MOST_ENTRIES = 1 << 18

_CUT = "the end of the archive is missing: it was cut off while it was written or copied"
_DAMAGED = "the directory of the archive is damaged"


# flags, method, CRC, packed size, unpacked size, position of the local header
_Entry = tuple[int, int, int, int, int, int]


class Archive:
    """The entries of the archive in `raw`, by name (bytes, as they stand in the file)."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._entries, end = _directory(raw)
        starts = {entry[-1] for entry in self._entries.values()}
        if len(starts) != len(self._entries):
            raise ReadError(_DAMAGED)
        # Where one entry starts, the one before has ended: no byte belongs to two of them.
        self._bounds = sorted([*starts, end])

    def __contains__(self, name: bytes) -> bool:
        return name in self._entries

    def names(self) -> list[bytes]:
        """All names, in the order of the directory."""
        return list(self._entries)

    def read(self, name: bytes, limit: int) -> memoryview:
        """The bytes of the entry `name`, unpacked to `limit` bytes at most.

        Raises ReadError when it is missing, damaged, encrypted, too large or packed in another way
        than by deflate.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise ReadError(f"the entry {_shown(name)} is missing in the archive")
        flags, method, crc, packed, unpacked, header = entry
        if unpacked > limit:
            raise ReadError(
                f"the entry {_shown(name)} takes {unpacked} bytes; {limit} are left of the limit"
            )
        data = self._packed(header, packed)
        if flags & _ENCRYPTED:
            raise ReadError("the archive is encrypted")
        if method == _DEFLATED:
            data = _inflated(data, unpacked)
        elif method != _STORED:
            raise ReadError(f"the archive is packed in a way that torch does not use ({method})")
        if len(data) != unpacked:
            raise ReadError(f"the entry {_shown(name)} has another size than the archive says")
        # torch writes 0 where it was told to compute none.
        if crc and zlib.crc32(data) != crc:
            raise ReadError(f"the entry {_shown(name)} is damaged: its checksum is wrong")
        return data

    def _packed(self, start: int, size: int) -> memoryview:
        raw = self._raw
        after = bisect_right(self._bounds, start)
        bound = self._bounds[after] if after < len(self._bounds) else 0
        if raw[start : start + 4] != MAGIC or start + _LOCAL_SIZE > bound:
            raise ReadError(_DAMAGED)
        # The local header may have another name length and extra field than the directory.
        name, extra = _TWO_LENGTHS.unpack_from(raw, start + 26)
        start += _LOCAL_SIZE + name + extra
        if start + size > bound:
            raise ReadError(_DAMAGED)
        return memoryview(raw)[start : start + size]


def _shown(name: bytes) -> str:
    return ascii(name.rpartition(b"/")[2].decode("ascii", "replace")[:40])


def _directory(raw: bytes) -> tuple[dict[bytes, _Entry], int]:
    """The entries, and the position where the directory starts."""
    count, size, start = _place(raw)
    end = start + size
    if end > len(raw) or count * _CENTRAL.size > size:
        raise ReadError(_DAMAGED)
    if count > _MOST_ENTRIES:
        raise ReadError(f"the archive has {count} entries, and {_MOST_ENTRIES} is the limit")
    entries: dict[bytes, _Entry] = {}
    at = start
    for _ in range(count):
        if at + _CENTRAL.size > end:
            raise ReadError(_DAMAGED)
        magic, flags, method, crc, packed, unpacked, name, extra, comment, header = (
            _CENTRAL.unpack_from(raw, at)
        )
        if magic != b"PK\x01\x02":
            raise ReadError(_DAMAGED)
        at += _CENTRAL.size
        if _IN_ZIP64 in (packed, unpacked, header):
            field = raw[at + name : at + name + extra]
            unpacked, packed, header = _zip64(field, unpacked, packed, header)
        entries[raw[at : at + name]] = (flags, method, crc, packed, unpacked, header)
        at += name + extra + comment
    if at > end or len(entries) != count:
        raise ReadError(_DAMAGED)
    return entries, start


def _place(raw: bytes) -> tuple[int, int, int]:
    """Number of entries, size and start of the central directory."""
    at = raw.rfind(b"PK\x05\x06", max(0, len(raw) - _EOCD.size - _LONGEST_COMMENT))
    if at < 0 or at + _EOCD.size > len(raw):
        raise ReadError(_CUT)
    _, _, _, _, count, size, start, _ = _EOCD.unpack_from(raw, at)
    if count != 0xFFFF and _IN_ZIP64 not in (size, start):
        return count, size, start
    at -= _EOCD64_LOCATOR.size
    if at < 0 or raw[at : at + 4] != b"PK\x06\x07":
        raise ReadError(_DAMAGED)
    _, _, at, _ = _EOCD64_LOCATOR.unpack_from(raw, at)
    if at + _EOCD64.size > len(raw) or raw[at : at + 4] != b"PK\x06\x06":
        raise ReadError(_DAMAGED)
    _, _, _, _, _, _, _, count, size, start = _EOCD64.unpack_from(raw, at)
    return count, size, start


def _zip64(extra: bytes, *fields: int) -> list[int]:
    """The large values of the extra field in the place of those `fields` that say so."""
    at = 0
    while at + 4 <= len(extra):
        kind, size = _TWO_LENGTHS.unpack_from(extra, at)
        at += 4
        if kind == _ZIP64_FIELD:
            values = [
                extra[place : place + 8] for place in range(at, min(at + size, len(extra)), 8)
            ]
            wanted = sum(value == _IN_ZIP64 for value in fields)
            if len(values) < wanted or any(len(value) < 8 for value in values[:wanted]):
                break
            large = iter(values)
            return [
                int.from_bytes(next(large), "little") if value == _IN_ZIP64 else value
                for value in fields
            ]
        at += size
    raise ReadError(_DAMAGED)


def _inflated(data: memoryview, size: int) -> memoryview:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        # One byte more than there should be, to see that there is one.
        return memoryview(unpacker.decompress(data, size + 1))
    except zlib.error as error:
        raise ReadError(f"the archive is damaged: {error}") from error
