"""A collected torch capture as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rl_insight import tables
from rl_insight.intervals import IntArray
from rl_insight.parsers.collectives import count_of
from rl_insight.parsers.device_tables import Seen, see
from rl_insight.parsers.stages import Capture, Span, find_spans
from rl_insight.parsers.torch_capture import TorchCapture
from rl_insight.problems import Problems
from rl_insight.schema import ACTIVITY, BREAKDOWN, COLLECTIVES, LANES, OPS, SPANS

# Times beyond this (the year 2001 of Unix time) are absolute; a base starts a span of 91 days.
_ABSOLUTE_NS = 10**18
_LARGEST_INT32 = 2**31 - 1


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

    @property
    def lane_id(self) -> str:
        """A torch capture is one lane."""
        return f"{self.source_id}-0"


def told_by(metadata: Mapping[str, object], problems: Problems) -> Told:
    """What the top-level values of the file say; odd values are counted and unknown."""
    info = metadata.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    host = metadata.get("host_name")
    base = metadata.get("baseTimeNanoseconds")
    return Told(
        rank_id=_number("rank", info.get("rank"), _LARGEST_INT32, problems),
        world_size=_number("world_size", info.get("world_size"), _LARGEST_INT32, problems),
        host=host if isinstance(host, str) and host else None,
        base_ns=_number("baseTimeNanoseconds", base, 2**62, problems) or 0,
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
    spans = _spans(capture, wanted)
    ids = [f"{wanted.lane_id}-{index}" for index in range(len(spans))]
    stages = [index for index, span in enumerate(spans) if span.kind == "stage"]
    windows = [(spans[index].start_ns, spans[index].end_ns) for index in stages]
    seen = see(device, windows, capture.devices.names)
    stage_ids = [ids[index] for index in stages]
    if device.joined_gap_ns:
        capture.problems.add(
            "device_time_joined",
            "warning",
            example=f"gaps below {device.joined_gap_ns} ns count as busy: too many device events",
        )
    return {
        "lanes": tables.from_rows(LANES, [lane]),
        "spans": _span_table(spans, ids, base, told, wanted),
        "breakdown": _breakdown_table(seen, stage_ids, base, told, wanted),
        "activity": _activity_table(seen, base, wanted),
        "collectives": _collective_table(capture, windows, stage_ids, base, wanted),
        "ops": _op_table(seen, stage_ids),
    }


def _number(name: str, value: object, largest: int, problems: Problems) -> int | None:
    number = count_of(value)
    if number is not None and number <= largest:
        return number
    if value is not None:
        problems.add("odd_metadata", "warning", 1, example=f"{name} is {value!r}")
    return None


def _base(first_ns: int, base_ns: int, problems: Problems) -> tuple[int, str]:
    """What to add to the file's times, and the clock that gives.

    Wall clock = baseTimeNanoseconds + ts since kineto 8bf50de2 (April 2024); before, ts itself is
    Unix time and the base is missing or 0.
    """
    if first_ns > _ABSOLUTE_NS:
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
    return number if number is not None and number <= _LARGEST_INT32 else None


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
    )
    return find_spans(capture.annotations, whole, wanted.range_depth, capture.problems)


def _span_table(
    spans: Sequence[Span], ids: Sequence[str], base: int, told: Told, wanted: Wanted
) -> pa.Table:
    count = len(spans)
    return tables.table(
        SPANS,
        {
            "span_id": ids,
            "parent_id": [None if span.parent is None else ids[span.parent] for span in spans],
            "lane_id": [wanted.lane_id] * count,
            "source_id": [wanted.source_id] * count,
            "role": [span.role for span in spans],
            "rank_id": [told.rank_id] * count,
            "host": [told.host] * count,
            "name": [span.name for span in spans],
            "raw_name": [span.raw_name for span in spans],
            "domain": [span.domain for span in spans],
            "kind": [span.kind for span in spans],
            "depth": [span.depth for span in spans],
            "mini_batch": [span.mini_batch for span in spans],
            "micro_batch": [span.micro_batch for span in spans],
            "start_ns": [base + span.start_ns for span in spans],
            "duration_ns": [span.end_ns - span.start_ns for span in spans],
            "truncated": [span.truncated for span in spans],
            "tid": [span.tid for span in spans],
        },
    )


def _breakdown_table(
    seen: Seen, stage_ids: Sequence[str], base: int, told: Told, wanted: Wanted
) -> pa.Table:
    rows = [
        {
            "span_id": span_id,
            "lane_id": wanted.lane_id,
            "rank_id": told.rank_id,
            "window_ns": one.window_ns,
            "device_start_ns": base + (one.device_start_ns or 0),
            "device_end_ns": base + (one.device_end_ns or 0),
            "computing_ns": one.computing_ns,
            "communication_ns": one.communication_ns,
            "overlapped_ns": one.overlapped_ns,
            "memory_ns": one.memory_ns,
            "free_ns": one.free_ns,
        }
        for span_id, one in zip(stage_ids, seen.breakdowns, strict=True)
        if one is not None
    ]
    return tables.from_rows(BREAKDOWN, rows)


def _activity_table(seen: Seen, base: int, wanted: Wanted) -> pa.Table:
    parts = list(seen.activity.items())
    lengths = [len(intervals) for _, (intervals, _) in parts]
    nothing: IntArray = np.empty(0, np.int64)
    starts = [nothing, *(intervals.starts for _, (intervals, _) in parts)]
    ends = [nothing, *(intervals.ends for _, (intervals, _) in parts)]
    return tables.table(
        ACTIVITY,
        {
            "lane_id": [wanted.lane_id] * sum(lengths),
            "category": [name for name, (intervals, _) in parts for _ in range(len(intervals))],
            "start_ns": np.concatenate(starts) + base,
            "duration_ns": np.concatenate(ends) - np.concatenate(starts),
            "joined_gap_ns": np.repeat(np.array([gap for _, (_, gap) in parts], np.int64), lengths),
        },
    )


def _collective_table(
    capture: TorchCapture,
    windows: Sequence[tuple[int, int]],
    stage_ids: Sequence[str],
    base: int,
    wanted: Wanted,
) -> pa.Table:
    collectives = capture.devices.collectives
    if collectives.left_out:
        capture.problems.add("collectives_left_out", "warning", collectives.left_out)
    columns = collectives.columns()
    if not columns:
        return tables.empty(COLLECTIVES)
    starts = np.asarray(columns["start_ns"], dtype=np.int64)
    inside: list[str | None] = [None] * len(starts)
    # Stages are in order of start: where two overlap, a call belongs to the later one.
    for (low, high), span_id in zip(windows, stage_ids, strict=True):
        first, last = np.searchsorted(starts, (low, high)).tolist()
        inside[first:last] = [span_id] * (last - first)
    return tables.table(
        COLLECTIVES,
        {
            **columns,
            "lane_id": [wanted.lane_id] * len(starts),
            "span_id": inside,
            "start_ns": starts + base,
        },
    )


def _op_table(seen: Seen, stage_ids: Sequence[str]) -> pa.Table:
    rows: list[dict[str, object]] = []
    for row in seen.ops:
        window = row.pop("window")
        rows.append({"span_id": stage_ids[int(str(window))], **row})
    return tables.from_rows(OPS, rows)
