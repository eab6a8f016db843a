"""The legend below a heatmap: what hatching means, and blocks that have no label of their own."""

from collections.abc import Sequence
from dataclasses import dataclass

from rl_insight.visualizers import heatmap_words
from rl_insight.visualizers.heatmap_cells import Block
from rl_insight.visualizers.heatmap_colours import BLOCK_COLOURS, block_colour
from rl_insight.visualizers.heatmap_layout import EDGE, LEGEND_LINE, Sheet
from rl_insight.visualizers.ink import SOFT, Paper, width_of
from rl_insight.visualizers.labels import LABEL_LIMIT, plain

_POINTS = 8.0
_BOX, _TEXT, _BETWEEN = 12, 17, 22
_MISSING = "no such expert on this rank"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of text with its box; `colour` is None for the hatching.

    `x` and `y` of the box's left edge and the middle, in design pixels from the legend's corner.
    """

    text: str
    colour: str | None
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Legend:
    """Entries, and the height of all in design pixels."""

    entries: tuple[Entry, ...]
    height: float

    def write(self, paper: Paper, sheet: Sheet) -> None:
        """Write the texts; the boxes are painted."""
        for entry in self.entries:
            left, top, _, bottom = self.box(entry, sheet)
            x = left + sheet.px(_TEXT)
            paper.text(x, (top + bottom) / 2, entry.text, _POINTS, SOFT)

    def box(self, entry: Entry, sheet: Sheet) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of an entry's box, in real pixels."""
        top = sheet.height - sheet.px(self.height + EDGE)
        left, middle = sheet.px(EDGE + entry.x), top + sheet.px(entry.y)
        half = sheet.px(_BOX / 2)
        return left, middle - half, left + 2 * half, middle + half


def legend(
    blocks: Sequence[Block], missing: bool, blocks_named: bool, room: float, scale: float
) -> Legend:
    """The legend, `room` design pixels wide; blocks are in it where colours tell them apart."""
    items: list[tuple[str, str | None]] = []
    if missing:
        items.append((_MISSING, None))
    if not blocks_named and len(blocks) <= BLOCK_COLOURS:
        items += [
            (plain(heatmap_words.block_label(block, LABEL_LIMIT * 2), 120), block_colour(at))
            for at, block in enumerate(blocks)
        ]
    entries: list[Entry] = []
    x, line = 0.0, 0
    for text, colour in items:
        needed = _TEXT + width_of(text, _POINTS, scale=scale)
        if x and x + needed > room:
            x, line = 0.0, line + 1
        entries.append(Entry(text, colour, x, 6 + (line + 0.5) * LEGEND_LINE))
        x += needed + _BETWEEN
    return Legend(tuple(entries), (line + 1) * LEGEND_LINE + 6 if entries else 0.0)
