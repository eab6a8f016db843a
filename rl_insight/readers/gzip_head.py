"""The first bytes of a file that may be packed: enough to tell what it is, and often whose."""

import zlib
from typing import Final

GZIP_MAGIC: Final = b"\x1f\x8b"
"""How every gzip file begins (RFC 1952, section 2.3.1)."""

HEAD_BYTES: Final = 65_536
"""How much of a file is looked at, and how much text is unpacked of that at the most."""

# zlib.h, inflateInit2: a window of 32 kB (15), and 32 for a header of gzip or of zlib.
_WINDOW_AND_HEADER: Final = 15 + 32


def unpacked(head: bytes, size: int) -> tuple[bytes, bool]:
    """The beginning of the text of a file of `size` bytes that starts with `head`, and whether
    that is all of it; no text where it is packed and damaged.
    """
    if not head.startswith(GZIP_MAGIC):
        return head, len(head) == size
    unpacker = zlib.decompressobj(_WINDOW_AND_HEADER)
    try:
        return unpacker.decompress(head, HEAD_BYTES), unpacker.eof
    except zlib.error:
        return b"", False
