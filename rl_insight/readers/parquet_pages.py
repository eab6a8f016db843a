"""How much a Parquet file asks for at once, told before it is asked for.

Arrow unpacks a page as a whole, and a dictionary of texts is one page: a file of some hundred
kilobytes can ask for gigabytes. Writers make pages of a megabyte (parquet-format, README.md, «Data
page size»). Format of a page's header: parquet.thrift, `PageHeader`, in Thrift's compact protocol.
"""

from typing import Any, BinaryIO

from rl_insight.errors import ReadError

MOST_PAGE_BYTES = 64 << 20

_HEAD_BYTES = 16
_NEXT_I32 = 0x15  # the next field, of type i32
_REPEATING = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})


def has_dictionary(chunk: Any) -> bool:
    """Whether the values of a column chunk may stand in a dictionary."""
    return not _REPEATING.isdisjoint(chunk.encodings)


def check_pages(file: BinaryIO, chunk: Any) -> None:
    """Look at the first pages of a column chunk: at its dictionary, if it has one, and its values.

    Raises ReadError for one that has more than `MOST_PAGE_BYTES` when unpacked, or damaged sizes.
    """
    places = [chunk.data_page_offset]
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        places.append(chunk.dictionary_page_offset)
    for place in places:
        file.seek(max(0, place))
        size = _unpacked_size(file.read(_HEAD_BYTES))
        if not 0 <= size <= MOST_PAGE_BYTES:
            raise ReadError(
                f"a page of its column {chunk.path_in_schema} has {size} bytes when unpacked, and "
                f"{MOST_PAGE_BYTES} is the limit"
            )


def _unpacked_size(head: bytes) -> int:
    """Field 2 of a page's header, behind its type; 0 where it does not begin as one."""
    at, value = 0, 0
    for _ in ("type", "uncompressed_page_size"):
        if at >= len(head) or head[at] != _NEXT_I32:
            return 0
        at, shift, value = at + 1, 0, 0
        while at < len(head):
            value |= (head[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if head[at - 1] < 0x80:
                break
    return (value >> 1) ^ -(value & 1)
