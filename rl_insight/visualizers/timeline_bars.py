"""Bars of a whole timeline as rectangles in pixels, by colour: what a still picture fills."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor

import numpy as np

from rl_insight.visualizers.timeline_layout import Layout
from rl_insight.visualizers.timeline_lines import ROW_MARGIN, Line
from rl_insight.visualizers.timeline_marks import marks
from rl_insight.visualizers.timeline_model import Timeline


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle in pixels of the plot, from its upper left corner."""

    left: int
    right: int
    top: int
    bottom: int


def bars(
    timeline: Timeline,
    layout: Layout,
    tops: Mapping[int, int],
    row: float,
    width: int,
    gap: int,
    room_for_ranges: float,
) -> dict[str, list[Bar]]:
    """Bars by colour; stages come before the ranges that lie on them, and what fills much before
    what fills little, which would be hidden where bars of many tracks share a pixel.

    `tops` gives the upper edge of the row of each lane that is drawn, `row` the height of a plain
    row, `width` that of the plot: all in pixels, as is the `gap` between neighbours. Ranges are
    drawn in stages that usually have `room_for_ranges` pixels; in narrower ones they are a smear.
    """
    cell_ns = max(timeline.extent_ns, 1) / width
    roomy = _roomy(timeline, layout, room_for_ranges * cell_ns)
    start = timeline.spans.start_ns[layout.order]
    end = start + timeline.spans.duration_ns[layout.order]
    found: dict[str, list[Bar]] = {}
    inside: dict[str, bool] = {}
    for line in sorted(layout.lines, key=lambda line: line.level):
        if line.lane not in tops:
            continue
        top, bottom = _height(line, layout, tops, row)
        places = np.arange(line.first, line.last)
        places = places[roomy[layout.order[places]]]
        paint, colours = _paint(timeline, layout, layout.order[places], line.level)
        for mark in marks(start[places].tolist(), end[places].tolist(), paint, cell_ns, gap):
            right = min(mark.right, width)
            left = min(mark.left, right - 1)
            inside.setdefault(colours[mark.paint], line.level > 0)
            found.setdefault(colours[mark.paint], []).append(Bar(left, right, top, bottom))
    ordered = sorted(found, key=lambda colour: (inside[colour], -_area(found[colour])))
    return {colour: found[colour] for colour in ordered}


def _area(bars: Sequence[Bar]) -> int:
    return sum((bar.right - bar.left) * (bar.bottom - bar.top) for bar in bars)


def unfinished_bars(
    timeline: Timeline,
    layout: Layout,
    tops: Mapping[int, int],
    row: float,
    width: int,
    gap: int,
) -> list[Bar]:
    """Those of `bars` that are one stage of which nobody knows when it ended.

    A range that is open until the end of its capture ends where its stage does.
    """
    cell_ns = max(timeline.extent_ns, 1) / width
    spans = timeline.spans
    found = []
    for line in layout.lines:
        positions = layout.order[line.first : line.last]
        open_ended = spans.unfinished[positions]
        if line.level or line.lane not in tops or not open_ended.any():
            continue
        top, bottom = _height(line, layout, tops, row)
        start_ns = spans.start_ns[positions]
        end_ns = start_ns + spans.duration_ns[positions]
        paint = layout.stage_of[positions].tolist()
        begins = {floor(start / cell_ns) for start in start_ns[open_ended].tolist()}
        found += [
            Bar(mark.left, min(mark.right, width), top, bottom)
            for mark in marks(start_ns.tolist(), end_ns.tolist(), paint, cell_ns, gap)
            if mark.single and mark.left in begins
        ]
    return found


def gap_bars(
    timeline: Timeline,
    layout: Layout,
    tops: Mapping[int, int],
    row: float,
    width: int,
    least: int,
) -> list[Bar]:
    """Where something is missing, at least `least` pixels wide; for the rest see `bars`."""
    extent = max(timeline.extent_ns, 1)
    found = []
    for gap in timeline.missing.gaps:
        if gap.lane not in tops:
            continue
        units = layout.rows[gap.lane].height
        margin = round(ROW_MARGIN * row)
        top = tops[gap.lane] + margin
        bottom = max(tops[gap.lane] + round(units * row) - margin, top + 1)
        right = min(
            max(gap.end_ns * width // extent, gap.start_ns * width // extent + least), width
        )
        left = min(gap.start_ns * width // extent, right - least)
        found.append(Bar(left, right, top, bottom))
    return found


def _height(line: Line, layout: Layout, tops: Mapping[int, int], row: float) -> tuple[int, int]:
    units = layout.rows[line.lane].height
    upper, lower = line.extent(units)
    top = tops[line.lane] + round(upper * units * row)
    return top, max(tops[line.lane] + round(lower * units * row), top + 1)


def _roomy(timeline: Timeline, layout: Layout, least_ns: float) -> np.ndarray:
    """Stages, and the ranges in stages that usually take at least `least_ns`."""
    typical = np.array(layout.typical_ns)[layout.stage_of]
    return np.asarray((timeline.spans.depth == 0) | (typical >= least_ns), dtype=bool)


def _paint(
    timeline: Timeline, layout: Layout, positions: np.ndarray, level: int
) -> tuple[Sequence[int], list[str]]:
    """A number for the colour of each span, and the colours that the numbers stand for."""
    if level == 0:
        return layout.stage_of[positions].tolist(), [stage.colour for stage in layout.stages]
    tones = np.array(layout.tone_of)[timeline.spans.name[positions]]
    colours = [tone for stage in layout.stages for tone in stage.tones]
    return (layout.stage_of[positions] * 3 + tones).tolist(), colours
