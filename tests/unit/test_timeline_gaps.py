"""What is missing on a timeline: which lanes and stretches are hatched, and what is said there."""

from pathlib import Path

from rl_insight.visualizers import (
    timeline_bars,
    timeline_data,
    timeline_gaps,
    timeline_layout,
    timeline_missing,
    timeline_words,
)
from rl_insight.visualizers.timeline_model import Gap, Missing, Timeline
from tests import timeline_tables
from tests.timeline_tables import HOSTILE, MS, Tables


def load(made: Tables, folder: Path) -> Timeline:
    return timeline_data.load(made.write(folder))


def said(timeline: Timeline) -> list[str]:
    return [timeline_missing.about(gap, timeline.lanes[gap.lane]) for gap in timeline.missing.gaps]


def test_a_complete_run_has_nothing_missing(tmp_path: Path) -> None:
    timeline = load(timeline_tables.grid(4, 2), tmp_path)

    assert timeline.missing == Missing(expected=8)
    assert timeline_words.troubles(timeline) is None
    assert timeline_words.heading(timeline).facts[0] == "4 ranks"
    assert timeline_words.heading(timeline).lost is None


def test_a_missing_step_is_a_stretch_from_the_first_start_to_the_last_end(tmp_path: Path) -> None:
    timeline = load(timeline_tables.grid(4, 3, without=[(1, 2)]), tmp_path)

    # Ranks 0, 2 and 3 ran step 2 from 1000, 1002 and 1003 ms on, 100 ms each.
    lane = next(at for at, lane in enumerate(timeline.lanes) if lane.rank_id == 1)
    assert timeline.missing.gaps == (Gap(lane, 1000 * MS, 1103 * MS, steps=(2,)),)
    assert said(timeline) == ["not recorded: actor_update, step 2, rank 1"]
    assert (timeline.missing.cells, timeline.missing.expected) == (1, 12)
    assert all(lane.recorded for lane in timeline.lanes)


def test_a_rank_that_was_never_recorded_is_an_empty_lane(tmp_path: Path) -> None:
    timeline = load(timeline_tables.grid(4, 2, without=[(2, 1), (2, 2)]), tmp_path)

    lane = timeline.lanes[-1]
    assert (lane.role, lane.rank_id, lane.recorded) == ("actor_update", 2, False)
    # To the end of rank 3's step 2: 1003 + 100 ms.
    assert timeline.missing.gaps == (Gap(3, 0, 1103 * MS, steps=(1, 2)),)
    assert said(timeline) == ["not recorded: actor_update, steps 1-2, rank 2"]
    heading = timeline_words.heading(timeline)
    assert heading.facts[:2] == ("3 of 4 ranks", "3 lanes")
    assert heading.lost == "2 of 8 captures missing"


def test_an_empty_lane_takes_its_place_among_the_others_and_has_no_bars(tmp_path: Path) -> None:
    timeline = load(timeline_tables.grid(4, 2, without=[(2, 1), (2, 2)]), tmp_path)
    layout = timeline_layout.arrange(timeline)

    for sorting in (layout.default, layout.by_rank):
        labels = [layout.rows[lane].label for lane in sorting.lanes]
        assert labels == [f"actor_update - Rank {rank}" for rank in range(4)]
    assert {line.lane for line in layout.lines} == {0, 1, 2}
    assert [stage.name for stage in layout.stages] == ["actor_update"]
    assert not layout.rows[3].recorded


def test_nothing_missing_moves_the_axis_or_counts_as_a_span(tmp_path: Path) -> None:
    whole = load(timeline_tables.grid(4, 2), tmp_path / "whole")
    less = load(timeline_tables.grid(4, 2, without=[(1, 1), (1, 2)]), tmp_path / "less")

    assert less.extent_ns == whole.extent_ns
    assert less.origin_ns == whole.origin_ns
    assert len(less.spans) == len(whole.spans) - 2
    assert less.steps == whole.steps


def test_ranks_that_were_not_asked_for_are_not_missed(tmp_path: Path) -> None:
    made = timeline_tables.grid(8, 1, without=[(rank, 1) for rank in (5, 6, 7)])
    assert load(made, tmp_path / "all").missing.ranks == 3

    made.ranks = range(5)

    assert load(made, tmp_path / "some").missing.cells == 0


