"""Where everything of a timeline goes: rows and their order, tracks inside a row, colours.

The second of three steps; it knows no drawing library and no pixels. Vertical places are
fractions of a row, times are nanoseconds from the origin.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rl_insight.visualizers import colours, timeline_words
from rl_insight.visualizers.labels import plain
from rl_insight.visualizers.timeline_lines import Line, lines
from rl_insight.visualizers.timeline_model import Lane, Spans, Timeline

_MOST_UNITS = 4.0
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Row:
    """One lane's row; `height` is in units of a plain row, more where bars are stacked.

    `global_rank` is None where it is unknown or no other than `rank`. `clock` is what is doubtful
    about the times of all or some of its captures. One that is not `recorded` has no bars.
    """

    label: str
    role: str
    rank: str
    global_rank: str | None
    notes: tuple[str, ...]
    clock: str | None
    files: tuple[str, ...]
    height: float
    recorded: bool = True


@dataclass(frozen=True, slots=True)
class Sorting:
    """An order of the lanes from top to bottom, and for each the number of its group, from 0."""

    lanes: tuple[int, ...]
    group: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """An entry of the legend: a colour, `ink` for text on it, `tones` for the ranges inside."""

    name: str
    colour: str
    ink: str
    tones: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class StepMark:
    """Where a step begins: the first start of any stage of it, in nanoseconds from the origin."""

    step: int
    start_ns: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A timeline arranged.

    `rows` is indexed by lane. `order` holds positions of spans line by line, in time order inside
    a line. `stages` is in order of first start; `stage_of` gives per span its index there.
    `typical_ns` gives per stage the median duration of its spans, by which all of a stage are
    drawn with or without the ranges inside. `tone_of` gives per name the tone of such a range.
    """

    rows: tuple[Row, ...]
    default: Sorting
    by_rank: Sorting
    longest: Sorting
    lines: tuple[Line, ...]
    order: np.ndarray
    stages: tuple[Stage, ...]
    stage_of: np.ndarray
    typical_ns: tuple[int, ...]
    tone_of: tuple[int, ...]
    steps: tuple[StepMark, ...]


def arrange(timeline: Timeline) -> Layout:
    """Rows, their three orders, tracks of overlapping spans, colours and step marks."""
    spans = timeline.spans
    order, made = lines(spans, len(timeline.lanes))
    stages, stage_of = _stages(timeline)
    tracks = [1] * len(timeline.lanes)
    for line in made:
        tracks[line.lane] = max(tracks[line.lane], line.tracks)
    first = _first_starts(timeline)
    default = _sorting(timeline.lanes, lambda lane: _by_stage(lane, first), lambda x: x.role)
    return Layout(
        rows=_rows(timeline.lanes, tracks),
        default=default,
        by_rank=_sorting(timeline.lanes, lambda lane: _by_rank(lane, first), lambda x: x.rank_id),
        longest=_longest_first(default, spans),
        lines=made,
        order=order,
        stages=stages,
        stage_of=stage_of,
        typical_ns=_typical(spans, stage_of, len(stages)),
        tone_of=_tones(timeline.names, spans),
        steps=_step_marks(spans),
    )


def _rows(lanes: list[Lane], tracks: list[int]) -> tuple[Row, ...]:
    labels = timeline_words.row_labels(lanes)
    return tuple(
        Row(
            label=label,
            role=plain(timeline_words.role_name(lane)),
            rank="unknown" if lane.rank_id is None else str(lane.rank_id),
            global_rank=(
                str(lane.global_rank) if lane.global_rank not in (None, lane.rank_id) else None
            ),
            notes=tuple(timeline_words.row_notes(lane)),
            clock=timeline_words.clock_words(lane),
            files=tuple(plain(path, 160) for path in lane.sources[:3]),
            height=min(1 + 0.7 * (count - 1), _MOST_UNITS),
            recorded=lane.recorded,
        )
        for lane, label, count in zip(lanes, labels, tracks, strict=True)
    )


def _sorting(
    lanes: list[Lane], key: Callable[[Lane], object], group: Callable[[Lane], object]
) -> Sorting:
    order = sorted(range(len(lanes)), key=lambda lane: key(lanes[lane]))  # type: ignore[arg-type,return-value]
    numbers: list[int] = []
    for place, lane in enumerate(order):
        changed = place > 0 and group(lanes[lane]) != group(lanes[order[place - 1]])
        numbers.append(numbers[-1] + changed if numbers else 0)
    return Sorting(tuple(order), tuple(numbers))


