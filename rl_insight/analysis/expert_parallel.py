"""Which experts a rank's vectors are about.

With expert parallelism a rank holds `len(load)` experts of a layer, and its first one has the
global id ep_rank × len(load). Without any sign of it all ranks are taken to hold all experts, so
that one index means one expert: so it is in verl's FSDP patch.

A sign of it are the totals. A rank that holds all experts hands each token of a micro-batch to as
many of them in every layer, so its layers have equal totals; to the experts of one rank of several
come more tokens in one layer than in another.
"""

from dataclasses import dataclass

import numpy as np

from rl_insight.analysis.expert_structure import Structure
from rl_insight.analysis.load_rows import UNKNOWN, Array, LoadRows, Vectors, numbered, parts
from rl_insight.notes import EXPERT_IDS_LOCAL
from rl_insight.plain_text import count
from rl_insight.problems import Problems
from rl_insight.schema import PHASES

# MindSpeed (Megatron) counts the experts of the rank alone.
_LOCAL_API = "MindSpeed"


@dataclass(frozen=True, slots=True)
class ExpertIds:
    """Per row; UNKNOWN where it is not known.

    `not_comparable` are the roles (by code) where one index, or one index with its offset, may be
    different experts on different ranks.
    """

    ep_rank: Array
    ep_size: Array
    offset: Array
    not_comparable: frozenset[int] = frozenset()


def expert_ids(
    rows: LoadRows,
    counts: Vectors,
    structure: Structure,
    given: ExpertIds,
    ep_size: int | None,
    notes: Problems,
) -> ExpertIds:
    """Complete what the dumps say (`given`) from `heatmap.parser.ep_size`.

    `counts` are the vectors of `rows` as tokens per expert. The dump wins over the option. Rows
    that came with a layer are complete.
    """
    length, total = counts.length, counts.sums()
    rank, size = given.ep_rank.copy(), given.ep_size.copy()
    offset, not_comparable = given.offset.copy(), set()
    recorded = rows.layer == UNKNOWN
    if ep_size is not None:
        _from_option(rows, recorded, rank, size, ep_size, notes)
    for members in parts(rows.role.code):
        filled = members[length[members] > 0]
        if not len(filled):
            continue
        _one_length_per_rank(rows, filled, length, notes)
        lengths = np.unique(length[filled])
        open_rows = filled[(offset[filled] < 0) & (rank[filled] >= 0) & recorded[filled]]
        if len(lengths) == 1:
            offset[open_rows] = rank[open_rows] * lengths[0]
        elif len(open_rows):
            example = f"{rows.whose(filled[0])}: lists of {_numbers(lengths)} experts"
            notes.add("expert_count_differs", "warning", example=example)
        uneven = _uneven(rows, filled[recorded[filled]], total, structure)
        if not _comparable(rows, filled, offset, lengths, uneven, notes):
            not_comparable.add(int(rows.role.code[filled[0]]))
    return ExpertIds(rank, size, offset, frozenset(not_comparable))


def _from_option(
    rows: LoadRows, recorded: Array, rank: Array, size: Array, ep_size: int, notes: Problems
) -> None:
    other = np.flatnonzero(recorded & (size >= 0) & (size != ep_size))
    if len(other):
        example = (
            f"{rows.whose(other[0])}: the dump says {size[other[0]]}, heatmap.parser.ep_size says "
            f"{ep_size}; the dump's was taken"
        )
        notes.add("ep_size_disagrees", "warning", len(other), example=example)
    mine = recorded & (size < 0) & (rank < 0)
    nameless = np.flatnonzero(mine & (rows.rank < 0))
    if len(nameless):
        example = f"{rows.whose(nameless[0])}: without a rank its experts are not known"
        notes.add("ep_rank_unknown", "warning", len(nameless), example=example)
    size[mine] = ep_size
    _doubt(rows, mine, ep_size, notes)
    known = mine & (rows.rank >= 0)
    rank[known] = rows.rank[known] % ep_size


def _doubt(rows: LoadRows, mine: Array, ep_size: int, notes: Problems) -> None:
    """An expert-parallel size divides the number of ranks. That number is known only where the
    ranks seen are 0, 1, … without a gap."""
    for members in parts(rows.role.code):
        seen = np.unique(rows.rank[members[mine[members] & (rows.rank[members] >= 0)]])
        ranks = len(seen)
        if ranks > 1 and seen[-1] == ranks - 1 and ranks % ep_size:
            role = rows.role.name(int(rows.role.code[members[0]])) or "an unknown role"
            example = (
                f"{role}: ranks 0 to {ranks - 1} are no whole number of groups of "
                f"heatmap.parser.ep_size={ep_size}; its experts may be numbered wrongly"
            )
            notes.add("ep_size_doubtful", "warning", example=example)


def _one_length_per_rank(rows: LoadRows, members: Array, length: Array, notes: Problems) -> None:
    order = members[np.argsort(rows.group[members], kind="stable")]
    changes = (rows.group[order][1:] == rows.group[order][:-1]) & (
        length[order][1:] != length[order][:-1]
    )
    at = np.flatnonzero(changes)
    if len(at):
        first, second = order[at[0]], order[at[0] + 1]
        example = (
            f"{rows.whose(first)}: {count(int(length[first]), 'expert')} in call {rows.op[first]}, "
            f"{length[second]} in call {rows.op[second]}"
        )
        notes.add("expert_count_changes", "warning", len(at), example=example)


def _comparable(
    rows: LoadRows,
    members: Array,
    offset: Array,
    lengths: Array,
    uneven: str | None,
    notes: Problems,
) -> bool:
    known = offset[members] >= 0
    if known.all():
        return True
    several = len(np.unique(np.where(rows.rank < 0, rows.source.code + 2**32, rows.rank)[members]))
    if several < 2:
        return True
    api = rows.api.code[members]
    local = [at for at, name in enumerate(rows.api.names) if name.startswith(_LOCAL_API)]
    if known.any():
        why = "only of some ranks it is known which experts they hold"
    elif len(lengths) > 1:
        why = f"the lists have {_numbers(lengths)} experts"
    elif np.isin(api, local).any():
        why = "MindSpeed records the experts of each rank"
    elif uneven:
        why = f"{uneven}, as with expert parallelism"
    else:
        return True
    example = (
        f"{rows.whose(members[0])}: heatmap.parser.ep_size is not set, and {why}: "
        "one index is not one expert on all ranks"
    )
    notes.add(EXPERT_IDS_LOCAL, "warning", example=example)
    return False


def _uneven(rows: LoadRows, members: Array, total: Array, structure: Structure) -> str | None:
    """An example of layers with different totals, where most micro-batches have them.

    Only some have where a list was damaged.
    """
    layered = (structure.layer[members] >= 0) & (structure.micro_batch[members] >= 0)
    forward = members[layered & (structure.phase[members] == PHASES.index("forward"))]
    batches = parts(numbered(rows.sequence[forward], structure.micro_batch[forward]))
    several = differing = 0
    example = None
    for batch in batches:
        calls = forward[batch]
        if len(np.unique(structure.layer[calls])) < 2:
            continue
        several += 1
        low, high = calls[total[calls].argmin()], calls[total[calls].argmax()]
        if total[low] != total[high]:
            differing += 1
            example = example or (
                f"in one micro-batch layer {structure.layer[low]} has {total[low]:,} tokens and "
                f"layer {structure.layer[high]} has {total[high]:,}"
            )
    return example if 2 * differing > several else None


def _numbers(values: Array) -> str:
    shown = ", ".join(str(value) for value in values[:4])
    return f"{shown} …" if len(values) > 4 else shown
