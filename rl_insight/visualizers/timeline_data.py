"""The tables of a timeline as plain data: the first of the three steps to a picture.

`timeline_layout` arranges what this gives, `timeline_html` and `timeline_png` draw it.
"""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from rl_insight import schema, selection
from rl_insight.problems import CLOCK_FAR
from rl_insight.visualizers import (
    timeline_clock,
    timeline_gaps,
    timeline_remarks,
    timeline_unfinished,
    troubles,
)
from rl_insight.visualizers.columns import Columns, read
from rl_insight.visualizers.timeline_model import Breakdown, Lane, Spans, Timeline

# Parents deeper than this are a cycle in a damaged table, not a nesting.
_DEEPEST = 64


def load(folder: Path) -> Timeline:
    """The timeline of the Parquet tables in `folder`; a table that is not there has no rows."""
    sources = read(folder, "sources", schema.SOURCES, _SOURCES)
    captures = read(folder, "lanes", schema.LANES, _LANES)
    spans = read(folder, "spans", schema.SPANS, _SPANS)
    spans = spans.where((spans.integers("duration_ns", 0) > 0) & spans.present("start_ns"))

    lane_ids = spans.strings("lane_id")
    clock_of = dict(zip(captures.strings("lane_id"), captures.strings("clock"), strict=True))
    capture_of = dict(
        zip(captures.strings("lane_id"), captures.optional("step_index"), strict=True)
    )
    far = troubles.example_of(sources, CLOCK_FAR)
    settled = timeline_clock.settle(
        spans.integers("start_ns", 0),
        [clock_of.get(lane) for lane in lane_ids],
        spans.strings("source_id"),
        [far.get(source) for source in spans.strings("source_id")],
        [
            (role, step, None if step is not None else capture_of.get(lane))
            for role, step, lane in zip(
                spans.strings("role"), spans.optional("step"), lane_ids, strict=True
            )
        ],
    )
    lane, lanes = _lanes(spans, captures, sources, settled.note)
    is_stage = np.array([kind == "stage" for kind in spans.strings("kind")], dtype=bool)
    root = _roots(spans.positions("parent_id", "span_id"), is_stage)
    outermost = root == np.arange(len(spans))
    depth = np.where(outermost, 0, np.maximum(spans.integers("depth", 1), 1))
    names, name, stage = _names(spans, root, is_stage)
    step_sources = zip(captures.strings("lane_id"), captures.strings("step_source"), strict=True)
    inferred = {lane_id for lane_id, source in step_sources if source == "inferred"}
    breakdown = _breakdown(read(folder, "breakdown", schema.BREAKDOWN, _BREAKDOWN), spans)
    content = Spans(
        lane=lane,
        name=name,
        stage=stage,
        root=root,
        depth=depth,
        start_ns=settled.start_ns,
        duration_ns=spans.integers("duration_ns", 0),
        truncated=spans.flags("truncated"),
        unfinished=timeline_unfinished.unfinished(spans, captures, sources),
        step=spans.optional("step"),
        step_inferred=np.array([lane_id in inferred for lane_id in lane_ids], dtype=bool),
        capture=[capture_of.get(lane_id) for lane_id in lane_ids],
        mini_batch=spans.optional("mini_batch"),
        micro_batch=spans.optional("micro_batch"),
        undated=settled.undated,
        remarks=timeline_remarks.of_spans(
            spans.strings("source_id"),
            settled.note,
            sources,
            {at for at, one in breakdown.items() if one.computing_ns is None},
        ),
    )
    others = troubles.heatmap_parsers(sources)
    parsers = zip(sources.strings("source_id"), sources.strings("parser"), strict=True)
    foreign = {source for source, parser in parsers if parser in others}
    misplaced = far.keys() & set(spans.strings("source_id"))
    lacking, unrecorded = timeline_gaps.missing(
        captures.rows(),
        [row for row in sources.rows() if row["parser"] not in others],
        selection.of(captures.schema),
        lanes,
        content,
        lane_ids,
    )
    return Timeline(
        origin_ns=settled.origin_ns,
        lanes=lanes + unrecorded,
        names=names,
        spans=content,
        breakdown=breakdown,
        troubles=troubles.listed(sources, lambda parser: parser not in others),
        sources=sum(parser not in others for parser in sources.strings("parser")),
        missing=lacking,
        misplaced=len(misplaced),
        clock_doubts=len(troubles.of_doubtful_clock(sources) - misplaced - foreign),
    )


