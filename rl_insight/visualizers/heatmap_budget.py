"""How much of a heatmap a page can hold, and what is summed or left out where that is not all."""

from dataclasses import dataclass

import numpy as np

from rl_insight.plain_text import count
from rl_insight.schema import PHASES
from rl_insight.visualizers.heatmap_model import UNKNOWN, Group, Heatmap, Rows, Segment

# Packed and written as base64, some two bytes each: a page of 25 MB.
MOST_CELLS = 12_000_000
_FORWARD = PHASES.index("forward")
# Numbers that are added up at a time.
_BLOCK = 4_000_000


@dataclass(frozen=True, slots=True)
class Fitted:
    """The rows that a page holds; `summed` says of how many ranks each segment is the sum.

    `losses` are sentences about what the tables have and the page has not.
    """

    rows: Rows
    segments: list[Segment]
    summed: list[int]
    losses: tuple[str, ...]


def fit(heatmap: Heatmap, most_cells: int = MOST_CELLS) -> Fitted:
    """At most `most_cells` cells of `heatmap`, or one step where even that has more.

    First the micro-batches are summed, then the ranks whose expert ids mean the same, then other
    phases are left out, and at last the oldest steps.
    """
    rows, segments = heatmap.rows, heatmap.segments
    summed = [1] * len(segments)
    losses: list[str] = []
    held = count(_cells(rows), "cell")
    if _cells(rows) > most_cells and len(np.unique(rows.micro_batch)) > 1:
        rows = _added(rows, rows.segment, np.ones(len(rows), dtype=bool))
        losses.append("micro-batches are summed")
    if _cells(rows) > most_cells:
        rows, segments, summed, most = _without_ranks(rows, segments, heatmap.ids_local)
        if most > 1:
            losses.append(f"up to {most:,} ranks are summed")
    others = (rows.phase != _FORWARD) & (rows.phase != UNKNOWN)
    if _cells(rows) > most_cells and others.any() and not others.all():
        rows = _chosen(rows, ~others)
        losses.append("only the forward phase is here")
    if _cells(rows) > most_cells:
        rows, left_out = _newest(rows, segments, most_cells)
        if left_out:
            oldest = "step is" if left_out == 1 else f"{left_out:,} steps are"
            losses.append(f"the oldest {oldest} left out")
    if losses:
        head = f"The tables hold {held}, more than a page can: "
        losses = [f"{head}{', '.join(losses)}. Filters on steps, roles or ranks bring them back."]
    return Fitted(rows, segments, summed, tuple(losses))


def _cells(rows: Rows) -> int:
    return int(rows.length.sum())


def _without_ranks(
    rows: Rows, segments: list[Segment], ids_local: frozenset[Group]
) -> tuple[Rows, list[Segment], list[int], int]:
    """The ranks of each step and role as one, where one id is one expert on all of them."""
    placed = np.ones(len(segments), dtype=bool)
    np.logical_and.at(placed, rows.segment, rows.placed)
    unplaced = np.ones(len(segments), dtype=bool)
    np.logical_and.at(unplaced, rows.segment, ~rows.placed)
    groups: dict[Group, list[int]] = {}
    for at, segment in enumerate(segments):
        groups.setdefault((segment.step, segment.role), []).append(at)
    target = np.arange(len(segments))
    made: list[Segment] = []
    summed: list[int] = []
    for (step, role), members in groups.items():
        assumed = (step, role) not in ids_local and unplaced[members].all()
        if len(members) > 1 and (assumed or placed[members].all()):
            target[members] = len(made)
            made.append(Segment(step, role, None))
            summed.append(len(members))
        else:
            for member in members:
                target[member] = len(made)
                made.append(segments[member])
                summed.append(1)
    touched = np.array(summed)[target[rows.segment]] > 1
    rows = _added(rows, target[rows.segment], np.zeros(len(rows), dtype=bool), touched)
    return rows, made, summed, max(summed, default=1)


def _added(
    rows: Rows, segment: np.ndarray, batches: np.ndarray, across: np.ndarray | None = None
) -> Rows:
    """The rows after their segments became `segment`, those that now are alike summed.

    `batches` says of which rows the micro-batch no longer matters, `across` of which the experts
    may begin at different ids.
    """
    batch = np.where(batches, UNKNOWN, rows.micro_batch)
    apart = np.where(rows.layer == UNKNOWN, rows.op_index, 0)
    first = rows.first_expert if across is None else np.where(across, 0, rows.first_expert)
    keys = (segment, batch, rows.phase, rows.layer, apart, first, rows.placed)
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= np.diff(key[order].astype(np.int64)) != 0
    starts = np.flatnonzero(new)
    lead = order[starts]
    begin = np.minimum.reduceat(rows.first_expert[order], starts)
    end = np.maximum.reduceat((rows.first_expert + rows.length)[order], starts)
    length = end - begin
    place = np.cumsum(length) - length
    group = np.cumsum(new) - 1
    values = np.zeros(int(length.sum()), dtype=np.int64)
    size = rows.length[order]
    done = 0
    while done < len(order):
        # Whole groups, as many as make a block.
        stop = int(np.searchsorted(np.cumsum(size[done:]), _BLOCK)) + done + 1
        last = int(np.searchsorted(group, group[min(stop, len(order)) - 1], side="right"))
        part = order[done:last]
        own, at = group[done:last], rows.first_expert[part]
        low = int(place[own[0]])
        high = int(place[own[-1]] + length[own[-1]])
        target = _ranges(place[own] + at - begin[own] - low, rows.length[part])
        load = rows.values[_ranges(rows.start[part], rows.length[part])]
        np.add.at(values[low:high], target, load)
        done = last
    return Rows(
        segment=segment[lead],
        micro_batch=batch[lead],
        phase=rows.phase[lead],
        layer=rows.layer[lead],
        op_index=np.minimum.reduceat(rows.op_index[order], starts),
        calls=np.add.reduceat(rows.calls[order], starts),
        passes=np.maximum.reduceat(rows.passes[order], starts),
        first_expert=begin,
        placed=rows.placed[lead],
        start=place,
        length=length,
        values=values,
    )


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """All integers of the ranges that begin at `starts`, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total) + np.repeat(starts - (ends - lengths), lengths))


def _chosen(rows: Rows, kept: np.ndarray) -> Rows:
    columns = ("segment", "micro_batch", "phase", "layer", "op_index", "calls", "passes")
    rest = ("first_expert", "placed", "start", "length")
    return Rows(**{name: getattr(rows, name)[kept] for name in columns + rest}, values=rows.values)


def _newest(rows: Rows, segments: list[Segment], most_cells: int) -> tuple[Rows, int]:
    """The rows of the newest steps that fit, at least one, and how many steps were left out."""
    steps = np.array([UNKNOWN if part.step is None else part.step for part in segments])
    of_row = steps[rows.segment]
    known = np.unique(of_row)
    cells = np.array([rows.length[of_row == step].sum() for step in known])
    kept = max(int((np.cumsum(cells[::-1]) <= most_cells).sum()), 1)
    oldest = known[len(known) - kept]
    return _chosen(rows, of_row >= oldest), len(known) - kept
