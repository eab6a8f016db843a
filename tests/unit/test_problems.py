"""Problems are counted by kind, located once, and never fill the table."""

import pytest

from rl_insight.problems import EXAMPLE_LIMIT, Problem, Problems


def test_the_same_kind_of_trouble_is_counted_once_with_its_first_place() -> None:
    problems = Problems()
    problems.add("bad_event", "warning", offset=17, example="first")
    problems.add("bad_event", "warning", count=4, offset=3, example="second")

    assert list(problems) == [Problem("bad_event", "warning", 5, 17, "first")]
    assert problems.count("bad_event") == 5


def test_an_example_and_an_offset_are_taken_from_the_first_that_has_one() -> None:
    problems = Problems()
    problems.add("bad_event", "info")
    problems.add("bad_event", "info", offset=9)
    problems.add("bad_event", "info", offset=20, example="seen later")

    assert list(problems) == [Problem("bad_event", "info", 3, 9, "seen later")]


@pytest.mark.parametrize("order", [("info", "error", "warning"), ("error", "warning", "info")])
def test_the_worst_severity_stays(order: tuple[str, ...]) -> None:
    problems = Problems()
    for severity in order:
        problems.add("x", severity)  # type: ignore[arg-type]
    (problem,) = problems
    assert problem.severity == "error"


def test_a_hostile_example_is_cut_to_the_limit_and_marked() -> None:
    problems = Problems()
    problems.add("long", "info", example="x" * 1_000_000)
    problems.add("fits", "info", example="y" * EXAMPLE_LIMIT)
    long, fits = problems

    assert long.example is not None
    assert len(long.example) == EXAMPLE_LIMIT
    assert long.example.endswith("x…")
    assert fits.example == "y" * EXAMPLE_LIMIT


def test_what_did_not_happen_is_no_problem() -> None:
    problems = Problems()
    problems.add("lost_events", "error", count=0, example="none was lost")
    assert len(problems) == 0
    assert "lost_events" not in problems
    assert problems.count("lost_events") == 0


def test_nonsense_is_refused() -> None:
    problems = Problems()
    with pytest.raises(ValueError, match="severity 'fatal' is not one of info, warning, error"):
        problems.add("x", "fatal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="counted -1 times"):
        problems.add("x", "info", count=-1)
    assert len(problems) == 0


def test_problems_of_two_readers_are_joined_by_kind() -> None:
    first, second = Problems(), Problems()
    first.add("a", "info", count=2)
    second.add("b", "error", offset=5)
    second.add("a", "warning", count=3, offset=8, example="x")

    first.extend(second)

    assert list(first) == [Problem("a", "warning", 5, 8, "x"), Problem("b", "error", 1, 5, None)]
    assert list(second) == [Problem("b", "error", 1, 5, None), Problem("a", "warning", 3, 8, "x")]
    assert "a" in first
    assert len(first) == 2
