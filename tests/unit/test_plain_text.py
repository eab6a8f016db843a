"""What a terminal and a page have in common: no escape sequences, and things counted in words."""

import pytest

from rl_insight.plain_text import count, without_escapes
from rl_insight.visualizers.labels import plain


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07after\x1b]8;;http://x\x1b\\link", "afterlink"),
        ("\x1bP1$rdevice\x1b\\after", "after"),
        ("\x1bcreset", "reset"),
        ("a\nb", "a\nb"),
    ],
)
def test_sequences_that_a_terminal_obeys_are_gone_also_from_labels(text: str, left: str) -> None:
    assert without_escapes(text) == left
    assert plain(text) == " ".join(left.split())


def test_things_are_counted() -> None:
    assert [count(1, "file"), count(0, "file"), count(12345, "file")] == [
        "1 file",
        "0 files",
        "12,345 files",
    ]
    assert [count(1, "process", "processes"), count(2, "process", "processes")] == [
        "1 process",
        "2 processes",
    ]
