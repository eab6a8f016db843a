"""The time of an nsys capture: which times are possible, and what they are in Unix time."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.extent import ABSOLUTE_NS, DOUBTFUL_NS, LONGEST_NS
from rl_insight.parsers.nvtx_rows import MISSING, UNREADABLE
from rl_insight.problems import Problems

# Unix time of the year 2096: what is later is no time.
_LATEST_NS: Final = 4 * 10**18
# A year: no capture lasts longer.
_LONGEST_CAPTURE_NS: Final = 366 * 24 * 3600 * 10**9


@dataclass(slots=True)
class Clock:
    """What the capture says of its time, in ns; None where it does not.

    `startTime` and `stopTime` are when it began and ended on the host's own clock, which counts
    from boot. `utcEpochNs` is the Unix time at which that clock showed `systemClockNs`, or where
    this is None, at which the capture began.
    """

    startTime: int | None = None  # noqa: N815 - the exporter's names
    stopTime: int | None = None  # noqa: N815
    duration: int | None = None
    utcEpochNs: int | None = None  # noqa: N815
    systemClockNs: int | None = None  # noqa: N815

    @property
    def length_ns(self) -> int | None:
        """How long the capture lasted, as far as that is possible."""
        length = self.duration
        if length is None and self.startTime is not None and self.stopTime is not None:
            length = self.stopTime - self.startTime
        return length if length is not None and 0 < length <= _LONGEST_CAPTURE_NS else None

    def possible(
        self, starts: IntArray, ends: IntArray, problems: Problems
    ) -> npt.NDArray[np.bool_]:
        """Which events can have been: a start, an end not before it, inside the capture.

        Counts the others. A capture is believed to be at most twice as long as it says.
        """
        # Programs that have no time for something write -1.
        known = (starts != MISSING) & (starts != -1) & (ends != MISSING) & (ends != UNREADABLE)
        lengths = ends - starts
        backwards = known & (lengths < 0)
        endless = known & (lengths > LONGEST_NS)
        outside = (starts < -DOUBTFUL_NS) | (starts >= _LATEST_NS)
        if self.length_ns is not None:
            slack = max(self.length_ns, DOUBTFUL_NS)
            outside = (starts < -slack) | (ends > self.length_ns + slack)
            # Unless all times are absolute.
            outside &= (starts < ABSOLUTE_NS) | (starts >= _LATEST_NS)
        outside &= known & ~backwards & ~endless
        for code, wrong, example in (
            ("no_time", ~known, "an event without a time"),
            ("negative_duration", backwards, "an event that ends before it starts"),
            ("impossible_duration", endless, "an event of more than 7 days"),
            ("outside_capture", outside, "an event far outside the capture"),
        ):
            problems.add(code, "warning", int(wrong.sum()), example=example)
        good: npt.NDArray[np.bool_] = known & ~(backwards | endless | outside)
        return good


class Wall(NamedTuple):
    """What turns the capture's times into the lane's own.

    `base_ns` is to be added to them. `clock` is `utc`, `boot` or `relative` (`schema.CLOCKS`), and
    `offset_ns` is the Unix time of the boot clock's zero, 0 where that is not known.
    """

    base_ns: int
    clock: str
    offset_ns: int


def wall(clock: Clock, absolute: bool, problems: Problems) -> Wall:
    """The wall clock of a capture, the best that its tables tell (docs/data.md, Nsight Systems).

    utcEpochNs is the Unix time when the host's clock showed systemClockNs, or in exports of older
    versions, which lack that, when the capture began. Without either the host's own clock is all
    there is: startTime + start.
    """
    start, utc, system = clock.startTime, clock.utcEpochNs, clock.systemClockNs
    if utc is not None and not ABSOLUTE_NS < utc < _LATEST_NS:
        problems.add("odd_metadata", "warning", example=f"utcEpochNs is {utc}")
        utc = None
    if start is not None and not 0 <= start < ABSOLUTE_NS:
        problems.add("odd_metadata", "warning", example=f"startTime is {start}")
        start = None
    if clock.duration is not None and not 0 <= clock.duration <= _LONGEST_CAPTURE_NS:
        problems.add("odd_metadata", "warning", example=f"duration is {clock.duration}")
    if absolute:
        return Wall(0, "utc", 0)
    if utc is None:
        return Wall(start or 0, "relative" if start is None else "boot", 0)
    if start is None:
        return Wall(utc, "utc", 0)
    begun = utc
    if system is not None:
        begun += start - system
        if not ABSOLUTE_NS < begun < _LATEST_NS:
            problems.add("odd_metadata", "warning", example=f"systemClockNs is {system}")
            begun = utc
    return Wall(begun, "utc", begun - start)
