"""What one nsys capture holds, collected batch by batch in memory that does not grow with it.

Times are ns since the capture began, as the export counts them.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from rl_insight.parsers.extent import ABSOLUTE_NS, DOUBTFUL_NS, Extent
from rl_insight.parsers.nvtx_clock import Clock
from rl_insight.parsers.nvtx_devices import NvtxDevices, ProcessDevices
from rl_insight.parsers.nvtx_names import are_operators
from rl_insight.parsers.nvtx_ranges import KeptNames, ProcessRanges, joined
from rl_insight.parsers.nvtx_rows import (
    LONGEST_NAME,
    MISSING,
    MOST_PROCESSES,
    Batch,
    Fact,
    Ranges,
    Strings,
    Work,
    distinct,
    process_of,
)
from rl_insight.parsers.nvtx_schema import DOMAIN_KIND, KERNEL, RANGE_KINDS
from rl_insight.problems import Problems

# Bounds for what a hostile or endless file may make us keep.
_MOST_STRING_CHARACTERS: Final = 64 << 20
_MOST_OPEN: Final = 10_000
_MOST_HELD: Final = 2_000_000
_MOST_FACTS: Final = 10_000

DEFAULT_DOMAIN: Final = "default"


class Process(NamedTuple):
    """One process of the capture: its id, None where it is not told, and what is known of it."""

    pid: int | None
    ranges: ProcessRanges | None
    devices: ProcessDevices | None


class NvtxCapture:
    """Takes the batches of one export; everything is complete after `finish`."""

    def __init__(self) -> None:
        self.problems = Problems()
        self.clock = Clock()
        self.facts: list[Fact] = []
        self.strings: dict[int, str] = {}
        self.devices = NvtxDevices()
        self.end_ns = 0
        """When the capture ended; where it does not say so, when the last thing in it did."""
        self.within: tuple[int, int] | None = None
        """From its first start to its last end; None where nothing in it has a time."""
        self.cut_ns: int | None = None
        """A range that lasts until then was still open; None where that cannot be told."""
        self._characters = 0
        self._ranges: dict[int, ProcessRanges] = {}
        self._kept_names = KeptNames(self.strings)
        self._domains: dict[tuple[int, int], str | int] = {}
        self._open: list[Ranges] = []
        self._held: list[Work] = []

    def add(self, batch: Batch) -> None:
        """Take the next batch, of any table and in any order."""
        if isinstance(batch, Ranges):
            self._add_ranges(batch)
        elif isinstance(batch, Work):
            self._add_work(batch)
        elif isinstance(batch, Strings):
            self._add_strings(batch)
        elif hasattr(self.clock, batch.name):
            if getattr(self.clock, batch.name) is None and isinstance(batch.value, int):
                setattr(self.clock, batch.name, batch.value)
        elif len(self.facts) < _MOST_FACTS:
            self.facts.append(batch)

    def finish(self) -> None:
        """Give open ranges their end, and kernels their names."""
        for work in self._held:
            self.devices.add(work, self.strings)
        self._held.clear()
        self._lose("unnamed_kernel", self.devices.unnamed, "a kernel's name is not in StringIds")
        self._lose("events_left_out", self.devices.left_out, "of more processes than are kept")
        self._drop_strays()
        last = 0 if self.within is None else self.within[1]
        length = None if self.is_absolute else self.clock.length_ns
        if any(map(len, self._open)):
            still_open = joined(self._open)
            # Without a known end, it is the last that happened, and one ns more: only what was
            # open then reaches it.
            end = max(last, int(still_open.starts.max())) + 1 if length is None else length
            self._close(still_open, end)
            last = max(last, end)
            self.cut_ns = end
            self.within = self._bounds()
        self.end_ns = last if length is None else length
        self.cut_ns = self.cut_ns if length is None else length

    def processes(self) -> list[Process]:
        """The processes in the order of their ids."""
        ranges, devices = dict(self._ranges), dict(self.devices.processes)
        # Rows that tell no process are of the only one there is.
        if MISSING in ranges and len(ranges) == len(devices) == 1:
            ranges = {next(iter(devices)): ranges[MISSING]}
        elif MISSING in devices and len(ranges) == len(devices) == 1:
            devices = {next(iter(ranges)): devices[MISSING]}
        return [
            Process(None if pid == MISSING else pid, ranges.get(pid), devices.get(pid))
            for pid in sorted({*ranges, *devices})
        ]

    def domain_name(self, pid: int | None, domain: int) -> str:
        """What a domain of a process is called."""
        if domain in (0, MISSING):
            return DEFAULT_DOMAIN
        keys = ((MISSING if pid is None else pid, domain), (MISSING, domain))
        name = next((self._domains[key] for key in keys if key in self._domains), MISSING)
        known = self.strings.get(name) if isinstance(name, int) else name
        return known or f"domain {domain}"

    @property
    def is_absolute(self) -> bool:
        """Whether times are Unix time already."""
        return self.within is not None and self.within[0] > ABSOLUTE_NS

    def _extents(self) -> Iterator[ProcessRanges | ProcessDevices]:
        """The ranges and the device of each process."""
        yield from self._ranges.values()
        yield from self.devices.processes.values()

    def _bounds(self) -> tuple[int, int] | None:
        """From the first start to the last end of all ranges and of all device activity."""
        found = [one.extent.bounds for one in self._extents() if one.extent.bounds is not None]
        if not found:
            return None
        return min(first for first, _ in found), max(last for _, last in found)

    def _drop_strays(self) -> None:
        """Forget what lies far from everything else: one stray time must not stretch a lane.

        Where the capture says how long it was, `Clock.possible` has seen to that.
        """
        open_before = sum(map(len, self._open))
        together = Extent()
        for one in self._extents():
            together.absorb(one.extent)
        for waiting in self._open:
            together.add_block(waiting.starts, waiting.starts)
        believed = together.settle(None)
        if believed is None:
            return
        earliest, latest = believed.earliest, believed.latest
        if believed.first <= ABSOLUTE_NS and self.clock.length_ns is not None:
            slack = max(self.clock.length_ns, DOUBTFUL_NS)
            earliest, latest = -slack, self.clock.length_ns + slack
        strays = sum(one.keep(earliest, latest) for one in self._extents())
        self._open = [
            waiting.select_if((waiting.starts >= earliest) & (waiting.starts <= latest))
            for waiting in self._open
        ]
        strays += open_before - sum(map(len, self._open))
        self._lose("outside_capture", strays, "an event far outside the capture")
        self.within = self._bounds()

    def _add_strings(self, batch: Strings) -> None:
        for number, value in zip(batch.ids, batch.values, strict=True):
            if self._characters >= _MOST_STRING_CHARACTERS:
                self._lose("strings_left_out", 1, "more strings than are kept")
                continue
            text = value[:LONGEST_NAME]
            known = self.strings.setdefault(number, text)
            if known is text:
                self._characters += len(text)
            elif known != text:
                self._lose("string_conflict", 1, f"the id {number} stands for two strings")

    def _add_ranges(self, batch: Ranges) -> None:
        if not all(kind in RANGE_KINDS for kind in distinct(batch.kinds)):
            is_range = np.isin(batch.kinds, RANGE_KINDS)
            unknown = int(np.count_nonzero(batch.kinds == MISSING))
            self._lose(
                "no_event_type", unknown, "a row of NVTX_EVENTS that does not say what it is"
            )
            self._name_domains(batch.select(batch.kinds == DOMAIN_KIND))
            batch = batch.select(is_range)
        still_open = batch.ends == MISSING
        if still_open.any():
            waiting = batch.select(still_open)
            starts = waiting.starts
            waiting = waiting.select_if(self.clock.possible(starts, starts, self.problems))
            room = max(0, _MOST_OPEN - sum(map(len, self._open)))
            self._lose("open_range_left_out", max(0, len(waiting) - room), "too many open ranges")
            if len(waiting) and room:
                self._open.append(waiting.select(np.arange(min(room, len(waiting)))))
            batch = batch.select(~still_open)
        self._take(self._with_length(batch))

    def _close(self, still_open: Ranges, end: int) -> None:
        """Let open ranges end with the capture."""
        self.problems.add(
            "open_range",
            "info",
            len(still_open),
            example="a range that was still open when the capture ended is drawn up to there",
        )
        closed = replace(still_open, ends=np.full(len(still_open), end, np.int64))
        self._take(self._with_length(closed))

    def _take(self, batch: Ranges) -> None:
        operators = batch.operators
        if operators is None:
            operators = are_operators(batch.texts)
        processes = np.where(batch.threads == MISSING, MISSING, process_of(batch.threads))
        for pid in distinct(processes):
            if pid not in self._ranges:
                if len(self._ranges) >= MOST_PROCESSES:
                    self._lose("processes_left_out", 1, "more processes than are kept")
                    continue
                self._ranges[pid] = ProcessRanges()
            own = np.flatnonzero(processes == pid)
            self._ranges[pid].add(batch, own, operators, self._kept_names)

    def _name_domains(self, created: Ranges) -> None:
        processes = np.where(created.threads == MISSING, MISSING, process_of(created.threads))
        for pid, domain, text, text_id in zip(
            processes.tolist(),
            created.domains.tolist(),
            created.texts,
            created.text_ids.tolist(),
            strict=True,
        ):
            if len(self._domains) < _MOST_FACTS:
                self._domains[pid, domain] = text if text else text_id

    def _add_work(self, batch: Work) -> None:
        batch = batch.select_if(self.clock.possible(batch.starts, batch.ends, self.problems))
        if batch.table == KERNEL and sum(map(len, self._held)) < _MOST_HELD:
            named = all(name in self.strings for name in np.unique(batch.names).tolist())
            if not named:
                # What a kernel is for is told by its name, which may still come.
                self._held.append(batch)
                return
        self.devices.add(batch, self.strings)

    def _with_length(self, batch: Ranges) -> Ranges:
        """The ranges that can have been and took time; counts the others."""
        batch = batch.select_if(self.clock.possible(batch.starts, batch.ends, self.problems))
        lasting = batch.ends > batch.starts
        self.problems.add(
            "no_length", "info", int(len(batch) - lasting.sum()), example="a range of 0 ns"
        )
        return batch.select_if(lasting)

    def _lose(self, code: str, count: int, example: str) -> None:
        self.problems.add(code, "warning", count, example=example)
