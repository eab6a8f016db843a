"""From recorded vectors to tokens per expert, layer by layer, and how evenly they are spread."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from rl_insight.analysis.expert_parallel import ExpertIds, expert_ids
from rl_insight.analysis.expert_structure import Structure, tell_structure
from rl_insight.analysis.layer_balance import balance
from rl_insight.analysis.load_counts import counts
from rl_insight.analysis.load_kind import damaged_sums, decide
from rl_insight.analysis.load_rows import (
    UNKNOWN,
    Array,
    Labels,
    Vectors,
    integers,
    labels,
    load_rows,
    nullable,
    places,
)
from rl_insight.problems import Problems
from rl_insight.schema import (
    EXPERT_BALANCE,
    EXPERT_LOAD,
    LABEL,
    LOAD_KIND_SOURCES,
    LOAD_KINDS,
    PHASES,
)


@dataclass(frozen=True, slots=True)
class StructureOptions:
    """`heatmap.parser.group_list_type`, `heatmap.visualizer.gmm_per_layer` and
    `heatmap.parser.ep_size`."""

    group_list_type: Literal["auto", "counts", "cumsum", "pairs"] = "auto"
    gmm_per_layer: int | Literal["auto"] = 3
    ep_size: int | None = None


def structured(load: pa.Table, options: StructureOptions) -> tuple[pa.Table, pa.Table, Problems]:
    """The final EXPERT_LOAD rows of one step, in their order, its EXPERT_BALANCE, and what was
    decided or doubted on the way.

    `load` holds the merged rows of that step as the cache has them: the files' own vectors. Rows
    that have a layer already (of an inference engine) stay as they are.
    """
    notes = Problems()
    if not load.num_rows:
        return EXPERT_LOAD.empty_table(), EXPERT_BALANCE.empty_table(), notes
    rows = load_rows(load)
    told = _places_in(labels(load["load_kind"]), LOAD_KINDS)
    damaged = damaged_sums(rows, told, options.group_list_type, notes)
    if damaged.any():
        found, evenness, doubts = structured(load.filter(pa.array(~damaged)), options)
        notes.extend(doubts)
        return found, evenness, notes
    kinds = decide(
        rows,
        told,
        _places_in(labels(load["load_kind_from"]), LOAD_KIND_SOURCES),
        options.group_list_type,
        notes,
    )
    tokens = counts(rows, kinds.kind, notes)
    structure = tell_structure(rows, tokens, options.gmm_per_layer, notes)
    complete = rows.layer >= 0
    for found, name in ((structure.sweep, "pass_index"), (structure.micro_batch, "micro_batch")):
        found[complete] = integers(load[name])[complete]
    given = ExpertIds(
        ep_rank=integers(load["ep_rank"]),
        ep_size=integers(load["ep_size"]),
        offset=integers(load["expert_offset"]),
    )
    ids = expert_ids(rows, tokens, structure, given, options.ep_size, notes)
    evenness = balance(rows, tokens, structure, ids, notes)
    columns = {
        **{name: load[name] for name in EXPERT_LOAD.names},
        **_structure_columns(structure),
        "ep_rank": nullable(ids.ep_rank),
        "ep_size": nullable(ids.ep_size),
        "expert_offset": nullable(ids.offset),
        "load_kind": _names(kinds.kind, LOAD_KINDS),
        "load_kind_from": _names(kinds.origin, LOAD_KIND_SOURCES),
    }
    if tokens is not rows.vectors:
        columns["load"] = _lists(tokens, load["load"])
    content = [columns[field.name].cast(field.type) for field in EXPERT_LOAD]
    return pa.table(content, schema=EXPERT_LOAD), evenness, notes


def _structure_columns(structure: Structure) -> dict[str, pa.Array]:
    return {
        "pass_index": nullable(structure.sweep),
        "micro_batch": nullable(structure.micro_batch),
        "phase": _names(structure.phase, PHASES),
        "layer": nullable(structure.layer),
    }


def _places_in(given: Labels, names: tuple[str, ...]) -> Array:
    place = np.array(
        [names.index(name) if name in names else UNKNOWN for name in given.names] + [UNKNOWN]
    )
    return np.asarray(place[given.code])


def _names(code: Array, names: tuple[str, ...]) -> pa.Array:
    place = pa.array(code.astype(np.int32), mask=code < 0)
    return pa.DictionaryArray.from_arrays(place, pa.array(names, pa.string())).cast(LABEL)


def _lists(vectors: Vectors, before: pa.ChunkedArray) -> pa.Array:
    """A list column of `vectors`; null where the column `before` is."""
    values = vectors.values
    end = vectors.start + vectors.length
    if (end[:-1] != vectors.start[1:]).any():
        values = values[places(vectors.start, vectors.length)]
        end = np.cumsum(vectors.length)
    offsets = np.append(end[:1] - vectors.length[:1], end).astype(np.int32)
    mask = before.is_null().combine_chunks() if before.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), mask=mask)
