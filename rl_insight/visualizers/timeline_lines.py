"""Spans of a row sorted into lines, in each of which no two spans overlap.

A row has tracks: stage spans that overlap in time (two files for one rank) lie in different ones.
A track has levels: the stage itself, and the ranges inside it by depth. A level has as many lines
as its spans overlap. Where a row has very many tracks, spans share its height only with those that
they overlap, directly or through others: one alone would be a hair. Inside a line spans are in
time order, so that what runs at one instant, or in one window, is found by bisection.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from rl_insight.visualizers.timeline_model import Spans

# Ranges nested deeper share the last level: thinner bars could not be seen.
DEEPEST_LEVEL = 3

ROW_MARGIN = 0.1
_TRACK_GAP = 0.06
# The gap gives way before a track's bars become thinner than this: they are what there is to see.
_THIN = 0.08
# Rows of more tracks are as high as any can be, and a track is a few pixels of that.
_CROWDED = 16
# Of a stage's bar, what stays free above the ranges inside it.
HEAD = 0.44


@dataclass(frozen=True, slots=True)
class Line:
    """Spans `order[first:last]` of one lane; `level` is 0 for stages.

    `tracks`, `levels` (without the stage's own) and `parts` say how many of each there are beside
    this line's own `track`, `level` and `part`. In a crowded row `tracks` are those in use while
    the line's spans run, not all of its lane.
    """

    lane: int
    track: int
    tracks: int
    level: int
    levels: int
    part: int
    parts: int
    first: int
    last: int

    def extent(self, units: float) -> tuple[float, float]:
        """Top and bottom of its bars, as fractions of a row that is `units` plain rows high."""
        margin = ROW_MARGIN / units
        height = (1 - 2 * margin) / self.tracks
        top = margin + self.track * height
        gap = _TRACK_GAP / units if self.tracks > 1 else 0
        bottom = top + max(height - gap, min(height, _THIN / units))
        if self.level == 0:
            return top, bottom
        # A stage's head stays free above its ranges, and a thin sill of it below them.
        inner = bottom - top
        level_height = inner * (1 - HEAD - 0.07) / self.levels
        level_top = top + inner * HEAD + (self.level - 1) * level_height
        part_height = level_height * 0.92 / self.parts
        return level_top + self.part * part_height, level_top + (self.part + 1) * part_height


def lines(spans: Spans, lanes: int) -> tuple[np.ndarray, tuple[Line, ...]]:
    """Positions of all spans line by line, and the lines.

    They are in order of lane, tracks beside each other, track, level and part.
    """
    end_ns = spans.start_ns + spans.duration_ns
    track = np.zeros(len(spans), dtype=np.int64)
    for group in _groups(np.flatnonzero(spans.depth == 0), spans.lane):
        track[group] = _pack(spans.start_ns[group], end_ns[group])
    inside = np.flatnonzero(spans.depth > 0)
    # A range follows its stage, unless the table puts it into another lane than that.
    inside = inside[spans.lane[spans.root[inside]] == spans.lane[inside]]
    track[inside] = track[spans.root[inside]]
    tracks = _beside(spans, track, end_ns, lanes)
    tracks[inside] = tracks[spans.root[inside]]
    level = _levels(spans)
    key = spans.lane * (tracks.max(initial=0) + 1) + tracks
    key = (key * (track.max(initial=0) + 1) + track) * (DEEPEST_LEVEL + 1) + level
    part = np.zeros(len(spans), dtype=np.int64)
    for group in _groups(np.flatnonzero(level > 0), key):
        part[group] = _pack(spans.start_ns[group], end_ns[group])
    order = np.lexsort((spans.start_ns, part, level, track, tracks, spans.lane))
    return order, _describe(order, spans.lane, tracks, track, level, part, lanes)


def _beside(spans: Spans, track: np.ndarray, end_ns: np.ndarray, lanes: int) -> np.ndarray:
    """For each span the tracks that share its row's height: all of the row unless it is crowded,
    and then those of the stages that overlap it, directly or through others."""
    of_lane = np.ones(lanes, dtype=np.int64)
    np.maximum.at(of_lane, spans.lane, track + 1)
    tracks: np.ndarray = of_lane[spans.lane]
    crowded = np.flatnonzero((spans.depth == 0) & (tracks > _CROWDED))
    for group in _groups(crowded, spans.lane):
        group = group[np.lexsort((-end_ns[group], spans.start_ns[group]))]
        ended = spans.start_ns[group[1:]] >= np.maximum.accumulate(end_ns[group])[:-1]
        cluster = np.concatenate([[0], np.cumsum(ended)])
        most = np.ones(cluster[-1] + 1, dtype=np.int64)
        np.maximum.at(most, cluster, track[group] + 1)
        tracks[group] = most[cluster]
    return tracks


def _groups(positions: np.ndarray, key: np.ndarray) -> list[np.ndarray]:
    """`positions` split into groups of equal `key[position]`."""
    if not len(positions):
        return []
    ordered = positions[np.argsort(key[positions], kind="stable")]
    return np.split(ordered, np.flatnonzero(np.diff(key[ordered])) + 1)


def _pack(start_ns: np.ndarray, end_ns: np.ndarray) -> np.ndarray:
    """For each interval the lowest track in which it overlaps none that began before it."""
    by_start = np.lexsort((-end_ns, start_ns))
    start, end = start_ns[by_start], end_ns[by_start]
    tracks = np.zeros(len(start), dtype=np.int64)
    if (start[1:] < end[:-1]).any():
        busy: list[tuple[int, int]] = []
        free: list[int] = []
        for place, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
            while busy and busy[0][0] <= begin:
                heapq.heappush(free, heapq.heappop(busy)[1])
            # Every track is busy or free, so the next new one has the number of busy ones.
            tracks[place] = heapq.heappop(free) if free else len(busy)
            heapq.heappush(busy, (finish, int(tracks[place])))
    result = np.empty_like(tracks)
    result[by_start] = tracks
    return result


def _levels(spans: Spans) -> np.ndarray:
    """0 for stages; for ranges 1, 2, … by the depths that occur in their lane."""
    level = np.zeros(len(spans), dtype=np.int64)
    for group in _groups(np.flatnonzero(spans.depth > 0), spans.lane):
        _, ranking = np.unique(spans.depth[group], return_inverse=True)
        level[group] = np.minimum(ranking + 1, DEEPEST_LEVEL)
    return level


def _describe(
    order: np.ndarray,
    lane: np.ndarray,
    tracks: np.ndarray,
    track: np.ndarray,
    level: np.ndarray,
    part: np.ndarray,
    lanes: int,
) -> tuple[Line, ...]:
    if not len(order):
        return ()
    levels = np.zeros(lanes, dtype=np.int64)
    np.maximum.at(levels, lane, level)
    keys = np.stack([lane, tracks, track, level, part])[:, order]
    firsts = np.concatenate([[0], np.flatnonzero((np.diff(keys) != 0).any(axis=0)) + 1])
    lasts = np.append(firsts[1:], len(order))
    parts: dict[tuple[int, int, int, int], int] = {}
    heads = keys[:, firsts].T.tolist()
    for at_lane, beside, at_track, at_level, at_part in heads:
        parts[at_lane, beside, at_track, at_level] = at_part + 1
    return tuple(
        Line(
            lane=at_lane,
            track=at_track,
            tracks=beside,
            level=at_level,
            levels=int(levels[at_lane]),
            part=at_part,
            parts=parts[at_lane, beside, at_track, at_level],
            first=int(first),
            last=int(last),
        )
        for (at_lane, beside, at_track, at_level, at_part), first, last in zip(
            heads, firsts, lasts, strict=True
        )
    )
