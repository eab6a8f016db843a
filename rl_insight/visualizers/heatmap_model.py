"""Expert load as plain data: what the picture and the page draw.

Rows of these structures are lines of the heatmap, not lines of the table: the grouped matmuls of
one layer are one row.
"""

from dataclasses import dataclass

import numpy as np

from rl_insight.problems import Problem
from rl_insight.schema import PHASES
from rl_insight.visualizers.troubles import Trouble

# Stands for null in the integer columns below; the largest number, so that it sorts last.
UNKNOWN = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class View:
    """Which rows are wanted: a phase or `all`, and the `first` micro-batch or `all`.

    Rows whose phase or micro-batch is not known belong to every view.
    """

    phase: str = "forward"
    micro_batch: str = "first"


ALL = View("all", "all")

Group = tuple[int | None, str | None]
"""A step and a role; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows that belong together: one rank in one role and step; None where it is not known.

    `recording` numbers the dumps that are of one rank, or of unknown ones, from 1 on; it is 0 where
    there is one only.
    """

    step: int | None
    role: str | None
    rank_id: int | None
    recording: int = 0


@dataclass(frozen=True, slots=True)
class Rows:
    """Equally long columns, one entry per row, sorted by segment, micro-batch, phase and layer.

    All are int64 and `UNKNOWN` where null; `phase` is a position in `PHASES`. `segment` indexes
    `Heatmap.segments`. `op_index` is the first of the `calls` that make the row; where `layer` is
    unknown it tells rows apart. `passes` says over how many sweeps through the layers the tokens
    are summed (1: not at all). The row's experts are `first_expert`, `first_expert + 1`, …;
    `placed` holds where these are global ids, else they count from 0 on each rank. Their tokens
    are `values[start : start + length]`.
    """

    segment: np.ndarray
    micro_batch: np.ndarray
    phase: np.ndarray
    layer: np.ndarray
    op_index: np.ndarray
    calls: np.ndarray
    passes: np.ndarray
    first_expert: np.ndarray
    placed: np.ndarray
    start: np.ndarray
    length: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.segment)

    def load(self, row: int) -> np.ndarray:
        """Tokens per expert of one row."""
        start = int(self.start[row])
        return self.values[start : start + int(self.length[row])]

    @property
    def experts(self) -> int:
        """How many columns all rows need: one more than the largest expert id."""
        return int((self.first_expert + self.length).max()) if len(self) else 0

    def tick(self, row: int) -> str:
        """`layer3`, or `op12` where the layer is not known."""
        if self.layer[row] != UNKNOWN:
            return f"layer{self.layer[row]}"
        return f"op{self.op_index[row]}" if self.op_index[row] != UNKNOWN else "op?"


@dataclass(frozen=True, slots=True)
class LoadKind:
    """What `rows` of the drawn vectors were in their files, and what says so; None is unknown."""

    kind: str | None
    told_by: str | None
    rows: int


@dataclass(frozen=True, slots=True)
class LayerBalance:
    """How evenly one layer's tokens were spread over its experts, all ranks together."""

    step: int | None
    role: str | None
    layer: int | None
    op_index: int | None
    ranks: int
    experts: int
    total: int
    argmax: int | None
    max_over_mean: float | None


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Everything that a heatmap shows.

    `recorded` counts the rows of the table; of these, `of_other_phases` and `of_other_batches` are
    not in the view and `without_loads` hold no expert. `recorders` are the parsers of the rows
    (`gmm`, `sglang`). `notes` are what the structure step decided or doubted, `troubles` the
    sources that gave less than they should, of `sources` in all. `ids_local` are the groups where
    one index may be different experts on different ranks; in all others that have no global ids it
    is taken for one expert, as nothing speaks of expert parallelism. `missing` says in sentences
    which recordings there should be besides.
    """

    view: View
    segments: list[Segment]
    rows: Rows
    recorded: int
    of_other_phases: int
    of_other_batches: int
    without_loads: int
    recorders: tuple[str, ...]
    kinds: list[LoadKind]
    balance: list[LayerBalance]
    notes: list[Problem]
    troubles: list[Trouble]
    sources: int
    ids_local: frozenset[Group]
    missing: tuple[str, ...] = ()

    @property
    def ranks(self) -> list[int]:
        """The known ranks, ascending."""
        known = {segment.rank_id for segment in self.segments if segment.rank_id is not None}
        return sorted(known)

    @property
    def steps(self) -> list[int]:
        """The known steps, ascending."""
        return sorted({segment.step for segment in self.segments if segment.step is not None})

    @property
    def roles(self) -> list[str]:
        """The known roles by name."""
        return sorted({segment.role for segment in self.segments if segment.role is not None})

    @property
    def phases(self) -> list[str]:
        """The known phases among the rows."""
        return [name for at, name in enumerate(PHASES) if bool((self.rows.phase == at).any())]

    def troubled(self, status: str) -> int:
        """How many sources have that status."""
        return sum(trouble.status == status for trouble in self.troubles)
