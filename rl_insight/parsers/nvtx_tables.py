"""A collected nsys capture as tables: one lane for each of its processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from rl_insight import tables
from rl_insight.data.name_facts import INT32
from rl_insight.parsers import lane_tables
from rl_insight.parsers import nvtx_environment as environment
from rl_insight.parsers.annotations import Annotations
from rl_insight.parsers.collectives import count_of
from rl_insight.parsers.device_tables import see
from rl_insight.parsers.lane_tables import LaneRows
from rl_insight.parsers.nvtx_capture import NvtxCapture, Process
from rl_insight.parsers.nvtx_clock import Wall, wall
from rl_insight.parsers.nvtx_names import operator_name
from rl_insight.parsers.nvtx_ranks import Named, Rank, ranks
from rl_insight.parsers.nvtx_stages import names_known, top_level
from rl_insight.parsers.stages import Capture, Span, find_spans
from rl_insight.problems import Problems
from rl_insight.schema import LANES, SCHEMAS
from rl_insight.table_names import TIMELINE_TABLES


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose rows these are, what their path tells, and what decides about the spans."""

    source_id: str
    path_role: str | None
    name: Named
    range_depth: int
    cut_short: bool
    in_part: bool = False


@dataclass(slots=True)
class _Lane:
    process: Process
    annotations: Annotations
    stages: Mapping[str, str]
    is_known: bool
    is_alone: bool = False

    @property
    def has_stages(self) -> bool:
        return self.is_known or bool(self.stages)

    @property
    def extent(self) -> tuple[int, int] | None:
        """From its first to its last range; without ranges, of its device activity."""
        for part in (self.process.ranges, self.process.devices):
            if part is not None and part.extent.bounds is not None:
                return part.extent.bounds
        return None


def build(capture: NvtxCapture, wanted: Wanted) -> dict[str, pa.Table]:
    """All tables of a finished capture.

    Counts in `capture.problems` what had to be left out.
    """
    lanes = _lanes(capture, wanted)
    moment = wall(capture.clock, capture.is_absolute, capture.problems)
    told = ranks(capture.facts, [lane.process.pid for lane in lanes], wanted.name, capture.problems)
    host = _host(capture)
    parts = []
    for number, (lane, rank) in enumerate(zip(lanes, told, strict=True)):
        lane_id = f"{wanted.source_id}-{number}"
        rows = LaneRows(
            lane_id,
            wanted.source_id,
            rank.rank_id,
            host,
            moment.base_ns,
            capture.within,
            wanted.in_part,
        )
        lane.is_alone = len(lanes) == 1
        parts.append(_tables(capture, wanted, moment, lane, rows, rank))
    return {
        name: tables.concat(SCHEMAS[name], (part[name] for part in parts))
        for name in TIMELINE_TABLES
    }


def _lanes(capture: NvtxCapture, wanted: Wanted) -> list[_Lane]:
    """The processes that are drawn: where some have stages or a device, those without are not.

    Such are the helpers of a rank (data loaders, compilers), which are no ranks themselves.
    """
    problems = capture.problems
    lanes = [_lane(capture, process, wanted.path_role, problems) for process in capture.processes()]
    lanes = [lane for lane in lanes if lane.extent is not None]
    if not any(lane.is_known for lane in lanes):
        for lane in lanes:
            lane.stages = top_level(lane.annotations, problems)
    chosen = [lane for lane in lanes if lane.has_stages or lane.process.devices is not None]
    if not chosen:
        return lanes
    problems.add(
        "processes_left_out",
        "info",
        len(lanes) - len(chosen),
        example="a process without a stage and without device activity is no rank",
    )
    return chosen


def _lane(
    capture: NvtxCapture, process: Process, path_role: str | None, problems: Problems
) -> _Lane:
    if process.ranges is None:
        return _Lane(process, Annotations(), {}, False)
    found, unnamed, of_libraries = process.ranges.annotations(
        capture.strings, partial(capture.domain_name, process.pid)
    )
    left_out = process.ranges.left_out + found.left_out
    operators = process.ranges.operators_left_out
    problems.add("unnamed_range", "warning", unnamed, example="its name is not in StringIds")
    problems.add(
        "library_ranges", "info", of_libraries, example="libraries annotate each of their calls"
    )
    problems.add("ranges_left_out", "info", left_out, example="the shortest ones")
    problems.add("operators_left_out", "info", operators, example="the shortest ones")
    return _Lane(process, found, {}, names_known(found, path_role))


