"""Packed captures and results of the Ascend profiler that are no part of a capture's own files."""

import re
from collections.abc import Iterator, Mapping, Sequence

from rl_insight.data import packings
from rl_insight.data.ascend_captures import (
    OUTPUT,
    AscendCapture,
    is_database,
    is_packed_capture,
    is_packed_result,
)
from rl_insight.data.tree import File, Tree

# What hardly any of 100,000 paths has, and all that are looked for.
_WORTH_A_LOOK = re.compile(rf"ascend_pt\.|trace_view|ascend_pytorch_profiler|{OUTPUT}\.")


def packed_apart(tree: Tree, captures: Sequence[AscendCapture]) -> Iterator[tuple[str, str | None]]:
    """Every file in `tree` in which a capture or a result is packed, beside `captures`' own files.

    With each comes the path of what is read in its place; None where that is lost.
    """
    packed = [
        file.path for file in tree.files if _WORTH_A_LOOK.search(file.path) and _is_packed(file)
    ]
    if not packed:
        return
    sizes = {file.path: file.size_bytes for file in tree.files}
    known = {one.folder: one for one in captures}
    own = {path for one in captures for path in one.files}
    for path in packed:
        if path not in own:
            yield path, _instead(path, known, sizes)


def _is_packed(file: File) -> bool:
    return is_packed_capture(file.name) or is_packed_result(file.path)


def _instead(path: str, known: dict[str, AscendCapture], sizes: Mapping[str, int]) -> str | None:
    bare = packings.split(path)[0]
    if is_packed_capture(path.rpartition("/")[2]):
        capture = known.get(bare)
        there = capture is not None and (capture.raw or _has_result(capture, sizes))
        return bare if there else None
    twins = (bare, f"{bare}.gz") if packings.may_be_gzip(bare) else (bare,)
    twin = next((one for one in twins if sizes.get(one) and one != path), None)
    if twin is not None:
        return twin
    folder = path.rpartition("/")[0]
    if folder.rpartition("/")[2] == OUTPUT:
        folder = folder.rpartition("/")[0]
    capture = known.get(folder)
    if capture is None or not _has_result(capture, sizes):
        return None
    # The databases of several ranks may lie in one folder.
    other_rank = is_database(bare) and bool(capture.databases)
    return None if other_rank else capture.files[0]


def _has_result(capture: AscendCapture, sizes: Mapping[str, int]) -> bool:
    return any(sizes[path] for path in (*capture.databases, *capture.traces))
