"""Text and boxes of a still picture, placed by pixels; matplotlib behind it.

Everything that is written goes through here, because no text from a file may be taken for a
formula (`$`), and every font needs its fall-backs.
"""

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

import matplotlib
import numpy as np
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.image import imsave
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path

INK, SOFT, ALARM = "#1a1a1a", "#595959", "#9c1c1c"

# DejaVu comes with matplotlib and has no CJK; those of these that are installed fill in.
_FALLBACK_FONTS = (
    *("Noto Sans CJK SC", "Noto Serif CJK SC", "Source Han Sans SC", "WenQuanYi Micro Hei"),
    *("WenQuanYi Zen Hei", "Microsoft YaHei", "PingFang SC", "SimHei", "Droid Sans Fallback"),
)

_AROUND = (Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY)

Box = tuple[float, float, float, float]


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib as it comes, whatever the user's matplotlibrc says; no warnings about glyphs."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    fonts = ["DejaVu Sans", *(name for name in _FALLBACK_FONTS if name in installed)]
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams["font.family"] = fonts
        matplotlib.rcParams["hatch.linewidth"] = 0.5
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


@lru_cache(maxsize=4)
def _renderer(scale: float) -> RendererAgg:
    return RendererAgg(100, 100, dpi=100 * scale)  # type: ignore[no-untyped-call]


def width_of(text: str, points: float, bold: bool = False, scale: float = 1) -> float:
    """The width of `text` in design pixels (1/100 inch).

    Where a letter has few real pixels its width is rounded to them, so `scale` matters there.
    """
    font = FontProperties(size=points, weight="bold" if bold else "normal")
    width, _, _ = _renderer(scale).get_text_width_height_descent(text, font, False)  # type: ignore[no-untyped-call]
    return float(width) / scale


def wrapped(
    text: str, points: float, room: float, bold: bool = False, scale: float = 1
) -> list[str]:
    """`text` broken at spaces into lines of at most `room` design pixels, as far as it can be."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, points, bold, scale) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


class Paper:
    """A white picture of `width` × `height` pixels with `scale` of them to 1/100 inch.

    All places are pixels from the upper left corner.
    """

    def __init__(self, width: int, height: int, scale: float) -> None:
        self.width, self.height, self.scale = width, height, scale
        dpi = 100 * scale
        # Half a pixel more: matplotlib cuts the fraction off, and rounding may leave .9999.
        size = ((width + 0.5) / dpi, (height + 0.5) / dpi)
        self._figure = Figure(figsize=size, dpi=dpi, facecolor="white")
        axes = self._figure.add_axes((0, 0, width / (width + 0.5), height / (height + 0.5)))
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        axes.set_axis_off()
        self._axes = axes

    def png(self, paint: Callable[[np.ndarray], None] | None = None) -> bytes:
        """The picture as the bytes of a PNG file.

        `paint` may set pixels by itself, under all else that is drawn: it is given all of them,
        white, as uint8 [height, width, 4].
        """
        target = io.BytesIO()
        renderer = FigureCanvasAgg(self._figure).get_renderer()  # type: ignore[no-untyped-call]
        pixels = renderer.buffer_rgba()
        np.asarray(pixels)[:] = 255
        if paint is not None:
            paint(np.asarray(pixels))
        self._figure.patch.set_visible(False)
        self._figure.draw(renderer)
        # Half the time of the usual level 6 for a tenth more bytes.
        fast = {"compress_level": 3}
        imsave(target, pixels, format="png", dpi=self._figure.dpi, pil_kwargs=fast)
        return target.getvalue()

    def text(
        self,
        x: float,
        y: float,
        text: str,
        points: float,
        colour: str = INK,
        across: str = "left",
        bold: bool = False,
        rotation: float = 0,
    ) -> None:
        """Write `text` with its vertical middle at `y`; `across` is what of it stands at `x`."""
        self._axes.text(
            x,
            y,
            text,
            fontsize=points,
            color=colour,
            ha=across,
            va="center_baseline" if not rotation else "center",
            fontweight="bold" if bold else "normal",
            rotation=rotation,
            parse_math=False,
            zorder=5,
        )

    def boxes(self, boxes: Sequence[Box], colour: str, above: float = 1) -> None:
        """Fill boxes (left, top, right, bottom), crisp; higher `above` lies on top."""
        if not len(boxes):
            return
        path = _outlines(boxes)
        self._axes.add_artist(
            PathPatch(path, facecolor=colour, linewidth=0, antialiased=False, zorder=above)
        )

    def shapes(
        self, outlines: Sequence[Sequence[tuple[float, float]]], colour: str, above: float = 1
    ) -> None:
        """Fill outlines of corners (x, y), each closed from its last to its first."""
        if not len(outlines):
            return
        corners = [[*outline, outline[0]] for outline in outlines]
        codes = [
            [Path.MOVETO, *[Path.LINETO] * (len(outline) - 1), Path.CLOSEPOLY]
            for outline in outlines
        ]
        path = Path(np.concatenate(corners), np.concatenate(codes))
        self._axes.add_artist(PathPatch(path, facecolor=colour, linewidth=0, zorder=above))

    def hatched(self, boxes: Sequence[Box], colour: str, ground: str, above: float = 1) -> None:
        """Boxes (left, top, right, bottom) with a thin edge and slanted lines on a ground."""
        if not len(boxes):
            return
        patch = PathPatch(
            _outlines(boxes),
            facecolor=ground,
            edgecolor=colour,
            linewidth=0.5,
            hatch="//////",
            antialiased=False,
            zorder=above,
        )
        self._axes.add_artist(patch)

    def dashes(self, x: float, top: float, bottom: float, colour: str) -> None:
        """An upright dashed line, under the bars."""
        line = Line2D((x, x), (top, bottom), color=colour, linewidth=0.7, zorder=1)
        line.set_linestyle((0, (4, 3)))
        self._axes.add_line(line)


def _outlines(boxes: Sequence[Box]) -> Path:
    """One path for all: a collection would cost as much per box as for the whole picture."""
    left, top, right, bottom = np.asarray(boxes, dtype=float).T
    corners = np.stack([[left, top], [right, top], [right, bottom], [left, bottom], [left, top]])
    return Path(
        corners.transpose(2, 0, 1).reshape(-1, 2),
        np.tile(_AROUND, len(boxes)),
    )
