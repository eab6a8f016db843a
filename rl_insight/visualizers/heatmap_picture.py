"""Expert load as one still picture: cells, axes, labels and what is to be known about them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rl_insight.visualizers import (
    heatmap_axes,
    heatmap_cells,
    heatmap_layout,
    heatmap_means,
    heatmap_words,
)
from rl_insight.visualizers.heatmap_cells import Lines
from rl_insight.visualizers.heatmap_colours import ColourMap, Scale, colour_map, scale
from rl_insight.visualizers.heatmap_layout import BAR, EDGE, GAP, LEAST_WIDTH, RIGHT, Sheet
from rl_insight.visualizers.heatmap_legend import legend
from rl_insight.visualizers.heatmap_model import Heatmap
from rl_insight.visualizers.heatmap_paint import Paint, Strip, mark
from rl_insight.visualizers.ink import ALARM, INK, SOFT, Paper, style, wrapped
from rl_insight.visualizers.labels import plain

_TITLE_POINTS, _TEXT_POINTS, _NOTE_POINTS = 14.0, 9.5, 8.5
_LINE_OF_POINTS = 2.05
_TROUBLES, _NOTHING_WIDTH = 20, 1000
# Design pixels: what stands left of the plot and above and below it, at most; the head's distance.
_MOST_LEFT, _MOST_HEAD, _ABOVE_PLOT = 340, 460, 26


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    points: float
    colour: str
    bold: bool


def picture(heatmap: Heatmap, dpi: float, cmap: str) -> bytes:
    """The PNG of `heatmap`, at `dpi` as far as its size allows."""
    with style():
        return _heatmap(heatmap, dpi, cmap) if len(heatmap.rows) else _nothing(heatmap, dpi)


def _heatmap(heatmap: Heatmap, dpi: float, cmap: str) -> bytes:
    rows = heatmap.rows
    colours = colour_map(cmap)
    heading = heatmap_words.heading(heatmap)
    tick_width = heatmap_axes.tick_width(heatmap)
    # More room than will be needed, to find the scale; the real heights follow from it.
    used = heatmap_layout.fitting(
        dpi, len(rows), rows.experts, labels=_MOST_LEFT + tick_width, head=_MOST_HEAD
    )
    drawn = heatmap_cells.lines(heatmap, heatmap_layout.room(len(rows), used))
    size = heatmap_layout.size(len(drawn), rows.experts, used)
    cells = heatmap_cells.cells(rows, drawn, size.columns)
    by_mean = heatmap_means.magnitudes_differ(heatmap, cells, drawn)
    tints = heatmap_means.of_mean(cells) if by_mean else cells
    ends = scale(tints)

    def planned(label_width: float, head: float, foot: float) -> Sheet:
        return heatmap_layout.plan(drawn, size, used, label_width, tick_width, head, foot)

    # Which labels there is room for depends on the plot alone.
    plot = planned(0, 0, 0)
    labels, complete = heatmap_layout.labels(drawn, plot)
    names = heatmap_axes.names([label.block for label in labels], used)
    left = EDGE + names.width + BAR + tick_width + 3 * GAP
    page = max(left + size.columns * size.column / used + RIGHT, LEAST_WIDTH)
    notes = _drawing_notes(dpi, used, drawn, rows.experts, plot, ends, colours, by_mean)
    head = _head(heading, notes, page - 2 * EDGE, used)
    shown = legend(
        drawn.blocks,
        missing=bool(np.isnan(cells).any()),
        blocks_named=complete and not names.shortened,
        room=page - 2 * EDGE,
        scale=used,
    )
    sheet = planned(
        names.width,
        head=EDGE + sum(line.points * _LINE_OF_POINTS for line in head) + _ABOVE_PLOT,
        foot=heatmap_layout.AXIS + heatmap_layout.AXIS_TITLE + shown.height + EDGE,
    )
    ratio = heatmap_cells.max_over_mean(rows, drawn)
    strip = Strip(ratio)
    paper = Paper(sheet.width, sheet.height, sheet.scale)
    _write(paper, head)
    heatmap_axes.labels(paper, sheet, labels, names.words)
    heatmap_axes.layers(paper, sheet, heatmap, drawn)
    heatmap_axes.experts(paper, sheet, rows.experts)
    heatmap_axes.strip(paper, sheet, strip)
    heatmap_axes.scale_bar(paper, sheet, ends, by_mean)
    heatmap_axes.numbers(paper, sheet, cells, tints, ends, colours)
    shown.write(paper, sheet)
    return paper.png(Paint(sheet, drawn, tints, colours, ends, strip, shown))


def _drawing_notes(
    dpi: float,
    used: float,
    drawn: Lines,
    experts: int,
    plot: Sheet,
    ends: Scale,
    colours: ColourMap,
    by_mean: bool,
) -> list[str]:
    """What the drawing itself had to decide."""
    notes = []
    if drawn.note:
        notes.append(drawn.note)
    if (columns := plot.size.columns) < experts:
        notes.append(f"{experts:,} experts are averaged over {columns:,} pixels")
    if ends.above:
        share = f"{ends.above:,} cell{'s' if ends.above > 1 else ''}"
        have = "have" if ends.above > 1 else "has"
        dot = " (red dot)" if mark(plot) else ""
        end = f"{ends.top:.3g} × the layer's mean" if by_mean else f"{ends.top:,.0f} tokens"
        notes.append(f"the colours end at {end}; {share} {have} more{dot}")
    if by_mean:
        notes.append(
            "the roles' tokens differ by magnitudes: colours are shares of each layer's mean"
        )
    if not ends.most:
        notes.append("no expert got a token")
    if used < dpi / 100 * 0.999:
        notes.append(f"drawn at {used * 100:.0f} dpi: at {dpi:.0f} the picture would be too large")
    if colours.note:
        notes.append(colours.note)
    return notes


def _head(
    heading: heatmap_words.Heading, drawing: Sequence[str], room: float, at_scale: float
) -> list[_Text]:
    """The lines above the plot, broken to `room` design pixels."""
    facts = " · ".join(part for part in (*heading.facts, *heading.reading) if part)
    parts = [
        _Text(heading.title, _TITLE_POINTS, INK, True),
        _Text(facts, _TEXT_POINTS, SOFT, False),
    ]
    if heading.key:
        parts.append(_Text(heading.key, _TEXT_POINTS, INK, False))
    if drawing:
        sentence = "; ".join(drawing)
        parts.append(_Text(f"{sentence[0].upper()}{sentence[1:]}.", _NOTE_POINTS, SOFT, False))
    parts += [_Text(note, _NOTE_POINTS, SOFT, False) for note in heading.notes]
    if heading.lost:
        parts.append(_Text(heading.lost, _TEXT_POINTS, ALARM, True))
    return _broken(parts, room, at_scale)


def _broken(parts: Sequence[_Text], room: float, at_scale: float) -> list[_Text]:
    return [
        _Text(line, part.points, part.colour, part.bold)
        for part in parts
        for line in wrapped(part.text, part.points, room, part.bold, at_scale)
    ]


def _write(paper: Paper, lines: Sequence[_Text]) -> None:
    y = float(EDGE)
    for line in lines:
        height = line.points * _LINE_OF_POINTS
        paper.text(
            EDGE * paper.scale,
            (y + height / 2) * paper.scale,
            line.text,
            line.points,
            line.colour,
            bold=line.bold,
        )
        y += height


def _nothing(heatmap: Heatmap, dpi: float) -> bytes:
    """A picture that says why there is none, and lists what could not be read."""
    parts = [
        _Text(heatmap_words.TITLE, _TITLE_POINTS, INK, True),
        _Text(heatmap_words.nothing_to_draw(heatmap), _TEXT_POINTS, INK, False),
    ]
    for trouble in heatmap.troubles[:_TROUBLES]:
        words = f"{plain(trouble.path, 160)}: {plain(trouble.detail, 240)}"
        parts.append(_Text(words, _TEXT_POINTS, SOFT, False))
    if (more := len(heatmap.troubles) - _TROUBLES) > 0:
        parts.append(_Text(f"… and {more:,} more", _TEXT_POINTS, SOFT, False))
    lines = _broken(parts, _NOTHING_WIDTH - 2 * EDGE, dpi / 100)
    height = 2 * EDGE + sum(line.points * _LINE_OF_POINTS for line in lines)
    used = min(dpi / 100, heatmap_layout.MOST_SIDE / max(_NOTHING_WIDTH, height))
    used = min(used, (heatmap_layout.MOST_PIXELS / (_NOTHING_WIDTH * height)) ** 0.5)
    paper = Paper(max(1, round(_NOTHING_WIDTH * used)), max(1, round(height * used)), used)
    _write(paper, lines)
    return paper.png()
