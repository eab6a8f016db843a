"""Has a file changed? Its size and a hash of its two ends, without reading it whole.

A gzip ends in the CRC of all its content, so its tail is enough. Any other file could change in
the middle alone, so its modification time counts too.
"""

import hashlib
from pathlib import Path

from rl_insight.data.tree import File
from rl_insight.readers.gzip_head import GZIP_MAGIC
from rl_insight.readers.pseudo_files import holds_bytes

UNREADABLE = "unreadable:"

_END_BYTES = 65_536


def fingerprint(root: Path, file: File) -> str:
    """A short text that changes when the content of `file` does.

    A file that cannot be read has the fingerprint of its error, which begins with `UNREADABLE`, so
    it is tried again once that changes.
    """
    digest = hashlib.blake2b(digest_size=12)
    try:
        with open(root / file.path, "rb") as stream:
            head = stream.read(_END_BYTES) if holds_bytes(stream) else b""
            if file.size_bytes > _END_BYTES:
                stream.seek(max(_END_BYTES, file.size_bytes - _END_BYTES))
                tail = stream.read(_END_BYTES)
            else:
                tail = b""
    except OSError as error:
        return f"{UNREADABLE}{error.errno}"
    digest.update(head)
    digest.update(tail)
    if not head.startswith(GZIP_MAGIC):
        digest.update(str(file.mtime_ns).encode())
    return f"{file.size_bytes}:{digest.hexdigest()}"
