"""Which experts a rank's vectors are about.

With expert parallelism a rank holds `len(load)` experts of a layer, and its first one has the
global id ep_rank × len(load). Without any sign of it all ranks are taken to hold all experts, so
that one index means one expert: so it is in verl's FSDP patch.
"""

from dataclasses import dataclass

import numpy as np

from rl_insight.analysis.load_rows import UNKNOWN, Array, LoadRows, parts
from rl_insight.notes import EXPERT_IDS_LOCAL
from rl_insight.plain_text import count
from rl_insight.problems import Problems

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
    rows: LoadRows, length: Array, given: ExpertIds, ep_size: int | None, notes: Problems
) -> ExpertIds:
    """Complete what the dumps say (`given`) from `heatmap.parser.ep_size`.

    `length` is the number of experts of each row. The dump wins over the option. Rows that came
    with a layer are complete.
    """
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
        if not _comparable(rows, filled, offset, lengths, notes):
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
    known = mine & (rows.rank >= 0)
    rank[known] = rows.rank[known] % ep_size


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
    rows: LoadRows, members: Array, offset: Array, lengths: Array, notes: Problems
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
    else:
        return True
    example = (
        f"{rows.whose(members[0])}: {why}, so one index is not one expert on all ranks "
        "(heatmap.parser.ep_size)"
    )
    notes.add(EXPERT_IDS_LOCAL, "warning", example=example)
    return False


def _numbers(values: Array) -> str:
    shown = ", ".join(str(value) for value in values[:4])
    return f"{shown} …" if len(values) > 4 else shown
