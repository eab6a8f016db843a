"""Time intervals as sorted, disjoint numpy arrays: union, length, clip, overlap, joining.

The bottom layer below every breakdown of time; knows no profiler and no table.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Half-open intervals [start, end) in rising order that neither overlap nor touch.

    `starts` and `ends` are int64 arrays of shape (n,), in one unit (here nanoseconds).
    """

    starts: IntArray
    ends: IntArray

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def total(self) -> int:
        """The summed length."""
        return int((self.ends - self.starts).sum())


_NONE = np.empty(0, np.int64)
EMPTY = Intervals(_NONE, _NONE)


def union(starts: IntArray, ends: IntArray) -> Intervals:
    """The union of any intervals [start, end); those with end <= start count for nothing."""
    some = ends > starts
    if not some.all():
        starts, ends = starts[some], ends[some]
    if len(starts) == 0:
        return EMPTY
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    # How far everything that started up to here reaches: a later start beyond it opens a new one.
    reach = np.maximum.accumulate(ends)
    opens = np.flatnonzero(starts[1:] > reach[:-1]) + 1
    return Intervals(
        np.concatenate((starts[:1], starts[opens])), np.append(reach[opens - 1], reach[-1])
    )


def merged(*parts: Intervals) -> Intervals:
    """The union of several."""
    return union(
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.ends for part in parts]),
    )


def clip(intervals: Intervals, low: int, high: int) -> Intervals:
    """What lies inside the window [low, high)."""
    first = int(np.searchsorted(intervals.ends, low, side="right"))
    last = int(np.searchsorted(intervals.starts, high, side="left"))
    if first >= last:
        return EMPTY
    return Intervals(
        np.maximum(intervals.starts[first:last], low), np.minimum(intervals.ends[first:last], high)
    )


def overlap(one: Intervals, other: Intervals) -> int:
    """The length of the intersection."""
    if not len(one) or not len(other):
        return 0
    return one.total + other.total - merged(one, other).total


def join(intervals: Intervals, most: int, closer_than: int = 0) -> tuple[Intervals, int]:
    """At most `most` (>= 1) intervals, by joining the nearest neighbours, and the gap.

    Neighbours closer than the gap were joined, all others were not. It is `closer_than` when that
    leaves few enough.
    """
    gaps = intervals.starts[1:] - intervals.ends[:-1]
    gap = closer_than
    surplus = len(intervals) - most
    if surplus > 0:
        gap = max(gap, int(np.partition(gaps, surplus - 1)[surplus - 1]) + 1)
    if gap == 0 or not len(intervals):
        return intervals, gap
    opens = np.flatnonzero(gaps >= gap) + 1
    return (
        Intervals(
            np.concatenate((intervals.starts[:1], intervals.starts[opens])),
            np.concatenate((intervals.ends[opens - 1], intervals.ends[-1:])),
        ),
        gap,
    )


class Joiner:
    """Collects intervals that come piece by piece in rising order, and keeps at most `most`.

    The result is the same as joining all of them at once: the gap that leaves `most` of a part is
    never wider than the one that leaves `most` of the whole.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[Intervals] = []
        self._count = 0
        self._gap = 0

    def add(self, intervals: Intervals) -> None:
        """Take the next piece; its first interval may touch the last one of the piece before."""
        self._parts.append(intervals)
        self._count += len(intervals)
        if self._count > 8 * self._most:
            self._shrink()

    def result(self) -> tuple[Intervals, int]:
        """What was collected, and the gap below which neighbours were joined (0: none were)."""
        if self._parts:
            self._shrink()
        return (self._parts[0] if self._parts else EMPTY), self._gap

    def _shrink(self) -> None:
        joined, self._gap = join(merged(*self._parts), self._most, self._gap)
        self._parts, self._count = [joined], len(joined)