def test_a_capture_that_gave_nothing_is_explained_by_its_files_sentence(tmp_path: Path) -> None:
    made = timeline_tables.grid(4, 2, without=[(1, 2)])
    made.source(
        "broken", "actor_update/x.json", status="failed", detail="It is cut.",
        role="actor_update", rank_id=1, step=2,
    )  # fmt: skip
    timeline = load(made, tmp_path)

    assert timeline.missing.gaps[0].reasons == ("actor_update/x.json: It is cut.",)
    assert said(timeline) == ["nothing could be used: actor_update, step 2, rank 1"]


def test_replicas_miss_their_own_ranks_where_that_replica_ran(tmp_path: Path) -> None:
    made = Tables()
    for replica, rank, step, start in (
        (0, 0, 1, 0), (0, 1, 1, 10), (1, 0, 1, 50), (1, 1, 1, 60),
        (0, 0, 2, 500), (0, 1, 2, 510), (1, 0, 2, 550),
    ):  # fmt: skip
        where = {"role": "agent_loop_rollout", "replica": replica, "rank_id": rank, "step": step}
        made.lane(f"{replica}{rank}{step}", **where)
        made.span(f"{replica}{rank}{step}", start, 100, **where)
    timeline = load(made, tmp_path)

    (gap,) = timeline.missing.gaps
    assert (gap.start_ns, gap.end_ns) == (550 * MS, 650 * MS)
    assert said(timeline) == ["not recorded: agent_loop_rollout_replica_1, step 2, rank 1"]
    assert timeline.missing.ranks == 0


def test_captures_of_unknown_step_are_placed_where_the_others_ran_theirs(tmp_path: Path) -> None:
    made = Tables()
    for rank, captures in ((0, 2), (1, 2), (2, 2), (3, 1)):
        for capture in range(captures):
            lane_id = f"{rank}{capture}"
            made.lane(lane_id, step_index=capture, role="r", rank_id=rank)
            made.span(lane_id, 300 * capture + rank, 100, role="r", rank_id=rank)
    timeline = load(made, tmp_path)

    (gap,) = timeline.missing.gaps
    assert (gap.start_ns, gap.end_ns) == (300 * MS, 402 * MS)
    assert said(timeline) == ["not recorded: r, capture 2, rank 3"]


def test_what_nobody_ran_has_no_place_and_is_counted(tmp_path: Path) -> None:
    made = timeline_tables.grid(2, 3)
    for step in (1, 2):
        for rank in (0, 1):
            where = {"role": "ref_compute_log_prob", "rank_id": rank, "step": step}
            made.lane(f"ref{rank}{step}", **where)
            made.span(f"ref{rank}{step}", step * 1000 - 500, 100, **where)
    timeline = load(made, tmp_path)

    assert timeline.missing.gaps == ()
    assert timeline.missing.unplaced == 2
    troubles = timeline_words.troubles(timeline)
    assert troubles is not None
    assert troubles.summary == "2 of 12 captures missing"
    assert troubles.shown == (("missing", "", "ref_compute_log_prob step 3: none of 2 ranks"),)
    assert troubles.more == (
        "2 missing captures cannot be drawn: no other rank shows when it would have been."
    )


def test_a_step_of_which_only_doubtful_times_are_known_is_placed_by_them(tmp_path: Path) -> None:
    made = timeline_tables.grid(3, 2, without=[(0, 2)])
    made.lanes = [{**row, "clock": "relative"} for row in made.lanes]

    assert len(load(made, tmp_path).missing.gaps) == 1


def test_stages_of_a_whole_step_count_in_place_of_it(tmp_path: Path) -> None:
    made = Tables()
    for rank in range(4):
        made.lane(f"t{rank}", role="train", rank_id=rank, step=1, world_size=4)
        for role in ("actor_update", "ref_compute_log_prob"):
            if (rank, role) != (3, "actor_update"):
                made.span(f"t{rank}", 10 * len(role), 100, role=role, rank_id=rank, step=1)

    assert said(load(made, tmp_path)) == ["not recorded: actor_update, step 1, rank 3"]


