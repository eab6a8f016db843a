"""How much a Parquet file asks for at once, told before it is asked for.

Arrow unpacks a page as a whole, and a dictionary of texts is one page: a file of some hundred
kilobytes can ask for gigabytes. Writers make pages of a megabyte (parquet-format, README.md, «Data
page size»). Format of a page's header: parquet.thrift, `PageHeader`.
"""

from typing import BinaryIO

from rl_insight.errors import ReadError
from rl_insight.readers.parquet_footer import Chunk
from rl_insight.readers.thrift_compact import I32, Compact

MOST_PAGE_BYTES = 64 << 20

# A column chunk of 100 GB has as many pages of a megabyte.
_MOST_PAGES = 100_000
# A header has some dozens of bytes, and statistics of up to 4 kB each (Arrow's limit).
_HEAD_BYTES = 32 << 10


def check_pages(file: BinaryIO, chunk: Chunk) -> None:
    """Look at the headers of all pages of a column chunk, one after the other.

    Raises ReadError for a page that has more than `MOST_PAGE_BYTES` when unpacked, for damaged
    headers, and for more pages than anybody writes.
    """
    at = chunk.data_page
    if chunk.dictionary_page >= 0:
        at = min(at, chunk.dictionary_page)
    at = max(0, at)
    end = at + chunk.packed
    for _ in range(_MOST_PAGES):
        if at >= end:
            return
        file.seek(at)
        try:
            length, unpacked, packed = _sizes(file.read(_HEAD_BYTES))
        except IndexError:
            raise _damaged(chunk) from None
        if not 0 <= unpacked <= MOST_PAGE_BYTES:
            raise ReadError(
                f"a page of its column {chunk.column} has {unpacked} bytes when unpacked, and "
                f"{MOST_PAGE_BYTES} is the limit"
            )
        if packed < 0:
            raise _damaged(chunk)
        at += length + packed
    raise ReadError(f"its column {chunk.column} has more than {_MOST_PAGES} pages")


def _damaged(chunk: Chunk) -> ReadError:
    return ReadError(f"the header of a page of its column {chunk.column} is damaged")


def _sizes(head: bytes) -> tuple[int, int, int]:
    """Bytes of the page header that `head` begins with, and of its page, unpacked and packed.

    -1 for what it does not say. Raises IndexError where it does not end in `head`.
    """
    values = Compact(head)
    unpacked = packed = -1
    for number, kind in values.fields():
        if (number, kind) == (2, I32):
            unpacked = values.number()
        elif (number, kind) == (3, I32):
            packed = values.number()
        else:
            values.skip(kind)
    return values.at, unpacked, packed
