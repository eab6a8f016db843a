"""What one torch capture holds, collected block by block in memory that does not grow with it.

All times in here are nanoseconds as the file counts them; the base is added in the tables.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import cast

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.annotations import Annotations
from rl_insight.parsers.collectives import count_of
from rl_insight.parsers.extent import DOUBTFUL_NS, LONGEST_NS, Bounds, Extent
from rl_insight.parsers.torch_devices import TorchDevices, call_of
from rl_insight.parsers.torch_events import (
    ANNOTATION,
    COLLECTIVE,
    KERNEL,
    KIND,
    PROFILER,
    PROJECTION,
    UNSORTED,
    TorchEvent,
    kind_without_category,
)
from rl_insight.problems import Problems
from rl_insight.readers.timestamps import NOT_A_TIME, Microseconds, exact_ns

Kinds = npt.NDArray[np.int8]

_MOST_HELD_BACK = 100_000
_GLOO = re.compile(r"gloo:(.+)")


class TorchCapture:
    """Takes events block by block; `bounds` and the rest are complete after `finish`."""

    def __init__(self) -> None:
        self.problems = Problems()
        self.annotations = Annotations()
        self.devices = TorchDevices()
        self.bounds: Bounds | None = None
        """From when to when the capture goes; None when nothing in it has a time."""
        self.pid: int | None = None
        self.is_trace = False
        """Whether any event has a phase: other JSON of this shape has none."""
        self._extent = Extent()
        self._long_extent = Extent()
        self._held_back: list[TorchEvent] = []
        self._declared: tuple[int, int] | None = None

    def add(self, events: Sequence[TorchEvent]) -> None:
        """Take a block of events; only those with a duration (phase X) count."""
        timed = [event for event in events if event.ph == "X"]
        self.is_trace = self.is_trace or bool(timed) or any(event.ph for event in events)
        if not timed:
            return
        kinds, starts, durations = _columns(timed)
        profiler = kinds == PROFILER
        if profiler.any():
            self._declare(starts[profiler], durations[profiler])
        real = kinds < PROJECTION
        certain = (starts > 0) & (durations >= 0) & (durations <= DOUBTFUL_NS)
        for index in np.flatnonzero(real & ~certain).tolist():
            self._doubt(timed[index], int(starts[index]), int(durations[index]))
        real &= certain
        if not real.all():
            timed = list(compress(timed, real.tolist()))
            kinds, starts, durations = kinds[real], starts[real], durations[real]
        self._extent.add(starts, starts + durations)
        self._take(timed, kinds, starts, durations)

    def finish(self) -> None:
        """Decide about the events that were held back, and so from when to when all goes."""
        bounds = self._extent.settle(self._declared) or self._long_extent.settle(self._declared)
        if bounds is None and self._held_back:
            # Nothing but events at 0: then 0 is a time like any other.
            bounds = Bounds(first=0, last=0, earliest=0, latest=LONGEST_NS)
        if bounds is None:
            return
        if bounds.strays:
            self._lost("outside_capture", bounds.strays, "events far away from all others")
        kinds, starts, durations = _columns(self._held_back)
        possible = np.zeros(len(kinds), dtype=bool)
        for index, (start, duration) in enumerate(
            zip(starts.tolist(), durations.tolist(), strict=True)
        ):
            possible[index] = bounds.allow(start, start + duration)
            if possible[index]:
                bounds = bounds.stretched(start, start + duration)
            else:
                code = "impossible_duration" if start else "zero_time"
                self._lost(code, 1, _quoted(self._held_back[index]))
        timed = list(compress(self._held_back, possible.tolist()))
        self._held_back.clear()
        self._take(timed, kinds[possible], starts[possible], durations[possible])
        self.bounds = bounds

    def _declare(self, starts: IntArray, durations: IntArray) -> None:
        """From when to when the profiler says it ran: its own span, which is no activity."""
        self.problems.add("profiler_span", "info", len(starts))
        for start, duration in zip(starts.tolist(), durations.tolist(), strict=True):
            if start > 0 and 0 < duration <= LONGEST_NS:
                low, high = self._declared or (start, start + duration)
                self._declared = min(low, start), max(high, start + duration)

    def _doubt(self, event: TorchEvent, start: int, duration: int) -> None:
        """Count an event that is impossible, hold back one that only may be."""
        if NOT_A_TIME in (start, duration):
            self._lost("no_time", 1, _quoted(event))
        elif start < 0:
            self._lost("negative_time", 1, _quoted(event))
        elif duration < 0:
            self._lost("negative_duration", 1, _quoted(event))
        elif duration > LONGEST_NS or len(self._held_back) >= _MOST_HELD_BACK:
            self._lost("impossible_duration", 1, _quoted(event))
        else:
            self._held_back.append(event)
            if start > 0:
                at = np.array([start])
                self._long_extent.add(at, at)

    def _take(
        self, timed: Sequence[TorchEvent], kinds: Kinds, starts: IntArray, durations: IntArray
    ) -> None:
        for index in np.flatnonzero(kinds == ANNOTATION).tolist():
            self._annotate(timed[index], starts[index : index + 1], durations[index : index + 1])
        on_device = (kinds >= KERNEL) & (kinds <= COLLECTIVE)
        if self.pid is None:
            self.pid = _process(compress(timed, (~on_device).tolist()))
        if on_device.any():
            events = list(compress(timed, on_device.tolist()))
            self.devices.add(events, kinds[on_device], starts[on_device], durations[on_device])

    def _annotate(self, event: TorchEvent, start: IntArray, duration: IntArray) -> None:
        if not isinstance(event.name, str):
            return
        low, long = int(start[0]), int(duration[0])
        gloo = _GLOO.match(event.name)
        if gloo is not None and long > 0:
            # On a GPU the kernel is the collective, and `nccl:…` only its launch. Gloo works on
            # the host, where this range is the collective itself.
            self.devices.collectives.add(start, duration, [call_of(event.args, gloo[1])])
        tid = "" if event.tid is None else str(event.tid)
        self.annotations.add(low, low + long, event.name, tid)

    def _lost(self, code: str, count: int, example: str) -> None:
        self.problems.add(code, "warning", count, example=example)


def _columns(timed: Sequence[TorchEvent]) -> tuple[Kinds, IntArray, IntArray]:
    """Kinds, starts and durations (ns) of events; `NOT_A_TIME` where one has none."""
    kinds = np.array([KIND[event.cat] for event in timed], dtype=np.int8)
    for index in np.flatnonzero(kinds == UNSORTED).tolist():
        kinds[index] = kind_without_category(timed[index])
    starts = exact_ns(cast(Sequence[Microseconds], [event.ts for event in timed]))
    durations = exact_ns(cast(Sequence[Microseconds], [event.dur for event in timed]))
    return kinds, starts, durations


def _process(events: Iterable[TorchEvent]) -> int | None:
    """The process that wrote the capture: its host events carry it."""
    for event in events:
        pid = count_of(event.pid)
        if pid:
            return pid
    return None


def _quoted(event: TorchEvent) -> str:
    return f"{event.name!r}: ts {event.ts}, dur {event.dur}"
