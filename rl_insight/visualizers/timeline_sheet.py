"""How large the timeline's picture is and where on it things stand.

A design pixel is 1/100 inch; the picture has `scale` real pixels for each.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil

# A taller picture costs gigabytes to draw, and few programs open it.
MOST_HEIGHT = 16_000

# Design pixels: margins, and the height of the lines of text above the plot and of its axes.
EDGE, TITLE, LINE, LEGEND_LINE, AXIS, STEPS = 16, 30, 20, 22, 26, 18

# Design pixels: the row of a small and of a large timeline, and how many rows are still few.
_ROW, _ROW_IN_COMPANY, _FEW = 30.0, 18.0, 60
_TALL = 700
_LEAST_ROW = 4
_PIXELS_PER_POINT = 100 / 72
_SMALLEST_POINTS, LABEL_POINTS = 6.0, 9.0


@dataclass(frozen=True, slots=True)
class Sheet:
    """Sizes in real pixels, except `label_points`.

    The plot's rectangle is `left`, `top`, `plot_width`, `plot_height`; `row` is the height of a
    plain row. `kept` are the places of the rows that are drawn, of which one in `label_every` has
    its label. `axis_on_top` asks for a second axis, since whoever looks at the head of a tall
    picture does not see its foot. `note` says in words what had to be left out, or is None.
    """

    width: int
    height: int
    scale: float
    left: int
    top: int
    plot_width: int
    plot_height: int
    row: int
    kept: tuple[int, ...]
    label_every: int
    label_points: float
    axis_on_top: bool
    note: str | None

    def px(self, design: float) -> float:
        """Design pixels in real ones."""
        return design * self.scale


def plan(
    units: Sequence[float],
    groups: Sequence[int],
    width: int,
    scale: float,
    label_width: float,
    legend_lines: int,
    always: Collection[int] = (),
) -> Sheet:
    """The sheet for rows of `units` plain rows' height each, from top to bottom.

    `groups` numbers the rows' ranks from 0, ascending. `width` and `label_width` are in design
    pixels. The ranks of rows at the places `always` stay when others are left out.
    """
    total = sum(units)
    wanted = min(max(_ROW * _FEW / total, _ROW_IN_COMPANY), _ROW)
    axis_on_top = wanted * total > _TALL
    head = EDGE + TITLE + LINE + legend_lines * LEGEND_LINE + STEPS + (AXIS if axis_on_top else 4)
    foot = AXIS + LINE + EDGE
    # Twice a pixel of margin, since the parts of the sheet are rounded on their own.
    room = MOST_HEIGHT - ceil((head + foot) * scale) - 2
    # Whole pixels: rows that differ by one would look like a pattern in the data.
    row = max(int(min(wanted * scale, room / total)), _LEAST_ROW)
    kept = _thinned(units, groups, room / row, {groups[place] for place in always})
    points = min(max(row / scale * 0.62 / _PIXELS_PER_POINT, _SMALLEST_POINTS), LABEL_POINTS)
    label_every = max(1, ceil(points * _PIXELS_PER_POINT * 1.1 * scale / row))
    left = round((EDGE + label_width + 8) * scale)
    real_width = round(width * scale)
    plot_height = round(sum(units[place] for place in kept) * row)
    return Sheet(
        width=real_width,
        height=round((head + foot) * scale) + plot_height,
        scale=scale,
        left=left,
        top=round(head * scale),
        plot_width=max(real_width - left - round(EDGE * 1.5 * scale), 50),
        plot_height=plot_height,
        row=row,
        kept=kept,
        label_every=label_every,
        label_points=points,
        axis_on_top=axis_on_top,
        note=_note(len(units), len(kept), label_every),
    )


def _thinned(
    units: Sequence[float], groups: Sequence[int], room: float, always: Collection[int]
) -> tuple[int, ...]:
    """Places of rows that together have at most `room` units.

    Whole groups are left out at first, evenly, so that no stage disappears from all ranks. Those
    that `always` names stay, unless they take more than half of the room.
    """
    rows = zip(units, groups, strict=True)
    if sum(unit for unit, group in rows if group in always) > room / 2:
        always = ()
    kept = tuple(range(len(units)))
    every = 1
    while len(kept) > 1 and sum(units[place] for place in kept) > room:
        every += 1
        if every <= groups[-1]:
            kept = tuple(
                place
                for place in range(len(units))
                if groups[place] % every == 0 or groups[place] in always
            )
        else:
            kept = kept[::2]
    return kept


def _note(lanes: int, kept: int, label_every: int) -> str | None:
    if kept < lanes:
        return f"too many lanes for one picture: {kept:,} of {lanes:,} drawn"
    if label_every > 1:
        return f"one lane in {label_every} is labelled"
    return None
