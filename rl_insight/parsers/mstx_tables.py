"""A collected Ascend capture as tables: one lane for each device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from rl_insight import tables
from rl_insight.data import roles
from rl_insight.parsers import lane_tables
from rl_insight.parsers.annotations import Annotations
from rl_insight.parsers.device_tables import Seen, see
from rl_insight.parsers.lane_tables import LaneRows, Windows
from rl_insight.parsers.mstx_capture import AscendDevice, MstxCapture
from rl_insight.parsers.mstx_metadata import Told
from rl_insight.parsers.stages import Capture, Span, find_spans
from rl_insight.schema import LANES, SCHEMAS
from rl_insight.table_names import TIMELINE_TABLES

# Times beyond this (the year 2001 of Unix time) are absolute.
_ABSOLUTE_NS = 10**18
# What the profiler says about its own beginning and end is believed this far from the events.
_BELIEVED_NS = 3_600 * 10**9


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose rows these are, and what decides about the spans."""

    source_id: str
    path_role: str | None
    range_depth: int


def build(capture: MstxCapture, told: Told, wanted: Wanted) -> dict[str, pa.Table]:
    """All tables of a capture; only its lanes where nothing in it has a time.

    Counts in `capture.problems` what had to be left out.
    """
    devices = sorted(capture.devices.items(), key=lambda item: _order(item[0]))
    if not devices:
        devices = [(None, AscendDevice(capture.names))]
    ranks = _ranks(devices, told, capture)
    parts = [
        _lane(capture, told, wanted, index, number, device, ranks[index])
        for index, (number, device) in enumerate(devices)
    ]
    return {
        name: tables.concat(SCHEMAS[name], [part[name] for part in parts if name in part])
        for name in TIMELINE_TABLES
    }


def _lane(
    capture: MstxCapture,
    told: Told,
    wanted: Wanted,
    index: int,
    number: int | None,
    device: AscendDevice,
    rank: int | None,
) -> Mapping[str, pa.Table]:
    rows = LaneRows(
        f"{wanted.source_id}-{index}",
        wanted.source_id,
        rank,
        told.host,
        in_part=capture.in_part,
    )
    lane: dict[str, object] = {
        "lane_id": rows.lane_id,
        "source_id": rows.source_id,
        "role": told.role,
        "rank_id": rank,
        "world_size": told.world_size,
        **{name: getattr(told, name) for name in ("tp", "pp", "dp", "ep", "host", "step")},
        "pid": capture.pid,
        "device": number if number is None or number >= 0 else None,
        "clock_offset_ns": 0,
    }
    if capture.first_ns is None or capture.last_ns is None:
        return {"lanes": tables.from_rows(LANES, [lane])}
    rows = replace(rows, within=(capture.first_ns, capture.last_ns))
    start, end = _session(capture.first_ns, capture.last_ns, capture.session, told)
    lane |= {
        "capture_start_ns": capture.first_ns if start is None else start,
        "capture_end_ns": capture.last_ns if end is None else end,
        "clock": "utc" if capture.first_ns > _ABSOLUTE_NS else "relative",
    }
    spans = _spans(capture, told, wanted, device.window((capture.first_ns, capture.last_ns)), end)
    ids = rows.span_ids(spans)
    windows, stage_ids = lane_tables.stages_of(spans, ids)
    seen = _see(device, windows, capture)
    return {
        "lanes": tables.from_rows(LANES, [lane]),
        "spans": lane_tables.span_table(spans, ids, rows),
        "breakdown": lane_tables.breakdown_table(seen, windows, stage_ids, rows),
        "activity": lane_tables.activity_table(seen, rows),
        "collectives": _collectives(device, windows, stage_ids, rows, capture, told),
        "ops": lane_tables.op_table(seen, stage_ids),
    }


def _order(number: int | None) -> tuple[bool, int]:
    """Devices by their number, the unknown ones last."""
    return (number is None or number < 0, abs(number or 0))


def _ranks(
    devices: Sequence[tuple[int | None, AscendDevice]], told: Told, capture: MstxCapture
) -> list[int | None]:
    """The rank of each device's lane.

    A capture is that of one process, whose rank is told once. Of several devices the busiest is its
    own; the others have a rank only where the database maps them to one.
    """
    rank = told.rank(capture.problems)
    if len(devices) == 1:
        return [rank]
    mapped = [None if number is None else told.devices.get(number) for number, _ in devices]
    own = max(range(len(devices)), key=lambda at: devices[at][1].time.total_ns)
    capture.problems.add(
        "several_devices",
        "warning" if rank is not None else "info",
        len(devices) - 1,
        example=f"{len(devices)} devices in one capture; the rank is that of the busiest, "
        f"device {devices[own][0]}",
    )
    if rank is not None and rank not in mapped:
        mapped[own] = rank
    return mapped


def _session(
    first: int, last: int, session: tuple[int, int] | None, told: Told
) -> tuple[int | None, int | None]:
    """From when to when the profiler says it ran; None where it does not, or cannot be right."""
    start, end = session or (told.started_ns, told.ended_ns)
    if start is not None and not first - _BELIEVED_NS <= start <= first:
        start = None
    if end is not None and not last <= end <= last + _BELIEVED_NS:
        end = None
    return start, end


def _spans(
    capture: MstxCapture, told: Told, wanted: Wanted, window: tuple[int, int], end: int | None
) -> list[Span]:
    role = told.role or wanted.path_role
    whole = Capture(
        first_ns=window[0],
        last_ns=window[1],
        end_ns=end,
        role=None if role is None else roles.canonical(role),
        cut_short=capture.cut_short,
        in_part=capture.in_part,
    )
    ranges = capture.annotations
    if len(capture.device_ranges) and not _has_stage(ranges, whole):
        ranges = capture.device_ranges if _has_stage(capture.device_ranges, whole) else ranges
    if ranges.left_out:
        capture.problems.add("ranges_left_out", "info", ranges.left_out)
    spans = find_spans(ranges, whole, wanted.range_depth, capture.problems)
    # Without a stage the first span is the whole capture, and that may have no length.
    return spans if spans[0].end_ns > spans[0].start_ns else []


def _has_stage(ranges: Annotations, capture: Capture) -> bool:
    known = {roles.canonical(one.name) for one in ranges}
    return not known.isdisjoint(roles.STAGES | {capture.role or ""})


def _see(device: AscendDevice, windows: Windows, capture: MstxCapture) -> Seen:
    """What the device did in the stages: when, by its analysis where it has one; what, by tasks."""
    seen = see(device.time, windows, capture.names)
    if device.is_analysed and device.tasks:
        seen = replace(seen, ops=see(device.tasks, windows, capture.names).ops)
    gap = max(device.time.joined_gap_ns, device.tasks.joined_gap_ns)
    if gap:
        capture.problems.add(
            "device_time_joined",
            "warning",
            example=f"gaps below {gap} ns count as busy: too many device events",
        )
    return seen


def _collectives(
    device: AscendDevice,
    windows: Windows,
    stage_ids: Sequence[str],
    rows: LaneRows,
    capture: MstxCapture,
    told: Told,
) -> pa.Table:
    def group(label: object) -> str | None:
        return told.group(capture.group(None if label is None else str(label)))

    capture.problems.add(
        "collectives_left_out", "warning", sum(one.left_out for one in device.calls)
    )
    return tables.concat(
        SCHEMAS["collectives"],
        [
            lane_tables.collective_table(one, windows, stage_ids, rows, group)
            for one in device.calls
        ],
    )
