"""Captures that their clocks put days away from all others of their step.

The ranks of a run work on a step together. A capture that lies days from the others of its step was
dated by a broken clock or written by a broken profiler, and one of them would draw a time axis of
seconds out over weeks. Two runs in one folder are no such thing: the same ranks are in both.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Row = Mapping[str, object]

_DAY_NS = 24 * 3600 * 1_000_000_000
# No run is captured once a month; where steps are not known, days may lie between two of them.
_MONTH_NS = 30 * _DAY_NS
_FEW = 2


@dataclass(frozen=True, slots=True)
class _Capture:
    """A dated capture: `at` is its place among the lanes, `process` whose it is; times in ns."""

    at: int
    start: int
    end: int
    process: tuple[object, ...]
    step: int | None


@dataclass(frozen=True, slots=True)
class _Bulk:
    """The captures that lie where they belong: how many, from when to when (ns), and whose."""

    captures: int = 0
    start: int = 0
    end: int = 0
    processes: frozenset[tuple[object, ...]] = frozenset()


def far(lanes: Sequence[Row]) -> dict[int, str]:
    """The places in `lanes` of the captures that lie far from where they belong, and the evidence.

    `lanes` are settled: with their identity, and their times (ns) on the common clock.
    """
    dated = [one for at, row in enumerate(lanes) if (one := _capture(at, row)) is not None]
    steps: dict[int, list[_Capture]] = defaultdict(list)
    for one in dated:
        if one.step is not None:
            steps[one.step].append(one)
    found: dict[int, str] = {}
    for step, members in steps.items():
        strays, bulk = _strays(members, _DAY_NS)
        for one in strays:
            if one.process not in bulk.processes:
                found[one.at] = _words(one, bulk, f" of step {step}")
    strays, bulk = _strays(dated, _DAY_NS)
    for one in strays:
        if one.step is None and one.process not in bulk.processes:
            found.setdefault(one.at, _words(one, bulk, ""))
    strays, bulk = _strays(dated, _MONTH_NS, alone=True)
    for one in strays:
        found.setdefault(one.at, _words(one, bulk, ""))
    return found


def _capture(at: int, row: Row) -> _Capture | None:
    start, end, step = row["capture_start_ns"], row["capture_end_ns"], row["step"]
    if row["clock"] != "utc" or not isinstance(start, int) or not isinstance(end, int):
        return None
    whose = (row["role"], row["replica"], row["rank_id"])
    process = whose if row["rank_id"] is not None else (row["source_id"],)
    return _Capture(at, start, end, process, step if isinstance(step, int) else None)


def _strays(
    members: Sequence[_Capture], pause_ns: int, alone: bool = False
) -> tuple[list[_Capture], _Bulk]:
    """Those of `members` outside of the largest group without a pause that long, and that group.

    Of equally large groups the latest is right: a clock that was never set tells an early time.
    With `alone` only groups of a single process, where the largest is of several.
    """
    groups: list[list[_Capture]] = []
    reach = 0
    for one in sorted(members, key=lambda one: one.start):
        if not groups or one.start - reach > pause_ns:
            groups.append([])
        groups[-1].append(one)
        reach = max(reach, one.end) if len(groups[-1]) > 1 else one.end
    if len(groups) < _FEW:
        return [], _Bulk()
    largest = max(reversed(groups), key=len)
    bulk = _Bulk(
        captures=len(largest),
        start=min(one.start for one in largest),
        end=max(one.end for one in largest),
        processes=_processes(largest),
    )
    others = [group for group in groups if group is not largest]
    if alone:
        several = len(bulk.processes) >= _FEW
        others = [group for group in others if several and len(_processes(group)) == 1]
    return [one for group in others for one in group], bulk


def _processes(group: Sequence[_Capture]) -> frozenset[tuple[object, ...]]:
    return frozenset(one.process for one in group)


def _words(one: _Capture, bulk: _Bulk, of_what: str) -> str:
    before = one.start < bulk.start
    days = (bulk.start - one.end if before else one.start - bulk.end) / _DAY_NS
    others, them = f"{bulk.captures:,} other captures", "them"
    if bulk.captures == 1:
        others, them = "the other capture", "it"
    side = "before" if before else "after"
    where = f"it is drawn beside {them}, not at its own time"
    return f"its clock puts it {days:,.1f} days {side} {others}{of_what}: {where}"
