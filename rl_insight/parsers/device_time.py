"""What one device did and when, kept small for any number of events, given back in time order.

Neutral to profilers: an event is a start, a duration and a code of `OpNames`. Some 14 bytes are
kept per event. Beyond a limit the events become united intervals per class, and their operations
sums over short stretches of time; from there on the order of events inside such a stretch is lost,
and neighbouring intervals may be joined, which `joined_gap_ns` tells.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rl_insight.breakdown import Busy
from rl_insight.intervals import EMPTY, IntArray, Intervals, Joiner, clip, union
from rl_insight.parsers.op_names import OpNames
from rl_insight.schema import CATEGORIES

Codes = npt.NDArray[np.uint16]

# 3 million events take 42 MB.
_MOST_EVENTS = 3_000_000
# Events that are sorted and united at a time: some 6 MB of working memory.
_PIECE = 65_536
_SAMPLING = 64
# Stretches of time per capture over which operations are summed, once there are too many events.
_STRETCHES = 4_096


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Operations by their first start: arrays of one length; times in ns."""

    starts: IntArray
    codes: Codes
    counts: IntArray
    totals: IntArray
    maxima: IntArray

    def __len__(self) -> int:
        return len(self.starts)

    def select(self, chosen: npt.NDArray[np.bool_ | np.intp]) -> "Counted":
        """The rows where `chosen` is True, or those with the indices that it lists."""
        return Counted(
            self.starts[chosen],
            self.codes[chosen],
            self.counts[chosen],
            self.totals[chosen],
            self.maxima[chosen],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """The device's time in [low, high) ns: `busy` is cut there, `counted` holds what starts there.

    Consecutive pieces touch.
    """

    low: int
    high: int
    busy: Busy
    counted: Counted


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """Events as they came; durations take 4 bytes where they fit."""

    starts: IntArray
    durations: npt.NDArray[np.unsignedinteger] | IntArray
    codes: Codes
    low: int
    high: int

    def between(self, low: int, high: int) -> "_Chunk":
        if low <= self.low and self.high < high:
            return self
        inside = (self.starts >= low) & (self.starts < high)
        return _Chunk(self.starts[inside], self.durations[inside], self.codes[inside], low, high)


_NO_TIMES: IntArray = np.empty(0, np.int64)
_NO_EVENTS = _Chunk(_NO_TIMES, _NO_TIMES, np.empty(0, np.uint16), 0, 0)


class DeviceTime:
    """All activity of one device."""

    def __init__(self, names: OpNames, most_events: int = _MOST_EVENTS) -> None:
        self._names = names
        self._most = most_events
        self._chunks: list[_Chunk] = []
        self._sums = Counted(_NO_TIMES, _NO_EVENTS.codes, _NO_TIMES, _NO_TIMES, _NO_TIMES)
        self._events = 0
        self._end = 0
        self.total_ns = 0
        self.joined_gap_ns = 0

    def __bool__(self) -> bool:
        return bool(self._chunks) or len(self._sums) > 0

    def add(self, starts: IntArray, durations: IntArray, codes: npt.NDArray[np.integer]) -> None:
        """Take events; arrays of one length, times in ns, durations >= 0."""
        if len(starts) == 0:
            return
        self.total_ns += int(durations.sum())
        self._end = max(self._end, int((starts + durations).max()))
        self._append(starts, durations, codes)
        if self._events > self._most:
            self._compact()

    def absorb(self, other: "DeviceTime") -> None:
        """Take all events of `other`, which must not be used any more."""
        self._chunks += other._chunks
        self._events += other._events
        sums = _together([self._sums, other._sums])
        self._sums = sums.select(np.argsort(sums.starts, kind="stable"))
        self._end = max(self._end, other._end)
        self.total_ns += other.total_ns
        self.joined_gap_ns = max(self.joined_gap_ns, other.joined_gap_ns)

    def pieces(self) -> Iterator[Piece]:
        """All activity in time order, in pieces that cover it from its first start to its end."""
        if not self:
            return
        categories = np.array(self._names.categories, dtype=np.int8)
        going_on = [0] * len(CATEGORIES)  # how far each class reaches beyond the pieces so far
        for low, high in pairwise(self._bounds()):
            parts = [
                _NO_EVENTS,
                *(
                    chunk.between(low, high)
                    for chunk in self._chunks
                    if chunk.low < high and chunk.high >= low
                ),
            ]
            starts = np.concatenate([part.starts for part in parts])
            durations = np.concatenate([part.durations for part in parts]).astype(np.int64)
            codes = np.concatenate([part.codes for part in parts])
            category = categories[codes]
            classes = []
            for index, until in enumerate(going_on):
                own = category == index
                united = _united(starts[own], durations[own], low, until)
                going_on[index] = int(united.ends[-1]) if len(united) else 0
                classes.append(clip(united, low, high))
            counted = self._counted(starts, durations, codes, low, high)
            yield Piece(low, high, Busy(*classes), counted)

    def _append(
        self, starts: IntArray, durations: IntArray, codes: npt.NDArray[np.integer]
    ) -> None:
        short = int(durations.max()) < 2**32
        self._chunks.append(
            _Chunk(
                starts,
                durations.astype(np.uint32) if short else durations,
                codes.astype(np.uint16),
                int(starts.min()),
                int(starts.max()),
            )
        )
        self._events += len(starts)

    def _bounds(self) -> list[int]:
        """Points in time between which about `_PIECE` events start."""
        chunks = self._chunks
        sample = np.concatenate([_NO_TIMES, *(chunk.starts[::_SAMPLING] for chunk in chunks)])
        sample.sort()
        # Not by `np.unique`: it imports numpy.ma, 25 ms in every job.
        cuts = sorted(set(sample[_PIECE // _SAMPLING :: _PIECE // _SAMPLING].tolist()))
        # What has no length leaves no interval behind, but it was counted.
        edges = [*(chunk.low for chunk in chunks), *(chunk.high for chunk in chunks)]
        edges += self._sums.starts[[0, -1]].tolist() if len(self._sums) else []
        first, last = min(edges), max(self._end, 1 + max(edges))
        return [first, *(cut for cut in cuts if first < cut < last), last]

    def _counted(
        self, starts: IntArray, durations: IntArray, codes: Codes, low: int, high: int
    ) -> Counted:
        named = codes >= len(CATEGORIES)
        events = Counted(starts, codes, np.ones_like(starts), durations, durations)
        if not named.all():
            events = events.select(named)
        sums = self._sums.select((self._sums.starts >= low) & (self._sums.starts < high))
        return _together([events, sums]) if len(sums) else events

    def _compact(self) -> None:
        """Give up single events: united intervals per class, and sums of operations."""
        joiners = [Joiner(self._most // 8) for _ in CATEGORIES]
        length = self._end - self._bounds()[0]
        width = max(1, length // _STRETCHES)
        sums = []
        for piece in self.pieces():
            for joiner, intervals in zip(joiners, _classes(piece.busy), strict=True):
                joiner.add(intervals)
            sums.append(_summed(piece.counted, width))
        combined = _together(sums)
        # In one stretch there is one sum for each name: no fewer are possible.
        while len(combined) > self._most // 8 and width <= length:
            width *= 2
            combined = _summed(combined, width)
        self._sums = combined.select(np.argsort(combined.starts, kind="stable"))
        self._chunks, self._events = [], 0
        for index, joiner in enumerate(joiners):
            intervals, gap = joiner.result()
            self.joined_gap_ns = max(self.joined_gap_ns, gap)
            if len(intervals):
                code = self._names.united(index)
                self._append(
                    intervals.starts,
                    intervals.ends - intervals.starts,
                    np.full(len(intervals), code, dtype=np.uint16),
                )


def _classes(busy: Busy) -> tuple[Intervals, Intervals, Intervals]:
    return busy.computing, busy.communication, busy.memory


def _united(starts: IntArray, durations: IntArray, low: int, until: int) -> Intervals:
    """The union of events and of what still went on at `low`, up to `until`."""
    if until > low:
        starts, durations = np.append(starts, low), np.append(durations, until - low)
    return union(starts, starts + durations) if len(starts) else EMPTY


def _together(parts: list[Counted]) -> Counted:
    return Counted(
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.totals for part in parts]),
        np.concatenate([part.maxima for part in parts]),
    )


def _summed(rows: Counted, width: int) -> Counted:
    """`rows` of one name inside one stretch of `width` ns become one."""
    if len(rows) == 0:
        return rows
    # Counted from the first, or the product would not fit.
    keys = (rows.starts - rows.starts.min()) // width * 2**16 + rows.codes
    order = np.argsort(keys, kind="stable")
    opens = np.flatnonzero(np.diff(keys[order], prepend=keys[order[0]] - 1))
    return Counted(
        np.minimum.reduceat(rows.starts[order], opens),
        rows.codes[order][opens],
        np.add.reduceat(rows.counts[order], opens),
        np.add.reduceat(rows.totals[order], opens),
        np.maximum.reduceat(rows.maxima[order], opens),
    )
