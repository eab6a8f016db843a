"""What an Ascend capture holds, whichever form it is read from; all times in nanoseconds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.annotations import Annotations
from rl_insight.parsers.collectives import Collective, Collectives
from rl_insight.parsers.device_time import DeviceTime
from rl_insight.parsers.extent import Bounds, Extent
from rl_insight.parsers.kernel_names import MEMORY
from rl_insight.parsers.op_names import LEFT_OUT, OpNames
from rl_insight.problems import Problems

Codes = npt.NDArray[np.int64]

FREE = LEFT_OUT
"""The code of a stretch in which the profiler saw the device idle."""


class AscendDevice:
    """One device: the profiler's own overlap analysis, and the tasks that it is made from.

    Where the analysis is there, it says when the device computed and communicated, and the tasks
    only say with what. Copies are no part of the analysis: they come from the tasks.
    """

    def __init__(self, names: OpNames) -> None:
        self._names = names
        self.overlap = DeviceTime(names)
        self.tasks = DeviceTime(names)
        self.calls: list[Collectives] = []
        """Its own calls, and behind them those of the devices that it absorbed."""
        self.is_analysed = False
        """Whether there is any row of the overlap analysis."""
        self._overlap_extent = Extent()
        self._task_extent = Extent()
        self._copy_extent = Extent()

    def __bool__(self) -> bool:
        return self.is_analysed or bool(self.tasks)

    @property
    def time(self) -> DeviceTime:
        """When it computed, communicated and copied."""
        return self.overlap if self.is_analysed else self.tasks

    def add_overlap(self, starts: IntArray, durations: IntArray, codes: Codes) -> None:
        """Take rows of the overlap analysis; codes are those of united time, or FREE."""
        if len(starts) == 0:
            return
        self.is_analysed = True
        self._overlap_extent.add(starts, starts + durations)
        busy = codes != FREE
        self.overlap.add(starts[busy], durations[busy], codes[busy])

    def add_tasks(self, starts: IntArray, durations: IntArray, codes: Codes) -> None:
        """Take tasks; those that are LEFT_OUT do no work."""
        at_work = codes != LEFT_OUT
        if not at_work.all():
            starts, durations, codes = starts[at_work], durations[at_work], codes[at_work]
        if len(starts) == 0:
            return
        self.tasks.add(starts, durations, codes)
        copies = np.array(self._names.categories, dtype=np.int8)[codes] == MEMORY
        if copies.any():
            self._add_copies(starts[copies], durations[copies])
            starts, durations = starts[~copies], durations[~copies]
        self._task_extent.add(starts, starts + durations)

    def _add_copies(self, starts: IntArray, durations: IntArray) -> None:
        self._copy_extent.add(starts, starts + durations)
        united = np.full(len(starts), self._names.united(MEMORY), dtype=np.int64)
        self.overlap.add(starts, durations, united)

    def add_calls(
        self, starts: IntArray, durations: IntArray, calls: Sequence[Collective], codes: Codes
    ) -> None:
        """Take calls of collectives, which are tasks too."""
        if not calls:
            return
        if not self.calls:
            self.calls.append(Collectives())
        self.calls[0].add(starts, durations, calls)
        self.add_tasks(starts, durations, codes)

    def absorb(self, other: "AscendDevice") -> None:
        """Take all that `other` has, which must not be used any more."""
        self.overlap.absorb(other.overlap)
        self.tasks.absorb(other.tasks)
        self.calls += other.calls
        self.is_analysed |= other.is_analysed
        self._overlap_extent.absorb(other._overlap_extent)
        self._task_extent.absorb(other._task_extent)
        self._copy_extent.absorb(other._copy_extent)

    def window(self, whole: tuple[int, int]) -> tuple[int, int]:
        """From its first to its last activity inside `whole`, which is that of the capture.

        As in the profiler's own breakdown, copies do not widen it.
        """
        for extent in (self._overlap_extent, self._task_extent, self._copy_extent):
            bounds = extent.settle(whole)
            if bounds is not None:
                return bounds.first, bounds.last
        return whole


@dataclass(slots=True)
class MstxCapture:
    """A capture, complete.

    `annotations` are the ranges that the host recorded, `device_ranges` the same as the device saw
    them (or ranges of which nobody knows). `devices` are told apart by their number, None and
    negative ones where it is unknown. `first_ns` and `last_ns` are its first and last event, None
    where nothing has a time; `session` is from when to when the profiler says it ran. `group` names
    the group of its collectives. `cut_short` is True when its end is missing, `in_part` when a part
    of what its devices did is lost.
    """

    problems: Problems
    names: OpNames = field(default_factory=OpNames)
    annotations: Annotations = field(default_factory=Annotations)
    device_ranges: Annotations = field(default_factory=Annotations)
    devices: dict[int | None, AscendDevice] = field(default_factory=dict)
    first_ns: int | None = None
    last_ns: int | None = None
    session: tuple[int, int] | None = None
    group: Callable[[str | None], str | None] = lambda name: name
    pid: int | None = None
    events: int = 0
    cut_short: bool = False
    in_part: bool = False
    # A lane of its own for each device, but not for what only claims to be one.
    most_devices: int = 64

    def settle(self, bounds: Bounds | None) -> None:
        """Take from when to when it goes; what the host recorded outside of that does not count."""
        if bounds is not None:
            self.first_ns, self.last_ns = bounds.first, bounds.last
            for ranges in (self.annotations, self.device_ranges):
                ranges.keep(bounds.first, bounds.last)

    def device(self, number: int | None) -> AscendDevice:
        """The device of that number; beyond `most_devices` the unknown one."""
        if number not in self.devices and len(self.devices) >= self.most_devices:
            number = None
            if "devices_joined" not in self.problems:
                example = f"more than {self.most_devices} devices: the further ones count as one"
                self.problems.add("devices_joined", "warning", example=example)
        if number not in self.devices:
            self.devices[number] = AscendDevice(self.names)
        return self.devices[number]
