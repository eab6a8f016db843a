"""The rows of a heatmap as a matrix of cells, averaged where there are more than pixels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rl_insight.plain_text import count
from rl_insight.visualizers.heatmap_model import UNKNOWN, Heatmap, Rows

# Items of a block of rows while columns are averaged.
_BLOCK = 4_000_000
_PART = 20_000


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring lines of the picture that have one label; null is UNKNOWN.

    `ranks` are all that it covers, `steps` likewise; None among them is unknown. `micro_batch` and
    `phase` are only told where the picture has several, and `recording` (else 0) where it is the
    block of one dump of several that are of one rank.
    """

    steps: tuple[int | None, ...]
    role: str | None
    ranks: tuple[int | None, ...]
    micro_batch: int | None
    phase: int | None
    recording: int = 0


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of the picture from top to bottom, and how rows were averaged for them.

    `rows` are positions of rows, those of line i being `rows[first[i] : first[i + 1]]`; `block` is
    the block of each line. `note` says what was averaged, None when every row is a line.
    """

    rows: np.ndarray
    first: np.ndarray
    block: np.ndarray
    blocks: list[Block]
    note: str | None

    def __len__(self) -> int:
        return len(self.block)


def lines(heatmap: Heatmap, room: int) -> Lines:
    """At most `room` lines: all rows, or averages per layer over groups of ranks and of steps.

    Groups are as small as may be; where even one group of all is too many lines, neighbouring ones
    are averaged.
    """
    number = len(heatmap.rows)
    if number <= room:
        return _merged(heatmap, 0, 0, None)
    ranks = len({segment.rank_id for segment in heatmap.segments})
    steps = len({segment.step for segment in heatmap.segments})
    head = f"{number:,} rows outnumber the pixels: averaged per layer over"
    batches = ["all micro-batches"] if len(np.unique(heatmap.rows.micro_batch)) > 1 else []
    if any(segment.recording for segment in heatmap.segments):
        batches.append("all recordings of a rank")
    groupings = list(_groupings(ranks, steps))
    coarsest = _merged(heatmap, *groupings[-1], None)
    if len(coarsest) > room:
        return _thinned(coarsest, room, number)
    # A line of a single pixel shows little: averages get two where they can.
    for per_line in (2, 1) if len(coarsest) * 2 <= room else (1,):
        for over_ranks, over_steps in groupings:
            words = [
                _group_words(over, all_, name)
                for over, all_, name in ((over_ranks, ranks, "rank"), (over_steps, steps, "step"))
                if over > 1
            ]
            note = f"{head} {' and '.join([*words, *batches])}"
            found = _merged(heatmap, over_ranks, over_steps, note)
            if len(found) * per_line <= room:
                return found
    return coarsest


def cells(rows: Rows, drawn: Lines, columns: int) -> np.ndarray:
    """Tokens as float32 [lines, columns], NaN where no row of the line has an expert.

    Where there are fewer columns than experts each is the mean over those that it covers.
    """
    experts = rows.experts
    found = np.empty((len(drawn), columns), dtype=np.float32)
    step = max(1, _BLOCK // experts)
    for top in range(0, len(drawn), step):
        bottom = min(top + step, len(drawn))
        total = np.zeros((bottom - top, experts))
        number = np.zeros((bottom - top, experts), dtype=np.int32)
        for line in range(top, bottom):
            for row in drawn.rows[drawn.first[line] : drawn.first[line + 1]].tolist():
                load = rows.load(row)
                left = int(rows.first_expert[row])
                total[line - top, left : left + len(load)] += load
                number[line - top, left : left + len(load)] += 1
        with np.errstate(invalid="ignore"):
            if columns < experts:
                # The mean over experts of the means over rows.
                mean = np.where(number > 0, total / np.maximum(number, 1), 0.0)
                found[top:bottom] = _shrunk(mean, columns) / _shrunk(number > 0, columns)
            else:
                found[top:bottom] = total / number
    return found


def max_over_mean(rows: Rows, drawn: Lines) -> np.ndarray:
    """max / mean over the experts of each row, averaged over the rows of each line; NaN without."""
    if not len(rows):
        return np.zeros(0)
    order = np.argsort(rows.start, kind="stable")
    most = np.empty(len(rows))
    total = np.empty(len(rows))
    # In parts, as numpy makes a copy of what it sums in another type.
    for part in np.array_split(order, len(order) // _PART + 1):
        begin, end = int(rows.start[part[0]]), int(rows.start[part[-1]] + rows.length[part[-1]])
        starts = rows.start[part] - begin
        most[part] = np.maximum.reduceat(rows.values[begin:end], starts)
        total[part] = np.add.reduceat(rows.values[begin:end], starts, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(total > 0, most * rows.length / total, np.nan)[drawn.rows]
        known = np.isfinite(ratio)
        sums = np.add.reduceat(np.where(known, ratio, 0), drawn.first[:-1])
        return np.asarray(sums / np.add.reduceat(known.astype(np.int64), drawn.first[:-1]))


def _shrunk(matrix: np.ndarray, columns: int) -> np.ndarray:
    """Sums over equal parts of each line; what lies across a border counts on both sides in part.

    The integral of the line is piecewise linear, so the part of a column is a difference of two
    interpolated values of it.
    """
    width = matrix.shape[1]
    integral = np.zeros((len(matrix), width + 1))
    np.cumsum(matrix, axis=1, out=integral[:, 1:])
    edge = np.linspace(0, width, columns + 1)
    left = np.minimum(edge.astype(np.int64), width - 1)
    part = edge - left
    at = integral[:, left] * (1 - part) + integral[:, left + 1] * part
    return np.asarray(np.diff(at, axis=1))


def _groupings(ranks: int, steps: int) -> Iterator[tuple[int, int]]:
    """Sizes of groups of ranks and of steps, ever larger: ranks are joined first."""
    over_ranks, over_steps = 1, 1
    while True:
        yield over_ranks, over_steps
        if over_ranks < ranks:
            over_ranks *= 2
        elif over_steps < steps:
            over_steps *= 2
        else:
            return


def _group_words(over: int, number: int, name: str) -> str:
    return f"{over} {name}s each" if over < number else f"all {count(number, name)}"


def _merged(heatmap: Heatmap, over_ranks: int, over_steps: int, note: str | None) -> Lines:
    """Rows of each layer averaged over so many ranks and steps; 0 leaves every row a line."""
    rows, segments = heatmap.rows, heatmap.segments
    roles = {role: at for at, role in enumerate(heatmap.roles)}
    step = _places([one.step for one in segments]) // max(over_steps, 1)
    role = np.array([roles.get(one.role or "", len(roles)) for one in segments])
    rank = _places([one.rank_id for one in segments]) // max(over_ranks, 1)
    same = np.zeros(len(rows), dtype=np.int64)
    recording = np.array([one.recording for one in segments], dtype=np.int64)
    several = [_tell_apart(rows.segment, column) for column in (rows.micro_batch, rows.phase)]
    block_keys = [
        step[rows.segment],
        role[rows.segment],
        rank[rows.segment],
        recording[rows.segment] if not over_ranks else same,
        rows.micro_batch if several[0] and not over_ranks else same,
        rows.phase if several[1] else same,
    ]
    unknown = rows.layer == UNKNOWN
    line_keys = [*block_keys, rows.layer, np.where(unknown, rows.op_index, 0)]
    if not over_ranks:
        # Every row for itself: in a table with doubtful structure two may look alike.
        line_keys.append(np.arange(len(rows)))
    order = np.lexsort(line_keys[::-1])
    new_block = _changes(block_keys, order)
    new_line = _changes(line_keys, order)
    first = np.flatnonzero(new_line)
    block = (np.cumsum(new_block) - 1)[first]
    starts = [*np.flatnonzero(new_block).tolist(), len(order)]
    blocks = []
    for begin, end in pairwise(starts):
        inside = order[begin:end]
        parts = [segments[at] for at in np.unique(rows.segment[inside]).tolist()]
        row = int(inside[0])
        blocks.append(
            Block(
                steps=tuple(dict.fromkeys(part.step for part in parts)),
                role=parts[0].role,
                ranks=tuple(dict.fromkeys(part.rank_id for part in parts)),
                micro_batch=int(rows.micro_batch[row]) if several[0] and not over_ranks else None,
                phase=int(rows.phase[row]) if several[1] else None,
                recording=parts[0].recording if not over_ranks else 0,
            )
        )
    return Lines(order, np.append(first, len(order)), block, blocks, note)


def _tell_apart(segment: np.ndarray, column: np.ndarray) -> bool:
    """Whether names of the values are needed: not where all that are known are one, and no segment
    has others beside it."""
    pairs = np.unique(np.stack([segment, column]), axis=1)
    return len(np.unique(column[column != UNKNOWN])) > 1 or pairs.shape[1] > len(np.unique(segment))


def _places(numbers: Sequence[int | None]) -> np.ndarray:
    """The place of each number among the distinct ones, ascending, the unknown last."""
    known = [UNKNOWN if number is None else number for number in numbers]
    return np.asarray(np.unique(known, return_inverse=True)[1]).reshape(-1)


def _changes(keys: Sequence[np.ndarray], order: np.ndarray) -> np.ndarray:
    """Where in `order` any of the keys differs from the one before."""
    new = np.zeros(len(order), dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= np.diff(key[order]) != 0
    return new


def _thinned(found: Lines, room: int, rows: int) -> Lines:
    """Neighbouring lines joined to `room`; a line that begins in one block belongs to it."""
    at = np.linspace(0, len(found), room + 1).astype(np.int64)
    note = f"{rows:,} rows outnumber the pixels: neighbouring ones are averaged"
    return Lines(found.rows, found.first[at], found.block[at[:-1]], found.blocks, note)
