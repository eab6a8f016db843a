"""Captures that their clocks put days away from all others of their step.

The ranks of a run work on a step together. A capture that lies days from the others of its step was
dated by a broken clock or written by a broken profiler, and one of them would draw a time axis of
seconds out over weeks. Two runs in one folder are no such thing: the same ranks are in both.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
        for one, bulk in _strays(members, _DAY_NS):
            if one.process not in {other.process for other in bulk}:
                found[one.at] = _words(one, bulk, f" of step {step}")
    for one, bulk in _strays(dated, _DAY_NS):
        if one.step is None and one.process not in {other.process for other in bulk}:
            found.setdefault(one.at, _words(one, bulk, ""))
    for one, bulk in _strays(dated, _MONTH_NS, alone=True):
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
) -> Iterator[tuple[_Capture, Sequence[_Capture]]]:
    """Each of `members` outside of the largest group without a pause that long, and that group.

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
        return
    bulk = max(reversed(groups), key=len)
    for group in groups:
        if group is bulk or (alone and (_processes(group) > 1 or _processes(bulk) < _FEW)):
            continue
        for one in group:
            yield one, bulk


def _processes(group: Sequence[_Capture]) -> int:
    return len({one.process for one in group})


def _words(one: _Capture, bulk: Sequence[_Capture], of_what: str) -> str:
    first, last = min(other.start for other in bulk), max(other.end for other in bulk)
    before = one.start < first
    days = (first - one.end if before else one.start - last) / _DAY_NS
    others = "the other capture" if len(bulk) == 1 else f"{len(bulk):,} other captures"
    side = "before" if before else "after"
    where = "it is drawn beside them, not at its own time"
    return f"its clock puts it {days:,.1f} days {side} {others}{of_what}: {where}"
