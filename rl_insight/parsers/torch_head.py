"""The beginning of a trace file: enough to tell what it is, and often whose."""

import re
import zlib
from collections.abc import Mapping
from typing import Final

from rl_insight.data.tree import File, Tree

HEAD: Final = 65_536

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_AND_ZLIB_HEADER = 47

_INFO = re.compile(rb'"distributedInfo"\s*:\s*\{')
_EVENTS = b'"traceEvents"'
_RANK = re.compile(rb'"rank"\s*:\s*"?([0-9]{1,9})"?\s*[,}]')


def told_rank(tree: Tree, file: File) -> Mapping[str, object]:
    """`rank_id`, when the trace says it before its events; else nothing, and parsing tells.

    Newer kineto writes `distributedInfo` there (libkineto, output_json.cpp). What stands among the
    events does not count: a name in them may hold anything.
    """
    text, _ = unpacked(tree.head(file.path, HEAD), file.size_bytes)
    before = text.partition(_EVENTS)[0]
    info = _INFO.search(before)
    found = _RANK.search(before, info.end()) if info else None
    return {"rank_id": int(found[1])} if found else {}


def unpacked(head: bytes, size: int) -> tuple[bytes, bool]:
    """The beginning of the text, and whether that is all of it; empty where nothing is certain."""
    if not head.startswith(_GZIP_MAGIC):
        return head, len(head) == size
    unpacker = zlib.decompressobj(_GZIP_AND_ZLIB_HEADER)
    try:
        return unpacker.decompress(head, HEAD), unpacker.eof
    except zlib.error:
        return b"", False
