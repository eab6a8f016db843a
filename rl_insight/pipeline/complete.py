"""Completing the rows of parsed tables by what was settled about their lanes."""

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight.data import roles

_IDENTITY = ("rank_id", "replica", "step", "host")


class Lanes:
    """The settled lanes that stay, and which of them and of their spans the role filter passes.

    `lanes` has the schema of `lanes`; `wanted` are the roles that were asked for, None for all.
    """

    def __init__(self, lanes: pa.Table, wanted: frozenset[str] | None) -> None:
        self.ids = lanes["lane_id"]
        self.offset = lanes["clock_offset_ns"]
        self.identity = {name: lanes[name] for name in _IDENTITY}
        self.role = _plain(lanes["role"])
        self.wanted = wanted
        known = self.role.to_pylist()
        stages = [role for role in dict.fromkeys(known) if role and roles.is_stage(role)]
        self.one_stage = pc.is_in(self.role, value_set=_texts(stages))
        if wanted is not None:
            ids, replicas = self.ids.to_pylist(), lanes["replica"].to_pylist()
            self.chosen = _texts(
                lane
                for lane, role, replica in zip(ids, known, replicas, strict=True)
                if roles.matches(role, replica, wanted)
            )

    def positions(self, table: pa.Table) -> tuple[pa.Table, pa.ChunkedArray]:
        """The rows of `table` whose lane stays, and the position of the lane of each."""
        at = pc.index_in(table["lane_id"], value_set=self.ids)
        return table.filter(pc.is_valid(at)), pc.drop_null(at)


def completed(raw: Mapping[str, pa.Table], lanes: Lanes) -> dict[str, pa.Table]:
    """The `raw` tables of some units with identity and the common clock.

    Rows of other lanes, and of spans that the role filter leaves out, are dropped. The tables hold
    all spans that their other rows belong to.
    """
    spans = _spans(raw["spans"], lanes)
    return {
        "spans": spans,
        "breakdown": _breakdown(raw["breakdown"], spans, lanes),
        "activity": _shifted(raw["activity"], lanes),
        "collectives": _shifted(_within(raw["collectives"], spans), lanes),
        "ops": raw["ops"].filter(pc.is_in(raw["ops"]["span_id"], value_set=spans["span_id"])),
    }


def _spans(spans: pa.Table, lanes: Lanes) -> pa.Table:
    """`spans` of the remaining `lanes`, on the common clock, with their lane's identity.

    See `schema.SPANS` for whose role a span carries.
    """
    spans, at = lanes.positions(spans)
    lane_role = lanes.role.take(at)
    own = _plain(spans["role"])
    role = pc.if_else(lanes.one_stage.take(at), lane_role, pc.coalesce(own, lane_role))
    columns = {
        **{name: column.take(at) for name, column in lanes.identity.items()},
        "role": role,
        "name": pc.coalesce(_plain(spans["name"]), role),
        "start_ns": pc.add(spans["start_ns"], lanes.offset.take(at)),
    }
    result = _replaced(spans, columns)
    return result if lanes.wanted is None else result.filter(_chosen(result, lanes, lanes.wanted))


def _chosen(spans: pa.Table, lanes: Lanes, wanted: frozenset[str]) -> pa.ChunkedArray:
    """Which of `spans` the role filter lets pass: by the role of their lane, or by their own."""
    chosen = pc.is_in(spans["lane_id"], value_set=lanes.chosen)
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


def _breakdown(breakdown: pa.Table, spans: pa.Table, lanes: Lanes) -> pa.Table:
    at = pc.index_in(breakdown["span_id"], value_set=spans["span_id"])
    breakdown, at = breakdown.filter(pc.is_valid(at)), pc.drop_null(at)
    offset = lanes.offset.take(pc.index_in(breakdown["lane_id"], value_set=lanes.ids))
    columns = {name: spans[name].take(at) for name in ("role", "rank_id", "replica", "step")}
    for name in ("device_start_ns", "device_end_ns"):
        columns[name] = pc.add(breakdown[name], offset)
    return _replaced(breakdown, columns)


def _shifted(table: pa.Table, lanes: Lanes) -> pa.Table:
    table, at = lanes.positions(table)
    return _replaced(table, {"start_ns": pc.add(table["start_ns"], lanes.offset.take(at))})


def _replaced(table: pa.Table, columns: dict[str, pa.ChunkedArray]) -> pa.Table:
    for name, column in columns.items():
        field = table.schema.field(name)
        if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(column.type):
            column = pc.dictionary_encode(column)
        table = table.set_column(table.schema.get_field_index(name), field, column)
    return table


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())


def _texts(texts: Iterable[str]) -> pa.Array:
    return pa.array(list(texts), pa.string())
