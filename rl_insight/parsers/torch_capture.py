"""What one torch capture holds, collected block by block in memory that does not grow with it.

All times in here are nanoseconds as the file counts them; the base is added in the tables.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import cast

import msgspec
import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.annotations import Annotations
from rl_insight.parsers.collectives import count_of
from rl_insight.parsers.extent import LONGEST_NS, Bounds
from rl_insight.parsers.pairs import Pairs
from rl_insight.parsers.sieve import Sieve
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
from rl_insight.readers.timestamps import Microseconds, exact_ns

Kinds = npt.NDArray[np.int8]

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
        self._sieve: Sieve[TorchEvent] = Sieve(self.problems, _quoted)
        self._pairs: Pairs[TorchEvent] = Pairs(self.problems)
        self._declared: tuple[int, int] | None = None

    def add(self, events: Sequence[TorchEvent]) -> None:
        """Take a block of events; only those with a duration (X, or B and E) count."""
        timed = [event for event in events if event.ph == "X"]
        if len(timed) < len(events):
            timed += [
                msgspec.structs.replace(begin, ph="X", dur=duration)
                for begin, duration in self._pairs.ended(events)
            ]
        self.is_trace = self.is_trace or bool(timed) or any(event.ph for event in events)
        if not timed:
            return
        kinds, starts, durations = _columns(timed)
        profiler = kinds == PROFILER
        if profiler.any():
            self._declare(starts[profiler], durations[profiler])
        real = kinds < PROJECTION
        real = self._sieve.certain(timed, starts, durations, real)
        if not real.all():
            timed = list(compress(timed, real.tolist()))
            kinds, starts, durations = kinds[real], starts[real], durations[real]
        self._take(timed, kinds, starts, durations)

    def finish(self, zero_is_time: bool = True) -> None:
        """Decide about the events that were held back, and so from when to when all goes.

        `zero_is_time` says whether events that are all at 0 may be: see `Sieve.settle`.
        """
        self._pairs.finish()
        self.bounds, held = self._sieve.settle(self._declared, zero_is_time)
        if held.events:
            self._take(held.events, _kinds(held.events), held.starts, held.durations)
        if self.bounds is not None:
            self.annotations.keep(self.bounds.first, self.bounds.last)

    def _declare(self, starts: IntArray, durations: IntArray) -> None:
        """From when to when the profiler says it ran: its own span, which is no activity."""
        self.problems.add("profiler_span", "info", len(starts))
        for start, duration in zip(starts.tolist(), durations.tolist(), strict=True):
            if start > 0 and 0 < duration <= LONGEST_NS:
                low, high = self._declared or (start, start + duration)
                self._declared = min(low, start), max(high, start + duration)

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


def _columns(timed: Sequence[TorchEvent]) -> tuple[Kinds, IntArray, IntArray]:
    """Kinds, starts and durations (ns) of events; `NOT_A_TIME` where one has none."""
    starts = exact_ns(cast(Sequence[Microseconds], [event.ts for event in timed]))
    durations = exact_ns(cast(Sequence[Microseconds], [event.dur for event in timed]))
    return _kinds(timed), starts, durations


def _kinds(timed: Sequence[TorchEvent]) -> Kinds:
    kinds = np.array([KIND[event.cat] for event in timed], dtype=np.int8)
    for index in np.flatnonzero(kinds == UNSORTED).tolist():
        kinds[index] = kind_without_category(timed[index])
    return kinds


def _process(events: Iterable[TorchEvent]) -> int | None:
    """The process that wrote the capture: its host events carry it."""
    for event in events:
        pid = count_of(event.pid)
        if pid:
            return pid
    return None


def _quoted(event: TorchEvent) -> str:
    return f"{event.name!r}: ts {event.ts}, dur {event.dur}"
