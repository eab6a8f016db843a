"""The operations of one stage that account for nearly all of its device time."""

import numpy as np

from rl_insight.parsers.device_time import Counted
from rl_insight.parsers.op_names import OTHER, OpNames
from rl_insight.schema import CATEGORIES

COVERED = 0.99
"""The share of each category's time that the rows with a name of their own cover, at least."""


class OpTally:
    """Counts operations by name; an operation belongs to the stage in which it starts."""

    def __init__(self, names: OpNames) -> None:
        self._names = names
        self._counts = np.zeros(0, np.int64)
        self._totals = np.zeros(0, np.int64)
        self._maxima = np.zeros(0, np.int64)

    def add(self, counted: Counted) -> None:
        """Count more operations."""
        if len(counted) == 0:
            return
        self._grow(len(self._names))
        # Sums in doubles are exact here: 2**53 ns are 104 days of device time.
        for column, values in ((self._counts, counted.counts), (self._totals, counted.totals)):
            column += np.bincount(counted.codes, values, len(column)).astype(np.int64)
        np.maximum.at(self._maxima, counted.codes, counted.maxima)

    def rows(self) -> list[dict[str, object]]:
        """Rows of the `ops` table without `span_id`: per category the top names, then the rest."""
        if not self._counts.any():
            return []
        categories = np.array(self._names.categories[: len(self._counts)])
        rows: list[dict[str, object]] = []
        for index, category in enumerate(CATEGORIES):
            codes = np.flatnonzero((categories == index) & (self._counts > 0))
            rows += [{"category": category, **row} for row in self._top(codes)]
        return rows

    def _grow(self, length: int) -> None:
        more = length - len(self._counts)
        if more > 0:
            self._counts = np.append(self._counts, np.zeros(more, np.int64))
            self._totals = np.append(self._totals, np.zeros(more, np.int64))
            self._maxima = np.append(self._maxima, np.zeros(more, np.int64))

    def _top(self, codes: np.ndarray) -> list[dict[str, object]]:
        codes = codes[np.argsort(-self._totals[codes], kind="stable")]
        names = [self._names.names[code] for code in codes.tolist()]
        running = np.cumsum(self._totals[codes])
        named = int(np.searchsorted(running, COVERED * running[-1])) + 1 if len(codes) else 0
        # One row for one name takes no more room than one for «the rest».
        if named == len(codes) - 1:
            named += 1
        top = [self._row(codes[i : i + 1], names[i]) for i in range(named) if names[i] != OTHER]
        rest = np.array(
            [code for i, code in enumerate(codes) if i >= named or names[i] == OTHER], dtype=int
        )
        return [*top, self._row(rest, OTHER)] if len(rest) else top

    def _row(self, codes: np.ndarray, name: str) -> dict[str, object]:
        return {
            "name": name,
            "count": int(self._counts[codes].sum()),
            "total_ns": int(self._totals[codes].sum()),
            "max_ns": int(self._maxima[codes].max()),
        }
