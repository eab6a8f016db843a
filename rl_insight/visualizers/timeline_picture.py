"""A timeline as one still picture: the last of three steps to `rl_timeline.png`.

`timeline_layout` has said what goes where; here it becomes pixels.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rl_insight.visualizers import timeline_axis, timeline_layout, timeline_legend, timeline_words
from rl_insight.visualizers.ink import ALARM, INK, SOFT, Box, Paper, style, width_of
from rl_insight.visualizers.labels import shorten
from rl_insight.visualizers.timeline_bars import Bar, bars, gap_bars, unfinished_bars
from rl_insight.visualizers.timeline_layout import Layout
from rl_insight.visualizers.timeline_legend import HATCH, HATCHED
from rl_insight.visualizers.timeline_lines import HEAD
from rl_insight.visualizers.timeline_model import Timeline
from rl_insight.visualizers.timeline_sheet import (
    AXIS,
    EDGE,
    LINE,
    STEPS,
    TITLE,
    Sheet,
    plan,
)
from rl_insight.visualizers.timeline_torn import AT_LEAST, torn

_GRID, _BAND, _RULE = "#e2e4e8", "#f4f5f7", "#8a8f98"
_TITLE_POINTS, _TEXT_POINTS, _AXIS_POINTS = 14.0, 9.5, 9.0
_STEP_POINTS, _FIGURE_POINTS = 8.5, 7.0
# Design pixels: least height of a row and width of a stage that have room for ranges or figures.
_ROW_FOR_RANGES, _STAGE_FOR_RANGES = 16, 24
_ROW_FOR_FIGURES, _STAGE_FOR_FIGURES = 18, 46
# Beside a torn end a figure has two signs more, and less room.
_ROOM_FOR_TORN = 12


def picture(timeline: Timeline, width: int, scale: float) -> bytes:
    """The PNG of `timeline`, round(width × scale) pixels wide."""
    with style():
        paper = (
            _timeline(timeline, width, scale)
            if timeline.lanes
            else _nothing(timeline, width, scale)
        )
        return paper.png()


def _timeline(timeline: Timeline, width: int, scale: float) -> Paper:
    layout = timeline_layout.arrange(timeline)
    order = layout.by_rank.lanes
    legend = timeline_legend.flow(timeline, layout, width - 2 * EDGE)
    labels = [_fit(row.label, 9.0, width * 0.4) for row in layout.rows]
    heading = timeline_words.heading(timeline)
    lacking = {gap.lane for gap in timeline.missing.gaps}
    sheet = plan(
        units=[layout.rows[lane].height for lane in order],
        groups=layout.by_rank.group,
        width=width,
        scale=scale,
        label_width=max(width_of(label, 9.0) for label in _longest(labels)),
        legend_lines=len(legend),
        always=[place for place, lane in enumerate(order) if lane in lacking],
    )
    paper = Paper(sheet.width, sheet.height, scale)
    facts = [*heading.facts, "sorted by rank", *([sheet.note] if sheet.note else [])]
    named = sum(index < len(layout.stages) for line in legend for index, _ in line)
    if named < len(layout.stages):
        facts.append(f"{named} of {len(layout.stages):,} stages named")
    _title(paper, width, heading, facts)
    timeline_legend.draw(paper, layout, legend)
    tops = _tops(layout, order, sheet)
    _ground(paper, timeline, layout, sheet, tops)
    _gaps(paper, timeline, layout, sheet, tops)
    _bars(paper, timeline, layout, sheet, tops)
    _torn_ends(paper, timeline, layout, sheet, tops)
    _figures(paper, timeline, layout, sheet, tops)
    for place, (lane, top) in enumerate(tops.items()):
        if place % sheet.label_every == 0:
            row = layout.rows[lane]
            middle = sheet.top + top + row.height * sheet.row / 2
            colour = INK if row.recorded else SOFT
            x = sheet.left - sheet.px(8)
            paper.text(x, middle, labels[lane], sheet.label_points, colour, across="right")
    return paper


def _tops(layout: Layout, order: Sequence[int], sheet: Sheet) -> dict[int, int]:
    """Upper edge of each drawn lane's row in the plot, in pixels, from top to bottom."""
    tops: dict[int, int] = {}
    units = 0.0
    for place in sheet.kept:
        tops[order[place]] = round(units * sheet.row)
        units += layout.rows[order[place]].height
    return tops


