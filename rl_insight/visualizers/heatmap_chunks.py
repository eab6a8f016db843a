"""The rows of a heatmap as compact bytes, from which a browser takes only what it shows.

A chunk is one role in one step: its columns and its loads one after the other, packed by zlib and
written as base64. Integers of several bytes lie byte by byte (all lowest bytes, then all second
ones, …), which packs better and needs no agreement about byte order.
"""

import base64
import zlib
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rl_insight.visualizers.heatmap_budget import Fitted
from rl_insight.visualizers.heatmap_model import UNKNOWN, Group

# In this order in a chunk, then the loads. `rank` is a position in `Chunk.ranks`. In all of them 0
# is null and n + 1 stands for n.
COLUMNS = ("rank", "micro_batch", "phase", "layer", "op_index", "passes", "first", "length")


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows of one role in one step, in the order of `Rows`.

    `recordings` are parallel to `ranks`, as in `Segment`: which dump of several of one rank it is.
    `kinds` tells how each of COLUMNS and, last, the loads are written: `u1`, `u2`, `u4`, or `f8`
    (little-endian) for numbers beyond. `placed` holds where expert ids are global, `comparable`
    where one id is one expert on all ranks: there, and where that is assumed. `summed` says of how
    many ranks a rank of the chunk is the sum (1: none). `data` is base64 of zlib.
    """

    step: int | None
    role: str | None
    ranks: tuple[int | None, ...]
    recordings: tuple[int, ...]
    placed: bool
    comparable: bool
    summed: int
    rows: int
    cells: int
    kinds: tuple[str, ...]
    data: str


def chunks(fitted: Fitted, ids_local: frozenset[Group]) -> list[Chunk]:
    """All rows of `fitted`, which are sorted by step, role and rank.

    `ids_local` are the groups where one id may be different experts on different ranks.
    """
    rows, segments = fitted.rows, fitted.segments
    if not len(rows):
        return []
    places = [(segments[at].step, segments[at].role) for at in rows.segment.tolist()]
    edges = [0, *(at for at in range(1, len(places)) if places[at] != places[at - 1]), len(places)]
    return [_chunk(fitted, ids_local, slice(*edge)) for edge in pairwise(edges)]


def packed(values: np.ndarray) -> tuple[str, bytes]:
    """How `values`, at least 0 or whatever a damaged table had, are written, and the bytes."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    for width in (1, 2, 4):
        if low >= 0 and high < 256**width:
            planes = np.ascontiguousarray(values, dtype=f"<u{width}").view(np.uint8)
            return f"u{width}", planes.reshape(-1, width).T.tobytes()
    return "f8", values.astype("<f8").tobytes()


def _chunk(fitted: Fitted, ids_local: frozenset[Group], part: slice) -> Chunk:
    rows, segments = fitted.rows, fitted.segments
    segment, placed = rows.segment[part], rows.placed[part]
    known = np.unique(segment)
    first, length = rows.first_expert[part], rows.length[part]
    columns = {
        "rank": np.searchsorted(known, segment),
        "micro_batch": rows.micro_batch[part],
        "phase": rows.phase[part],
        "layer": rows.layer[part],
        "op_index": rows.op_index[part],
        "passes": rows.passes[part],
        "first": first,
        "length": length,
    }
    loads = np.concatenate([rows.load(row) for row in range(part.start, part.stop)])
    written = [packed(_counted(columns[name])) for name in COLUMNS] + [packed(loads)]
    content = zlib.compress(b"".join(content for _, content in written), 6)
    head = segments[int(known[0])]
    return Chunk(
        step=head.step,
        role=head.role,
        ranks=tuple(segments[at].rank_id for at in known.tolist()),
        recordings=tuple(segments[at].recording for at in known.tolist()),
        placed=bool(placed.all()),
        comparable=bool(placed.all() or not (placed.any() or (head.step, head.role) in ids_local)),
        summed=fitted.summed[int(known[0])],
        rows=len(segment),
        cells=len(loads),
        kinds=tuple(kind for kind, _ in written),
        data=base64.b64encode(content).decode("ascii"),
    )


def _counted(column: np.ndarray) -> np.ndarray:
    return np.where(column == UNKNOWN, 0, column + 1)
