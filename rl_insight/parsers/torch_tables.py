"""A collected torch capture as tables."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from rl_insight import tables
from rl_insight.data.name_facts import INT32
from rl_insight.parsers import lane_tables
from rl_insight.parsers.collectives import count_of
from rl_insight.parsers.device_tables import see
from rl_insight.parsers.extent import ABSOLUTE_NS
from rl_insight.parsers.lane_tables import LaneRows
from rl_insight.parsers.stages import Capture, Span, find_spans
from rl_insight.parsers.torch_capture import TorchCapture
from rl_insight.problems import Problems
from rl_insight.schema import LANES


@dataclass(frozen=True, slots=True)
class Told:
    """What the file says of itself besides its events; None is unknown."""

    rank_id: int | None = None
    world_size: int | None = None
    host: str | None = None
    base_ns: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose rows these are, and what decides about the spans."""

    source_id: str
    path_role: str | None
    range_depth: int
    cut_short: bool
    in_part: bool = False

    @property
    def lane_id(self) -> str:
        """A torch capture is one lane."""
        return f"{self.source_id}-0"


def told_by(metadata: Mapping[str, object], problems: Problems) -> Told:
    """What the top-level values of the file say; odd values are counted and unknown."""
    told = metadata.get("distributedInfo")
    info = told if isinstance(told, dict) else {}
    if told is not None and not isinstance(told, dict):
        problems.add("odd_metadata", "warning", 1, example=f"distributedInfo is {told!r}")
    host = metadata.get("host_name")
    return Told(
        rank_id=_number("rank", info, INT32, problems),
        world_size=_number("world_size", info, INT32, problems),
        host=host if isinstance(host, str) and host else None,
        base_ns=_number("baseTimeNanoseconds", metadata, 2**62, problems) or 0,
    )


def build(capture: TorchCapture, told: Told, wanted: Wanted) -> dict[str, pa.Table]:
    """All tables of a finished capture; only its lane where nothing in it has a time.

    Counts in `capture.problems` what had to be left out.
    """
    bounds = capture.bounds
    lane: dict[str, object] = {
        "lane_id": wanted.lane_id,
        "source_id": wanted.source_id,
        "rank_id": told.rank_id,
        "world_size": told.world_size,
        "host": told.host,
        "pid": capture.pid,
        "clock_offset_ns": 0,
    }
    if bounds is None:
        return {"lanes": tables.from_rows(LANES, [lane])}
    base, clock = _base(bounds.first, told.base_ns, capture.problems)
    start, end = bounds.declared or (bounds.first, bounds.last)
    device, device_id = capture.devices.own(capture.problems)
    lane |= {
        "device": _device_number(device_id),
        "capture_start_ns": base + min(start, bounds.first),
        "capture_end_ns": base + max(end, bounds.last),
        "clock": clock,
    }
    within = (bounds.first, bounds.last)
    rows = LaneRows(
        wanted.lane_id, wanted.source_id, told.rank_id, told.host, base, within, wanted.in_part
    )
    spans = _spans(capture, wanted)
    ids = rows.span_ids(spans)
    windows, stage_ids = lane_tables.stages_of(spans, ids)
    seen = see(device, windows, capture.devices.names)
    if device.joined_gap_ns:
        capture.problems.add(
            "device_time_joined",
            "warning",
            example=f"gaps below {device.joined_gap_ns} ns count as busy: too many device events",
        )
    collectives = capture.devices.collectives
    if collectives.left_out:
        capture.problems.add("collectives_left_out", "warning", collectives.left_out)
    return {
        "lanes": tables.from_rows(LANES, [lane]),
        "spans": lane_tables.span_table(spans, ids, rows),
        "breakdown": lane_tables.breakdown_table(seen, windows, stage_ids, rows),
        "activity": lane_tables.activity_table(seen, rows),
        "collectives": lane_tables.collective_table(collectives, windows, stage_ids, rows),
        "ops": lane_tables.op_table(seen, stage_ids),
    }


def _number(
    name: str, values: Mapping[str, object], largest: int, problems: Problems
) -> int | None:
    value = values.get(name)
    number = count_of(value)
    if number is not None and number <= largest:
        return number
    if name in values:
        # The reader makes null of NaN and Infinity.
        said = "null, NaN or infinite" if value is None else repr(value)
        problems.add("odd_metadata", "warning", 1, example=f"{name} is {said}")
    return None


def _base(first_ns: int, base_ns: int, problems: Problems) -> tuple[int, str]:
    """What to add to the file's times, and the clock that gives.

    Wall clock = baseTimeNanoseconds + ts since kineto 8bf50de2 (April 2024); before, ts itself is
    Unix time and the base is missing or 0.
    """
    if first_ns > ABSOLUTE_NS:
        if base_ns:
            problems.add(
                "base_ignored",
                "warning",
                example=f"baseTimeNanoseconds {base_ns} although the times are absolute",
            )
        return 0, "utc"
    return base_ns, "utc" if base_ns else "relative"


def _device_number(device_id: object) -> int | None:
    number = count_of(device_id)
    return number if number is not None and number <= INT32 else None


def _spans(capture: TorchCapture, wanted: Wanted) -> list[Span]:
    bounds = capture.bounds
    if bounds is None or bounds.last <= bounds.first:
        return []
    if capture.annotations.left_out:
        capture.problems.add("ranges_left_out", "info", capture.annotations.left_out)
    whole = Capture(
        first_ns=bounds.first,
        last_ns=bounds.last,
        end_ns=bounds.declared[1] if bounds.declared else None,
        role=wanted.path_role,
        cut_short=wanted.cut_short,
        in_part=wanted.in_part,
    )
    return find_spans(capture.annotations, whole, wanted.range_depth, capture.problems)
