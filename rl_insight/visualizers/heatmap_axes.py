"""What is written around the cells of a heatmap: labels, ticks and scales."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

import numpy as np

from rl_insight.visualizers import colours as tones
from rl_insight.visualizers import heatmap_layout, heatmap_words
from rl_insight.visualizers.heatmap_cells import Block, Lines
from rl_insight.visualizers.heatmap_colours import ColourMap, Scale
from rl_insight.visualizers.heatmap_layout import AXIS, AXIS_TITLE, GAP, STRIP, Label, Sheet
from rl_insight.visualizers.heatmap_model import Heatmap
from rl_insight.visualizers.heatmap_paint import Strip
from rl_insight.visualizers.ink import INK, SOFT, Box, Paper, width_of

LABEL_POINTS = 8.5
_TITLE, _UNIT, _SHARE = "expert_index", "tokens per expert", "tokens / mean of the layer"
_TICK_POINTS, _AXIS_POINTS, _CELL_POINTS, _SMALL_POINTS = 8.0, 9.0, 7.0, 7.5
# A role is shortened until the widest label is no wider than this many design pixels.
_ROLE_LIMITS, _LABEL_WIDTH = (48, 36, 28, 24, 20, 14), 270
_RULE = "#8a8f98"
# Design pixels that a cell needs to show its number.
_CELL_WIDTH, _CELL_HEIGHT = 36, 13
_SCALE_TICK = 32


@dataclass(frozen=True, slots=True)
class Names:
    """The texts of labels, the width of the widest in design pixels, and if any is shortened."""

    words: list[str]
    width: float
    shortened: bool


def names(blocks: Sequence[Block], scale: float) -> Names:
    """The labels of blocks, roles shortened as far as needed."""
    for limit in _ROLE_LIMITS:
        words = [heatmap_words.block_label(block, limit) for block in blocks]
        width = widest(words, LABEL_POINTS, scale)
        if width <= _LABEL_WIDTH:
            break
    return Names(words, width, any("…" in text for text in words))


def widest(texts: Sequence[str], points: float, scale: float) -> float:
    """The width of the widest text, in design pixels."""
    # Measuring costs a layout each: the widest is among those with the most characters.
    return max(width_of(text, points, scale=scale) for text in sorted(texts, key=len)[-12:])


def tick_width(heatmap: Heatmap) -> float:
    """The width of the widest tick of the rows, in design pixels."""
    number = len(heatmap.rows)
    some = {heatmap.rows.tick(row) for row in range(0, number, max(1, number // 2_000))}
    return widest(sorted(some), _TICK_POINTS, 1)


def labels(paper: Paper, sheet: Sheet, found: Sequence[Label], words: Sequence[str]) -> None:
    """The `words` of each label left of the bar."""
    right = sheet.bar - sheet.px(GAP)
    for label, text in zip(found, words, strict=True):
        middle = sheet.top + (label.top + label.bottom) / 2
        paper.text(right, middle, text, LABEL_POINTS, across="right")


def layers(paper: Paper, sheet: Sheet, heatmap: Heatmap, drawn: Lines) -> None:
    """Ticks of the layers."""
    right = sheet.left - sheet.px(GAP)
    marks: list[Box] = []
    hair = max(1, round(sheet.scale))
    for line in heatmap_layout.layer_ticks(drawn, sheet):
        middle = sheet.top + int(sheet.tops[line]) + sheet.size.row / 2
        text = heatmap.rows.tick(int(drawn.rows[drawn.first[line]]))
        paper.text(right, middle, text, _TICK_POINTS, SOFT, across="right")
        upper = round(middle - hair / 2)
        marks.append((sheet.left - sheet.px(4), upper, sheet.left, upper + hair))
    paper.boxes(marks, _RULE)


def experts(paper: Paper, sheet: Sheet, number: int) -> None:
    """Ticks of the experts, above a tall plot too, and the title of the axis."""
    hair = max(1, round(sheet.scale))
    bottom = sheet.top + sheet.plot_height
    marks: list[Box] = []
    for expert in heatmap_layout.expert_ticks(number, sheet, width_of(f"{number}", _TICK_POINTS)):
        middle = sheet.left + (expert + 0.5) * sheet.plot_width / number
        x = round(middle - hair / 2)
        places = [(bottom, bottom + sheet.px(4), bottom + sheet.px(13))]
        if sheet.axis_on_top:
            places.append((sheet.top - sheet.px(4), sheet.top, sheet.top - sheet.px(12)))
        for upper, lower, text in places:
            marks.append((x, upper, x + hair, lower))
            paper.text(middle, text, str(expert), _TICK_POINTS, SOFT, across="center")
    paper.boxes(marks, _RULE)
    center = sheet.left + sheet.plot_width / 2
    y = bottom + sheet.px(AXIS + AXIS_TITLE / 2 + 2)
    paper.text(center, y, _TITLE, _AXIS_POINTS, INK, across="center")


def strip(paper: Paper, sheet: Sheet, shown: Strip) -> None:
    """Title and ends of the strip beside the cells."""
    bottom = sheet.top + sheet.plot_height
    left, right = sheet.strip, sheet.strip + sheet.px(STRIP)
    above, below = sheet.top - sheet.px(9), bottom + sheet.px(13)
    paper.text((left + right) / 2, above, "max / mean", _SMALL_POINTS, SOFT, across="center")
    paper.text(left, below, "1", _SMALL_POINTS, SOFT)
    if shown.most > 1:
        paper.text(right, below, f"{shown.most:.3g}", _SMALL_POINTS, SOFT, across="right")


def scale_bar(paper: Paper, sheet: Sheet, ends: Scale, by_mean: bool) -> None:
    """Ticks and unit of the bar that explains the colours."""
    _, top, right, bottom = sheet.scale_bar
    marks: list[Box] = []
    hair = max(1, round(sheet.scale))
    number = max(2, round((bottom - top) / sheet.px(_SCALE_TICK)))
    for value in nice(ends.top, number):
        y = bottom - (bottom - top) * value / ends.top
        upper = round(min(max(y - hair / 2, top), bottom - hair))
        marks.append((right, upper, right + sheet.px(4), upper + hair))
        paper.text(right + sheet.px(8), y, short(value), _TICK_POINTS, SOFT)
    paper.boxes(marks, _RULE)
    # The unit stands right of the widest number.
    x = right + sheet.px(74)
    paper.text(
        x,
        (top + bottom) / 2,
        _SHARE if by_mean else _UNIT,
        _AXIS_POINTS,
        INK,
        across="center",
        rotation=90,
    )


def numbers(
    paper: Paper,
    sheet: Sheet,
    cells: np.ndarray,
    tints: np.ndarray,
    ends: Scale,
    colours: ColourMap,
) -> None:
    """The tokens in each cell, where all of them are large enough; `tints` are what is coloured."""
    size = sheet.size
    if size.column < sheet.px(_CELL_WIDTH) or size.row < sheet.px(_CELL_HEIGHT):
        return
    for line, column in np.argwhere(np.isfinite(cells)).tolist():
        value = float(cells[line, column])
        red, green, blue = colours.colours[int(ends.index(tints[line, column]))].tolist()
        paper.text(
            sheet.left + (column + 0.5) * size.column,
            sheet.top + int(sheet.tops[line]) + size.row / 2,
            short(value),
            _CELL_POINTS,
            tones.ink(f"#{red:02x}{green:02x}{blue:02x}"),
            across="center",
        )


def nice(top: float, number: int) -> list[float]:
    """About `number` round values from 0 to `top`."""
    raw = top / number
    size = 10.0 ** floor(log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * 0.999)
    if top >= 1:
        step = max(step, 1.0)
    return [step * at for at in range(int(top / step * 1.000001) + 1)]


def short(value: float) -> str:
    """`0.25`, `1,234`, `56.7k`, `1.23M`: at most six characters for tokens."""
    if value < 10 and value != round(value):
        return f"{value:.2g}"
    for limit, unit in ((10_000, ""), (1e6, "k"), (1e9, "M"), (1e12, "G")):
        if round(value) < limit:
            digits = value / {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]
            return f"{digits:,.0f}" if not unit else f"{digits:.3g}{unit}"
    return f"{value:.3g}"
