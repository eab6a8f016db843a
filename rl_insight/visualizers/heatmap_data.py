"""The tables of expert load as plain data, for the picture and the page alike."""

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from rl_insight import notes, schema, tables
from rl_insight.data import coverage_words
from rl_insight.data.coverage import coverage, recorded_by
from rl_insight.problems import Problem
from rl_insight.visualizers import heatmap_rows, troubles
from rl_insight.visualizers.columns import Columns, read
from rl_insight.visualizers.heatmap_model import (
    UNKNOWN,
    Group,
    Heatmap,
    LayerBalance,
    LoadKind,
    Segment,
    View,
)
from rl_insight.visualizers.heatmap_rows import Calls

_CALLS = (
    *("source_id", "step", "role", "rank_id", "op_index", "pass_index", "micro_batch", "phase"),
    *("layer", "expert_offset", "load_kind", "load_kind_from"),
)
_BALANCE = (
    *("step", "role", "rank_id", "micro_batch", "layer", "op_index", "ranks", "experts", "total"),
    *("argmax", "max_over_mean"),
)


def load(folder: Path, view: View) -> Heatmap:
    """What `view` shows of the Parquet tables in `folder`; a table that is not there has no rows.

    The vectors of expert load are read in small batches, and only those of the view are kept.
    """
    sources = read(
        folder, "sources", schema.SOURCES, (*troubles.COLUMNS, "role", "rank_id", "step")
    )
    table = read(folder, "expert_load", schema.EXPERT_LOAD, _CALLS)
    parsers = sources.strings("parser")
    ours = troubles.heatmap_parsers(sources)
    recorded = _recorded(sources, table, ours)
    # Passes of an inference engine are told apart by the number of the call.
    engine = recorded["sglang"]
    calls, segments = _calls(table, engine)
    chosen = heatmap_rows.choose(calls, view)
    path = folder / "expert_load.parquet"
    rows = heatmap_rows.gather(path, calls, np.flatnonzero(chosen.kept))
    shown = np.unique(rows.segment)
    number = np.zeros(len(segments), dtype=np.int64)
    number[shown] = np.arange(len(shown))
    rows.segment[:] = number[rows.segment]
    balance = _balance(read(folder, "expert_balance", schema.EXPERT_BALANCE, _BALANCE))
    said = _notes(path)
    return Heatmap(
        view=view,
        segments=[segments[position] for position in shown.tolist()],
        rows=rows,
        recorded=len(table),
        of_other_phases=chosen.of_other_phases,
        of_other_batches=chosen.of_other_batches,
        without_loads=int(chosen.kept.sum() - rows.calls.sum()),
        recorders=tuple(name for name, calls_of in recorded.items() if calls_of.any()),
        kinds=_kinds(table.where(chosen.kept)),
        balance=balance,
        notes=said,
        troubles=troubles.listed(sources, lambda parser: parser in ours),
        sources=sum(parser in ours for parser in parsers),
        ids_local=_ids_local(segments, balance, said),
        missing=_missing(sources, ours),
    )


def _missing(sources: Columns, ours: Collection[str]) -> tuple[str, ...]:
    """What is missing among the inputs; those that a filter left out are not."""
    rows = [row for row in sources.rows() if row["parser"] in ours]
    return tuple(coverage_words.sentences(coverage(recorded_by((), rows))))


def _recorded(sources: Columns, table: Columns, ours: Collection[str]) -> dict[str, np.ndarray]:
    """The calls in `table` that each of our parsers read, as a mask; gmm's are all the rest."""
    of_parser: dict[str, list[str | None]] = {name: [] for name in sorted(ours)}
    for source, parser in zip(sources.strings("source_id"), sources.strings("parser"), strict=True):
        if parser in of_parser:
            of_parser[parser].append(source)
    del of_parser["gmm"]
    others = {name: table.among("source_id", ids) for name, ids in of_parser.items()}
    rest = ~np.logical_or.reduce(list(others.values()))
    return {"gmm": rest, **others}


