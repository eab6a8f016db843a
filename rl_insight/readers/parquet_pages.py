"""How much a Parquet file asks for at once, told before it is asked for.

Arrow unpacks a page as a whole, and a dictionary of texts is one page: a file of some hundred
kilobytes can ask for gigabytes. Writers make pages of a megabyte (parquet-format, README.md, «Data
page size»). Format of a page's header: parquet.thrift, `PageHeader`, in Thrift's compact protocol
(thrift-compact-protocol.md): a field's number and type, then its value, until a zero byte.
"""

from typing import Any, BinaryIO

from rl_insight.errors import ReadError

MOST_PAGE_BYTES = 64 << 20

# A column chunk of 100 GB has as many pages of a megabyte.
_MOST_PAGES = 100_000
# A header has some dozens of bytes, and statistics of up to 4 kB each (Arrow's limit).
_HEAD_BYTES = 32 << 10
_REPEATING = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})

# Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 6, 7, 8, 9, 10, 12
_SIZES = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}
_UNPACKED, _PACKED = 2, 3


def has_dictionary(chunk: Any) -> bool:
    """Whether the values of a column chunk may stand in a dictionary."""
    return not _REPEATING.isdisjoint(chunk.encodings)


def check_pages(file: BinaryIO, chunk: Any) -> None:
    """Look at the headers of all pages of a column chunk, one after the other.

    Raises ReadError for a page that has more than `MOST_PAGE_BYTES` when unpacked, for damaged
    headers, and for more pages than anybody writes.
    """
    at = int(chunk.data_page_offset)
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        at = min(at, int(chunk.dictionary_page_offset))
    at = max(0, at)
    end = at + int(chunk.total_compressed_size)
    column = chunk.path_in_schema
    for _ in range(_MOST_PAGES):
        if at >= end:
            return
        file.seek(at)
        head = file.read(_HEAD_BYTES)
        try:
            length, sizes = _sizes(head)
        except IndexError:
            raise ReadError(f"the header of a page of its column {column} is damaged") from None
        unpacked, packed = sizes.get(_UNPACKED, -1), sizes.get(_PACKED, -1)
        if not 0 <= unpacked <= MOST_PAGE_BYTES:
            raise ReadError(
                f"a page of its column {column} has {unpacked} bytes when unpacked, and "
                f"{MOST_PAGE_BYTES} is the limit"
            )
        if packed < 0:
            raise ReadError(f"the header of a page of its column {column} is damaged")
        at += length + packed
    raise ReadError(f"its column {column} has more than {_MOST_PAGES} pages")


def _sizes(head: bytes) -> tuple[int, dict[int, int]]:
    """Length of the page header that `head` begins with, and the whole numbers in it by field.

    Raises IndexError where it does not end in `head`.
    """
    at = field = 0
    numbers: dict[int, int] = {}
    while head[at]:
        kind = head[at] & 0xF
        step = head[at] >> 4
        if step:
            field, at = field + step, at + 1
        else:
            field, at = _varint(head, at + 1)
            field = _signed(field)
        if _BYTE < kind <= _I64:
            number, at = _varint(head, at)
            numbers[field] = _signed(number)
        else:
            at = _behind(head, at, kind)
    return at + 1, numbers


def _behind(head: bytes, at: int, kind: int, depth: int = 0) -> int:
    """Where a value of that type ends that begins at `at`."""
    if kind in _SIZES:
        return at + _SIZES[kind]
    if _BYTE < kind <= _I64:
        return _varint(head, at)[1]
    if kind == _BINARY:
        length, at = _varint(head, at)
        return at + length
    if kind == _STRUCT and depth < 8:
        while head[at]:
            inner, step = head[at] & 0xF, head[at] >> 4
            at = at + 1 if step else _varint(head, at + 1)[1]
            at = _behind(head, at, inner, depth + 1)
        return at + 1
    if kind in (_LIST, _SET) and depth < 8:
        count, inner = head[at] >> 4, head[at] & 0xF
        at += 1
        if count == 0xF:
            count, at = _varint(head, at)
        for _ in range(count):
            # The elements of a list of truth values have a byte each.
            at = at + 1 if inner in (_TRUE, _FALSE) else _behind(head, at, inner, depth + 1)
            if at >= len(head):
                break
        return at
    raise IndexError(kind)


def _varint(head: bytes, at: int) -> tuple[int, int]:
    """The number that begins at `at`, seven bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = head[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise IndexError(at)


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)
