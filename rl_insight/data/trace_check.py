"""Reads a Chrome trace once, from its first to its last event, and tells what it lacks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from rl_insight.problems import Problem, Problems, Severity, explained
from rl_insight.readers.chrome_trace import ChromeTraceReader

Scalar = str | int | float | bool | None | msgspec.UnsetType

REQUIRED = ("ph", "name", "pid", "tid")
"""What every event of a trace has ("Trace Event Format", Google, 2016)."""

# The profiler's own span, which is no activity.
_OF_PROFILER = "Spans"
_ZERO = (0, "0", "0.0", "0.000")
# Among times this long after zero a zero is no time, as the parsers have it.
_ZERO_IS_NO_TIME_US = 60_000_000
_MOST_PROCESSES = 1_000
_SMALL_BLOCKS = 512 << 10


class _Args(msgspec.Struct, gc=False):
    name: object = None


class _Event(msgspec.Struct, gc=False):
    """The fields that are looked at; UNSET where an event has none."""

    ph: Scalar = msgspec.UNSET
    name: Scalar = msgspec.UNSET
    pid: Scalar = msgspec.UNSET
    tid: Scalar = msgspec.UNSET
    ts: Any = msgspec.UNSET
    dur: Any = msgspec.UNSET
    args: _Args | Scalar | list[msgspec.Raw] = msgspec.UNSET


@dataclass(slots=True)
class TraceCheck:
    """What was seen: `events` of which `timed` have a duration (phase X), `missing` by the field,
    the names of processes, the values of the `wanted` keys, and what reading lost.
    """

    events: int = 0
    timed: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    zeros: int = 0
    """Events with a duration at time 0."""
    earliest_us: float | None = None
    """About when the others begin."""
    processes: set[str] = field(default_factory=set)
    metadata: dict[str, Any] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    is_trace: bool = True
    """False for JSON of another kind."""

    def add(self, events: Sequence[_Event]) -> None:
        """Take a block of events."""
        unset = msgspec.UNSET
        self.events += len(events)
        self.timed += sum(
            one.ph == "X" and one.ts is not unset and one.dur is not unset for one in events
        )
        self._look_for_zeros(events)
        odd = [
            one
            for one in events
            if one.ph is unset or one.name is unset or one.pid is unset or one.tid is unset
        ]
        for one in odd:
            for name in REQUIRED:
                if getattr(one, name) is unset:
                    self._miss(name)
        # Rows of metadata (M) are about no time; an event without a phase is counted already.
        for one in events:
            if one.ts is unset and one.ph != "M" and one.ph is not unset:
                self._miss("ts")
            elif one.ph == "M" and one.name == "process_name" and isinstance(one.args, _Args):
                self._name(one.args.name)

    def complaints(self) -> Iterator[tuple[Severity, str]]:
        """What is wrong with the trace: fields that are missing, events without times, losses."""
        for problem in self.problems:
            if problem.code != "empty_file":
                yield loss_severity(problem), in_words(problem)
        for name, count in self.missing.items():
            yield "error", f"{count:,} of its {self.events:,} events have no «{name}»"
        earliest_us = self.earliest_us or 0
        if self.zeros and earliest_us > _ZERO_IS_NO_TIME_US:
            lost = explained("zero_time", self.zeros, None)
            yield "error", f"{lost}: the others begin {earliest_us / 1e6:,.0f} s after that"
        if not self.events:
            yield "error", "it holds no events"
        elif not self.timed:
            yield "error", f"no timed events: none of its {self.events:,} events has a duration"

    def _look_for_zeros(self, events: Sequence[_Event]) -> None:
        timed = [one for one in events if one.ph == "X" and one.pid != _OF_PROFILER]
        self.zeros += sum(one.ts in _ZERO for one in timed)
        first = next((at for one in timed if (at := _microseconds(one.ts)) > 0), None)
        if first is not None:
            self.earliest_us = min(first, self.earliest_us or first)

    def _miss(self, name: str) -> None:
        self.missing[name] = self.missing.get(name, 0) + 1

    def _name(self, name: object) -> None:
        if isinstance(name, str) and len(self.processes) < _MOST_PROCESSES:
            self.processes.add(name[:200])


def _microseconds(value: object) -> float:
    """A time as far as it is one, else 0."""
    try:
        return float(value) if isinstance(value, int | float | str) else 0.0
    except ValueError:
        return 0.0


def check_trace(path: Path, wanted: Sequence[str] = ()) -> TraceCheck:
    """Read the trace at `path` once, in bounded memory; `wanted` are keys of its top level.

    Raises ReadError when it cannot be read or is no JSON of this kind.
    """
    reader = ChromeTraceReader(path, _Event, wanted, block_bytes=_SMALL_BLOCKS)
    found = TraceCheck()
    for events in reader:
        found.add(events)
        del events  # or two blocks would be alive while the next one is decoded
    found.metadata, found.problems = reader.metadata, reader.problems
    has_phase = found.missing.get("ph", 0) < found.events or not found.events
    found.is_trace = reader.has_events_key and has_phase
    return found


def loss_severity(problem: Problem) -> Severity:
    """How bad it is what a reader noted: of what is no mere note something is lost."""
    return "info" if problem.severity == "info" else "error"


def in_words(problem: Problem) -> str:
    """What a reader lost or doubted, how often and where it was first."""
    text = problem.code.replace("_", " ")
    if problem.count > 1:
        text += f", {problem.count:,} times"
    if problem.offset is not None:
        text += f", {'first ' if problem.count > 1 else ''}at byte {problem.offset:,}"
    return text
