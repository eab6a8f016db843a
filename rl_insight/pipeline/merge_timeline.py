"""The merge of captures: one set of tables, with identity, clock and filters settled."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight import selection, tables
from rl_insight.data import roles
from rl_insight.pipeline.clock_skew import Window
from rl_insight.pipeline.parts import read_all
from rl_insight.pipeline.settle import MergeOptions, Row, settle_lanes
from rl_insight.pipeline.source_rows import source_rows
from rl_insight.schema import SCHEMAS, TIMELINE_TABLES


def merge_timeline(
    folders: Sequence[Path], options: MergeOptions
) -> tuple[dict[str, pa.Table], list[Row]]:
    """The timeline's tables out of the units' cache `folders`, and their rows of `sources`.

    Raises CacheError that names the folder to delete when a unit is incomplete.
    """
    raw = {name: read_all(folders, name) for name in ("sources", *TIMELINE_TABLES)}
    sources = raw["sources"].to_pylist()
    settled = settle_lanes(
        raw["lanes"].to_pylist(),
        {row["source_id"]: row["path"] for row in sources},
        _stage_roles(raw["spans"]),
        options,
        _stages(raw["spans"]),
    )
    lanes = tables.from_rows(SCHEMAS["lanes"], settled.lanes)
    spans = _spans(raw["spans"], lanes, options.filters.roles)
    chosen = options.filters
    merged = {
        "lanes": selection.attach(lanes, chosen.ranks, chosen.steps, chosen.roles),
        "spans": spans,
        "breakdown": _breakdown(raw["breakdown"], spans, lanes),
        "activity": _shifted(raw["activity"], lanes),
        "collectives": _shifted(_within(raw["collectives"], spans), lanes),
        "ops": raw["ops"].filter(pc.is_in(raw["ops"]["span_id"], value_set=spans["span_id"])),
    }
    return merged, source_rows(sources, settled, options)


def _stage_roles(spans: pa.Table) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    own = spans.filter(pc.equal(_plain(spans["kind"]), "stage")).select(["lane_id", "role"])
    for row in own.group_by(["lane_id", "role"]).aggregate([]).to_pylist():
        if row["role"] is not None:
            found[row["lane_id"]].add(row["role"])
    return {lane: frozenset(names) for lane, names in found.items()}


def _stages(spans: pa.Table) -> dict[str, list[Window]]:
    """The stages of each lane, with their raw times."""
    found: dict[str, list[Window]] = defaultdict(list)
    names = ["lane_id", "role", "start_ns", "duration_ns"]
    own = spans.filter(pc.equal(_plain(spans["kind"]), "stage")).select(names)
    for row in own.to_pylist():
        start = row["start_ns"]
        found[row["lane_id"]].append((row["role"], start, start + row["duration_ns"]))
    return found


def _spans(spans: pa.Table, lanes: pa.Table, wanted: frozenset[str] | None) -> pa.Table:
    """`spans` of the remaining `lanes`, on the common clock, with their lane's identity.

    See `schema.SPANS` for whose role a span carries.
    """
    at = pc.index_in(spans["lane_id"], value_set=lanes["lane_id"])
    spans, at = spans.filter(pc.is_valid(at)), pc.drop_null(at)
    lane_role = _plain(lanes["role"]).take(at)
    one_stage = pa.chunked_array(
        [
            pa.array(
                [role is not None and roles.is_stage(role) for role in lanes["role"].to_pylist()],
                pa.bool_(),
            )
        ]
    ).take(at)
    own = _plain(spans["role"])
    role = pc.if_else(one_stage, lane_role, pc.coalesce(own, lane_role))
    columns = {
        **{name: lanes[name].take(at) for name in ("rank_id", "replica", "step", "host")},
        "role": role,
        "name": pc.coalesce(_plain(spans["name"]), role),
        "start_ns": pc.add(spans["start_ns"], lanes["clock_offset_ns"].take(at)),
    }
    result = _replaced(spans, columns)
    return result if wanted is None else result.filter(_chosen(result, lanes, wanted))


def _chosen(spans: pa.Table, lanes: pa.Table, wanted: frozenset[str]) -> pa.ChunkedArray:
    """Which of `spans` the role filter lets pass: by the role of their lane, or by their own."""
    whole = [
        row["lane_id"]
        for row in lanes.select(["lane_id", "role", "replica"]).to_pylist()
        if roles.matches(row["role"], row["replica"], wanted)
    ]
    chosen = pc.is_in(spans["lane_id"], value_set=pa.array(whole, pa.string()))
    others = spans.filter(pc.invert(chosen)).group_by(["role", "replica"]).aggregate([])
    for one in others.to_pylist():
        if roles.matches(one["role"], one["replica"], wanted):
            same = pc.equal(_plain(spans["role"]), one["role"])
            unknown = one["replica"] is None
            replica = spans["replica"]
            near = pc.is_null(replica) if unknown else pc.equal(replica, one["replica"])
            chosen = pc.or_(chosen, pc.fill_null(pc.and_(same, near), False))
    return chosen


def _within(collectives: pa.Table, spans: pa.Table) -> pa.Table:
    """Those of `collectives` whose span is among `spans`, or that lie in none."""
    own = collectives["span_id"]
    return collectives.filter(pc.or_(pc.is_null(own), pc.is_in(own, value_set=spans["span_id"])))


def _breakdown(breakdown: pa.Table, spans: pa.Table, lanes: pa.Table) -> pa.Table:
    at = pc.index_in(breakdown["span_id"], value_set=spans["span_id"])
    breakdown, at = breakdown.filter(pc.is_valid(at)), pc.drop_null(at)
    offset = lanes["clock_offset_ns"].take(
        pc.index_in(breakdown["lane_id"], value_set=lanes["lane_id"])
    )
    columns = {name: spans[name].take(at) for name in ("role", "rank_id", "replica", "step")}
    for name in ("device_start_ns", "device_end_ns"):
        columns[name] = pc.add(breakdown[name], offset)
    return _replaced(breakdown, columns)


def _shifted(table: pa.Table, lanes: pa.Table) -> pa.Table:
    at = pc.index_in(table["lane_id"], value_set=lanes["lane_id"])
    table, at = table.filter(pc.is_valid(at)), pc.drop_null(at)
    start = pc.add(table["start_ns"], lanes["clock_offset_ns"].take(at))
    return _replaced(table, {"start_ns": start})


def _replaced(table: pa.Table, columns: dict[str, pa.ChunkedArray]) -> pa.Table:
    for name, column in columns.items():
        field = table.schema.field(name)
        if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(column.type):
            column = pc.dictionary_encode(column)
        table = table.set_column(table.schema.get_field_index(name), field, column)
    return table


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())
