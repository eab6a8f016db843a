"""Kinds of files by their first bytes, as formats for programs and in words for a person."""

from dataclasses import dataclass
from typing import Final, Literal

from rl_insight.readers.gzip_head import GZIP_MAGIC
from rl_insight.readers.sqlite import MAGIC as SQLITE_MAGIC

Format = Literal[
    "zip", "zstd", "xz", "bzip2", "lz4", "lzma", "7z", "rar", "compress", "sqlite", "parquet",
    "arrow", "arrow stream", "hdf5", "npy", "pickle", "other",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileKind:
    """One kind: `words` where it has a name that people know, `remedy` what to do with it."""

    format: Format
    words: str | None = None
    remedy: str | None = None


_MAGICS: Final = (
    (SQLITE_MAGIC, FileKind("sqlite", "an SQLite database")),
    (b"PK\x03\x04", FileKind("zip", "a zip archive", "unpack it")),
    (b"PK\x05\x06", FileKind("zip")),
    (GZIP_MAGIC, FileKind("other", "data that gzip packed twice", "unpack it once")),
    (b"\x28\xb5\x2f\xfd", FileKind("zstd", "zstandard-compressed data", "unpack it with zstd -d")),
    (b"BZh", FileKind("bzip2", "bzip2-compressed data", "unpack it with bunzip2")),
    (b"\xfd7zXZ\x00", FileKind("xz", "xz-compressed data", "unpack it with unxz")),
    (b"\x04\x22\x4d\x18", FileKind("lz4", "lz4-compressed data", "unpack it with lz4 -d")),
    (b"\x5d\x00\x00", FileKind("lzma", "lzma-compressed data", "unpack it with unlzma")),
    (b"7z\xbc\xaf\x27\x1c", FileKind("7z", "a 7z archive", "unpack it with 7z x")),
    (b"Rar!\x1a\x07", FileKind("rar", "a rar archive", "unpack it with unrar x")),
    (b"\x1f\x9d", FileKind("compress", "data packed by compress", "unpack it with uncompress")),
    (b"PAR1", FileKind("parquet", "a Parquet file")),
    (b"ARROW1", FileKind("arrow")),
    (b"\x89HDF\r\n\x1a\n", FileKind("hdf5")),
    (b"\x93NUMPY", FileKind("npy")),
    (b"\x80", FileKind("pickle", "a pickle or other binary data")),
    (b"\x7fELF", FileKind("other", "a program")),
    (b"%PDF", FileKind("other", "a PDF")),
    (
        b"version https://git-lfs",
        FileKind("other", "a Git LFS pointer", "the file itself was never downloaded"),
    ),
)
# Arrow columnar format, "Encapsulated message format": an IPC stream has no magic of its own, and
# begins like all its messages with this and a length of 32 bits, of which the top byte is 0.
_CONTINUATION: Final = b"\xff\xff\xff\xff"
_LENGTH_TOP: Final = slice(7, 8)
STREAM_END: Final = _CONTINUATION + bytes(4)
"""How an Arrow IPC stream ends that its writer closed."""
# POSIX.1, ustar: the magic of the first member's header.
_TAR_MAGIC: Final = slice(257, 262)


def by_magic(head: bytes) -> FileKind | None:
    """The kind whose magic number stands at the start of `head`, the unpacked text of a file."""
    found = next((kind for magic, kind in _MAGICS if head.startswith(magic)), None)
    if found is None and head.startswith(_CONTINUATION) and head[_LENGTH_TOP] == b"\0":
        return FileKind("arrow stream")
    return found


def kind_of(head: bytes) -> FileKind | None:
    """As `by_magic`, and archives and markup; `head` has some hundred bytes. None of others."""
    known = by_magic(head)
    if known is not None:
        return known
    if head[_TAR_MAGIC] == b"ustar":
        return FileKind("other", "a tar archive", "unpack it")
    return FileKind("other", "HTML or XML") if head.lstrip()[:1] == b"<" else None
