"""From recorded grouped matmuls to the rows of a heatmap.

The up, gate and down projections of a layer get the same tokens: their calls are one row. An
inference engine records every pass through its layers: its passes are summed.
"""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from rl_insight import tables
from rl_insight.schema import PHASES
from rl_insight.visualizers.heatmap_model import UNKNOWN, Rows, View

_BATCH = 8_192
# An id beyond this comes from a damaged table, and a row is as wide as its largest id.
_MOST_EXPERTS = 2**20


@dataclass(frozen=True, slots=True)
class Calls:
    """What identifies each row of `expert_load`: equally long int64 columns, null is UNKNOWN.

    `sweep` numbers the passes through all layers that are to be summed, `offset` is the global id
    of the first expert.
    """

    segment: np.ndarray
    micro_batch: np.ndarray
    phase: np.ndarray
    layer: np.ndarray
    op_index: np.ndarray
    sweep: np.ndarray
    offset: np.ndarray


@dataclass(frozen=True, slots=True)
class Choice:
    """The calls that a view shows, as a mask, and how many it leaves out for which reason."""

    kept: np.ndarray
    of_other_phases: int
    of_other_batches: int


def choose(calls: Calls, view: View) -> Choice:
    """The calls of `view`; the first micro-batch is the first of each segment."""
    kept = np.ones(len(calls.segment), dtype=bool)
    if view.phase != "all":
        wanted = PHASES.index(view.phase) if view.phase in PHASES else UNKNOWN
        kept = (calls.phase == wanted) | (calls.phase == UNKNOWN)
    of_other_phases = int((~kept).sum())
    if view.micro_batch != "all" and kept.any():
        first = np.full(int(calls.segment.max()) + 1, UNKNOWN)
        np.minimum.at(first, calls.segment[kept], calls.micro_batch[kept])
        batch = calls.micro_batch
        kept &= (batch == UNKNOWN) | (batch == first[calls.segment])
    return Choice(kept, of_other_phases, int((~kept).sum()) - of_other_phases)


def gather(path: Path, calls: Calls, chosen: np.ndarray) -> Rows:
    """The rows of the `chosen` calls (ascending positions), with their loads from `path`.

    Holds each load once, in 32 bits where that is enough, and one batch of the file.
    """
    order, row_of, summed = _grouped(calls, chosen)
    rows = int(row_of[-1]) + 1 if len(order) else 0
    first = order[np.searchsorted(row_of, np.arange(rows))]
    # One call stands for all of its row and pass.
    leading = np.ones(len(order), dtype=bool)
    leading[1:] = (row_of[1:] != row_of[:-1]) | (np.diff(calls.sweep[order]) != 0)
    loads = _Loads(rows)
    target = np.full(len(calls.segment), -1, dtype=np.int64)
    target[order[leading]] = row_of[leading]
    if rows:
        _read(path, target, summed, loads)
    values = loads.joined()
    known = first[loads.length > 0]
    count = np.bincount(row_of, minlength=rows)[loads.length > 0]
    passes = np.bincount(row_of[leading], minlength=rows)[loads.length > 0]
    length, start = loads.length[loads.length > 0], loads.start[loads.length > 0]
    offset = calls.offset[known]
    placed = (offset >= 0) & (offset < _MOST_EXPERTS)
    return Rows(
        segment=calls.segment[known],
        micro_batch=calls.micro_batch[known],
        phase=calls.phase[known],
        layer=calls.layer[known],
        op_index=calls.op_index[known],
        calls=count,
        passes=passes,
        first_expert=np.where(placed, offset, 0),
        placed=placed,
        start=start,
        length=length,
        values=values,
    )


def _grouped(calls: Calls, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The chosen calls sorted, the row of each, and for each row whether it has several passes."""
    part = {field.name: getattr(calls, field.name)[chosen] for field in fields(Calls)}
    # Without a layer each call is a row of its own.
    apart = np.where(part["layer"] == UNKNOWN, part["op_index"], 0)
    names = ("segment", "micro_batch", "phase", "layer")
    keys = [*(part[name] for name in names), apart, part["offset"]]
    at = np.lexsort([part["op_index"], part["sweep"], *reversed(keys)])
    if not len(at):
        return chosen, at, np.zeros(0, dtype=bool)
    new = np.zeros(len(at), dtype=bool)
    for key in keys:
        new[1:] |= np.diff(key[at]) != 0
    row_of = np.cumsum(new)
    sweep = part["sweep"][at]
    several = np.zeros(int(row_of[-1]) + 1, dtype=bool)
    several[row_of[1:][(np.diff(sweep) != 0) & ~new[1:]]] = True
    return chosen[at], row_of, several


class _Loads:
    """The vectors of the rows while they are read, in whatever order the file has them."""

    def __init__(self, rows: int) -> None:
        self.start = np.zeros(rows, dtype=np.int64)
        self.length = np.zeros(rows, dtype=np.int64)
        self._pieces: list[np.ndarray] = []
        self._size = 0
        self._sums: dict[int, np.ndarray] = {}

    def put(self, rows: np.ndarray, lengths: np.ndarray, values: np.ndarray) -> None:
        """Keep the vectors of `rows`, which lie in `values` one after the other."""
        ends = self._size + np.cumsum(lengths)
        self.start[rows], self.length[rows] = ends - lengths, lengths
        self._pieces.append(_narrow(values))
        self._size += len(values)

    def add(self, row: int, values: np.ndarray) -> None:
        """Add one pass to the sum of a row."""
        total = self._sums.get(row)
        if total is None or len(total) < len(values):
            grown = np.zeros(len(values), dtype=np.int64)
            if total is not None:
                grown[: len(total)] = total
            total = self._sums[row] = grown
        total[: len(values)] += values

    def joined(self) -> np.ndarray:
        """All values; `start` and `length` say where each row's are."""
        for row, total in self._sums.items():
            self.put(np.array([row]), np.array([len(total)]), total)
        return np.concatenate(self._pieces) if self._pieces else np.zeros(0, dtype=np.int64)


def _read(path: Path, target: np.ndarray, summed: np.ndarray, loads: _Loads) -> None:
    """Bring the vectors of the file's rows to `target`, the row of each, -1 where it is none."""
    done = 0
    with tables.opened(path) as file:
        for batch in file.iter_batches(_BATCH, columns=["load"], use_threads=False):
            column = batch.column(0)
            rows = target[done : done + len(column)]
            done += len(column)
            offsets = np.asarray(column.offsets.to_numpy(), dtype=np.int64)
            values = column.values.fill_null(0).to_numpy(zero_copy_only=False)
            lengths = np.diff(offsets)
            wanted = rows >= 0
            alone = wanted.copy()
            alone[wanted] = ~summed[rows[wanted]]
            mask = np.repeat(alone, lengths)
            loads.put(rows[alone], lengths[alone], values[offsets[0] : offsets[-1]][mask])
            for at in np.flatnonzero(wanted & ~alone).tolist():
                loads.add(int(rows[at]), values[offsets[at] : offsets[at + 1]])


def _narrow(values: np.ndarray) -> np.ndarray:
    limits = np.iinfo(np.int32)
    if len(values) and (values.min() < limits.min or values.max() > limits.max):
        return values.astype(np.int64)
    return values.astype(np.int32)
