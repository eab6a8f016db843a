"""The merge of captures: one set of tables, with identity, clock and filters settled.

It goes over the units twice. First only for what settles them: sources, lanes, and when the stages
of each lane were. Then for all their rows, some units at a time, so that memory does not grow with
the number of units. The rows of a table are in the order of their units (`parts.in_order`), and
within a unit as its parse job left them: the same units give the same files, to the byte.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight import selection, tables
from rl_insight.pipeline.clock_skew import Window
from rl_insight.pipeline.complete import Lanes, completed
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.parts import in_order, read_each, read_joined, read_unit_table
from rl_insight.pipeline.settle import Row, settle_lanes
from rl_insight.pipeline.source_rows import source_rows
from rl_insight.schema import SCHEMAS
from rl_insight.table_names import TIMELINE_TABLES
from rl_insight.table_writer import TableWriter

# Units with so many rows in one table are completed together: calls of Arrow cost more than rows.
_ROWS = 32_768
_OF_STAGES = ("lane_id", "kind", "role", "start_ns", "duration_ns")
_STAGES = pa.schema([SCHEMAS["spans"].field(name) for name in _OF_STAGES])


def merge_timeline(
    folders: Iterable[Path], options: MergeOptions, writers: Mapping[str, TableWriter]
) -> list[Row]:
    """Join the units' cache `folders` into the timeline's tables; gives their rows of `sources`.

    `writers` has one for each of `TIMELINE_TABLES`.
    Raises CacheError that names the folder to delete when a unit is incomplete.
    """
    folders = in_order(folders)
    told = list(read_each(folders, _told))
    sources = tables.concat(SCHEMAS["sources"], (one[0] for one in told)).to_pylist()
    stages = tables.concat(_STAGES, (one[2] for one in told))
    settled = settle_lanes(
        tables.concat(SCHEMAS["lanes"], (one[1] for one in told)).to_pylist(),
        {row["source_id"]: row["path"] for row in sources},
        _stage_roles(stages),
        options,
        _stages(stages),
    )
    lanes = tables.from_rows(SCHEMAS["lanes"], settled.lanes)
    chosen = options.filters
    writers["lanes"].add(selection.attach(lanes, chosen.ranks, chosen.steps, chosen.roles))
    kept = set(lanes["lane_id"].to_pylist())
    own = [
        folder
        for folder, one in zip(folders, told, strict=True)
        if not kept.isdisjoint(one[1]["lane_id"].to_pylist())
    ]
    names = [name for name in TIMELINE_TABLES if name != "lanes"]
    settled_lanes = Lanes(lanes, chosen.roles)
    for raw in read_joined(own, names, _ROWS):
        for name, table in completed(raw, settled_lanes).items():
            writers[name].add(table)
    return source_rows(sources, settled, options)


def _told(folder: Path) -> tuple[pa.Table, pa.Table, pa.Table]:
    """What of a unit settles whose its captures are: sources, lanes, and its stages' spans."""
    spans = read_unit_table(folder, "spans", _OF_STAGES)
    if "kind" in spans.schema.names:
        spans = spans.filter(pc.equal(spans["kind"].cast(pa.string()), "stage"))
    else:
        spans = tables.empty(_STAGES)
    return read_unit_table(folder, "sources"), read_unit_table(folder, "lanes"), spans


def _stage_roles(stages: pa.Table) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for row in stages.group_by(["lane_id", "role"]).aggregate([]).to_pylist():
        if row["role"] is not None:
            found[row["lane_id"]].add(row["role"])
    return {lane: frozenset(names) for lane, names in found.items()}


def _stages(stages: pa.Table) -> dict[str, list[Window]]:
    """The stages of each lane, with their raw times."""
    found: dict[str, list[Window]] = defaultdict(list)
    ends = pc.add(stages["start_ns"], stages["duration_ns"])
    columns = (stages["lane_id"], stages["role"], stages["start_ns"], ends)
    for lane, *window in zip(*(column.to_pylist() for column in columns), strict=True):
        found[lane].append((window[0], window[1], window[2]))
    return found
