"""Lines of text come whole, whatever the pieces in which they are read."""

import gzip
from pathlib import Path

import pytest

from rl_insight.errors import ReadError
from rl_insight.problems import Problems
from rl_insight.readers import text_lines


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("step", [1, 2, 7, 1 << 18])
@pytest.mark.parametrize("text", ["", "a", "a\n", "\n\n", "one\r\ntwo\n\nthree", "ü€𝄞\n" * 50])
def test_lines_are_those_of_the_text(
    text: str, step: int, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "_STEP", step)
    path = tmp_path / "file"
    raw = text.encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    expected = [line + "\n" for line in text.split("\n")]
    expected[-1] = expected[-1][:-1]
    assert list(text_lines.lines(path, Problems())) == [line for line in expected if line]


def test_what_is_no_utf_8_is_replaced_and_damage_noted(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(b"a\xffb\n" + b"c" * 100)[:-9])
    problems = Problems()
    assert next(text_lines.lines(path, problems)) == "a�b\n"
    list(text_lines.lines(path, problems))
    assert "gzip_truncated" in problems


def test_a_line_that_is_too_long_is_refused_behind_those_before(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"first\n" + b"x" * (3 << 20))
    lines = text_lines.lines(path, Problems())
    assert next(lines) == "first\n"
    with pytest.raises(ReadError, match="line 2 has more than 1,048,576 bytes"):
        next(lines)
    with pytest.raises(ReadError, match="cannot be opened"):
        next(text_lines.lines(tmp_path / "nothing", Problems()))
