"""From when to when a capture really goes, although some of its times are nonsense.

Real files hold events at time 0, at other impossible times, and with durations of years
(pytorch/kineto#109, HolisticTraceAnalysis drops what is longer than 7 days). One such event must
not stretch a bar over decades. Whether an event is possible can often be said only when all others
are known, so doubtful ones are held back by the caller until then.
"""

from dataclasses import dataclass, replace

import numpy as np

from rl_insight.intervals import IntArray

SECOND = 1_000_000_000
ABSOLUTE_NS = 10**18
"""The year 2001 as Unix time: what is later counts from 1970, not from a start of anything."""

LONGEST_NS = 7 * 24 * 3600 * SECOND
"""No event lasts longer."""

DOUBTFUL_NS = 10 * SECOND
"""An event that lasts longer is believed only when it fits the capture."""

# Where the profiler does not say from when to when it ran, the events are the capture as long as
# no hour passes between them.
_LONGEST_PAUSE_NS = 3600 * SECOND
# Among times this long after zero a zero is no time.
_ZERO_IS_NO_TIME_NS = 60 * SECOND
# The finest resolution at which stray events can be told from real ones.
_BUCKET_NS = DOUBTFUL_NS
_MOST_BUCKETS = 65_536


@dataclass(frozen=True, slots=True)
class Bounds:
    """The first start and the last end of the events that count, and where others must lie, in ns.

    `strays` counts events that lie so far outside that they do not count. `declared` is from when
    to when the profiler itself says it ran, if that is about these events.
    """

    first: int
    last: int
    earliest: int
    latest: int
    strays: int = 0
    declared: tuple[int, int] | None = None

    def allow(self, start: int, end: int) -> bool:
        """Whether a doubtful event is possible."""
        if start == 0:
            return self.first <= _ZERO_IS_NO_TIME_NS and end <= self.latest
        return self.earliest <= start and end <= self.latest

    def stretched(self, start: int, end: int) -> "Bounds":
        """The bounds with one more event that counts."""
        return replace(self, first=min(self.first, start), last=max(self.last, end))


class Extent:
    """Collects first starts and last ends over stretches of time, in little memory."""

    def __init__(self) -> None:
        self._buckets: dict[int, tuple[int, int, int]] = {}
        self._strays = 0

    def add(self, starts: IntArray, ends: IntArray) -> None:
        """Take events; arrays of one length, in ns."""
        if len(starts) == 0:
            return
        numbers = starts // _BUCKET_NS
        if numbers.min() != numbers.max():
            order = np.argsort(numbers, kind="stable")
            numbers, starts, ends = numbers[order], starts[order], ends[order]
        opens = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        first = np.minimum.reduceat(starts, opens).tolist()
        last = np.maximum.reduceat(ends, opens).tolist()
        counts = np.diff(opens, append=len(starts)).tolist()
        for number, start, end, count in zip(
            numbers[opens].tolist(), first, last, counts, strict=True
        ):
            old = self._buckets.get(number, (start, end, 0))
            self._buckets[number] = (min(old[0], start), max(old[1], end), old[2] + count)
        if len(self._buckets) > _MOST_BUCKETS:
            self._thin()

    def add_block(self, starts: IntArray, ends: IntArray) -> None:
        """The same for many events that as a rule lie close together, where finer is not needed.

        Without a pause of an hour between any two they are of one group, however they lie in it.
        """
        if len(starts) == 0:
            return
        first, last = int(starts.min()), int(ends.max())
        if last - first > _LONGEST_PAUSE_NS:
            self.add(starts, ends)
            return
        number = first // _BUCKET_NS
        old = self._buckets.get(number, (first, last, 0))
        self._buckets[number] = (min(old[0], first), max(old[1], last), old[2] + len(starts))
        if len(self._buckets) > _MOST_BUCKETS:
            self._thin()

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The first start and the last end of all events, in ns; None without events."""
        if not self._buckets:
            return None
        buckets = self._buckets.values()
        return min(first for first, _, _ in buckets), max(last for _, last, _ in buckets)

    def keep(self, earliest: int, latest: int) -> int:
        """Forget what lies outside of these times (ns); returns how many events that were."""
        lost = self._strays
        kept = {}
        for number, (first, last, count) in self._buckets.items():
            if last < earliest or first > latest:
                lost += count
            else:
                kept[number] = (max(first, earliest), min(last, latest), count)
        self._buckets, self._strays = kept, 0
        return lost

    def absorb(self, other: "Extent") -> None:
        """Take all that `other` has collected."""
        for number, (start, end, count) in other._buckets.items():
            old = self._buckets.get(number, (start, end, 0))
            self._buckets[number] = (min(old[0], start), max(old[1], end), old[2] + count)
        self._strays += other._strays
        if len(self._buckets) > _MOST_BUCKETS:
            self._thin()

    def settle(self, declared: tuple[int, int] | None) -> Bounds | None:
        """The bounds, given from when to when the profiler itself says it ran; None without events.

        What lies further outside the declared time than its own length, or 10 s, is a stray.
        Without one, the largest group of events without a pause of an hour counts.
        """
        buckets = sorted(self._buckets.values())
        # Two profiler spans years apart contradict each other.
        if declared is not None and declared[1] - declared[0] <= LONGEST_NS:
            slack = max(declared[1] - declared[0], DOUBTFUL_NS)
            earliest, latest = declared[0] - slack, declared[1] + slack
            inside = [one for one in buckets if one[0] >= earliest and one[1] <= latest]
            if inside:
                return replace(self._bounds(inside, earliest, latest), declared=declared)
        if not buckets:
            return None
        groups = [[buckets[0]]]
        reach = buckets[0][1]
        for bucket in buckets[1:]:
            if bucket[0] - reach > _LONGEST_PAUSE_NS:
                groups.append([])
            groups[-1].append(bucket)
            reach = max(reach, bucket[1])
        largest = max(groups, key=lambda group: sum(count for _, _, count in group))
        slack = max(max(end for _, end, _ in largest) - largest[0][0], _LONGEST_PAUSE_NS)
        return self._bounds(
            largest, largest[0][0] - slack, max(end for _, end, _ in largest) + slack
        )

    def _bounds(self, inside: list[tuple[int, int, int]], earliest: int, latest: int) -> Bounds:
        counted = sum(count for _, _, count in inside)
        every = sum(count for _, _, count in self._buckets.values())
        return Bounds(
            min(first for first, _, _ in inside),
            max(last for _, last, _ in inside),
            earliest,
            latest,
            every - counted + self._strays,
        )

    def _thin(self) -> None:
        """Give up the emptiest stretches: only nonsense is spread over more than a week."""
        ranked = sorted(self._buckets.items(), key=lambda item: item[1][2], reverse=True)
        self._strays += sum(count for _, (_, _, count) in ranked[_MOST_BUCKETS // 2 :])
        self._buckets = dict(ranked[: _MOST_BUCKETS // 2])