def _calls(table: Columns, engine: np.ndarray) -> tuple[Calls, list[Segment]]:
    op_index = table.integers("op_index", UNKNOWN)
    source, _ = table.coded("source_id")
    passes = table.integers("pass_index", UNKNOWN)
    passes = np.where(passes == UNKNOWN, np.where(engine, op_index, 0), passes)
    if engine.any():
        # Each file of an engine may number its passes from 0.
        of_engine = np.stack([source[engine], passes[engine]])
        passes[engine] = np.unique(of_engine, axis=1, return_inverse=True)[1].reshape(-1)
    role, roles = table.coded("role")
    phase, phases = table.coded("phase")
    known = np.array([_place(name) for name in phases] + [UNKNOWN], dtype=np.int64)
    keys = np.stack([table.integers("step", UNKNOWN), role, table.integers("rank_id", UNKNOWN)])
    same_rank = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)
    recording = _recordings(same_rank, np.where(engine, -1, source))
    unique, segment = np.unique(np.vstack([keys, recording]), axis=1, return_inverse=True)
    segments = [
        Segment(
            step=None if step == UNKNOWN else step,
            role=roles[code] if code < len(roles) else None,
            rank_id=None if rank == UNKNOWN else rank,
            recording=number,
        )
        for step, code, rank, number in unique.T.tolist()
    ]
    return Calls(
        segment=segment.reshape(-1).astype(np.int64),
        micro_batch=table.integers("micro_batch", UNKNOWN),
        phase=known[phase],
        layer=table.integers("layer", UNKNOWN),
        op_index=op_index,
        sweep=passes,
        offset=table.integers("expert_offset", UNKNOWN),
    ), segments


def _recordings(same_rank: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Per row the number of its source among those of one rank, as they come in the table; 0 where
    there is no other."""
    if not len(source):
        return np.zeros(0, dtype=np.int64)
    key = same_rank * (int(source.max()) + 2) + source + 1
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    rank = same_rank[first]
    order = np.lexsort([first, rank])
    times = np.bincount(rank)
    begin = (np.cumsum(times) - times)[rank[order]]
    number = np.zeros(len(order), dtype=np.int64)
    number[order] = np.where(times[rank[order]] > 1, np.arange(len(order)) - begin + 1, 0)
    return np.asarray(number[place.reshape(-1)])


def _place(phase: str) -> int:
    return schema.PHASES.index(phase) if phase in schema.PHASES else UNKNOWN


def _kinds(table: Columns) -> list[LoadKind]:
    kind, kinds = table.coded("load_kind")
    told, sources = table.coded("load_kind_from")
    pairs = Counter(zip(kind.tolist(), told.tolist(), strict=True))
    return [
        LoadKind(_name(kinds, first), _name(sources, second), rows)
        for (first, second), rows in pairs.most_common()
    ]


def _name(names: Sequence[str], code: int) -> str | None:
    return names[code] if code < len(names) else None


def _balance(table: Columns) -> list[LayerBalance]:
    """The rows over all ranks and micro-batches, by step, role and layer."""
    over_all = table.where(~table.present("rank_id") & ~table.present("micro_batch"))
    found: dict[tuple[object, ...], LayerBalance] = {}
    columns = zip(
        over_all.optional("step"),
        over_all.strings("role"),
        over_all.optional("layer"),
        over_all.optional("op_index"),
        over_all.integers("ranks", 0).tolist(),
        over_all.integers("experts", 0).tolist(),
        over_all.integers("total", 0).tolist(),
        over_all.optional("argmax"),
        over_all.decimals("max_over_mean"),
        strict=True,
    )
    for row in columns:
        balance = LayerBalance(*row)
        key = (balance.step, balance.role, balance.layer, balance.op_index)
        # A file of unknown rank has a row that looks alike: the one over all has all tokens.
        known = found.get(key)
        if known is None or (balance.total, balance.ranks) > (known.total, known.ranks):
            found[key] = balance
    return list(found.values())


def _ids_local(
    segments: Sequence[Segment], balance: Sequence[LayerBalance], said: Sequence[Problem]
) -> frozenset[Group]:
    """Where the balance does not add up ranks: a note says that there is such a place."""
    if all(note.code != notes.EXPERT_IDS_LOCAL for note in said):
        return frozenset()
    added_up = {(row.step, row.role) for row in balance if row.ranks > 1}
    return frozenset((segment.step, segment.role) for segment in segments) - added_up


def _notes(path: Path) -> list[Problem]:
    if not path.exists():
        return []
    with tables.opened(path) as file:
        # A table that was written bit by bit has them beside its schema only.
        return notes.of(pa.schema([], metadata=file.metadata.metadata))
