"""What the merge of captures does with some units at a time, whichever process does it.

A batch is a question that carries all that its answer depends on, so that it does not matter who
answers it, nor what else that process was asked.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight import tables
from rl_insight.pipeline import layout
from rl_insight.pipeline.complete import Lanes, completed
from rl_insight.pipeline.unit_tables import Unit, read_filled
from rl_insight.schema import SCHEMAS
from rl_insight.table_names import TIMELINE_TABLES

# Units with so many bytes on disk are joined and completed together: some 30,000 spans with what
# belongs to them. Calls of Arrow cost more than rows, and memory does not grow with the units.
BATCH_BYTES = 2_000_000
# A unit costs something however small it is, and two processes shall have equal shares.
BATCH_UNITS = 64

STAGES = "stages"
COUNTS = "counts"
OF_ROWS = tuple(name for name in TIMELINE_TABLES if name != "lanes")
_OF_STAGES = ("lane_id", "kind", "role", "start_ns", "duration_ns")

# What is told of units before their rows are read.
TOLD: dict[str, pa.Schema] = {
    "sources": SCHEMAS["sources"],
    "lanes": SCHEMAS["lanes"],
    STAGES: pa.schema([SCHEMAS["spans"].field(name) for name in _OF_STAGES]),
    COUNTS: pa.schema([("lanes", pa.int64())]),
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Some units, and the settled `lanes` of theirs that stay; None where only those are sought.

    `lanes` has the schema of `lanes`; `wanted` are the roles that were asked for, None for all.
    """

    units: Sequence[Unit]
    lanes: pa.Table | None = None
    wanted: frozenset[str] | None = None


def batches(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """`units` in their order, so many at a time as are worked on together.

    It depends on nothing but them and their files: the same units give the same batches.
    """
    held: list[Unit] = []
    size = 0
    for unit in units:
        held.append(unit)
        size += _bytes_of(unit)
        if size >= BATCH_BYTES or len(held) >= BATCH_UNITS:
            yield held
            held, size = [], 0
    if held:
        yield held


def answer(batch: Batch) -> dict[str, pa.Table]:
    """Without lanes what settles those of the batch, with them all its rows, completed.

    The former are the tables of TOLD: `sources`, `lanes`, the spans that are stages, and how many
    lanes each unit has. The latter are the tables OF_ROWS.
    Raises CacheError that names the folder to delete when a unit is incomplete.
    """
    if batch.lanes is None:
        return _told(batch.units)
    parts: dict[str, list[pa.Table]] = {name: [] for name in OF_ROWS}
    for unit in batch.units:
        for name in OF_ROWS:
            parts[name].append(read_filled(unit, name))
    raw = {name: tables.concat(SCHEMAS[name], found) for name, found in parts.items()}
    return completed(raw, Lanes(batch.lanes, batch.wanted))


def _told(units: Sequence[Unit]) -> dict[str, pa.Table]:
    sources, lanes, spans = [], [], []
    for unit in units:
        spans.append(read_filled(unit, "spans", _OF_STAGES))
        sources.append(read_filled(unit, "sources"))
        lanes.append(read_filled(unit, "lanes"))
    counts = tables.table(TOLD[COUNTS], {"lanes": [one.num_rows for one in lanes]})
    found = {"sources": sources, "lanes": lanes, STAGES: [_stages(spans)], COUNTS: [counts]}
    return {name: tables.concat(schema, found[name]) for name, schema in TOLD.items()}


def _stages(parts: Sequence[pa.Table]) -> pa.Table:
    filled = [part for part in parts if part.num_rows]
    spans = pa.concat_tables(filled or parts[:1], promote_options="default")
    # What holds nothing is no column of a part, nor is any where there is no row.
    if "kind" not in spans.schema.names:
        return tables.empty(TOLD[STAGES])
    return spans.filter(pc.equal(spans["kind"].cast(pa.string()), "stage"))


def _bytes_of(unit: Unit) -> int:
    size = 0
    for name in OF_ROWS:
        if name in unit.filled:
            # Whoever reads it says what is wrong with it.
            with contextlib.suppress(OSError):
                size += layout.table(unit.folder, name).stat().st_size
    return size
