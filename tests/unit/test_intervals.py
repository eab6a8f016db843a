import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_insight.intervals import EMPTY, Intervals, Joiner, clip, join, merged, overlap, union
from tests.interval_sets import PAIRS, instants, make, pairs_of


def test_overlapping_and_touching_intervals_become_one() -> None:
    assert pairs_of(make((10, 20), (15, 30), (30, 31), (50, 60))) == [(10, 31), (50, 60)]


def test_an_interval_inside_another_does_not_shorten_it() -> None:
    assert pairs_of(make((0, 100), (10, 20), (30, 40))) == [(0, 100)]


def test_the_order_in_which_intervals_come_does_not_matter() -> None:
    assert pairs_of(make((50, 60), (10, 20), (15, 30))) == [(10, 30), (50, 60)]


def test_intervals_without_length_count_for_nothing() -> None:
    assert pairs_of(make((5, 5), (9, 3))) == []
    assert EMPTY.total == 0


def test_lengths_are_exact_at_todays_unix_time_in_nanoseconds() -> None:
    now = 1_771_730_291_744_166_997
    assert make((now, now + 1), (now + 2, now + 5)).total == 4


def test_clipping_cuts_what_reaches_over_the_edges_of_the_window() -> None:
    busy = make((0, 10), (20, 30), (40, 50))
    assert pairs_of(clip(busy, 5, 45)) == [(5, 10), (20, 30), (40, 45)]
    assert pairs_of(clip(busy, 10, 20)) == []
    assert pairs_of(clip(busy, 22, 25)) == [(22, 25)]


def test_overlap_is_the_time_that_both_cover() -> None:
    assert overlap(make((0, 10), (20, 30)), make((5, 25))) == 10
    assert overlap(make((0, 10)), make((10, 20))) == 0
    assert overlap(EMPTY, make((0, 1))) == 0


def test_joining_closes_the_smallest_gaps_first_and_says_how_wide_they_were() -> None:
    # Gaps of 1, 5, 2: three intervals remain when the gap of 1 is closed.
    busy = make((0, 10), (11, 20), (25, 30), (32, 40))
    assert pairs_of(join(busy, 3)[0]) == [(0, 20), (25, 30), (32, 40)]
    assert join(busy, 3)[1] == 2  # closer than 2 ns
    assert pairs_of(join(busy, 2)[0]) == [(0, 20), (25, 40)]
    assert pairs_of(join(busy, 1)[0]) == [(0, 40)]


def test_few_intervals_are_left_as_they_are_with_a_gap_of_zero() -> None:
    busy = make((0, 10), (11, 20))
    assert join(busy, 2) == (busy, 0)


def test_a_gap_may_be_asked_for() -> None:
    busy = make((0, 10), (12, 20), (25, 30))
    joined, gap = join(busy, 3, closer_than=3)
    assert (pairs_of(joined), gap) == ([(0, 20), (25, 30)], 3)


def test_equal_gaps_are_closed_alike() -> None:
    busy = make((0, 1), (3, 4), (6, 7), (9, 10))
    joined, gap = join(busy, 3)
    assert pairs_of(joined) == [(0, 10)]
    assert gap == 3


@given(PAIRS)
def test_a_union_covers_exactly_the_instants_that_its_parts_cover(
    raw: list[tuple[int, int]],
) -> None:
    pairs = [(start, start + length) for start, length in raw]
    result = make(*pairs)
    assert instants(pairs_of(result)) == instants(pairs)
    assert result.total == len(instants(pairs))
    assert all(start < end for start, end in pairs_of(result))
    assert (result.starts[1:] > result.ends[:-1]).all()


@given(PAIRS, PAIRS, st.integers(0, 50), st.integers(1, 20))
def test_overlap_clip_and_merge_agree_with_counting_instants(
    one: list[tuple[int, int]], other: list[tuple[int, int]], low: int, length: int
) -> None:
    a = [(start, start + long) for start, long in one]
    b = [(start, start + long) for start, long in other]
    assert overlap(make(*a), make(*b)) == len(instants(a) & instants(b))
    assert instants(pairs_of(merged(make(*a), make(*b)))) == instants(a) | instants(b)
    window = set(range(low, low + length))
    assert instants(pairs_of(clip(make(*a), low, low + length))) == instants(a) & window


@given(PAIRS.filter(bool), st.integers(1, 6))
def test_joining_keeps_every_gap_that_is_not_closer(raw: list[tuple[int, int]], most: int) -> None:
    busy = make(*((start, start + length) for start, length in raw))
    joined, gap = join(busy, most)
    assert len(joined) <= most
    gaps = busy.starts[1:] - busy.ends[:-1]
    assert len(joined) == (gaps >= gap).sum() + (len(busy) > 0)
    assert instants(pairs_of(busy)) <= instants(pairs_of(joined))


@pytest.mark.parametrize("most", [1, 2, 3])
@given(raw=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=200))
def test_collecting_piece_by_piece_gives_the_same_as_joining_at_once(
    most: int, raw: list[tuple[int, int]]
) -> None:
    ends = np.cumsum([gap + length for gap, length in raw])
    starts = ends - [length for _, length in raw]
    whole = union(starts, ends)
    joiner = Joiner(most)
    for at in range(0, len(whole), 5):
        joiner.add(Intervals(whole.starts[at : at + 5], whole.ends[at : at + 5]))
    joined, gap = joiner.result()
    expected, expected_gap = join(whole, most)
    assert pairs_of(joined) == pairs_of(expected)
    assert gap == expected_gap


def test_an_interval_that_was_cut_between_two_pieces_is_whole_again() -> None:
    joiner = Joiner(10)
    joiner.add(make((0, 5), (8, 10)))
    joiner.add(make((10, 12)))
    joined, gap = joiner.result()
    assert pairs_of(joined) == [(0, 5), (8, 12)]
    assert gap == 0


def test_nothing_collected_is_nothing() -> None:
    assert Joiner(3).result() == (EMPTY, 0)
