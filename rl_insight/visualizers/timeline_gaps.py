"""Where something is missing on a timeline: lanes and stretches that should have spans.

What is missing is said by `rl_insight.data.coverage`; here it gets a place in time, which is where
the other ranks ran the same role in the same step.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rl_insight.data import identity, roles
from rl_insight.data.coverage import Cell, Coverage, coverage, recorded_by
from rl_insight.data.coverage_words import sentences
from rl_insight.selection import Selection
from rl_insight.visualizers.timeline_model import Gap, Lane, Missing, Spans

# More hatching than this is no longer looked at one by one; what is beyond is counted.
MOST_GAPS = 400
# Of one gap: each names a file and says what is the matter with it.
_MOST_REASONS = 3

Row = Mapping[str, object]

# Role, replica, step and, where steps are unknown, capture.
_When = tuple[str, int | None, int | None, int | None]
_Window = tuple[int, int]


@dataclass(slots=True)
class _Lack:
    """Missing cells that are one gap."""

    window: _Window | None
    cells: list[Cell] = field(default_factory=list)


def missing(
    captures: Sequence[Row],
    sources: Sequence[Row],
    chosen: Selection,
    lanes: Sequence[Lane],
    spans: Spans,
    lane_ids: Sequence[str | None],
) -> tuple[Missing, list[Lane]]:
    """What is missing, and the lanes that were never recorded: they come after `lanes`.

    `captures` are rows of the table lanes and `sources` those of the timeline's own files, with
    what `coverage.recorded_by` reads and `detail`. `chosen` was asked for; no more is expected.
    `lane_ids` has the capture of each of the `spans`.
    """
    stages = _stages(captures, lanes, spans, lane_ids)
    recorded = recorded_by(captures, sources, stages)
    found = coverage(recorded, chosen.ranks, chosen.steps, chosen.roles)
    if not found.columns and not found.scattered:
        return Missing(expected=found.expected), []
    cells = found.missing
    seen = {lane.rank_id for lane in lanes}
    told = Missing(
        cells=len(cells),
        expected=found.expected,
        ranks=len({cell.rank_id for cell in cells} - seen),
        sentences=tuple(sentences(found)),
    )
    if not len(spans):
        return told, []
    return _placed(told, found, lanes, spans, _reasons(captures, sources))


def _placed(
    told: Missing,
    found: Coverage,
    lanes: Sequence[Lane],
    spans: Spans,
    reasons: Mapping[Cell, Sequence[str]],
) -> tuple[Missing, list[Lane]]:
    """`told` with the gaps that are drawn, and the lanes that these need."""
    extent = int((spans.start_ns + spans.duration_ns).max())
    windows = _windows(found, lanes, spans)
    index = {(lane.role, lane.replica, lane.rank_id): at for at, lane in enumerate(lanes)}
    lacks: dict[tuple[object, ...], _Lack] = {}
    for cell in found.missing:
        who = (cell.role, cell.replica, cell.rank_id)
        if who not in index:
            lacks.setdefault(who, _Lack((0, extent))).cells.append(cell)
        else:
            when = (cell.role, cell.replica, cell.step, cell.capture)
            lacks[(*who, cell.step, cell.capture)] = _Lack(_window(windows, when), [cell])
    placed = [lack for lack in lacks.values() if lack.window is not None]
    # By rank: where not all can be drawn, what is drawn of a rank is all that it lacks.
    placed.sort(key=lambda lack: lack.cells[0].rank_id)
    added: list[Lane] = []
    gaps = []
    for lack in placed[:MOST_GAPS]:
        cell = lack.cells[0]
        who = (cell.role, cell.replica, cell.rank_id)
        if who not in index:
            index[who] = len(lanes) + len(added)
            added.append(Lane(cell.role, cell.replica, cell.rank_id, recorded=False))
        gaps.append(_gap(lack, index[who], reasons))
    return replace(
        told,
        gaps=tuple(gaps),
        more_gaps=len(placed) - len(gaps),
        unplaced=sum(len(lack.cells) for lack in lacks.values() if lack.window is None),
    ), added


def _gap(lack: _Lack, lane: int, reasons: Mapping[Cell, Sequence[str]]) -> Gap:
    start, end = lack.window or (0, 0)
    why = dict.fromkeys(text for text in _why(lack, reasons))
    return Gap(
        lane=lane,
        start_ns=start,
        end_ns=end,
        steps=tuple(cell.step for cell in lack.cells if cell.step is not None),
        captures=tuple(cell.capture for cell in lack.cells if cell.capture is not None),
        reasons=tuple(why)[:_MOST_REASONS],
    )


def _why(lack: _Lack, reasons: Mapping[Cell, Sequence[str]]) -> Iterator[str]:
    for cell in lack.cells:
        yield from reasons.get(replace(cell, capture=None), ()) if cell.lost else ()


def _stages(
    captures: Sequence[Row], lanes: Sequence[Lane], spans: Spans, lane_ids: Sequence[str | None]
) -> dict[str, frozenset[str]]:
    """The roles that are drawn of each capture of a whole step."""
    whole = {str(row["lane_id"]) for row in captures if row["role"] in roles.WHOLE_STEP}
    found: dict[str, set[str]] = defaultdict(set)
    if whole:
        for lane, lane_id in zip(spans.lane.tolist(), lane_ids, strict=True):
            if lane_id is not None and lane_id in whole:
                found[lane_id].add(lanes[lane].role)
    return {lane_id: frozenset(names) for lane_id, names in found.items()}


def _windows(found: Coverage, lanes: Sequence[Lane], spans: Spans) -> dict[_When, _Window]:
    """From the first start to the last end of each role in each step; of all replicas as well."""
    by_step = {column.role for column in found.columns if column.step is not None}
    wanted = {column.role for column in found.columns}
    ours = np.array([lane.role in wanted for lane in lanes], dtype=bool)
    windows: dict[_When, _Window] = {}
    # Spans of which nobody knows when they were tell it only where no others do.
    for undated in (False, True):
        known = set(windows)
        chosen = (spans.depth == 0) & ours[spans.lane] & (spans.undated == undated)
        for at in np.flatnonzero(chosen).tolist():
            lane = lanes[spans.lane[at]]
            start = int(spans.start_ns[at])
            end = start + int(spans.duration_ns[at])
            for when in _whens(lane, spans.step[at], spans.capture[at], by_step):
                if when not in known:
                    first, last = windows.get(when, (start, end))
                    windows[when] = (min(first, start), max(last, end))
    return windows


def _whens(lane: Lane, step: int | None, capture: int | None, by_step: set[str]) -> Iterator[_When]:
    for replica in {lane.replica, None}:
        if lane.role in by_step:
            yield (lane.role, replica, step, None)
        else:
            yield (lane.role, replica, None, capture)
            yield (lane.role, replica, None, None)


def _window(windows: Mapping[_When, _Window], when: _When) -> _Window | None:
    role, _, step, capture = when
    return windows.get(when) or windows.get((role, None, step, capture))


def _reasons(captures: Sequence[Row], sources: Sequence[Row]) -> dict[Cell, list[str]]:
    """Why captures gave nothing: of each lost cell, the files and what is the matter with them."""
    useless = {row["source_id"]: row for row in sources if row["status"] in ("failed", "empty")}
    found: dict[Cell, list[str]] = defaultdict(list)
    with_lanes = set()
    for row in captures:
        with_lanes.add(row["source_id"])
        if row["source_id"] in useless:
            _explain(found, row, row["replica"], useless[row["source_id"]])
    for source_id, row in useless.items():
        if source_id not in with_lanes:
            who = identity.resolve(str(row["path"]), {}, identity.UserRules())
            _explain(found, row, who.replica if who.role == row["role"] else None, row)
    return found


def _explain(found: dict[Cell, list[str]], whose: Row, replica: object, source: Row) -> None:
    role, rank, step = whose["role"], whose["rank_id"], whose["step"]
    if isinstance(role, str) and isinstance(rank, int):
        cell = Cell(
            role,
            replica if isinstance(replica, int) else None,
            step if isinstance(step, int) else None,
            rank,
            lost=True,
        )
        found[cell].append(f"{source['path']}: {source['detail'] or 'no reason was recorded'}")