def _title(paper: Paper, width: int, heading: timeline_words.Heading, facts: Sequence[str]) -> None:
    room = width - 2 * EDGE
    title = f"{heading.title} (Relative Time, Origin = {heading.origin})"
    points = min(_TITLE_POINTS, _TITLE_POINTS * room / width_of(title, _TITLE_POINTS, bold=True))
    paper.text(EDGE * paper.scale, (EDGE + TITLE / 2) * paper.scale, title, points, bold=True)
    alarm = heading.lost or ""
    words = " · ".join(facts) + ("  ·  " if alarm else "")
    width_of_words = width_of(words, _TEXT_POINTS)
    points = min(
        _TEXT_POINTS, _TEXT_POINTS * room / (width_of_words + width_of(alarm, _TEXT_POINTS, True))
    )
    middle = (EDGE + TITLE + LINE / 2) * paper.scale
    paper.text(EDGE * paper.scale, middle, words, points, SOFT)
    x = (EDGE + width_of_words * points / _TEXT_POINTS) * paper.scale
    paper.text(x, middle, alarm, points, ALARM, bold=True)


def _ground(
    paper: Paper, timeline: Timeline, layout: Layout, sheet: Sheet, tops: Mapping[int, int]
) -> None:
    """What lies under the bars: bands of ranks, the grid, the time axis, and the steps."""
    right, bottom = sheet.left + sheet.plot_width, sheet.top + sheet.plot_height
    # Bands follow each other as drawn: of a thinned picture whole ranks are missing.
    group_of = dict(zip(layout.by_rank.lanes, layout.by_rank.group, strict=True))
    number_of = {
        group: number for number, group in enumerate(dict.fromkeys(map(group_of.get, tops)))
    }
    bands: list[Box] = []
    for lane, top in tops.items():
        if number_of[group_of[lane]] % 2:
            height = round(layout.rows[lane].height * sheet.row)
            bands.append((sheet.left, sheet.top + top, right, sheet.top + top + height))
    paper.boxes(bands, _BAND, above=0)
    hair = max(1, round(sheet.scale))
    unit = timeline_axis.unit(timeline.extent_ns)
    middles = [bottom + sheet.px(14)]
    if sheet.axis_on_top:
        middles.append(sheet.top - sheet.px(STEPS + AXIS / 2))
    grid: list[Box] = []
    for time_ns, text in timeline_axis.ticks(
        timeline.extent_ns, max(2, round(sheet.plot_width / sheet.px(110)))
    ):
        x = sheet.left + round(time_ns * sheet.plot_width / timeline.extent_ns)
        grid.append((x, sheet.top, x + hair, bottom + sheet.px(4)))
        for middle in middles:
            paper.text(x, middle, text, _AXIS_POINTS, SOFT, across="center")
    paper.boxes(grid, _GRID, above=0.5)
    paper.boxes([(sheet.left, y, right, y + hair) for y in (sheet.top - hair, bottom)], _RULE)
    title = f"Time since origin ({unit.symbol})"
    center = sheet.left + sheet.plot_width / 2
    paper.text(center, bottom + sheet.px(35), title, _AXIS_POINTS, SOFT, across="center")
    _steps(paper, timeline, layout, sheet)


def _steps(paper: Paper, timeline: Timeline, layout: Layout, sheet: Sheet) -> None:
    """A line and a label where each step begins, as many as there is room for."""
    places = [
        sheet.left + round(mark.start_ns * sheet.plot_width / timeline.extent_ns)
        for mark in layout.steps
    ]
    crowded = any(after - before < sheet.px(24) for before, after in pairwise(places))
    free = float("-inf")
    for mark, x in zip(layout.steps, places, strict=True):
        text = f"step {mark.step}"
        gap, wide = sheet.px(4), sheet.px(width_of(text, _STEP_POINTS))
        # At the right edge there is room only on the other side of the line.
        across = "left" if x + gap + wide <= sheet.width - sheet.px(EDGE / 2) else "right"
        left = x + gap if across == "left" else x - gap - wide
        fits = left >= free
        if fits or not crowded:
            paper.dashes(x, sheet.top - sheet.px(STEPS - 4), sheet.top + sheet.plot_height, _RULE)
        if fits:
            middle = sheet.top - sheet.px(STEPS / 2)
            anchor = left if across == "left" else left + wide
            paper.text(anchor, middle, text, _STEP_POINTS, INK, across=across)
            free = left + wide + sheet.px(10)


def _bars(
    paper: Paper, timeline: Timeline, layout: Layout, sheet: Sheet, tops: Mapping[int, int]
) -> None:
    tall = sheet.row >= sheet.px(_ROW_FOR_RANGES)
    found = bars(
        timeline,
        layout,
        tops,
        sheet.row,
        sheet.plot_width,
        gap=_between(sheet),
        room_for_ranges=sheet.px(_STAGE_FOR_RANGES) if tall else float("inf"),
    )
    stages = {stage.colour for stage in layout.stages}
    for colour, rectangles in found.items():
        boxes = [_on_sheet(bar, sheet) for bar in rectangles]
        paper.boxes(boxes, colour, above=2 if colour in stages else 3)


