"""Tokens per expert from what the vectors hold."""

import numpy as np

from rl_insight.analysis.load_kind import CUMSUM, PAIRS
from rl_insight.analysis.load_rows import Array, LoadRows, Vectors, numbered, parts, places
from rl_insight.problems import Problems

# No model has that many experts in a layer. A pair whose expert lies beyond is damage, and must not
# make a vector of its length.
MAX_EXPERTS = 4_096
# What pairs may grow to in all, in values, before each row keeps a length of its own.
_MOST_VALUES = 1 << 27


def counts(rows: LoadRows, kind: Array, notes: Problems) -> Vectors:
    """The same rows as tokens per expert.

    Sums become differences, the first one kept. Pairs become a list by expert; how many experts
    there are they do not tell, so all lists of a role and API are as long as its highest expert
    needs.
    """
    vectors = rows.vectors
    if (kind == CUMSUM).any():
        vectors = _differences(vectors, kind == CUMSUM)
    paired = np.flatnonzero(kind == PAIRS)
    return _spread(rows, vectors, paired, notes) if len(paired) else vectors


def _differences(vectors: Vectors, summed: Array) -> Vectors:
    values = vectors.values.copy()
    for piece in vectors.pieces():
        mine = summed[piece.rows] & (piece.length > 0)
        if not mine.any():
            continue
        first = vectors.start[piece.rows][0]
        target = values[first : first + len(piece.values)]
        starts = piece.start[mine]
        if mine.all():
            np.subtract(piece.values[1:], piece.values[:-1], out=target[1:])
        else:
            inside = places(starts, piece.length[mine])
            # Before the first value of all, its last one is taken off; the next line mends that.
            target[inside] = piece.values[inside] - piece.values[inside - 1]
        target[starts] = piece.values[starts]
    return Vectors(values, vectors.start, vectors.length)


def _spread(rows: LoadRows, vectors: Vectors, paired: Array, notes: Problems) -> Vectors:
    place = places(vectors.start[paired], vectors.length[paired])
    expert, tokens = vectors.values[place[0::2]], vectors.values[place[1::2]]
    owner = np.repeat(paired, vectors.length[paired] // 2)
    wrong = np.flatnonzero((expert < 0) | (expert >= MAX_EXPERTS))
    if len(wrong):
        example = f"{rows.whose(owner[wrong[0]])}: there is no expert {expert[wrong[0]]}; left out"
        notes.add("pairs_damaged", "warning", len(wrong), example=example)
        right = np.delete(np.arange(len(expert)), wrong)
        expert, tokens, owner = expert[right], tokens[right], owner[right]

    length = vectors.length.copy()
    length[paired] = 0
    np.maximum.at(length, owner, expert + 1)
    longest = length.copy()
    for members in parts(numbered(rows.role.code[paired], rows.api.code[paired])):
        longest[paired[members]] = length[paired[members]].max()
    if longest.sum() <= max(_MOST_VALUES, 2 * vectors.length.sum()):
        length = longest

    start = np.cumsum(length) - length
    values = np.zeros(int(length.sum()), dtype=np.int64)
    others = np.setdiff1d(np.arange(len(vectors)), paired)
    values[places(start[others], length[others])] = vectors.values[
        places(vectors.start[others], vectors.length[others])
    ]
    target = start[owner] + expert
    again = len(target) - len(np.unique(target))
    if again:
        _, first = np.unique(target, return_index=True)
        repeated = np.setdiff1d(np.arange(len(target)), first)[0]
        example = (
            f"{rows.whose(owner[repeated])}: expert {expert[repeated]} stands twice in a list of "
            "pairs; its tokens were added"
        )
        notes.add("pairs_repeated", "warning", again, example=example)
    np.add.at(values, target, tokens)
    return Vectors(values, start, length)
