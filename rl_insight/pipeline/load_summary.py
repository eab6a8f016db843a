"""What the tables of expert load come to, in numbers and in a few lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight import notes
from rl_insight.pipeline import layout
from rl_insight.pipeline.summary_tables import read
from rl_insight.pipeline.terminal import printable
from rl_insight.plain_text import count
from rl_insight.problems import Problem

# The others stand in the tables only.
_SHOWN_NOTES = 6


@dataclass(frozen=True, slots=True)
class Fullest:
    """The layer in which one expert had most, compared with the mean of its layer.

    Of all `ranks` together as in the picture, or, where one index is not one expert on all of them
    or no layer is known, of `rank_id` alone.
    """

    max_over_mean: float
    ranks: int
    argmax: int | None
    layer: int | None
    op_index: int | None
    role: str | None
    rank_id: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """`expert_balance` in numbers; `layers` is 0 where the structure is not known."""

    rows: int
    layers: int
    experts: int
    ranks: int
    steps: int
    fullest: Fullest | None
    notes: tuple[Problem, ...]


def summarise_loads(output: Path) -> LoadSummary:
    """Read `expert_balance` below `output`.

    Raises FileNotFoundError when it is missing, CacheError when it is damaged.
    """
    names = ["step", "role", "rank_id", "micro_batch", "layer", "op_index", "ranks", "experts"]
    names += ["argmax", "max_over_mean"]
    table = read(layout.table(output / layout.TABLES, "expert_balance"), names)
    return LoadSummary(
        rows=table.num_rows,
        layers=pc.count_distinct(table["layer"]).as_py(),
        experts=pc.max(table["experts"]).as_py() or 0,
        ranks=pc.count_distinct(table["rank_id"]).as_py(),
        steps=pc.count_distinct(table["step"]).as_py(),
        fullest=_fullest(table),
        notes=tuple(notes.of(table.schema)),
    )


def load_lines(summary: LoadSummary) -> Iterator[str]:
    """What was drawn of expert load, where it is least even, and what is doubtful about it."""
    if not summary.rows:
        yield "No expert load could be drawn."
        return
    what = [count(summary.layers, "layer")] if summary.layers else []
    what += [count(summary.experts, "expert")]
    what += [count(summary.ranks, "rank")] if summary.ranks else ["ranks unknown"]
    what += [count(summary.steps, "step")] if summary.steps else []
    yield f"Expert load: {', '.join(what)}."
    if summary.fullest is not None:
        yield f"  least even: {_place(summary.fullest)}"
    doubts = [note for note in summary.notes if note.severity != "info"]
    for note in doubts[:_SHOWN_NOTES]:
        told = printable(note.example) if note.example else note.code
        times = f" (and {note.count - 1:,} more such)" if note.count > 1 else ""
        yield f"  {note.severity}: {told}{times}"
    more = len(doubts) - _SHOWN_NOTES
    if more > 0:
        yield f"  and {count(more, 'more note')} in tables/expert_load.parquet"


def _fullest(table: pa.Table) -> Fullest | None:
    known = table.filter(pc.is_valid(table["max_over_mean"]))
    if not known.num_rows:
        return None
    together = pc.and_(pc.is_null(known["rank_id"]), pc.is_null(known["micro_batch"]))
    table = known.filter(together) if pc.any(together).as_py() else known
    ratios = table["max_over_mean"]
    at = pc.index(ratios, pc.max(ratios)).as_py()
    row = table.slice(at, 1).to_pylist()[0]
    return Fullest(**{name: row[name] for name in Fullest.__slots__})


def _place(found: Fullest) -> str:
    where = f"layer{found.layer}" if found.layer is not None else f"op{found.op_index}"
    whose = [printable(found.role)] if found.role is not None else []
    whose += [f"rank {found.rank_id}"] if found.rank_id is not None else []
    whose += [f"{found.ranks:,} ranks"] if found.ranks > 1 else []
    whose += [f"step {found.step}"] if found.step is not None else []
    told = f" ({', '.join(whose)})" if whose else ""
    ratio = f"{found.max_over_mean:.2f} times the mean of its layer"
    return f"expert {found.argmax} in {where}{told} has {ratio}"
