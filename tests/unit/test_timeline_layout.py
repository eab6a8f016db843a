"""Rows, their orders, tracks and colours."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_insight.visualizers import colours, timeline_data, timeline_layout, timeline_lines
from rl_insight.visualizers.timeline_layout import Layout, Sorting
from rl_insight.visualizers.timeline_model import Spans, Timeline
from tests import timeline_tables
from tests.timeline_tables import MS, Tables


def arranged(made: Tables, folder: Path) -> tuple[Timeline, Layout]:
    timeline = timeline_data.load(made.write(folder))
    return timeline, timeline_layout.arrange(timeline)


def labels(layout: Layout, sorting: Sorting) -> list[str]:
    return [layout.rows[lane].label for lane in sorting.lanes]


def test_default_order_is_stages_by_first_start_then_replica_then_rank(tmp_path: Path) -> None:
    _, layout = arranged(timeline_tables.training(ranks=2, steps=1, replicas=2), tmp_path)

    assert labels(layout, layout.default) == [
        "agent_loop_rollout_replica_0 - Rank 0",
        "agent_loop_rollout_replica_0 - Rank 1",
        "agent_loop_rollout_replica_1 - Rank 0",
        "agent_loop_rollout_replica_1 - Rank 1",
        "actor_compute_log_prob - Rank 0",
        "actor_compute_log_prob - Rank 1",
        "ref_compute_log_prob - Rank 0",
        "ref_compute_log_prob - Rank 1",
        "actor_update - Rank 0",
        "actor_update - Rank 1",
    ]
    assert layout.default.group == (0, 0, 0, 0, 1, 1, 2, 2, 3, 3)


def test_order_by_rank_is_rank_then_stage(tmp_path: Path) -> None:
    _, layout = arranged(timeline_tables.training(ranks=2, steps=1, replicas=1), tmp_path)

    assert labels(layout, layout.by_rank) == [
        "agent_loop_rollout_replica_0 - Rank 0",
        "actor_compute_log_prob - Rank 0",
        "ref_compute_log_prob - Rank 0",
        "actor_update - Rank 0",
        "agent_loop_rollout_replica_0 - Rank 1",
        "actor_compute_log_prob - Rank 1",
        "ref_compute_log_prob - Rank 1",
        "actor_update - Rank 1",
    ]
    assert layout.by_rank.group == (0, 0, 0, 0, 1, 1, 1, 1)


def test_longest_first_puts_the_slow_ranks_of_each_role_on_top(tmp_path: Path) -> None:
    made = Tables()
    # Milliseconds of each rank's two steps. Rank 3's sum is the least, and its second step the
    # longest; ranks 0 and 2 tie.
    took = {
        "rollout": {0: (90, 10), 1: (20, 95), 2: (90, 90), 3: (1, 99)},
        "actor_update": {0: (5, 5), 1: (5, 6), 2: (5, 5), 3: (4, 4)},
    }
    for at, (role, ranks) in enumerate(took.items()):
        for rank, steps in ranks.items():
            lane = f"{role}{rank}"
            made.lane(lane)
            for step, long in enumerate(steps):
                made.span(lane, 1000 * step + 200 * at, long, role=role, rank_id=rank, step=step)
    # A range is no stage, however long.
    made.span(
        "actor_update3", 200, 500, kind="range", depth=1, name="optimizer", role="actor_update",
        rank_id=3, parent_id=made.spans[-2]["span_id"],
    )  # fmt: skip

    _, layout = arranged(made, tmp_path)

    assert labels(layout, layout.longest) == [
        "rollout - Rank 3",
        "rollout - Rank 1",
        "rollout - Rank 0",
        "rollout - Rank 2",
        "actor_update - Rank 1",
        "actor_update - Rank 0",
        "actor_update - Rank 2",
        "actor_update - Rank 3",
    ]
    assert layout.longest.group == (0, 0, 0, 0, 1, 1, 1, 1)


def test_ranks_are_ordered_as_numbers_and_unknown_ones_come_last(tmp_path: Path) -> None:
    made = Tables()
    for rank in (10, 9, None):
        made.lane(f"l{rank}")
        made.span(f"l{rank}", 0, 10, role="actor_update", rank_id=rank)

    _, layout = arranged(made, tmp_path)

    for sorting in (layout.default, layout.by_rank, layout.longest):
        assert labels(layout, sorting) == [
            "actor_update - Rank 9",
            "actor_update - Rank 10",
            "actor_update - Rank ? (unknown: lNone.json.gz)",
        ]


def test_overlapping_stages_of_two_files_lie_in_two_tracks_of_a_higher_row(tmp_path: Path) -> None:
    made = Tables()
    for source, start in (("a", 0), ("b", 50), ("a", 150)):
        made.span("lane", start, 100, role="actor_update", rank_id=0, source_id=source)

    timeline, layout = arranged(made, tmp_path)

    assert len(layout.rows) == 1
    assert layout.rows[0].height > 1
    upper, lower = layout.lines
    starts = timeline.spans.start_ns[layout.order]
    assert starts[upper.first : upper.last].tolist() == [0, 150 * MS]
    assert starts[lower.first : lower.last].tolist() == [50 * MS]
    units = layout.rows[0].height
    assert upper.extent(units)[1] <= lower.extent(units)[0]


def test_ranges_lie_inside_the_bar_of_their_stage(tmp_path: Path) -> None:
    _, layout = arranged(timeline_tables.training(2, 1, 1, micro_batches=3), tmp_path)

    update = next(number for number, row in enumerate(layout.rows) if row.role == "actor_update")
    lines = {line.level: line for line in layout.lines if line.lane == update}
    assert sorted(lines) == [0, 1, 2]
    bar, outer, inner = (lines[level].extent(1.0) for level in (0, 1, 2))
    assert bar[0] < outer[0] < outer[1] <= inner[0] < inner[1] < bar[1]
    assert lines[1].last - lines[1].first == 3
    assert lines[2].last - lines[2].first == 6


def spans_of(intervals: list[tuple[int, int, int, int]]) -> Spans:
    lane, depth, start, duration = np.array(intervals, dtype=np.int64).reshape(-1, 4).T
    nothing: list[int | None] = [None] * len(intervals)
    zeros = np.zeros(len(intervals), dtype=np.int64)
    return Spans(
        lane=lane,
        name=zeros,
        stage=zeros,
        root=np.arange(len(intervals)),
        depth=depth,
        start_ns=start,
        duration_ns=duration,
        truncated=zeros.astype(bool),
        unfinished=zeros.astype(bool),
        step=nothing,
        step_inferred=zeros.astype(bool),
        capture=nothing,
        mini_batch=nothing,
        micro_batch=nothing,
        undated=zeros.astype(bool),
        remarks=[()] * len(intervals),
    )


interval = st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 100), st.integers(1, 40))


@settings(deadline=None)
@given(st.lists(interval, min_size=1, max_size=60))
def test_no_two_spans_of_a_line_overlap_and_every_span_has_a_place(
    intervals: list[tuple[int, int, int, int]],
) -> None:
    spans = spans_of(intervals)

    order, made = timeline_lines.lines(spans, 3)

    assert sorted(order.tolist()) == list(range(len(intervals)))
    assert [line.first for line in made] == [0, *(line.last for line in made[:-1])]
    assert made[-1].last == len(intervals)
    for line in made:
        places = order[line.first : line.last]
        assert set(spans.lane[places].tolist()) == {line.lane}
        starts = spans.start_ns[places]
        ends = starts + spans.duration_ns[places]
        assert (starts[1:] >= ends[:-1]).all()
        top, bottom = line.extent(1.0)
        assert 0 < top < bottom < 1


@settings(deadline=None)
@given(st.lists(interval, min_size=1, max_size=60))
def test_no_more_tracks_than_spans_that_overlap_at_once(
    intervals: list[tuple[int, int, int, int]],
) -> None:
    stages = [(0, 0, start, long) for _, _, start, long in intervals]
    most = max(
        sum(start <= at < start + long for _, _, start, long in stages) for _, _, at, _ in stages
    )

    _, made = timeline_lines.lines(spans_of(stages), 1)

    assert max(line.tracks for line in made) == most


def test_one_alone_has_the_whole_height_of_a_lane_that_elsewhere_has_very_many_tracks() -> None:
    lone, pair = (0, 0, 0, 3), [(0, 0, 10, 3), (0, 0, 12, 3)]
    many = [(0, 0, 20 + turn, 500) for turn in range(90)]

    order, made = timeline_lines.lines(spans_of([lone, *pair, *many]), 1)

    tracks = {at: line for line in made for at in order[line.first : line.last].tolist()}
    assert [tracks[at].tracks for at in range(93)] == [1, 2, 2, *[90] * 90]
    top, bottom = tracks[0].extent(4.0)
    assert (top, bottom) == pytest.approx((0.025, 0.975))  # a tenth of a plain row at either side
    assert tracks[1].extent(4.0)[0] == pytest.approx(top)
    assert tracks[2].extent(4.0)[0] == pytest.approx(0.5)


@pytest.mark.parametrize("tracks", [2, 6, 40, 64, 76, 200, 5000])
def test_tracks_lie_one_below_the_other_and_none_is_without_height(tracks: int) -> None:
    units = min(1 + 0.7 * (tracks - 1), 4.0)
    _, made = timeline_lines.lines(spans_of([(0, 0, turn, 9000) for turn in range(tracks)]), 1)

    extents = [line.extent(units) for line in made]

    assert len(extents) == tracks
    assert all(top < bottom for top, bottom in extents)
    assert all(above[1] <= below[0] + 1e-9 for above, below in pairwise(extents))
    # Where all tracks are thin, the bars take at least half of the height.
    assert sum(bottom - top for top, bottom in extents) > 0.5


def test_the_legend_is_in_order_of_first_start(tmp_path: Path) -> None:
    _, layout = arranged(timeline_tables.training(steps=1), tmp_path)

    assert [stage.name for stage in layout.stages] == [
        "agent_loop_rollout",
        "actor_compute_log_prob",
        "ref_compute_log_prob",
        "actor_update",
    ]


def test_steps_begin_with_their_first_stage(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a")
    for step, start in ((7, 300), (6, 0), (7, 250), (None, 500)):
        made.span("a", start, 10, role="r", rank_id=0, step=step)

    _, layout = arranged(made, tmp_path)

    assert [(mark.step, mark.start_ns) for mark in layout.steps] == [(6, 0), (7, 250 * MS)]


def test_a_stage_has_the_same_colour_in_every_picture() -> None:
    alone = colours.assign(["actor_update"])
    among = colours.assign(["zeta", "actor_update", "alpha", "agent_loop_rollout"])

    assert alone["actor_update"] == among["actor_update"] == colours.KNOWN["actor_update"]
    stranger = colours.assign(["my_stage"])["my_stage"]
    taken = {name: shade for name, shade in colours.KNOWN.items() if shade != stranger}
    assert colours.assign(["my_stage", *taken])["my_stage"] == stranger


def test_stages_of_one_picture_differ_in_colour() -> None:
    many = [f"stage_{number}" for number in range(18)]

    assert len(set(colours.assign(many).values())) == 18


@pytest.mark.parametrize("colour", colours.PALETTE)
def test_text_on_a_bar_has_contrast_and_the_tones_of_a_stage_differ(colour: str) -> None:
    def luminance(code: str) -> float:
        channels = [int(code[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(colour), luminance(colours.ink(colour))))
    assert (light + 0.05) / (dark + 0.05) >= 4.5
    assert len({colour.lower(), *colours.tones(colour)}) == 4
