"""One device's time seen through the stages: rows of `breakdown`, `activity` and `ops`.

Neutral to profilers. All three come out of one pass over the device's time in its order.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rl_insight.breakdown import Breakdown, measure
from rl_insight.intervals import Intervals, Joiner
from rl_insight.parsers.device_time import DeviceTime, Piece
from rl_insight.parsers.op_names import OpNames
from rl_insight.parsers.ops import OpTally
from rl_insight.schema import CATEGORIES, MAX_ACTIVITY_INTERVALS


@dataclass(slots=True)
class Seen:
    """What the device did.

    `breakdowns` has one entry per window, None where no device activity lies in it. `ops` are rows
    of that table with `window`, the index of their window, in the place of `span_id`. `activity`
    is, per category, its intervals and the gap below which neighbours were joined (ns).
    """

    breakdowns: list[Breakdown | None]
    ops: list[dict[str, object]] = field(default_factory=list)
    activity: dict[str, tuple[Intervals, int]] = field(default_factory=dict)


class _Window:
    def __init__(self, index: int, low: int, high: int, names: OpNames) -> None:
        self.index = index
        self.low = low
        self.high = high
        self._breakdown = Breakdown()
        self._ops = OpTally(names)

    def add(self, piece: Piece) -> None:
        low, high = max(self.low, piece.low), min(self.high, piece.high)
        if low >= high:
            return
        self._breakdown += measure(piece.busy, low, high)
        counted = piece.counted
        if self.low > piece.low or self.high < piece.high:
            counted = counted.select((counted.starts >= self.low) & (counted.starts < self.high))
        self._ops.add(counted)

    def close(self, into: Seen) -> None:
        if self._breakdown.device_start_ns is None:
            return
        # Before the device's first activity and after its last there is no piece: it was free.
        beyond = (self.high - self.low) - self._breakdown.window_ns
        into.breakdowns[self.index] = replace(
            self._breakdown,
            window_ns=self.high - self.low,
            free_ns=self._breakdown.free_ns + beyond,
        )
        into.ops += [{"window": self.index, **row} for row in self._ops.rows()]


def see(device: DeviceTime, windows: Sequence[tuple[int, int]], names: OpNames) -> Seen:
    """What `device` did in each of `windows` [start, end) ns, which may overlap, and over all."""
    seen = Seen([None] * len(windows))
    joiners = [Joiner(MAX_ACTIVITY_INTERVALS) for _ in CATEGORIES]
    by_start = sorted(enumerate(windows), key=lambda one: one[1])
    waiting = deque(_Window(index, low, high, names) for index, (low, high) in by_start)
    current: list[_Window] = []
    for piece in device.pieces():
        for joiner, category in zip(joiners, CATEGORIES, strict=True):
            joiner.add(getattr(piece.busy, category))
        while waiting and waiting[0].low < piece.high:
            current.append(waiting.popleft())
        still = []
        for window in current:
            window.add(piece)
            if window.high > piece.high:
                still.append(window)
            else:
                window.close(seen)
        current = still
    for window in current:
        window.close(seen)
    for joiner, category in zip(joiners, CATEGORIES, strict=True):
        intervals, gap = joiner.result()
        if len(intervals):
            seen.activity[category] = (intervals, max(gap, device.joined_gap_ns))
    return seen
