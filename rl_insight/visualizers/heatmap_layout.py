"""How large the heatmap's picture is and where on it things stand.

A design pixel is 1/100 inch; the picture has `scale` real pixels for each. Cells, lines and gaps
are whole real pixels, so that no cell looks wider than its neighbour or half as dark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rl_insight.visualizers.heatmap_cells import Block, Lines
from rl_insight.visualizers.heatmap_words import joined

# Few programs open a larger picture, and each pixel costs some ten bytes to draw.
MOST_SIDE = 16_000
MOST_PIXELS = 36_000_000
MOST_TICKS = 40

# Design pixels.
EDGE, GAP, BAR, STRIP, SCALE_BAR, SCALE_BAR_HEIGHT = 16, 7, 12, 60, 14, 240
RIGHT = 18 + STRIP + 24 + SCALE_BAR + 92
LEAST_WIDTH = 720
AXIS, AXIS_TITLE, LEGEND_LINE = 20, 20, 20
_TEXT_HEIGHT = 11.5
_TALL = 900
_ROW_MOST, _LEAST_PLOT_WIDTH, _LEAST_PLOT_HEIGHT = 40, 360, 130
_HIGHEST, _WIDEST = 2_400, 2_000
# Rows that do not fit may still be drawn by making the picture this much higher.
_STRETCH = 1.25
_CELL_EDGE_FROM = 14


@dataclass(frozen=True, slots=True)
class Size:
    """Cells of the plot in real pixels: `columns` of `column` each, lines of `row` each."""

    columns: int
    column: int
    row: int


@dataclass(frozen=True, slots=True)
class Label:
    """The label of neighbouring lines, which reach from `top` to `bottom` (pixels of the plot)."""

    block: Block
    top: int
    bottom: int


@dataclass(frozen=True, slots=True)
class Sheet:
    """Sizes in real pixels. The plot's rectangle is `left`, `top`, `plot_width`, `plot_height`.

    `bar` is the left edge of the bar that shows the blocks; the ticks stand right of it.
    `tops` are the upper edges of the lines below `top`; between blocks there is a gap.
    `cell_edge` is the width of the white line between large cells. `axis_on_top` asks for a second
    axis, since whoever looks at the head of a tall picture does not see its foot.
    """

    width: int
    height: int
    scale: float
    size: Size
    bar: int
    left: int
    top: int
    plot_width: int
    plot_height: int
    tops: np.ndarray
    cell_edge: int
    axis_on_top: bool

    @property
    def strip(self) -> int:
        """Left edge of the strip that shows how uneven each line is."""
        return self.left + self.plot_width + self.px(18)

    @property
    def scale_bar(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of the bar that explains the colours."""
        left = self.strip + self.px(STRIP + 24)
        room = max(self.plot_height, self.px(_LEAST_PLOT_HEIGHT))
        height = min(room, self.px(SCALE_BAR_HEIGHT))
        return left, self.top + self.px(10), left + self.px(SCALE_BAR), self.top + height

    def px(self, design: float) -> int:
        """Design pixels in real ones."""
        return round(design * self.scale)


def room(rows: int, scale: float) -> int:
    """How many lines the picture of `rows` rows can have."""
    return max(1, int(min(_height(rows) * _STRETCH * scale, MOST_SIDE * 0.8)))


def size(lines: int, experts: int, scale: float) -> Size:
    """The cells of a plot that grows with the root of what is in it."""
    width = min(max(220 * experts**0.3, _LEAST_PLOT_WIDTH), _WIDEST) * scale
    column = round(width / experts)
    row = max(1, round(_height(lines) * scale / lines))
    if column < 1:
        return Size(max(1, round(width)), 1, row)
    return Size(experts, column, row)


def fitting(dpi: float, rows: int, experts: int, labels: float, head: float) -> float:
    """The scale for `dpi`, or the largest below it at which the picture keeps to the limits.

    `labels` is the width of what stands left of the plot, `head` the height of what is above and
    below it, in design pixels.
    """
    scale = dpi / 100
    while scale > 0.02:
        cells = size(min(rows, room(rows, scale)), experts, scale)
        width = max((labels + RIGHT) * scale + cells.columns * cells.column, LEAST_WIDTH * scale)
        # A fifth for the gaps between blocks.
        lines = min(rows, room(rows, scale)) * cells.row
        height = head * scale + max(lines * 1.2, _LEAST_PLOT_HEIGHT * scale)
        excess = max(width / MOST_SIDE, height / MOST_SIDE, (width * height / MOST_PIXELS) ** 0.5)
        if excess <= 1:
            break
        scale *= min(0.98, 1 / excess)
    return scale


