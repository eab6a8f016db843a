"""Makes files of torch byte by byte, also those that torch would never write.

A pickle is put together from instructions (`pickletools` explains each), a zip archive from its
headers (APPNOTE.TXT), so that any part of it can be wrong.
"""

import struct
import zlib
from collections.abc import Mapping


class Code(bytes):
    """Instructions that leave one value on the stack."""


def code(value: object) -> Code:
    """The instructions for a plain value, which may hold other `Code`."""
    match value:
        case Code():
            return value
        case None:
            return Code(b"N")
        case bool():
            return Code(b"\x88" if value else b"\x89")
        case int():
            raw = value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)
            return Code(b"\x8a" + bytes([len(raw)]) + raw)
        case float():
            return Code(b"G" + struct.pack(">d", value))
        case str():
            return Code(b"X" + struct.pack("<I", len(value.encode())) + value.encode())
        case bytes():
            return Code(b"B" + struct.pack("<I", len(value)) + value)
        case tuple():
            return Code(b"(" + b"".join(map(code, value)) + b"t")
        case list():
            return Code(b"](" + b"".join(map(code, value)) + b"e")
        case dict():
            items = b"".join(code(key) + code(member) for key, member in value.items())
            return Code(b"}(" + items + b"u")
    raise TypeError(type(value))


def named(name: str) -> Code:
    """What `module.name` refers to."""
    module, _, name = name.rpartition(".")
    return Code(f"c{module}\n{name}\n".encode())


def call(name: str, *arguments: object) -> Code:
    return Code(named(name) + code(arguments) + b"R")


def storage(kind: str, key: str, device: str, count: int) -> Code:
    return Code(code(("storage", named(f"torch.{kind}"), key, device, count)) + b"Q")


def tensor(
    size: tuple[object, ...],
    stride: tuple[object, ...],
    offset: object = 0,
    count: int = 3,
    kind: str = "LongStorage",
    device: str = "cpu",
    key: str = "0",
) -> Code:
    """As `torch._utils._rebuild_tensor_v2` is written."""
    return call(
        "torch._utils._rebuild_tensor_v2",
        *(storage(kind, key, device, count), offset, size, stride),
        *(False, call("collections.OrderedDict")),
    )


def pickled(value: object) -> bytes:
    return b"\x80\x02" + code(value) + b"."


def torch_file(
    pickle: bytes, data: Mapping[str, bytes] | None = None, byteorder: bytes = b"little"
) -> bytes:
    """The archive that torch would write for a pickle and its storages."""
    entries = {"data.pkl": pickle, "byteorder": byteorder}
    entries |= {f"data/{key}": raw for key, raw in (data or {}).items()}
    return zipped(
        {f"archive/{name}": raw for name, raw in entries.items()} | {"archive/version": b"3\n"}
    )


def longs(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def zipped(
    entries: Mapping[str, bytes],
    deflate: bool = False,
    zip64: bool = False,
    declared: Mapping[str, int] | None = None,
    at: Mapping[str, int] | None = None,
    flags: int = 0,
    method: int | None = None,
) -> bytes:
    """A zip archive; `declared` gives wrong unpacked sizes, `at` wrong places."""
    method = (8 if deflate else 0) if method is None else method
    raw, directory = b"", b""
    for name, data in entries.items():
        packed = zlib.compress(data, 9, wbits=-15) if deflate else data
        size = (declared or {}).get(name, len(data))
        place = (at or {}).get(name, len(raw))
        head = struct.pack("<HHHHH", 20, flags, method, 0, 0)
        sizes = (len(packed), size)
        extra = b""
        if zip64:
            extra = struct.pack("<HHHH3Q", 0x7777, 0, 1, 24, size, len(packed), place)
            sizes, place = (0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF
        local_extra = struct.pack("<HHQQ", 1, 16, size, len(packed)) if zip64 else b""
        crc = zlib.crc32(data)
        raw += b"PK\x03\x04" + head + struct.pack("<3L2H", crc, *sizes, len(name), len(local_extra))
        raw += name.encode() + local_extra + packed
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + head
        directory += struct.pack("<3L5H2L", crc, *sizes, len(name), len(extra), 0, 0, 0, 0, place)
        directory += name.encode() + extra
    count, start = len(entries), len(raw)
    end = raw + directory
    if zip64:
        end += b"PK\x06\x06" + struct.pack(
            "<Q2H2L4Q", 44, 45, 45, 0, 0, count, count, len(directory), start
        )
        end += b"PK\x06\x07" + struct.pack("<LQL", 0, len(raw) + len(directory), 1)
        count, start = 0xFFFF, 0xFFFFFFFF
    return end + b"PK\x05\x06" + struct.pack("<4H2LH", 0, 0, count, count, len(directory), start, 0)
