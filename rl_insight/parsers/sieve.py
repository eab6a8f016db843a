"""Parts real events from nonsense, and settles from when to when a capture goes.

Neutral to profilers. An event that only may be nonsense (at time 0, or very long) is held back
until all others are known; see `extent` for what is believed then.
"""

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.extent import DOUBTFUL_NS, LONGEST_NS, Bounds, Extent
from rl_insight.problems import Problems
from rl_insight.readers.timestamps import NOT_A_TIME

Event = TypeVar("Event")

_MOST_HELD_BACK = 100_000


class Held(NamedTuple, Generic[Event]):
    """Events that turned out to be possible; times in ns."""

    events: list[Event]
    starts: IntArray
    durations: IntArray


class Sieve(Generic[Event]):
    """Takes the times of events block by block; `quote` shows an event to a person."""

    def __init__(self, problems: Problems, quote: Callable[[Event], str]) -> None:
        self._problems = problems
        self._quote = quote
        self._extent = Extent()
        self._long_extent = Extent()
        self._held: list[Event] = []
        self._times: list[tuple[int, int]] = []

    def certain(
        self,
        events: Sequence[Event],
        starts: IntArray,
        durations: IntArray,
        real: npt.NDArray[np.bool_] | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Which of `events` count for certain; arrays of one length, times in ns.

        Those that `real` denies are passed over. Of the rest, the impossible ones are counted as
        problems, and the doubtful ones are held back until `settle`.
        """
        real = np.ones(len(starts), dtype=bool) if real is None else real
        good = (starts > 0) & (durations >= 0) & (durations <= DOUBTFUL_NS)
        for index in np.flatnonzero(real & ~good).tolist():
            self._doubt(events[index], int(starts[index]), int(durations[index]))
        good &= real
        every = bool(good.all())
        known = (starts, durations) if every else (starts[good], durations[good])
        self._extent.add(known[0], known[0] + known[1])
        return good

    def settle(
        self, declared: tuple[int, int] | None = None, zero_is_time: bool = True
    ) -> tuple[Bounds | None, Held[Event]]:
        """From when to when all goes, and which of the events that were held back count.

        `declared` is from when to when the profiler itself says it ran (ns). The bounds are None
        when no event has a time. Where all are at 0, that counts as one only if `zero_is_time`:
        times that count from a round date months ago never begin at it.
        """
        bounds = self._extent.settle(declared) or self._long_extent.settle(declared)
        if bounds is None and self._held and zero_is_time:
            # Nothing but events at 0: then 0 is a time like any other.
            bounds = Bounds(first=0, last=0, earliest=0, latest=LONGEST_NS)
        possible = [False] * len(self._held)
        if bounds is not None and bounds.strays:
            self._lose("outside_capture", bounds.strays, "events far away from all others")
        for index, (start, duration) in enumerate(self._times):
            if bounds is not None and bounds.allow(start, start + duration):
                possible[index] = True
                bounds = bounds.stretched(start, start + duration)
            else:
                code = "impossible_duration" if start else "zero_time"
                self._lose(code, 1, self._quote(self._held[index]))
        times = np.array(list(compress(self._times, possible)), dtype=np.int64).reshape(-1, 2)
        held = Held(list(compress(self._held, possible)), times[:, 0].copy(), times[:, 1].copy())
        self._held, self._times = [], []
        return bounds, held

    def _doubt(self, event: Event, start: int, duration: int) -> None:
        """Count an event that is impossible, hold back one that only may be."""
        if NOT_A_TIME in (start, duration):
            self._lose("no_time", 1, self._quote(event))
        elif start < 0:
            self._lose("negative_time", 1, self._quote(event))
        elif duration < 0:
            self._lose("negative_duration", 1, self._quote(event))
        elif duration > LONGEST_NS or len(self._held) >= _MOST_HELD_BACK:
            self._lose("impossible_duration", 1, self._quote(event))
        else:
            self._held.append(event)
            self._times.append((start, duration))
            if start > 0:
                at = np.array([start])
                self._long_extent.add(at, at)

    def _lose(self, code: str, count: int, example: str) -> None:
        self._problems.add(code, "warning", count, example=example)
