"""What recorded vectors hold: tokens per expert, sums over the experts so far, or pairs.

`torch_npu.npu_grouped_matmul` takes all three, by its argument `group_list_type`: 1 is counts, 0
(the default) cumulative sums, 2 pairs of expert and tokens. In the order of what is believed: the
user, what msprobe wrote about the call (or the shape: only pairs are two-dimensional), the other
calls of the same role, rank and API, the numbers.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from rl_insight.analysis.load_rows import UNKNOWN, Array, LoadRows, Vectors, parts
from rl_insight.problems import Problems
from rl_insight.schema import LOAD_KIND_SOURCES, LOAD_KINDS

COUNTS, CUMSUM, PAIRS = range(len(LOAD_KINDS))
CONFIG, DUMP, AUTO, FORMAT, ASSUMED = range(len(LOAD_KIND_SOURCES))

# Counts that are in ascending order in every vector happen by chance, too. Below this probability
# they are taken for sums.
_CHANCE = 1e-6
# What must be so improbable before a list among such sums that falls is called damaged, and how
# many of them there must be for each that falls.
_CHANCE_OF_DAMAGE = 1e-12
_SOUND_LISTS = 9
# One expert may be busier than its neighbour all the time: with few experts order says nothing.
_FEWEST_EXPERTS = 4

ONE_EXPERT = "one expert"
NO_TOKENS = "no tokens at all"


@dataclass(frozen=True, slots=True)
class Kinds:
    """Per row, as places in LOAD_KINDS and LOAD_KIND_SOURCES."""

    kind: Array
    origin: Array


def damaged_sums(rows: LoadRows, kind: Array, wish: str, notes: Problems) -> Array:
    """Which rows are no load: lists that fall among those of a role, rank and API that are sums
    beyond doubt. `kind` and `wish` are as for `decide`; a note tells of them.

    Otherwise one damaged list would make counts of all of them.
    """
    damaged = np.zeros(len(rows), dtype=bool)
    if wish in ("counts", "pairs"):
        return damaged
    falls = _falls(rows.vectors)
    for members in parts(rows.group):
        members = members[(rows.layer[members] < 0) & (kind[members] != PAIRS)]
        falling, sound = members[falls[members]], members[~falls[members]]
        if not len(falling) or len(sound) < _SOUND_LISTS * len(falling):
            continue
        if (kind[members] == COUNTS).any():
            continue
        told = (kind[sound] == CUMSUM).all()
        if told or _by_numbers(rows.vectors, sound, falls, _CHANCE_OF_DAMAGE)[0] == CUMSUM:
            damaged[falling] = True
            example = (
                f"{_call(rows, falling[0])}: its values fall, and the other {len(sound)} lists are "
                "cumulative sums; left out"
            )
            notes.add("sums_damaged", "warning", len(falling), example=example)
    return damaged


def decide(rows: LoadRows, kind: Array, origin: Array, wish: str, notes: Problems) -> Kinds:
    """What each row holds and what says so.

    `kind` and `origin` are what the cache knows of each row, UNKNOWN where nothing; `wish` is
    `heatmap.parser.group_list_type`. A claim that cannot be true of the numbers is put aside, which
    is noted, and the next best holds.
    """
    told = Kinds(kind.copy(), origin.copy())
    falls = _falls(rows.vectors)
    for wrong, claim in (
        ((kind == PAIRS) & (rows.vectors.length % 2 == 1), "pairs, but its length is odd"),
        ((kind == CUMSUM) & falls, "cumulative sums, but its values fall"),
    ):
        at = np.flatnonzero(wrong)
        told.kind[at], told.origin[at] = UNKNOWN, UNKNOWN
        if len(at):
            example = f"{_call(rows, at[0])} was recorded as {claim}; its numbers decided"
            notes.add("load_kind_impossible", "warning", len(at), example=example)

    decided = Kinds(told.kind.copy(), told.origin.copy())
    doubtful: list[tuple[Array, str]] = []
    for members in parts(rows.group):
        members = members[rows.layer[members] < 0]  # the others came complete
        if wish != "auto":
            _obey(rows, members, LOAD_KINDS.index(wish), told, decided, falls, notes)
        doubtful += _tell(rows, members, told, decided, falls)
    _ask_other_ranks(rows, decided, doubtful, falls, notes)
    return decided


def _obey(
    rows: LoadRows,
    members: Array,
    wanted: int,
    told: Kinds,
    decided: Kinds,
    falls: Array,
    notes: Problems,
) -> None:
    """Take what the user says, as far as it can be true of a role, rank and API."""
    fits = (told.kind[members] == PAIRS) == (wanted == PAIRS)
    mine, misfits = members[fits], members[~fits]
    reason = "it holds single numbers" if wanted == PAIRS else "it holds pairs"
    if wanted == CUMSUM and falls[mine].any():
        # One list that cannot be sums speaks for all: a rank's calls do not change their meaning.
        mine, misfits, reason = mine[:0], mine[falls[mine]], "its values fall"
    if len(misfits):
        example = f"{_call(rows, misfits[0])} cannot be {LOAD_KINDS[wanted]}: {reason}"
        notes.add("load_kind_impossible", "warning", len(misfits), example=example)
    against = mine[(told.kind[mine] != UNKNOWN) & (told.kind[mine] != wanted)]
    if len(against):
        example = (
            f"{_call(rows, against[0])}: the dump says {LOAD_KINDS[told.kind[against[0]]]}, "
            f"group_list_type says {LOAD_KINDS[wanted]}, which was taken"
        )
        notes.add("load_kind_disagrees", "warning", len(against), example=example)
    decided.kind[mine], decided.origin[mine] = wanted, CONFIG


def _tell(
    rows: LoadRows, members: Array, told: Kinds, decided: Kinds, falls: Array
) -> list[tuple[Array, str]]:
    """Decide the calls of a role, rank and API that nothing speaks of; gives those in doubt."""
    left = members[decided.kind[members] == UNKNOWN]
    if not len(left):
        return []
    speaking = members[(told.kind[members] == COUNTS) | (told.kind[members] == CUMSUM)]
    said = np.unique(told.kind[speaking])
    if len(said) == 1 and not (said[0] == CUMSUM and falls[left].any()):
        decided.kind[left], decided.origin[left] = said[0], told.origin[speaking[0]]
        return []
    found, doubt = _by_numbers(rows.vectors, left, falls)
    decided.kind[left] = found
    decided.origin[left] = ASSUMED if doubt else AUTO
    return [(left, doubt)] if doubt else []


def _by_numbers(
    vectors: Vectors, rows: Array, falls: Array, most_chance: float = _CHANCE
) -> tuple[int, str | None]:
    """Counts or sums by the numbers of all `rows`, and why that is in doubt.

    Sums never fall, so one vector that falls means counts. Where none does, the question is whether
    counts would stand in ascending order by chance. Unlike a last sum that is the same in all
    layers, this also holds with expert parallelism.
    """
    if falls[rows].any():
        return COUNTS, None
    rows = rows[vectors.length[rows] > 0]
    if vectors.length[rows].max(initial=0) < 2:
        return COUNTS, ONE_EXPERT
    last = vectors.values[vectors.start[rows] + vectors.length[rows] - 1]
    uneven = rows[vectors.values[vectors.start[rows]] < last]
    if not len(uneven):
        return COUNTS, "all experts alike" if last.any() else NO_TOKENS
    uneven = uneven[vectors.length[uneven] >= _FEWEST_EXPERTS]
    if not len(uneven):
        return COUNTS, f"fewer than {_FEWEST_EXPERTS} experts"
    seen: set[bytes] = set()
    chance = 0.0
    for row in uneven:
        vector = vectors.of(row)
        if (key := vector.tobytes()) in seen:
            continue
        seen.add(key)
        chance += _log_chance(vector)
        if chance < math.log(most_chance):
            return CUMSUM, None
    return COUNTS, "too few different lists"


def _log_chance(vector: Array) -> float:
    """log of the probability that these values, shuffled, stand in ascending order."""
    _, times = np.unique(vector, return_counts=True)
    return sum(math.lgamma(n + 1) for n in times) - math.lgamma(len(vector) + 1)


def _ask_other_ranks(
    rows: LoadRows,
    decided: Kinds,
    doubtful: list[tuple[Array, str]],
    falls: Array,
    notes: Problems,
) -> None:
    """What the numbers of one rank leave open, the other ranks of its role may tell."""
    sure = (decided.origin == AUTO) | (decided.origin == DUMP)
    sure &= decided.kind != PAIRS
    told: dict[tuple[int, int], set[int]] = defaultdict(set)
    columns = np.stack([rows.role.code, rows.api.code, decided.kind], axis=1)
    for role, api, kind in np.unique(columns[sure], axis=0).tolist() if doubtful else []:
        told[role, api].add(kind)
    for members, doubt in doubtful:
        first = members[0]
        found = told.get((int(rows.role.code[first]), int(rows.api.code[first])), set())
        if len(found) == 1 and not (CUMSUM in found and falls[members].any()):
            decided.kind[members], decided.origin[members] = *found, AUTO
            continue
        notes.add(
            "load_kind_assumed",
            # With one expert, or with none busy, counts and sums are the same.
            "info" if doubt in (ONE_EXPERT, NO_TOKENS) else "warning",
            len(members),
            example=f"{rows.whose(first)}: the numbers do not tell counts from sums ({doubt}); "
            "taken as counts, heatmap.parser.group_list_type=cumsum takes them as sums",
        )


def _falls(vectors: Vectors) -> Array:
    """Whether a vector is no list of cumulative sums: a value below the one before, or below 0."""
    found = np.zeros(len(vectors), dtype=bool)
    for piece in vectors.pieces():
        down = np.zeros(len(piece.values), dtype=bool)
        np.less(piece.values[1:], piece.values[:-1], out=down[1:])
        first = piece.start[piece.length > 0]
        down[first] = piece.values[first] < 0
        found[piece.rows] = piece.sums(down) > 0
    return found


def _call(rows: LoadRows, row: int) -> str:
    return f"{rows.whose(row)} call {rows.op[row]}"
