"""Reads the text form of an Ascend capture: `trace_view.json`, a list of Chrome trace events."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.annotations import Annotations
from rl_insight.parsers.kernel_names import COMMUNICATION
from rl_insight.parsers.losses import is_cut_short, is_in_part
from rl_insight.parsers.mstx_capture import AscendDevice, Codes, MstxCapture
from rl_insight.parsers.mstx_events import (
    CALL,
    DEVICE_RANGE,
    GUESS,
    HOST,
    IGNORED,
    OVERLAP,
    QUICK_EVENT,
    RANGE,
    TASK,
    MstxArgs,
    MstxEvent,
    MstxEventExact,
    Scalar,
    Wanted,
    completed,
    kinds_of,
    telling,
    united_codes,
)
from rl_insight.parsers.mstx_ops import TaskCodes, call, is_collective
from rl_insight.parsers.mstx_processes import Process, by_device, group_name, group_place, host_pid
from rl_insight.parsers.pairs import Pairs
from rl_insight.parsers.sieve import Sieve
from rl_insight.problems import Problems
from rl_insight.readers.chrome_trace import ChromeTraceReader
from rl_insight.readers.timestamps import Microseconds, exact_ns

Kinds = npt.NDArray[np.int8]

_MOST_PROCESSES = 1_000

# Simulated with a cache of 512 kB: blocks of 4 MB miss it a third more often.
_BLOCK_BYTES = 512 << 10
# How many events numpy works on at a time: a block leaves few, and each call costs.
_BATCH = 8_192


@dataclass(frozen=True, slots=True)
class TextRead:
    """A trace: its capture, what the reader lost, and whether it is a trace at all."""

    capture: MstxCapture
    losses: Problems
    is_trace: bool


def read(path: Path, path_role: str | None) -> TextRead:
    """The capture in the trace at `path`, of which the path says that its role is `path_role`.

    Where no device and no range tells from when to when it goes, the trace is read once more for
    the host's own events.
    Raises ReadError when the file cannot be read or is no JSON.
    """
    reader, text = _read(path, path_role, with_host=False)
    capture = text.finish()
    if capture.first_ns is None and text.is_trace:
        _, text = _read(path, path_role, with_host=True)
        capture = text.finish()
    capture.events = reader.events_seen
    capture.cut_short = is_cut_short(reader.problems)
    capture.in_part = is_in_part(reader.problems, reader.events_seen)
    is_trace = reader.has_events_key and (text.is_trace or not reader.events_seen)
    return TextRead(capture, reader.problems, is_trace)


def _read(
    path: Path, path_role: str | None, with_host: bool
) -> tuple[ChromeTraceReader[MstxEvent], "MstxText"]:
    reader = ChromeTraceReader(
        path, MstxEvent, (), MstxEventExact, _BLOCK_BYTES, quick_type=QUICK_EVENT
    )
    text = MstxText(path_role, with_host)
    # No reference cycle runs through events: looking for one in every block costs time only.
    collecting = gc.isenabled()
    gc.disable()
    try:
        for events in reader:
            text.add(events)
            del events  # or two blocks would be alive while the next one is decoded
    finally:
        if collecting:
            gc.enable()
    return reader, text


class MstxText:
    """Takes events block by block; memory does not grow with their number."""

    def __init__(self, path_role: str | None, with_host: bool = False) -> None:
        self.is_trace = False
        """Whether any event has a phase: other JSON of this shape has none."""
        self._with_host = with_host
        self._capture = MstxCapture(Problems())
        self._wanted = Wanted(path_role)
        self._codes = TaskCodes(self._capture.names)
        self._united = united_codes(self._capture.names)
        self._sieve: Sieve[MstxEvent] = Sieve(self._capture.problems, _quoted)
        self._pairs: Pairs[MstxEvent] = Pairs(self._capture.problems)
        self._processes: dict[Scalar, Process] = {}
        self._waiting: list[MstxEvent] = []
        self._waiting_kinds: list[int] = []

    def add(self, events: Sequence[MstxEvent]) -> None:
        """Take a block of events."""
        self.is_trace = self.is_trace or any(event.ph for event in events)
        told = telling(events, self._wanted, self._with_host)
        timed = [event for event in told if event.ph == "X"]
        if len(timed) < len(told):
            timed += self._pieced_together(told)
        kinds = kinds_of(timed, self._wanted)
        useful = [kind != IGNORED and (kind != HOST or self._with_host) for kind in kinds]
        self._waiting += compress(timed, useful)
        self._waiting_kinds += compress(kinds, useful)
        if len(self._waiting) >= _BATCH:
            self._take_waiting()

    def _pieced_together(self, told: Sequence[MstxEvent]) -> list[MstxEvent]:
        """Of events without a duration: those that two make together; names go to the processes."""
        for event in told:
            if event.ph == "M" and (process := self._process(event.pid)) is not None:
                process.describe(event)
        whole = [completed(begin, duration) for begin, duration in self._pairs.ended(told)]
        return telling(whole, self._wanted, self._with_host) if whole else []

    def finish(self) -> MstxCapture:
        """The capture, once all events were taken."""
        self._pairs.finish()
        if self._waiting:
            self._take_waiting()
        bounds, held = self._sieve.settle()
        if held.events:
            kinds = np.array(kinds_of(held.events, self._wanted), dtype=np.int8)
            self._take(held.events, kinds, held.starts, held.durations)
        capture, processes = self._capture, list(self._processes.values())
        capture.pid = host_pid(processes)
        capture.group = lambda place: group_name(place, processes)
        capture.settle(bounds)
        layers = by_device(processes)
        # Tasks of nobody knows which device are the analysed one's.
        default = next((number for number, one in layers if one.is_analysis), None)
        for number, process in layers:
            for part in _parts(process):
                capture.device(default if number is None else number).absorb(part)
        return capture

    def _process(self, pid: Scalar, events: int = 1) -> Process | None:
        """The process with that number; None, and a problem, for one too many with `events`."""
        process = self._processes.get(pid)
        if process is None:
            if len(self._processes) >= _MOST_PROCESSES:
                example = f"events of more than {_MOST_PROCESSES} processes"
                self._capture.problems.add("processes_left_out", "warning", events, example=example)
                return None
            process = self._processes[pid] = Process(pid, self._capture.names)
        return process

    def _take_waiting(self) -> None:
        timed, kinds = self._waiting, np.array(self._waiting_kinds, dtype=np.int8)
        self._waiting, self._waiting_kinds = [], []
        starts = exact_ns(cast(Sequence[Microseconds], [event.ts for event in timed]))
        durations = exact_ns(cast(Sequence[Microseconds], [event.dur for event in timed]))
        good = self._sieve.certain(timed, starts, durations)
        if not good.all():
            timed = list(compress(timed, good.tolist()))
            kinds, starts, durations = kinds[good], starts[good], durations[good]
        self._take(timed, kinds, starts, durations)

    def _take(
        self, timed: Sequence[MstxEvent], kinds: Kinds, starts: IntArray, durations: IntArray
    ) -> None:
        for index in np.flatnonzero((kinds == RANGE) | (kinds == DEVICE_RANGE)).tolist():
            into = self._capture.annotations
            if kinds[index] == DEVICE_RANGE:
                into = self._capture.device_ranges
            _annotate(into, timed[index], int(starts[index]), int(durations[index]))
        pids = [event.pid for event in timed]
        numbers = {pid: number for number, pid in enumerate(dict.fromkeys(pids))}
        owners = np.array([numbers[pid] for pid in pids], dtype=np.int32)
        counts = np.bincount(owners, minlength=len(numbers)).tolist()
        for pid, number in numbers.items():
            process = self._process(pid, counts[number])
            if process is None:
                continue
            own = owners == number
            for kind, device in (
                (OVERLAP, process.overlap),
                (TASK, process.device),
                (CALL, process.device),
                (GUESS, process.guess),
            ):
                chosen = own & (kinds == kind)
                if chosen.any():
                    events = list(compress(timed, chosen.tolist()))
                    self._give(device, kind, events, starts[chosen], durations[chosen])

    def _give(
        self,
        device: AscendDevice,
        kind: int,
        events: Sequence[MstxEvent],
        starts: IntArray,
        durations: IntArray,
    ) -> None:
        """Give `device` events of one kind."""
        if kind == OVERLAP:
            codes = _codes([self._united[event.name] for event in events])
            device.add_overlap(starts, durations, codes)
        elif kind == TASK:
            table = self._codes
            codes = _codes(
                # What is no MstxArgs is no TASK.
                [table[event.args.task_type, event.name] for event in events]  # type: ignore[union-attr]
            )
            device.add_tasks(starts, durations, codes)
        else:
            called = np.array([kind == CALL or is_collective(event.name) for event in events])
            self._call(device, list(compress(events, called)), starts[called], durations[called])
            others = list(compress(events, ~called))
            codes = _codes([self._codes[None, event.name] for event in others])
            device.add_tasks(starts[~called], durations[~called], codes)

    def _call(
        self,
        device: AscendDevice,
        events: Sequence[MstxEvent],
        starts: IntArray,
        durations: IntArray,
    ) -> None:
        calls = []
        for event in events:
            args = event.args if isinstance(event.args, MstxArgs) else MstxArgs()
            one = call(event.name, None, args.count, args.data_type)
            calls.append(replace(one, group=group_place(event, one.group)))
        names = self._capture.names
        codes = _codes([names.code(COMMUNICATION, one.op) for one in calls])
        device.add_calls(starts, durations, calls, codes)


def _parts(process: Process) -> list[AscendDevice]:
    """What the events of a process are, now that it is known what it is."""
    parts = [process.device]
    if process.is_analysis:
        parts.append(process.overlap)
    if process.is_device:
        parts.append(process.guess)
    return [part for part in parts if part]


def _annotate(into: Annotations, event: MstxEvent, start: int, duration: int) -> None:
    if isinstance(event.name, str):
        domain = event.args.domain if isinstance(event.args, MstxArgs) else None
        tid = "" if event.tid is None else str(event.tid)
        named = domain if isinstance(domain, str) and domain else "default"
        into.add(start, start + duration, event.name, tid, named)


def _codes(codes: Sequence[int]) -> Codes:
    return np.array(codes, dtype=np.int64)


def _quoted(event: MstxEvent) -> str:
    return f"{event.name!r}: ts {event.ts}, dur {event.dur}"
