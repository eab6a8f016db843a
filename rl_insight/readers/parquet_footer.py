"""What the end of a Parquet file says of its row groups and column chunks.

Arrow knows it, too, but its Python objects end the process where one of a chunk's statistics is
damaged: they look at a chunk outside of what catches C++ exceptions. Format: parquet-format,
parquet.thrift, `FileMetaData`.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final, TypeVar

from rl_insight.errors import ReadError
from rl_insight.readers.thrift_compact import BINARY, I32, I64, LIST, STRUCT, Compact

MAGIC: Final = b"PAR1"

_LENGTH_BYTES: Final = 4
# Some 100 bytes for each column of each row group: a thousand groups of 30 columns take 3 MB.
_MOST_BYTES: Final = 16 << 20
_DICTIONARIES: Final = frozenset({2, 8})  # Encoding: PLAIN_DICTIONARY, RLE_DICTIONARY

_Item = TypeVar("_Item")


@dataclass(slots=True)
class Chunk:
    """One column of a row group; offsets and sizes in bytes, -1 where it does not say."""

    column: str = ""
    has_dictionary: bool = False
    unpacked: int = 0
    packed: int = 0
    data_page: int = 0
    dictionary_page: int = -1


@dataclass(slots=True)
class RowGroup:
    """Some rows of the table; a chunk for each of its columns, in the order of the schema."""

    rows: int = 0
    chunks: list[Chunk] = field(default_factory=list)


def row_groups(file: BinaryIO) -> Iterator[RowGroup]:
    """The row groups of a Parquet file, one after the other.

    Raises EOFError at once where the file breaks off before it tells, and ReadError where that is
    damaged, which also iterating may raise.
    """
    tail = file.seek(0, os.SEEK_END) - len(MAGIC) - _LENGTH_BYTES
    file.seek(max(0, tail))
    said = file.read()
    if tail < len(MAGIC) or not said.endswith(MAGIC):
        raise EOFError("it breaks off, and what tells where its rows are stands at its end")
    length = int.from_bytes(said[:_LENGTH_BYTES], "little")
    if not 0 < length <= min(tail, _MOST_BYTES):
        raise ReadError(f"what tells where its rows are is damaged: it has {length} bytes")
    file.seek(tail - length)
    return _row_groups(Compact(file.read(length)))


def _row_groups(values: Compact) -> Iterator[RowGroup]:
    try:
        for number, kind in values.fields():
            if (number, kind) == (4, LIST):
                for _ in range(_count(values, STRUCT)):
                    yield _row_group(values)
            else:
                values.skip(kind)
    except IndexError:
        raise ReadError("what tells where its rows are is damaged") from None


def _count(values: Compact, kind: int) -> int:
    """How many items of that type follow."""
    count, found = values.items()
    if found != kind and count:
        raise IndexError(found)
    return count


def _items(values: Compact, kind: int, read: Callable[[Compact], _Item]) -> list[_Item]:
    return [read(values) for _ in range(_count(values, kind))]


def _row_group(values: Compact) -> RowGroup:
    group = RowGroup()
    for number, kind in values.fields():
        if (number, kind) == (1, LIST):
            group.chunks = _items(values, STRUCT, _chunk)
        elif (number, kind) == (3, I64):
            group.rows = values.number()
        else:
            values.skip(kind)
    return group


def _chunk(values: Compact) -> Chunk:
    chunk = Chunk()
    for number, kind in values.fields():
        if (number, kind) == (3, STRUCT):
            chunk = _metadata(values)
        else:
            values.skip(kind)
    return chunk


def _metadata(values: Compact) -> Chunk:
    chunk = Chunk()
    for number, kind in values.fields():
        if (number, kind) == (2, LIST):
            chunk.has_dictionary = not _DICTIONARIES.isdisjoint(_items(values, I32, Compact.number))
        elif (number, kind) == (3, LIST):
            path = _items(values, BINARY, Compact.binary)
            chunk.column = b".".join(path).decode("utf-8", "replace")
        elif (number, kind) == (6, I64):
            chunk.unpacked = values.number()
        elif (number, kind) == (7, I64):
            chunk.packed = values.number()
        elif (number, kind) == (9, I64):
            chunk.data_page = values.number()
        elif (number, kind) == (11, I64):
            chunk.dictionary_page = values.number()
        else:
            values.skip(kind)
    return chunk
