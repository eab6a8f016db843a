"""From tokens to colours: the direction of the map and the end of the scale."""

from dataclasses import dataclass
from difflib import get_close_matches

import matplotlib
import numpy as np

from rl_insight.visualizers import colours as tones
from rl_insight.visualizers.heatmap_means import layer_mean

DEFAULT = "viridis"
# Of the lightness that a map covers, between its ends: of a diverging or cyclic one it is less.
_LEAST_SHARE = 0.5
_FEW, _TIMES_MEAN, _SHARE_BEYOND = 0.001, 10, 0.02
# In layers' means: the scale never ends below the first, nor at all before the largest number where
# that is no more than the second.
_NEVER_BELOW, _MOST_WHOLE = 4, 12

_BLOCKS = (
    *tones.PALETTE,
    *(tones.lighter(colour, 0.5) for colour in tones.PALETTE),
    *(tones.darker(colour, 0.45) for colour in tones.PALETTE),
)
BLOCK_COLOURS = len(_BLOCKS)


@dataclass(frozen=True, slots=True)
class ColourMap:
    """256 colours from few tokens to many, uint8 [256, 3]; `note` says what is odd about it."""

    colours: np.ndarray
    note: str | None


@dataclass(frozen=True, slots=True)
class Scale:
    """The colours reach from 0 to `top` tokens; `above` cells have more and the last colour.

    `most` is what the fullest cell has.
    """

    top: float
    above: int
    most: float

    def index(self, values: np.ndarray) -> np.ndarray:
        """The position among 256 colours for each number of tokens; they must not be NaN."""
        return np.clip(values * (256 / self.top), 0, 255).astype(np.uint8)


def colour_map(name: str) -> ColourMap:
    """The map called `name` by matplotlib, turned so that darker is more.

    A name that ends in `_r` is turned round: brighter is more. A map without a darker end (a
    diverging or cyclic one) stays as matplotlib has it. Instead of an unknown one it is viridis.
    """
    known = matplotlib.colormaps
    base, turned = (name[:-2], True) if name.endswith("_r") else (name, False)
    if base not in known or base.endswith("_r"):
        close = get_close_matches(name, list(known), 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        unknown = f"no colour map is called “{name}”{hint}: drawn with {DEFAULT}"
        return ColourMap(colour_map(DEFAULT).colours, unknown)
    colours = np.round(known[base](np.linspace(0, 1, 256))[:, :3] * 255).astype(np.uint8)
    light = lightness(colours)
    difference = float(light[-1] - light[0])
    note = None
    if abs(difference) < _LEAST_SHARE * float(np.ptp(light)) or difference == 0:
        note = f"the colour map {name} has no darker end: drawn as it is"
    elif difference > 0:
        colours = colours[::-1]
    return ColourMap(np.ascontiguousarray(colours[::-1] if turned else colours), note)


def lightness(colours: np.ndarray) -> np.ndarray:
    """CIE 1976 L* (0 black, 100 white) of sRGB colours, uint8 [..., 3]."""
    channel = colours / 255
    linear = np.where(channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    cube = np.cbrt(luminance)
    return np.asarray(np.where(luminance > 0.008856, 116 * cube - 16, 903.3 * luminance))


def scale(cells: np.ndarray) -> Scale:
    """One scale for all `cells` (numbers [lines, experts], NaN where there is no expert).

    It ends at the fullest cell up to twelve times the mean of the layers, so that an overloaded
    expert is darker than those that are merely busy. Where few cells are so full that all others
    would look empty, it ends below them: leaving out one in a thousand if the fullest has more than
    twice as much as the rest, and at ten times the mean unless more than 2 % of the cells are
    beyond; but never below four times the mean of the layers.
    """
    known = np.isfinite(cells)
    values = cells[known]
    most = float(values.max()) if len(values) else 0.0
    if most <= 0:
        return Scale(1.0, 0, 0.0)
    layer = layer_mean(cells, known)
    even = float(layer[layer > 0].mean())
    if most <= _MOST_WHOLE * even:
        return Scale(most, 0, most)
    few = int(len(values) * _FEW)
    usual = float(np.partition(values, -few - 1)[-few - 1])
    top = usual if 0 < usual < most / 2 else most
    many = _TIMES_MEAN * float(values.mean(dtype=np.float64))
    if many < top and np.count_nonzero(values > many) <= _SHARE_BEYOND * len(values):
        top = many
    top = min(max(top, _NEVER_BELOW * even), most)
    return Scale(top, int(np.count_nonzero(values > top)), most)


def block_colour(block: int) -> str:
    """The colour `#rrggbb` of a block; they come again after `BLOCK_COLOURS`."""
    return _BLOCKS[block % BLOCK_COLOURS]
