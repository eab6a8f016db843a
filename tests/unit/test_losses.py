"""What the reader lost, in words that a person understands."""

import pytest

from rl_insight.parsers.losses import lost, why_empty
from rl_insight.plain_text import holds_command
from rl_insight.problems import Problems


@pytest.mark.parametrize(
    ("code", "count", "offset", "words"),
    [
        ("line_undecodable", 1, 1168, "a line cannot be read, at byte 1,168"),
        ("line_undecodable", 3, 1168, "3 lines cannot be read, the first at byte 1,168"),
        ("event_undecodable", 1200, None, "1,200 events cannot be read"),
        ("of_a_kind_to_come", 2, 0, "of a kind to come, 2 times, the first at byte 0"),
    ],
)
def test_damage_is_said_in_words(code: str, count: int, offset: int | None, words: str) -> None:
    problems = Problems()
    problems.add(code, "warning", count, offset)
    kept = "the 15 rows that could be read are kept"
    assert lost(problems, 15, "row") == f"damaged: {words}; {kept}"
    assert lost(problems, 15, "row", "schema version 3.25.0") == (
        f"damaged: {words} (schema version 3.25.0); {kept}"
    )


def test_impossible_times_are_not_called_missing_ones() -> None:
    # GIVEN a trace in which every time is in ns, and one without any time
    problems = Problems()
    problems.add("no_time", "info", 41, 0, "'k': ts 1771730327316353000, dur 5")
    # THEN the first says what is wrong with it
    assert why_empty(problems, 42) == (
        "no timed events: 41 of its 42 events have an impossible time, "
        "such as 'k': ts 1771730327316353000, dur 5"
    )
    assert why_empty(Problems(), 42) == ("no timed events: none of its 42 events has a duration")


def test_a_command_is_known_in_a_sentence() -> None:
    for text in (
        "run this: rl-insight preprocess '/a b'",
        "or there: nsys export --type sqlite -o a.sqlite a.nsys-rep",
        "none of its rows names a table (nsys export --type sqlite a.nsys-rep)",
    ):
        assert holds_command(text)
    for text in ("an nsys exporter wrote it", "rl-insight read it", "my_nsys export", ""):
        assert not holds_command(text)