_SOURCES = (*troubles.COLUMNS, "role", "rank_id", "step")
_LANES = (
    *("lane_id", "source_id", "role", "replica", "rank_id", "step", "world_size"),
    *("pid", "device", "global_rank", "step_index", "step_source", "clock", "capture_end_ns"),
)
_SPANS = (
    *("span_id", "parent_id", "lane_id", "source_id", "role", "rank_id", "replica", "step"),
    *("host", "name", "raw_name", "kind", "depth", "mini_batch", "micro_batch"),
    *("start_ns", "duration_ns", "truncated"),
)
_PARTS = tuple(field.name for field in fields(Breakdown))
_BREAKDOWN = ("span_id", *_PARTS)

_Key = tuple[str, int | None, int | None, str | None]


def _lanes(
    spans: Columns, captures: Columns, sources: Columns, notes: Sequence[str | None]
) -> tuple[np.ndarray, list[Lane]]:
    """The lane of every span, and the lanes in the order in which they first appear."""
    path_of = dict(zip(sources.strings("source_id"), sources.strings("path"), strict=True))
    process_of = {
        lane_id: ", ".join(
            f"{what} {number}"
            for what, number in (("pid", pid), ("device", device))
            if number is not None
        )
        for lane_id, pid, device in zip(
            captures.strings("lane_id"),
            captures.optional("pid"),
            captures.optional("device"),
            strict=True,
        )
    }
    global_rank_of = dict(
        zip(captures.strings("lane_id"), captures.optional("global_rank"), strict=True)
    )
    index: dict[_Key, int] = {}
    hosts: list[dict[str, None]] = []
    paths: list[dict[str, None]] = []
    notes_of: list[dict[str | None, None]] = []
    global_ranks: list[set[int]] = []
    position = np.empty(len(spans), dtype=np.int64)
    columns = zip(
        spans.strings("role"),
        spans.optional("replica"),
        spans.optional("rank_id"),
        spans.strings("lane_id"),
        spans.strings("source_id"),
        spans.strings("host"),
        notes,
        strict=True,
    )
    for row, (role, replica, rank, lane_id, source, host, note) in enumerate(columns):
        key = (role or "unknown role", replica, rank, lane_id if rank is None else None)
        lane = index.setdefault(key, len(index))
        if lane == len(hosts):
            hosts.append({})
            paths.append({})
            notes_of.append({})
            global_ranks.append(set())
        position[row] = lane
        if host is not None:
            hosts[lane][host] = None
        paths[lane][path_of.get(source) or source or "unknown file"] = None
        notes_of[lane][note] = None
        if (global_rank := global_rank_of.get(lane_id)) is not None:
            global_ranks[lane].add(global_rank)
    return position, [
        Lane(
            role=role,
            replica=replica,
            rank_id=rank,
            hosts=tuple(hosts[lane]),
            sources=tuple(paths[lane]),
            process=process_of.get(lane_id) or None,
            clock_note=next(filter(None, notes_of[lane]), None),
            clock_is_mixed=len(notes_of[lane]) > 1,
            global_rank=next(iter(global_ranks[lane])) if len(global_ranks[lane]) == 1 else None,
        )
        for (role, replica, rank, lane_id), lane in index.items()
    ]


def _roots(parent: np.ndarray, is_stage: np.ndarray) -> np.ndarray:
    """For every span the position of the stage that it lies in, its own for a stage.

    A range that lies in no stage of the table is an outermost span and stands for one.
    """
    own = np.arange(len(parent))
    root = own.copy()
    for _ in range(_DEEPEST):
        climbing = ~is_stage[root] & (parent[root] >= 0)
        if not climbing.any():
            return root
        root[climbing] = parent[root[climbing]]
    return np.where(climbing, own, root)


def _names(
    spans: Columns, root: np.ndarray, is_stage: np.ndarray
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """All names, and as positions in it the own name and the stage's name of every span."""
    index: dict[str, int] = {}

    def code(text: str | None) -> int:
        return index.setdefault(text or "unknown", len(index))

    name = np.array([code(text) for text in spans.strings("name")], dtype=np.int64)
    # A range outside any stage goes by its role: that is what the stage would be called.
    role = np.array([code(text) for text in spans.strings("role")], dtype=np.int64)
    stage = np.where(is_stage[root], name[root], role)
    used = np.unique(np.concatenate([name, stage]))
    names = list(index)
    position = np.zeros(len(names), dtype=np.int64)
    position[used] = np.arange(len(used))
    return [names[code] for code in used], position[name], position[stage]


def _breakdown(table: Columns, spans: Columns) -> dict[int, Breakdown]:
    row_of = {span_id: row for row, span_id in enumerate(spans.strings("span_id"))}
    parts = zip(*(table.optional(part) for part in _PARTS), strict=True)
    return {
        row_of[span_id]: Breakdown(*values)
        for span_id, values in zip(table.strings("span_id"), parts, strict=True)
        if span_id in row_of
    }
