"""A capture that its clock puts days away ruins no axis, and is told."""

from pathlib import Path
from typing import Any

import numpy as np

from rl_insight.data.identity import compile_rules
from rl_insight.pipeline.clock_far import far
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.settle import settle_lanes
from rl_insight.schema import LANES
from rl_insight.visualizers import timeline_data, timeline_words
from rl_insight.visualizers.timeline_clock import settle
from tests.timeline_tables import Tables

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
EPOCH = 1_786_710_000 * SECOND


def lane(rank: int | None, start: int, step: int | None = None, **told: Any) -> dict[str, object]:
    """A capture of 8 s that begins `start` ns after EPOCH."""
    times = {"capture_start_ns": EPOCH + start, "capture_end_ns": EPOCH + start + 8 * SECOND}
    who = {"role": "actor_update", "rank_id": rank, "step": step, "clock": "utc"}
    return {**dict.fromkeys(LANES.names), **times, **who, "source_id": f"{rank}.{step}", **told}


def test_a_rank_that_lies_weeks_before_the_others_of_its_step_is_told() -> None:
    # GIVEN three ranks, and one whose clock began 43.5 days early: its end is 8 s after its start
    lanes = [lane(rank, rank * SECOND, 3) for rank in range(3)]
    lanes.append(lane(3, -43 * DAY - DAY // 2 - 8 * SECOND, 3))
    assert far(lanes) == {
        3: "its clock puts it 43.5 days before 3 other captures of step 3: it is drawn beside "
        "them, not at its own time"
    }


def test_of_two_captures_that_lie_apart_the_early_one_is_told() -> None:
    assert far([lane(0, 2 * DAY + 8 * SECOND, 3), lane(1, 0, 3)]) == {
        1: "its clock puts it 2.0 days before the other capture of step 3: it is drawn beside "
        "it, not at its own time"
    }


def test_steps_may_lie_days_apart() -> None:
    # GIVEN steps 1, 500 and 1000 of a long run, of which two ranks have the last
    lanes = [lane(rank, step * 400 * SECOND, step) for step in (1, 500, 1000) for rank in range(4)]
    assert far(lanes[:-2]) == {}
    # AND the same where no name tells the step
    assert far([{**row, "step": None} for row in lanes[:-2]]) == {}


def test_two_runs_of_the_same_ranks_are_no_clock_that_is_wrong() -> None:
    lanes = [lane(rank, start, 1) for start in (0, 40 * DAY) for rank in range(2)]
    assert far(lanes) == {}
    assert far([{**row, "step": None} for row in lanes]) == {}


def test_a_rank_without_steps_that_lies_apart_from_all_others_is_told() -> None:
    lanes = [lane(rank, minute * 60 * SECOND) for minute in range(3) for rank in range(3)]
    stray = [lane(3, minute * 60 * SECOND + 5 * DAY) for minute in range(3)]
    assert sorted(far([*lanes, *stray])) == [9, 10, 11]


def test_one_capture_of_a_rank_that_lies_more_than_a_month_apart_is_told() -> None:
    lanes = [lane(rank, minute * 60 * SECOND) for minute in range(3) for rank in range(3)]
    assert sorted(far([*lanes, lane(2, -31 * DAY)])) == [9]
    assert far([*lanes, lane(2, -29 * DAY)]) == {}


def test_captures_without_a_date_are_not_compared() -> None:
    lanes = [lane(rank, 0, 1) for rank in range(3)]
    assert far([*lanes, lane(3, -60 * DAY, 1, clock="relative")]) == {}
    assert far([*lanes, lane(3, 0, 1, capture_start_ns=None)]) == {}


def test_the_merge_tells_it_and_shifts_nothing() -> None:
    lanes = [lane(rank, 0 if rank else -9 * DAY, 2) for rank in range(3)]
    rows = [{**row, "lane_id": str(rank), "source_id": str(rank)} for rank, row in enumerate(lanes)]
    options = MergeOptions(compile_rules([]), Filters(), "")
    settled = settle_lanes(rows, {str(rank): "a.json" for rank in range(3)}, {}, options)
    assert [row["clock_offset_ns"] for row in settled.lanes] == [0, 0, 0]
    codes = [[code for code, *_ in row["doubts"]] for row in settled.lanes]  # type: ignore[attr-defined]
    assert codes == [["clock_far"], [], []]


def test_it_is_drawn_where_the_others_of_its_role_and_step_begin() -> None:
    # GIVEN step 1 at 0 s, of step 2 the reference at 60 s and the update at 64 s and, of a rank
    # whose clock is weeks early, the update and a range that begins 3 s inside of it
    starts = [0, 60, 64, -4_000_000, -3_999_997]
    belongs = [("ref", 1), ("ref", 2), ("update", 2), ("update", 2), ("update", 2)]
    settled = settle(
        np.array([EPOCH + start * SECOND for start in starts]),
        ["utc"] * 5,
        ["a", "b", "c", "d", "d"],
        [None, None, None, "weeks early", "weeks early"],
        belongs,
    )
    # THEN the axis begins with what has a date
    assert settled.origin_ns == EPOCH
    assert (settled.start_ns // SECOND).tolist() == [0, 60, 64, 64, 67]
    assert settled.undated.tolist() == [False, False, False, True, True]
    assert settled.note == [None, None, None, "weeks early", "weeks early"]


def test_without_others_of_its_role_it_is_drawn_with_its_step_else_at_the_origin() -> None:
    for step, begins in ((2, 60), (7, 0)):
        settled = settle(
            np.array([EPOCH, EPOCH + 60 * SECOND, EPOCH + 90 * DAY]),
            ["utc"] * 3,
            ["a", "b", "c"],
            [None, None, "late"],
            [("ref", 1), ("ref", 2), ("update", step)],
        )
        assert (settled.start_ns // SECOND).tolist() == [0, 60, begins]


def test_a_picture_says_that_a_file_is_not_drawn_at_its_own_time(tmp_path: Path) -> None:
    # GIVEN two ranks of a step, the second of which is 50 days early
    made = Tables()
    for rank, start_ms in ((0, 0.0), (1, -50 * 86_400_000.0)):
        made.lane(f"{rank}", role="actor_update", rank_id=rank, step=3, step_index=0)
        made.span(f"{rank}", start_ms, 8_000, role="actor_update", rank_id=rank, step=3)
    evidence = "its clock puts it 50.0 days before the other capture of step 3"
    far_off = {"code": "clock_far", "severity": "warning", "count": 1, "example": evidence}
    made.sources[1] = {**made.sources[1], "problems": [far_off]}
    made.write(tmp_path)
    # WHEN they are drawn
    timeline = timeline_data.load(tmp_path)
    # THEN the axis is as long as the stage, and heading, list and bar say so
    assert timeline.extent_ns == 8 * SECOND
    assert (
        timeline_words.heading(timeline).lost == "1 file drawn out of time: its clock is days off"
    )
    troubles = timeline_words.troubles(timeline)
    assert troubles is not None
    assert troubles.summary == (
        "1 file drawn out of time: its clock is days off, 1 file read with doubts (of 2)"
    )
    (listed,) = troubles.shown
    assert listed[2] == f"clock_far: {evidence}"
    assert timeline.spans.remarks == [(), (f"I{evidence[1:]}.",)]