def _tables(
    capture: NvtxCapture, wanted: Wanted, moment: Wall, lane: _Lane, rows: LaneRows, rank: Rank
) -> dict[str, pa.Table]:
    spans = _spans(capture, wanted, lane)
    ids = rows.span_ids(spans)
    windows, stage_ids = lane_tables.stages_of(spans, ids)
    result = {name: tables.empty(SCHEMAS[name]) for name in TIMELINE_TABLES}
    result["spans"] = lane_tables.span_table(spans, ids, rows)
    device_id: object = None
    if lane.process.devices is not None:
        device, device_id = lane.process.devices.devices.own(capture.problems)
        seen = see(device, windows, capture.devices.names)
        if device.joined_gap_ns:
            gap = f"gaps below {device.joined_gap_ns} ns count as busy: too many device events"
            capture.problems.add("device_time_joined", "warning", example=gap)
        calls = lane.process.devices.collectives
        capture.problems.add("collectives_left_out", "warning", calls.left_out)
        result |= {
            "breakdown": lane_tables.breakdown_table(seen, windows, stage_ids, rows),
            "activity": lane_tables.activity_table(seen, rows),
            "collectives": lane_tables.collective_table(calls, windows, stage_ids, rows),
            "ops": lane_tables.op_table(seen, stage_ids),
        }
    row = _lane_row(capture, moment, lane, rows, rank, device_id)
    return result | {"lanes": tables.from_rows(LANES, [row])}


def _lane_row(
    capture: NvtxCapture, moment: Wall, lane: _Lane, rows: LaneRows, rank: Rank, device_id: object
) -> dict[str, object]:
    first, last = lane.extent or (0, 0)
    # A capture that says nothing of its own time goes from its first event to its last.
    dated = capture.clock.startTime is not None or capture.clock.utcEpochNs is not None
    begun = min(0, first) if dated and not capture.is_absolute else first
    device = count_of(device_id)
    return {
        "lane_id": rows.lane_id,
        "source_id": rows.source_id,
        "rank_id": rank.rank_id,
        "world_size": rank.world_size,
        "host": rows.host,
        "pid": lane.process.pid,
        "device": device if device is not None and device <= INT32 else None,
        "capture_start_ns": moment.base_ns + begun,
        "capture_end_ns": moment.base_ns + max(capture.end_ns, last),
        "clock": moment.clock,
        "clock_offset_ns": moment.offset_ns,
    }


def _spans(capture: NvtxCapture, wanted: Wanted, lane: _Lane) -> list[Span]:
    if lane.extent is None or lane.extent[1] <= lane.extent[0]:
        return []
    whole = Capture(
        first_ns=lane.extent[0],
        last_ns=lane.extent[1],
        end_ns=capture.cut_ns,
        role=wanted.path_role,
        cut_short=wanted.cut_short,
        in_part=wanted.in_part,
        stages=lane.stages,
    )
    spans = find_spans(lane.annotations, whole, wanted.range_depth, capture.problems)
    for span in spans:
        _polish(span, wanted.name.pid if lane.is_alone else None)
    return spans


def _polish(span: Span, named_pid: int | None) -> None:
    """Call torch's operators by their name alone; the documented `tid` of a stage is the process
    id in the file's name.
    """
    operator = operator_name(span.raw_name) if span.raw_name is not None else None
    if operator is not None:
        span.name = operator
    if span.kind == "stage" and named_pid is not None:
        span.tid = str(named_pid)


def _host(capture: NvtxCapture) -> str | None:
    told = {fact.name: str(fact.value) for fact in capture.facts}
    for name in (environment.HOSTNAME, environment.DISPLAY_NAME):
        if name in told:
            return told[name]
    return None
