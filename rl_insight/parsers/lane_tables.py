"""Rows of one lane in every table but `lanes` itself. Neutral to profilers.

Times come as the capture counts them; what `LaneRows.base_ns` adds makes them the lane's own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rl_insight import tables
from rl_insight.intervals import IntArray, clip
from rl_insight.parsers.collectives import Collectives
from rl_insight.parsers.device_tables import Seen
from rl_insight.parsers.stages import Span
from rl_insight.schema import ACTIVITY, BREAKDOWN, COLLECTIVES, OPS, SPANS

Windows = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class LaneRows:
    """What all rows of one lane share; `base_ns` is added to their times.

    `within` is from when to when the capture goes, as it counts them (ns): what a stray time puts
    elsewhere was counted as a problem, and is no row. `in_part` holds where a part of the device's
    activity is lost: then no stage has a breakdown, since what is lost would count as free.
    """

    lane_id: str
    source_id: str
    rank_id: int | None = None
    host: str | None = None
    base_ns: int = 0
    within: tuple[int, int] | None = None
    in_part: bool = False

    def span_ids(self, spans: Sequence[Span]) -> list[str]:
        """One id for each of `spans`."""
        return [f"{self.lane_id}-{index}" for index in range(len(spans))]


def stages_of(spans: Sequence[Span], ids: Sequence[str]) -> tuple[Windows, list[str]]:
    """The windows [start, end) in ns of the stages among `spans`, and their ids."""
    stages = [index for index, span in enumerate(spans) if span.kind == "stage"]
    windows = [(spans[index].start_ns, spans[index].end_ns) for index in stages]
    return windows, [ids[index] for index in stages]


def span_table(spans: Sequence[Span], ids: Sequence[str], lane: LaneRows) -> pa.Table:
    """Rows of `spans`."""
    count = len(spans)
    return tables.table(
        SPANS,
        {
            "span_id": ids,
            "parent_id": [None if span.parent is None else ids[span.parent] for span in spans],
            "lane_id": [lane.lane_id] * count,
            "source_id": [lane.source_id] * count,
            "role": [span.role for span in spans],
            "rank_id": [lane.rank_id] * count,
            "host": [lane.host] * count,
            "name": [span.name for span in spans],
            "raw_name": [span.raw_name for span in spans],
            "domain": [span.domain for span in spans],
            "kind": [span.kind for span in spans],
            "depth": [span.depth for span in spans],
            "mini_batch": [span.mini_batch for span in spans],
            "micro_batch": [span.micro_batch for span in spans],
            "start_ns": [lane.base_ns + span.start_ns for span in spans],
            "duration_ns": [span.end_ns - span.start_ns for span in spans],
            "truncated": [span.truncated for span in spans],
            "tid": [span.tid for span in spans],
        },
    )


def breakdown_table(
    seen: Seen, windows: Windows, stage_ids: Sequence[str], lane: LaneRows
) -> pa.Table:
    """Rows of `breakdown`: one for each stage with device activity.

    Where a part of that is lost, one for each stage, with nothing but its length.
    """
    whose = {"lane_id": lane.lane_id, "rank_id": lane.rank_id}
    rows: list[dict[str, object]] = []
    if lane.in_part:
        if any(one is not None for one in seen.breakdowns):
            rows = [
                {**whose, "span_id": span_id, "window_ns": high - low}
                for span_id, (low, high) in zip(stage_ids, windows, strict=True)
            ]
        return tables.from_rows(BREAKDOWN, rows)
    rows = [
        {
            **whose,
            "span_id": span_id,
            "window_ns": one.window_ns,
            "device_start_ns": lane.base_ns + (one.device_start_ns or 0),
            "device_end_ns": lane.base_ns + (one.device_end_ns or 0),
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


def activity_table(seen: Seen, lane: LaneRows) -> pa.Table:
    """Rows of `activity`."""
    parts = [
        (name, (intervals if lane.within is None else clip(intervals, *lane.within), gap))
        for name, (intervals, gap) in seen.activity.items()
    ]
    lengths = [len(intervals) for _, (intervals, _) in parts]
    nothing: IntArray = np.empty(0, np.int64)
    starts = np.concatenate([nothing, *(intervals.starts for _, (intervals, _) in parts)])
    ends = np.concatenate([nothing, *(intervals.ends for _, (intervals, _) in parts)])
    return tables.table(
        ACTIVITY,
        {
            "lane_id": [lane.lane_id] * sum(lengths),
            "category": [name for name, (intervals, _) in parts for _ in range(len(intervals))],
            "start_ns": starts + lane.base_ns,
            "duration_ns": ends - starts,
            "joined_gap_ns": np.repeat(np.array([gap for _, (_, gap) in parts], np.int64), lengths),
        },
    )


def collective_table(
    collectives: Collectives,
    windows: Windows,
    stage_ids: Sequence[str],
    lane: LaneRows,
    group: Callable[[object], str | None] | None = None,
) -> pa.Table:
    """Rows of `collectives`: a call belongs to the stage in which it starts.

    `group` gives a group's name for what was collected as such.
    """
    columns = collectives.columns()
    if not columns:
        return tables.empty(COLLECTIVES)
    starts = np.asarray(columns["start_ns"], dtype=np.int64)
    if lane.within is not None and (starts[0] < lane.within[0] or starts[-1] > lane.within[1]):
        low = int(np.searchsorted(starts, lane.within[0]))
        high = int(np.searchsorted(starts, lane.within[1], side="right"))
        columns = {name: values[low:high] for name, values in columns.items()}
        starts = starts[low:high]
    inside: list[str | None] = [None] * len(starts)
    # Stages are in order of start: where two overlap, a call belongs to the later one.
    for (low, high), span_id in zip(windows, stage_ids, strict=True):
        first, last = np.searchsorted(starts, (low, high)).tolist()
        inside[first:last] = [span_id] * (last - first)
    if group is not None:
        named = {one: group(one) for one in set(columns["group"])}
        columns["group"] = [named[one] for one in columns["group"]]
    return tables.table(
        COLLECTIVES,
        {
            **columns,
            "lane_id": [lane.lane_id] * len(starts),
            "span_id": inside,
            "start_ns": starts + lane.base_ns,
        },
    )


def op_table(seen: Seen, stage_ids: Sequence[str]) -> pa.Table:
    """Rows of `ops`."""
    rows = [{**row, "span_id": stage_ids[int(str(row["window"]))]} for row in seen.ops]
    return tables.from_rows(OPS, rows)