def _longest_first(default: Sorting, spans: Spans) -> Sorting:
    """The groups of `default`, in each of them first the lane with the longest stage span.

    Lanes that tie keep their order, and one without a stage comes last. The longest span counts
    and not the sum of all, which hides a rank that was slow in one of many steps.
    """
    stages = spans.depth == 0
    longest = np.full(len(default.lanes), -1, dtype=np.int64)
    np.maximum.at(longest, spans.lane[stages], spans.duration_ns[stages])
    lanes, group = np.array(default.lanes, dtype=np.int64), np.array(default.group, dtype=np.int64)
    # A stable sort: what ties keeps its order.
    return Sorting(tuple(lanes[np.lexsort((-longest[lanes], group))].tolist()), default.group)


_Number = tuple[bool, int]


def _known_first(number: int | None) -> _Number:
    return (number is None, number or 0)


def _by_stage(lane: Lane, first: dict[str, int]) -> tuple[object, ...]:
    where = (
        _known_first(lane.replica),
        _known_first(lane.rank_id),
        lane.sources,
        lane.process or "",
    )
    # Of a role that gave nothing at all nobody knows when it ran.
    return (first.get(lane.role, _NEVER), lane.role, *where)


def _by_rank(lane: Lane, first: dict[str, int]) -> tuple[object, ...]:
    return (_known_first(lane.rank_id), *_by_stage(lane, first))


def _first_starts(timeline: Timeline) -> dict[str, int]:
    """Per role the first start of any of its spans, in nanoseconds from the origin."""
    first: dict[str, int] = {}
    for lane, start in zip(
        timeline.spans.lane.tolist(), timeline.spans.start_ns.tolist(), strict=True
    ):
        role = timeline.lanes[lane].role
        first[role] = min(first.get(role, start), start)
    return first


def _stages(timeline: Timeline) -> tuple[tuple[Stage, ...], np.ndarray]:
    """The legend in order of first start, and each span's place in it."""
    codes, at, inverse = np.unique(timeline.spans.stage, return_index=True, return_inverse=True)
    starts = np.full(len(codes), np.iinfo(np.int64).max)
    np.minimum.at(starts, inverse, timeline.spans.start_ns)
    ranking = np.lexsort((at, starts))
    place = np.empty(len(codes), dtype=np.int64)
    place[ranking] = np.arange(len(codes))
    names = [timeline.names[code] for code in codes[ranking].tolist()]
    colour = colours.assign(names)
    legend = tuple(
        Stage(plain(name, 60), colour[name], colours.ink(colour[name]), colours.tones(colour[name]))
        for name in names
    )
    return legend, place[inverse]


def _typical(spans: Spans, stage_of: np.ndarray, stages: int) -> tuple[int, ...]:
    """The median duration of each stage; 0 for one that has only ranges."""
    durations = (
        spans.duration_ns[(stage_of == stage) & (spans.depth == 0)] for stage in range(stages)
    )
    return tuple(int(np.median(found)) if len(found) else 0 for found in durations)


def _tones(names: list[str], spans: Spans) -> tuple[int, ...]:
    """Ranges of one stage that differ in name differ in tone, as far as three tones go."""
    tone = [0] * len(names)
    taken: dict[int, int] = {}
    ranges = spans.depth > 0
    pairs = np.unique(np.stack([spans.stage[ranges], spans.name[ranges]]), axis=1)
    for stage, name in pairs.T.tolist():
        tone[name] = taken.get(stage, 0) % 3
        taken[stage] = taken.get(stage, 0) + 1
    return tuple(tone)


def _step_marks(spans: Spans) -> tuple[StepMark, ...]:
    """Where steps begin, in order of time."""
    first: dict[int, int] = {}
    for position in np.flatnonzero(spans.depth == 0).tolist():
        step, start = spans.step[position], int(spans.start_ns[position])
        if step is not None:
            first[step] = min(first.get(step, start), start)
    marks = [StepMark(step, start) for step, start in first.items()]
    return tuple(sorted(marks, key=lambda mark: (mark.start_ns, mark.step)))
