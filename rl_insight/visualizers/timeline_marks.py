"""What is drawn of a line of spans when its pixels are fewer than its spans.

`assets/timeline_marks.js` does the same in the browser for every window that is zoomed to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor


@dataclass(slots=True)
class Mark:
    """A bar in cells (pixels) from `left` up to, not including, `right`, painted with `paint`.

    `single` is False for cells that several short spans share.
    """

    left: int
    right: int
    paint: int
    single: bool


def marks(
    start_ns: Sequence[int],
    end_ns: Sequence[int],
    paint: Sequence[int],
    cell_ns: float,
    gap: int,
) -> list[Mark]:
    """The bars of one line of spans that do not overlap and are in time order.

    A span of at least `gap + 2` cells is a bar of its own, with `gap` empty cells before a
    neighbour that touches it. Shorter ones fill every cell that they touch; in a shared cell the
    paint that covers most of it wins, and neighbouring cells of one paint are one bar.
    """
    made: list[Mark] = []
    cell, weights = -1, dict[int, float]()

    def flush() -> None:
        if not weights:
            return
        strongest = max(weights, key=lambda paint: weights[paint])
        weights.clear()
        before = made[-1] if made else None
        if before and not before.single and before.right == cell and before.paint == strongest:
            before.right = cell + 1
        else:
            made.append(Mark(cell, cell + 1, strongest, False))

    for start, end, colour in zip(start_ns, end_ns, paint, strict=True):
        left, right = start / cell_ns, end / cell_ns
        if right - left >= gap + 2:
            flush()
            made.append(Mark(floor(left), ceil(right), colour, True))
            continue
        for touched in range(floor(left), max(ceil(right), floor(left) + 1)):
            if touched != cell:
                flush()
                cell = touched
            covered = min(right, touched + 1) - max(left, touched)
            weights[colour] = weights.get(colour, 0.0) + covered
    flush()
    _separate(made, gap)
    return made


def _separate(made: list[Mark], gap: int) -> None:
    for mark, following in pairwise(made):
        if mark.right + gap > following.left:
            limit = following.left - (gap if mark.single else 0)
            mark.right = max(min(mark.right, limit), mark.left + 1)
