"""Texts for a terminal are safe and short."""

import pytest

from rl_insight.pipeline.terminal import duration, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("训练 - Rank 3", "训练 - Rank 3"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[H\x9b31mcleared", "cleared"),
        ("\x1b]0;title\x07after\x1b]8;;http://x\x1b\\link", "afterlink"),
        ("\x1bcreset", "reset"),
        ("a\nb\r\nc\td\u2028e", "a b c d e"),
        ("evil\u202egnp.html", "evil\ufffdgnp.html"),
        ("zero\u200bwidth", "zero\ufffdwidth"),
        ("bell\x07null\x00del\x7f", "bell\ufffdnull\ufffddel\ufffd"),
        ("lone\udcff", "lone\ufffd"),
    ],
)
def test_nothing_that_a_terminal_obeys_gets_through(text, shown):
    assert printable(text) == shown


def test_a_long_name_is_cut():
    assert printable("x" * 500, 10) == "xxxxxxxxx…"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3725, "1 h 02 min"),
    ],
)
def test_a_duration_is_said_as_a_person_says_it(seconds, text):
    assert duration(seconds) == text