def _torn_ends(
    paper: Paper, timeline: Timeline, layout: Layout, sheet: Sheet, tops: Mapping[int, int]
) -> None:
    """What tells a bar whose end nobody knows from one that was short, over its ranges too."""
    found = unfinished_bars(timeline, layout, tops, sheet.row, sheet.plot_width, _between(sheet))
    ends = [outline for bar in found for outline in torn(_on_sheet(bar, sheet), sheet.scale)]
    paper.shapes(ends, "white", above=4)


def _between(sheet: Sheet) -> int:
    """Pixels between neighbouring bars."""
    return max(1, round(sheet.scale))


def _on_sheet(bar: Bar, sheet: Sheet) -> Box:
    left, top = sheet.left, sheet.top
    return left + bar.left, top + bar.top, left + bar.right, top + bar.bottom


def _gaps(
    paper: Paper, timeline: Timeline, layout: Layout, sheet: Sheet, tops: Mapping[int, int]
) -> None:
    """What was not recorded: hatched, under the bars."""
    least = max(2, round(sheet.px(3)))
    found = gap_bars(timeline, layout, tops, sheet.row, sheet.plot_width, least)
    paper.hatched([_on_sheet(gap, sheet) for gap in found], HATCH, HATCHED, above=1.5)


def _figures(
    paper: Paper, timeline: Timeline, layout: Layout, sheet: Sheet, tops: Mapping[int, int]
) -> None:
    """Durations written into the stage bars that have room for them."""
    if sheet.row < sheet.px(_ROW_FOR_FIGURES):
        return
    spans = timeline.spans
    least_ns = sheet.px(_STAGE_FOR_FIGURES) * timeline.extent_ns / sheet.plot_width
    for line in layout.lines:
        if line.level or line.lane not in tops:
            continue
        units = layout.rows[line.lane].height
        upper, lower = line.extent(units)
        if line.levels:
            lower = upper + (lower - upper) * HEAD
        if (lower - upper) * units * sheet.row < sheet.px(_FIGURE_POINTS * 1.25):
            continue
        middle = sheet.top + tops[line.lane] + (upper + lower) / 2 * units * sheet.row
        for position in layout.order[line.first : line.last].tolist():
            duration = int(spans.duration_ns[position])
            least = AT_LEAST if spans.unfinished[position] else ""
            torn_px = sheet.px(_ROOM_FOR_TORN) if least else 0.0
            torn_ns = torn_px * timeline.extent_ns / sheet.plot_width
            if duration < least_ns + torn_ns:
                continue
            center = (int(spans.start_ns[position]) + duration / 2) / timeline.extent_ns
            paper.text(
                sheet.left + center * sheet.plot_width - torn_px / 2,
                middle,
                f"{least}{timeline_axis.duration(duration)}",
                _FIGURE_POINTS,
                layout.stages[layout.stage_of[position]].ink,
                across="center",
            )


def _nothing(timeline: Timeline, width: int, scale: float) -> Paper:
    """A picture that says why there is none, and lists what could not be read."""
    troubles = timeline_words.troubles(timeline)
    lines = [timeline_words.nothing_to_draw(timeline)]
    for _, path, detail in troubles.shown[:20] if troubles else ():
        lines.append(f"{path}: {detail}")
    if len(timeline.troubles) > 20:
        lines.append(f"… and {len(timeline.troubles) - 20:,} more")
    height = EDGE * 2 + TITLE + LINE * (len(lines) + 2)
    paper = Paper(round(width * scale), round(height * scale), scale)
    paper.text(
        EDGE * scale, (EDGE + TITLE / 2) * scale, timeline_words.TITLE, _TITLE_POINTS, bold=True
    )
    for number, line in enumerate(lines):
        paper.text(
            EDGE * scale,
            (EDGE + TITLE + LINE * (number + (0.5 if number == 0 else 1))) * scale,
            _fit(line, _TEXT_POINTS, width - 2 * EDGE),
            _TEXT_POINTS,
            INK if number == 0 else SOFT,
        )
    return paper


def _fit(text: str, points: float, room: float) -> str:
    """`text`, its middle left out until it is at most `room` design pixels wide."""
    width = width_of(text, points)
    if width <= room:
        return text
    return shorten(text, max(8, int(len(text) * room / width)))


def _longest(labels: Sequence[str]) -> list[str]:
    # Measuring costs a layout each: the widest is among those with the most characters.
    return sorted(labels, key=len)[-12:]
