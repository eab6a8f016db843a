"""Which captures claim to be of one role, replica and rank at one time."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class _Capture(NamedTuple):
    """From when to when, in ns, and its place among the lanes; sorts by its beginning."""

    start: int
    end: int
    process: str
    source: str
    number: int


def simultaneous(lanes: Sequence[Mapping[str, object]]) -> Counter[str]:
    """How many captures of a source run while another source of the same identity is captured.

    Two replicas or hosts that number their ranks alike show up so, and copies of one file; all are
    kept. `lanes` are rows as `settle_lanes` completes them: a capture is drawn under the roles of
    its stages, where it names any.
    """
    groups: dict[tuple[object, ...], list[_Capture]] = defaultdict(list)
    for number, row in enumerate(lanes):
        start, end, stages = row["capture_start_ns"], row["capture_end_ns"], row.get("stages")
        if row["rank_id"] is None or not isinstance(start, int) or not isinstance(end, int):
            continue
        source = str(row["source_id"])
        process = source if row["pid"] is None else f"{row['host']} {row['pid']}"
        capture = _Capture(start, end, process, source, number)
        for role in stages if isinstance(stages, frozenset) and stages else (row["role"],):
            if role is not None:
                groups[role, row["replica"], row["rank_id"]].append(capture)
    found: set[_Capture] = set()
    for captures in groups.values():
        captures.sort()
        found.update(_of_two_processes(captures))
        found.update(_of_one_process(captures))
    return Counter(capture.source for capture in found)


def _of_two_processes(captures: Sequence[_Capture]) -> Iterator[_Capture]:
    """Those of the sorted `captures` that overlap one of another process."""
    # The start of the next capture of another process, for each capture.
    following: list[int | None] = [None] * len(captures)
    for at in range(len(captures) - 2, -1, -1):
        after = captures[at + 1]
        other_process = after.process != captures[at].process
        following[at] = after.start if other_process else following[at + 1]
    # The latest end so far, and the latest of any process but that one.
    latest: _Capture | None = None
    other: _Capture | None = None
    for capture, later in zip(captures, following, strict=True):
        before = latest if latest is None or latest.process != capture.process else other
        if (before is not None and before.end > capture.start) or (
            later is not None and later < capture.end
        ):
            yield capture
        if latest is None or capture.end > latest.end:
            other = latest if latest is not None and latest.process != capture.process else other
            latest = capture
        elif capture.process != latest.process and (other is None or capture.end > other.end):
            other = capture


def _of_one_process(captures: Sequence[_Capture]) -> Iterator[_Capture]:
    """Those of the sorted `captures` that share most of their time with one of the same process.

    A process writes window after window, which may touch: two at once are copies of one file.
    """
    latest: dict[str, _Capture] = {}
    for capture in captures:
        before = latest.get(capture.process)
        if before is not None and before.source != capture.source:
            shared = min(before.end, capture.end) - capture.start
            shorter = min(before.end - before.start, capture.end - capture.start)
            if shared > 0 and shared * 2 > shorter:
                yield before
                yield capture
        if before is None or capture.end > before.end:
            latest[capture.process] = capture