def test_the_strip_lists_what_is_missing_before_the_files(tmp_path: Path) -> None:
    made = timeline_tables.grid(4, 2, without=[(2, 1), (2, 2), (1, 2)])
    timeline = load(timeline_tables.failures(made), tmp_path)

    troubles = timeline_words.troubles(timeline)

    assert troubles is not None
    # Eight captures less three; five files that gave less than they should.
    assert troubles.summary == (
        "3 of 4 ranks, 3 of 8 captures missing, 3 files not read, 1 file read in part, "
        "1 file without timed events (of 10)"
    )
    assert [status for status, *_ in troubles.shown] == [
        *["missing"] * 2, *["failed"] * 3, "salvaged", "empty",
    ]  # fmt: skip
    assert troubles.shown[0][1:] == ("", "actor_update step 1: 3 of 4 ranks, rank 2 missing")
    assert not troubles.calm


def test_more_gaps_than_can_be_looked_at_are_counted(tmp_path: Path) -> None:
    ranks = 2 * timeline_gaps.MOST_GAPS
    made = timeline_tables.grid(ranks, 2, without=[(rank, 2) for rank in range(1, ranks, 2)])
    more = timeline_tables.grid(
        ranks + 2, 2, without=[(rank, 2) for rank in range(1, ranks + 2, 2)]
    )

    assert len(load(made, tmp_path / "just").missing.gaps) == timeline_gaps.MOST_GAPS
    timeline = load(more, tmp_path / "more")

    assert len(timeline.missing.gaps) == timeline_gaps.MOST_GAPS
    assert timeline.missing.more_gaps == 1
    assert "400 of 401 gaps drawn" in timeline_words.heading(timeline).facts
    troubles = timeline_words.troubles(timeline)
    assert troubles is not None
    assert troubles.more == "400 of 401 gaps drawn: the others are only counted."


def test_a_role_of_which_nothing_could_be_used_comes_last(tmp_path: Path) -> None:
    made = timeline_tables.grid(2, 1)
    for rank in (0, 1):
        made.source(
            f"b{rank}", f"ref/{rank}.json", status="failed", detail="No.",
            role="aaa", rank_id=rank, step=1,
        )  # fmt: skip
    timeline = load(made, tmp_path)
    layout = timeline_layout.arrange(timeline)

    assert [layout.rows[lane].label for lane in layout.default.lanes] == [
        "actor_update - Rank 0", "actor_update - Rank 1", "aaa - Rank 0", "aaa - Rank 1",
    ]  # fmt: skip


def test_without_any_span_nothing_is_hatched(tmp_path: Path) -> None:
    made = timeline_tables.nothing(["a.json"], ["failed"])
    made.sources[0] = {**made.sources[0], "role": "r", "rank_id": 0, "step": 1}
    timeline = load(made, tmp_path)

    assert timeline.lanes == []
    assert timeline.missing.gaps == ()
    assert timeline.missing.cells == 1


def test_hostile_names_are_made_plain_where_something_is_missing(tmp_path: Path) -> None:
    made = Tables()
    for number, role in enumerate(HOSTILE):
        for rank, step in ((0, 1), (0, 2), (1, 1)):
            where = {"role": role, "rank_id": rank, "step": step}
            made.lane(f"{number}-{rank}-{step}", **where)
            made.span(f"{number}-{rank}-{step}", 100 * step, 50, **where)
    timeline = load(made, tmp_path)

    troubles = timeline_words.troubles(timeline)

    assert troubles is not None
    assert len(said(timeline)) == len(HOSTILE)
    for text in (*said(timeline), *(detail for _, _, detail in troubles.shown)):
        assert text.isprintable()
        assert len(text) < 450


def test_hatched_places_in_a_picture_are_inside_it_and_wide_enough(tmp_path: Path) -> None:
    made = timeline_tables.grid(4, 3, without=[(1, 3), (2, 1), (2, 2), (2, 3)])
    timeline = load(made, tmp_path)
    layout = timeline_layout.arrange(timeline)
    tops = {lane: 20 * place for place, lane in enumerate(layout.by_rank.lanes)}

    # 2,103 ms are 20 pixels: 103 of them would be less than one.
    found = timeline_bars.gap_bars(timeline, layout, tops, 20, 20, least=3)

    assert [(bar.left, bar.right) for bar in found] == [(17, 20), (0, 20)]
    assert [(bar.top, bar.bottom) for bar in found] == [(22, 38), (42, 58)]
    assert timeline_bars.gap_bars(timeline, layout, {}, 20, 20, least=3) == []
