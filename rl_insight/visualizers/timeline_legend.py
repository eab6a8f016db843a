"""The legend of the timeline's still picture: its stages, and the hatching and the torn ends where
there are any.
"""

from collections.abc import Sequence

from rl_insight.visualizers.ink import Box, Paper, width_of
from rl_insight.visualizers.timeline_layout import Layout
from rl_insight.visualizers.timeline_missing import NOT_RECORDED
from rl_insight.visualizers.timeline_model import Timeline
from rl_insight.visualizers.timeline_sheet import EDGE, LEGEND_LINE, LINE, TITLE
from rl_insight.visualizers.timeline_torn import END_UNKNOWN, torn

HATCH, HATCHED = "#a5abb4", "#fbfbfc"
"""The lines of the hatching, and its ground."""

TORN = "#7d838c"
"""A bar of any stage, where its torn end is explained."""

_EXTRA = (NOT_RECORDED, END_UNKNOWN)
_MOST_LINES = 5
_POINTS = 9.0


def flow(timeline: Timeline, layout: Layout, room: float) -> list[list[tuple[int, float]]]:
    """Legend entries as (index, x) broken into a few lines of at most `room` design pixels."""
    lines: list[list[tuple[int, float]]] = []
    x = room
    for index, name in _names(timeline, layout).items():
        needed = 17 + width_of(name, _POINTS)
        if x + needed > room:
            if len(lines) == _MOST_LINES:
                break
            lines.append([])
            x = 0.0
        lines[-1].append((index, x))
        x += needed + 22
    return lines


def draw(paper: Paper, layout: Layout, lines: Sequence[Sequence[tuple[int, float]]]) -> None:
    """Draw the `lines` that `flow` made under the title."""
    colours: dict[str, list[Box]] = {}
    for number, line in enumerate(lines):
        middle = EDGE + TITLE + LINE + (number + 0.5) * LEGEND_LINE
        for index, x in line:
            extra = index - len(layout.stages)
            name = layout.stages[index].name if extra < 0 else _EXTRA[extra]
            paper.text((EDGE + x + 17) * paper.scale, middle * paper.scale, name, _POINTS)
            box = _scaled((EDGE + x, middle - 6, EDGE + x + 12, middle + 6), paper.scale)
            if extra < 0:
                colours.setdefault(layout.stages[index].colour, []).append(box)
            elif _EXTRA[extra] == NOT_RECORDED:
                paper.hatched([box], HATCH, HATCHED)
            else:
                colours.setdefault(TORN, []).append(box)
                paper.shapes([*torn(box, paper.scale)], "white", above=2)
    for colour, boxes in colours.items():
        paper.boxes(boxes, colour)


def _names(timeline: Timeline, layout: Layout) -> dict[int, str]:
    """What the legend names, by index: that of `_EXTRA` goes on where the stages' ends."""
    stages = {index: stage.name for index, stage in enumerate(layout.stages)}
    wanted = (bool(timeline.missing.gaps), bool(timeline.spans.unfinished.any()))
    extra = {
        len(stages) + number: name
        for number, (name, there) in enumerate(zip(_EXTRA, wanted, strict=True))
        if there
    }
    # First, since the last may have no room, and nothing else in the picture explains them.
    return {**extra, **stages}


def _scaled(box: Box, scale: float) -> Box:
    left, top, right, bottom = (round(side * scale) for side in box)
    return left, top, right, bottom
