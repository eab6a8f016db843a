"""Rows of expert load, collected into tables of a bounded size."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from rl_insight import tables
from rl_insight.schema import EXPERT_LOAD

# With 128 experts 2 MB of numbers; longer vectors end a table sooner.
_MOST_ROWS = 2_048
_MOST_NUMBERS = 256 << 10


@dataclass(slots=True)
class LoadRows:
    """Collects rows of `expert_load` of one source.

    Columns that no row was given stay null.
    """

    source_id: str
    _columns: dict[str, list[object]] = field(default_factory=dict)
    _loads: list[np.ndarray] = field(default_factory=list)
    _numbers: int = 0

    def add(self, load: np.ndarray, **columns: object) -> None:
        """Append a row: int64 `load`, and columns of the schema by name."""
        rows = len(self._loads)
        for name, value in columns.items():
            if value is not None:
                column = self._columns.setdefault(name, [])
                column += [None] * (rows - len(column))
                column.append(value)
        self._loads.append(load)
        self._numbers += len(load)

    @property
    def full(self) -> bool:
        """Whether it is time to take the table."""
        return len(self._loads) >= _MOST_ROWS or self._numbers >= _MOST_NUMBERS

    def __len__(self) -> int:
        return len(self._loads)

    def take(self) -> pa.Table:
        """The rows since the last call."""
        rows = len(self._loads)
        for column in self._columns.values():
            column += [None] * (rows - len(column))
        table = tables.table(
            EXPERT_LOAD,
            {"source_id": [self.source_id] * rows, **self._columns, "load": self._loads},
        )
        self._columns, self._loads, self._numbers = {}, [], 0
        return table
