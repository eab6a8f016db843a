"""Captures whose clock does not tell the date stand beside those whose clock does."""

from rl_insight.pipeline.clock import offsets


def test_captures_that_know_the_time_are_never_shifted() -> None:
    assert offsets(["utc", "utc"], [1_000, 9_000_000_000]) == [0, 0]


def test_relative_captures_move_together_to_begin_with_the_first_that_knows_the_time() -> None:
    # GIVEN two captures on one relative clock, 30 apart, and two that know the time
    assert offsets(["relative", "utc", "relative", "utc"], [50, 1_200, 20, 1_000]) == [
        980,  # 50 + 980 = 1,030: still 30 after the other
        0,
        980,  # 20 + 980 = 1,000: the first that knows the time
        0,
    ]


def test_relative_captures_alone_keep_their_times() -> None:
    assert offsets(["relative", "relative"], [20, 50]) == [0, 0]


def test_a_relative_capture_may_begin_at_zero() -> None:
    assert offsets(["relative", "utc"], [0, 1_000]) == [1_000, 0]


def test_a_capture_without_a_start_decides_nothing_but_moves_along() -> None:
    assert offsets(["relative", "relative", "utc", "utc"], [None, 20, None, 1_000]) == [
        980,
        980,
        0,
        0,
    ]
    assert offsets(["relative", "utc"], [None, 1_000]) == [0, 0]
    assert offsets(["relative", "utc"], [5, None]) == [0, 0]


def test_a_clock_of_unknown_kind_is_left_alone() -> None:
    assert offsets([None, "boot", "relative", "utc"], [1, 2, 3, 10]) == [0, 0, 7, 0]


def test_no_captures_need_no_offsets() -> None:
    assert offsets([], []) == []