def plan(
    drawn: Lines,
    cells: Size,
    scale: float,
    labels: float,
    ticks: float,
    head: float,
    foot: float,
) -> Sheet:
    """The sheet for these lines and cells.

    In design pixels: the width of `labels` and `ticks`, the height of `head` and `foot`.
    """
    gaps = _gaps(drawn, cells.row, scale)
    tops = np.arange(len(drawn)) * cells.row + np.cumsum(gaps)
    plot_height = int(tops[-1]) + cells.row
    plot_width = cells.columns * cells.column
    axis_on_top = plot_height > _TALL * scale
    top = round((head + (AXIS if axis_on_top else 0)) * scale)
    bar = round((EDGE + labels + GAP) * scale)
    left = bar + round((BAR + GAP + ticks + GAP) * scale)
    large = min(cells.row, cells.column) >= _CELL_EDGE_FROM * scale
    body = max(plot_height, round(_LEAST_PLOT_HEIGHT * scale))
    return Sheet(
        width=max(left + plot_width + round(RIGHT * scale), round(LEAST_WIDTH * scale)),
        height=top + body + round(foot * scale),
        scale=scale,
        size=cells,
        bar=bar,
        left=left,
        top=top,
        plot_width=plot_width,
        plot_height=plot_height,
        tops=tops,
        cell_edge=max(1, round(scale)) if large else 0,
        axis_on_top=axis_on_top,
    )


def labels(drawn: Lines, sheet: Sheet) -> tuple[list[Label], bool]:
    """Labels that do not overlap, and whether each block has its own.

    Where blocks are too low, there is one for all ranks of a step and role, or of every n-th.
    """
    each = [
        Label(block, top, bottom)
        for block, (top, bottom) in zip(drawn.blocks, edges(drawn, sheet), strict=True)
        if top < bottom
    ]
    if _apart(each, sheet):
        return each, True
    groups: list[list[Label]] = []
    for label in each:
        key = (label.block.steps, label.block.role)
        if not groups or (groups[-1][0].block.steps, groups[-1][0].block.role) != key:
            groups.append([])
        groups[-1].append(label)
    found = [
        Label(joined([label.block for label in group]), group[0].top, group[-1].bottom)
        for group in groups
    ]
    every = 1
    while not _apart(found[::every], sheet):
        every += 1
    return found[::every], False


def edges(drawn: Lines, sheet: Sheet) -> list[tuple[int, int]]:
    """Upper and lower edge of each block in the plot; equal where it has no line of its own."""
    first = np.searchsorted(drawn.block, np.arange(len(drawn.blocks)), "left")
    last = np.searchsorted(drawn.block, np.arange(len(drawn.blocks)), "right")
    tops = sheet.tops
    return [
        (int(tops[begin]), int(tops[end - 1]) + sheet.size.row) if begin < end else (0, 0)
        for begin, end in zip(first.tolist(), last.tolist(), strict=True)
    ]


def layer_ticks(drawn: Lines, sheet: Sheet) -> list[int]:
    """Lines that have a tick: at most 40, none overlapping, evenly inside each block."""
    least = _TEXT_HEIGHT * sheet.scale
    starts = np.searchsorted(drawn.block, drawn.block, "left")
    place = np.arange(len(drawn)) - starts
    step = 1
    while True:
        chosen = np.flatnonzero(place % step == 0)
        ends = np.searchsorted(drawn.block, drawn.block[chosen], "right")
        below = np.append(sheet.tops, sheet.plot_height)[ends] - sheet.tops[chosen]
        # The last one of a block must not come near the first one of the next.
        chosen = chosen[(place[chosen] == 0) | (below >= least)]
        if len(chosen) <= MOST_TICKS and not (np.diff(sheet.tops[chosen]) < least).any():
            return [int(line) for line in chosen]
        if step > place.max():
            break
        step = _rounder(step)
    every = 1
    while len(chosen[::every]) > MOST_TICKS or (np.diff(sheet.tops[chosen[::every]]) < least).any():
        every += 1
    return [int(line) for line in chosen[::every]]


def expert_ticks(experts: int, sheet: Sheet, widest: float) -> list[int]:
    """Experts that have a tick, by steps of powers of two; `widest` label in design pixels."""
    step = 1
    while step * sheet.plot_width / experts < (widest + 10) * sheet.scale and step < experts:
        step *= 2
    return list(range(0, experts, step))


def _height(rows: int) -> float:
    return float(min(110 * rows**0.35, _ROW_MOST * rows, _HIGHEST))


def _rounder(step: int) -> int:
    """The next of 1, 2, 4, 5, 8, 10, 16, 20, …"""
    steps = [1, 2, 4, 5, 8, 10, 16, 20]
    return next((one for one in steps if one > step), step * 2)


def _gaps(drawn: Lines, row: int, scale: float) -> np.ndarray:
    """Pixels above each line: between blocks, three times as much where step or role changes."""
    gaps = np.zeros(len(drawn), dtype=np.int64)
    for line in np.flatnonzero(np.diff(drawn.block)).tolist():
        before, after = (drawn.blocks[drawn.block[at]] for at in (line, line + 1))
        same = (before.steps, before.role) == (after.steps, after.role)
        gaps[line + 1] = 1 if same else 3
    plot = row * len(drawn)
    for unit in (max(1, round(1.5 * scale)), 1):
        if int(gaps.sum()) * unit <= plot / 12:
            return gaps * unit
    gaps[gaps == 1] = 0
    return np.minimum(gaps, 1) if int((gaps > 0).sum()) <= plot / 12 else np.zeros_like(gaps)


def _apart(found: Sequence[Label], sheet: Sheet) -> bool:
    middles = np.array([(label.top + label.bottom) / 2 for label in found])
    return not (np.diff(middles) < _TEXT_HEIGHT * sheet.scale).any()
