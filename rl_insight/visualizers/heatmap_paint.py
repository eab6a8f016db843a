"""The parts of a heatmap's picture that are pixels: cells, bars and boxes."""

from dataclasses import dataclass

import numpy as np

from rl_insight.visualizers import heatmap_layout
from rl_insight.visualizers.heatmap_cells import Lines
from rl_insight.visualizers.heatmap_colours import ColourMap, Scale, block_colour
from rl_insight.visualizers.heatmap_layout import BAR, STRIP, Sheet
from rl_insight.visualizers.heatmap_legend import Legend

_WHITE, _HATCH = (255, 255, 255), ((244, 244, 246), (196, 199, 205))
_BEYOND, _LEAST_MARKED = (255, 64, 32), 5
_STRIP, _STRIP_GROUND = (92, 102, 117), (240, 241, 244)


class Strip:
    """max / mean of each line (NaN where there are no tokens), drawn from 1 to `most`."""

    def __init__(self, ratio: np.ndarray) -> None:
        known = ratio[np.isfinite(ratio)]
        self.ratio = ratio
        self.most = float(known.max()) if len(known) else 1.0

    def share(self) -> np.ndarray:
        """How much of the strip's width each line fills."""
        above = np.nan_to_num(self.ratio, nan=1.0) - 1
        return np.asarray(np.clip(above / max(self.most - 1, 1e-9), 0, 1))


@dataclass(frozen=True, slots=True)
class Paint:
    """Sets the pixels of a picture that is otherwise drawn."""

    sheet: Sheet
    drawn: Lines
    cells: np.ndarray
    colours: ColourMap
    ends: Scale
    strip: Strip
    legend: Legend

    def __call__(self, pixels: np.ndarray) -> None:
        """`pixels` are uint8 [height, width, 4], of which colours are set."""
        colours = pixels[:, :, :3]
        self._cells(colours)
        self._blocks(colours)
        self._strip(colours)
        self._scale_bar(colours)
        for entry in self.legend.entries:
            left, top, right, bottom = self.legend.box(entry, self.sheet)
            if entry.colour is not None:
                colours[top:bottom, left:right] = _rgb(entry.colour)
            else:
                for y in range(top, bottom):
                    colours[y, left:right] = self._hatched(y, np.arange(left, right))

    def _cells(self, pixels: np.ndarray) -> None:
        sheet, size = self.sheet, self.sheet.size
        edge = sheet.cell_edge
        x = np.arange(sheet.left, sheet.left + sheet.plot_width)
        for line, top in enumerate((sheet.top + sheet.tops).tolist()):
            missing = np.isnan(self.cells[line])
            index = self.ends.index(np.where(missing, 0, self.cells[line]))
            row = np.repeat(self.colours.colours[index], size.column, axis=0)
            pixels[top : top + size.row, x[0] : x[-1] + 1] = row
            if missing.any():
                columns = x[np.repeat(missing, size.column)]
                for y in range(top, top + size.row):
                    pixels[y, columns] = self._hatched(y, columns)
            if mark := self.mark:
                high, wide = (size.row - edge - mark) // 2, (size.column - edge - mark) // 2
                for column in np.flatnonzero(self.cells[line] > self.ends.top).tolist():
                    left = sheet.left + column * size.column + wide
                    pixels[top + high : top + high + mark, left : left + mark] = _BEYOND
            if edge and line + 1 < len(self.drawn):
                pixels[top + size.row - edge : top + size.row, x[0] : x[-1] + 1] = _WHITE
        if edge:
            bottom = sheet.top + sheet.plot_height
            for column in range(1, size.columns):
                right = sheet.left + column * size.column
                pixels[sheet.top : bottom, right - edge : right] = _WHITE

    @property
    def mark(self) -> int:
        """Pixels of the dot in a cell beyond the scale's end; 0 where cells are too small."""
        return mark(self.sheet) if self.ends.above else 0

    def _hatched(self, y: int, x: np.ndarray) -> np.ndarray:
        """Diagonal stripes, the same over neighbouring cells."""
        width = max(2, round(2.5 * self.sheet.scale))
        stripe = ((x + y) // width % 3 == 0).astype(np.int64)
        return np.asarray(np.array(_HATCH, dtype=np.uint8)[stripe])

    def _blocks(self, pixels: np.ndarray) -> None:
        sheet = self.sheet
        left, right = sheet.bar, sheet.bar + sheet.px(BAR)
        for at, (top, bottom) in enumerate(heatmap_layout.edges(self.drawn, sheet)):
            pixels[sheet.top + top : sheet.top + bottom, left:right] = _rgb(block_colour(at))

    def _strip(self, pixels: np.ndarray) -> None:
        sheet = self.sheet
        width = sheet.px(STRIP)
        filled = np.round(self.strip.share() * width).astype(np.int64)
        for top, part in zip((sheet.top + sheet.tops).tolist(), filled.tolist(), strict=True):
            bottom = top + sheet.size.row - sheet.cell_edge
            pixels[top:bottom, sheet.strip : sheet.strip + width] = _STRIP_GROUND
            pixels[top:bottom, sheet.strip : sheet.strip + part] = _STRIP

    def _scale_bar(self, pixels: np.ndarray) -> None:
        left, top, right, bottom = self.sheet.scale_bar
        height = bottom - top
        index = 255 - np.arange(height) * 256 // max(1, height)
        pixels[top:bottom, left:right] = self.colours.colours[index][:, None]
        if self.ends.above:
            # An arrow: there is more beyond the end of the scale.
            half = (right - left) / 2
            for y in range(1, self.sheet.px(9)):
                inset = round(half * y / self.sheet.px(9))
                pixels[top - y, left + inset : right - inset] = self.colours.colours[-1]


def mark(sheet: Sheet) -> int:
    """Pixels of a dot that leaves some of the colour around it; 0 where cells are too small."""
    side = min(sheet.size.row, sheet.size.column) - sheet.cell_edge
    return min(side // 3, sheet.px(5)) if side >= _LEAST_MARKED else 0


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue
