"""What is drawn where spans are narrower than pixels."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rl_insight.visualizers.timeline_marks import Mark, marks

CELL = 10.0


def drawn(spans: list[tuple[int, int, int]], gap: int = 1) -> list[Mark]:
    return marks([s[0] for s in spans], [s[1] for s in spans], [s[2] for s in spans], CELL, gap)


def test_a_wide_span_is_a_bar_of_its_own() -> None:
    assert drawn([(20, 80, 4)]) == [Mark(2, 8, 4, True)]


def test_neighbouring_bars_have_a_white_edge_between_them() -> None:
    assert drawn([(0, 50, 1), (50, 100, 1)]) == [Mark(0, 4, 1, True), Mark(5, 10, 1, True)]
    assert drawn([(0, 50, 1), (50, 100, 1)], gap=2)[0] == Mark(0, 3, 1, True)


def test_bars_that_stand_apart_keep_their_ends() -> None:
    assert drawn([(0, 50, 1), (70, 120, 1)])[0] == Mark(0, 5, 1, True)


def test_short_spans_of_one_stage_run_together() -> None:
    assert drawn([(0, 4, 1), (5, 9, 1), (10, 19, 1), (40, 41, 1)]) == [
        Mark(0, 2, 1, False),
        Mark(4, 5, 1, False),
    ]


def test_in_a_shared_pixel_the_stage_that_covers_most_of_it_wins() -> None:
    assert drawn([(0, 3, 1), (3, 9, 2)]) == [Mark(0, 1, 2, False)]


def test_a_span_on_a_pixels_edge_fills_both() -> None:
    assert drawn([(8, 12, 1)]) == [Mark(0, 2, 1, False)]


@st.composite
def lines(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    made, at = [], 0
    for gap, long, paint in draw(
        st.lists(st.tuples(st.integers(0, 60), st.integers(1, 90), st.integers(0, 2)), max_size=40)
    ):
        made.append((at + gap, at + gap + long, paint))
        at += gap + long
    return made


@settings(deadline=None)
@given(lines(), st.integers(1, 3))
def test_every_occupied_pixel_is_shown_but_for_the_edges_and_none_else(
    spans: list[tuple[int, int, int]], gap: int
) -> None:
    occupied = {
        pixel for start, end, _ in spans for pixel in range(int(start // CELL), -int(-end // CELL))
    }

    made = drawn(spans, gap)

    shown = {pixel for mark in made for pixel in range(mark.left, mark.right)}
    edges = {
        pixel for mark in made if mark.single for pixel in range(mark.right, mark.right + gap + 1)
    }
    assert shown <= occupied
    assert occupied - shown <= edges
    assert all(mark.left < mark.right for mark in made)
    assert len(made) <= len(occupied)
