"""The beginning of a trace file: enough to tell what it is, and often whose."""

import re
from collections.abc import Mapping

from rl_insight.data.tree import File, Tree
from rl_insight.readers.gzip_head import HEAD_BYTES, unpacked

_INFO = re.compile(rb'"distributedInfo"\s*:\s*\{')
_EVENTS = b'"traceEvents"'
_RANK = re.compile(rb'"rank"\s*:\s*"?([0-9]{1,9})"?\s*[,}]')


def told_rank(tree: Tree, file: File) -> Mapping[str, object]:
    """`rank_id`, when the trace says it before its events; else nothing, and parsing tells.

    Newer kineto writes `distributedInfo` there (libkineto, output_json.cpp). What stands among the
    events does not count: a name in them may hold anything.
    """
    text, _ = unpacked(tree.head(file.path, HEAD_BYTES), file.size_bytes)
    before = text.partition(_EVENTS)[0]
    info = _INFO.search(before)
    found = _RANK.search(before, info.end()) if info else None
    return {"rank_id": int(found[1])} if found else {}
