"""The rows of the balance table: which vectors each is worked out from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rl_insight.analysis.expert_balance import balance_table, measure
from rl_insight.analysis.expert_parallel import ExpertIds
from rl_insight.analysis.expert_structure import Structure
from rl_insight.analysis.load_rows import (
    UNKNOWN,
    Array,
    LoadRows,
    Vectors,
    nullable,
    numbered,
    parts,
    places,
)
from rl_insight.problems import Problems
from rl_insight.schema import LABEL

# More tokens for one expert in one call than any machine holds; their sums still fit into int64.
_MOST_TOKENS = 1 << 40
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class _Line:
    """One row to be: the tokens of the experts from `offset` on, or of the experts `ids`."""

    row: int
    tokens: Array
    offset: int
    ids: Array | None = None


def balance(
    rows: LoadRows, counts: Vectors, structure: Structure, ids: ExpertIds, notes: Problems
) -> pa.Table:
    """EXPERT_BALANCE of one step.

    A rank, micro-batch and layer is worked out from one of its equal forward calls, or, where none
    was recorded, from one on the way back. Passes of an inference engine, which have no
    micro-batch, are added up. Calls without a layer stand for themselves. Over all ranks and
    micro-batches the tokens are added up by expert, where one index is one expert on all ranks.
    """
    usable = (counts.length > 0) & _plausible(rows, counts, notes)
    layered = usable & (structure.layer >= 0)
    layered &= ~_of_other_apis(rows, layered, notes)
    chosen, passes = _representatives(rows, structure, layered)
    alone = np.flatnonzero(usable & (structure.layer < 0))
    # Without a rank they are the row over all ranks and nothing else.
    of_ranks = [members for members in passes if rows.rank[members[0]] >= 0]
    summed = [_added_up(counts, ids.offset, members) for members in of_ranks]
    overall, ranks = _over_ranks(rows, counts, structure, ids, chosen, passes)
    _note_copies(rows, notes)

    direct = np.concatenate([chosen, alone])
    place = (rows.op, structure.layer, structure.micro_batch, rows.source.code, rows.rank)
    direct = direct[np.lexsort([key[direct] for key in (*place, rows.role.code)])]
    whole = Vectors(counts.values, counts.start[direct], counts.length[direct])
    return pa.concat_tables(
        [
            balance_table(_rank_keys(rows, structure, direct), measure(whole, ids.offset[direct])),
            _table(_rank_keys(rows, structure, _rows_of(summed)), summed),
            _table(_overall_keys(rows, structure, _rows_of(overall), ranks), overall),
        ]
    ).unify_dictionaries()


def _plausible(rows: LoadRows, counts: Vectors, notes: Problems) -> Array:
    wrong = np.zeros(len(counts), dtype=bool)
    for piece in counts.pieces():
        odd = (piece.values < 0) | (piece.values > _MOST_TOKENS)
        if odd.any():
            wrong[piece.rows] = piece.sums(odd) > 0
    at = np.flatnonzero(wrong)
    if len(at):
        vector = counts.of(at[0])
        value = vector[(vector < 0) | (vector > _MOST_TOKENS)][0]
        example = f"{rows.whose(at[0])} call {rows.op[at[0]]}: {value} tokens for an expert"
        notes.add("load_implausible", "warning", len(at), example=example)
    return ~wrong


def _of_other_apis(rows: LoadRows, layered: Array, notes: Problems) -> Array:
    """Rows of the lesser APIs of a role: a wrapper and what it wraps record the same tokens."""
    other = np.zeros(len(rows), dtype=bool)
    for members in parts(rows.role.code):
        mine = members[layered[members]]
        apis, times = np.unique(rows.api.code[mine], return_counts=True)
        if len(apis) < 2:
            continue
        kept = apis[times.argmax()]
        left = mine[rows.api.code[mine] != kept]
        other[left] = True
        example = (
            f"{rows.role.name(int(rows.role.code[left[0]]))}: the balance is that of "
            f"{rows.api.name(int(kept))}, not of {rows.api.name(int(rows.api.code[left[0]]))}"
        )
        notes.add("several_apis", "info", len(left), example=example)
    return other


def _representatives(
    rows: LoadRows, structure: Structure, layered: Array
) -> tuple[Array, list[Array]]:
    """One row per sequence, micro-batch and layer; and the groups of rows that are passes."""
    at = np.flatnonzero(layered)
    is_pass = rows.layer[at] >= 0
    trained, engine = at[~is_pass], at[is_pass]
    phase = np.where(structure.phase == UNKNOWN, np.iinfo(np.int64).max, structure.phase)
    order = trained[np.lexsort((rows.op[trained], phase[trained]))]
    key = numbered(rows.sequence[order], structure.micro_batch[order], structure.layer[order])
    _, first = np.unique(key, return_index=True)
    key = numbered(rows.sequence[engine], structure.micro_batch[engine], structure.layer[engine])
    return order[first], [engine[members] for members in parts(key)]


def _over_ranks(
    rows: LoadRows,
    counts: Vectors,
    structure: Structure,
    ids: ExpertIds,
    chosen: Array,
    passes: Sequence[Array],
) -> tuple[list[_Line], list[int]]:
    at = np.concatenate([chosen, *passes]) if passes else chosen
    at = at[~np.isin(rows.role.code[at], list(ids.not_comparable))]
    owner = np.where(rows.rank < 0, rows.source.code + 2**32, rows.rank)
    lines, ranks = [], []
    for members in parts(numbered(rows.role.code[at], structure.layer[at])):
        lines.append(_added_up(counts, ids.offset, at[members]))
        ranks.append(len(np.unique(owner[at[members]])))
    return lines, ranks


def _added_up(counts: Vectors, offset: Array, members: Array) -> _Line:
    """The sum of vectors, by expert; as long as the experts that any of them has, however far
    apart their ids are."""
    first, length = np.maximum(offset[members], 0), counts.length[members]
    alike = parts(numbered(first, length))
    alike.sort(key=lambda part: int(first[part[0]]))
    leading = np.array([part[0] for part in alike])
    low, high = first[leading], np.maximum.accumulate((first + length)[leading])
    opens = np.append(True, low[1:] > high[:-1])
    begin, end = low[opens], high[np.append(np.flatnonzero(opens)[1:] - 1, -1)]
    before = np.cumsum(end - begin) - (end - begin)
    place = low + (before - begin)[np.cumsum(opens) - 1]
    tokens = np.zeros(int((end - begin).sum()), dtype=np.int64)
    for part, at in zip(alike, place.tolist(), strict=True):
        experts = int(length[part[0]])
        each = max(1, _BLOCK // experts)
        for start in range(0, len(part), each):
            block = counts.block(members[part[start : start + each]], experts)
            tokens[at : at + experts] += block.sum(axis=0)
    row = int(members[0])
    if len(begin) == 1:
        return _Line(row, tokens, int(begin[0]))
    # Experts of ranks that were not recorded are not known to be idle.
    return _Line(row, tokens, 0, places(begin, end - begin))


def _table(keys: dict[str, pa.Array], lines: Sequence[_Line]) -> pa.Table:
    length = np.array([len(line.tokens) for line in lines], dtype=np.int64)
    empty = np.zeros(0, dtype=np.int64)
    values = np.concatenate([line.tokens for line in lines]) if lines else empty
    vectors = Vectors(values, np.cumsum(length) - length, length)
    measures = measure(vectors, np.array([line.offset for line in lines], dtype=np.int64))
    for at, line in enumerate(lines):
        if line.ids is not None and measures.where[at] != UNKNOWN:
            measures.where[at] = line.ids[measures.where[at]]
    return balance_table(keys, measures)


def _rows_of(lines: Sequence[_Line]) -> Array:
    return np.array([line.row for line in lines], dtype=np.int64)


def _rank_keys(rows: LoadRows, structure: Structure, at: Array) -> dict[str, pa.Array]:
    layer = structure.layer[at]
    return {
        **_common_keys(rows, at),
        "rank_id": nullable(rows.rank[at]),
        "micro_batch": nullable(structure.micro_batch[at]),
        "layer": nullable(layer),
        "op_index": nullable(np.where(layer < 0, rows.op[at], UNKNOWN)),
        "ranks": pa.array(np.ones(len(at), dtype=np.int64)),
    }


def _overall_keys(
    rows: LoadRows, structure: Structure, at: Array, ranks: list[int]
) -> dict[str, pa.Array]:
    nothing = pa.nulls(len(at), pa.int64())
    return {
        **_common_keys(rows, at),
        "rank_id": nothing,
        "micro_batch": nothing,
        "layer": nullable(structure.layer[at]),
        "op_index": nothing,
        "ranks": pa.array(ranks, pa.int64()),
    }


def _common_keys(rows: LoadRows, at: Array) -> dict[str, pa.Array]:
    role = rows.role.code[at]
    names = pa.array(rows.role.names, pa.string())
    code = pa.array(role.astype(np.int32), mask=role < 0)
    return {
        "step": pa.array([rows.step] * len(at), pa.int64()),
        "role": pa.DictionaryArray.from_arrays(code, names).cast(LABEL),
    }


def _note_copies(rows: LoadRows, notes: Problems) -> None:
    """Two recordings of one rank are both in the sums, and so are those of unknown ranks. Of an
    engine without ranks every file is one more."""
    named = np.flatnonzero((rows.rank >= 0) | (rows.layer == UNKNOWN))
    owner = numbered(rows.role.code[named], rows.rank[named], rows.api.code[named])
    _, first = np.unique(numbered(owner, rows.source.code[named]), return_index=True)
    group, times = np.unique(owner[first], return_counts=True)
    twice = group[times > 1]
    if len(twice):
        row = int(named[np.flatnonzero(owner == twice[0])[0]])
        example = f"{rows.whose(row)}: {times[times > 1][0]} recordings; the balance adds them up"
        notes.add("rank_recorded_twice", "warning", len(twice), example=example)
