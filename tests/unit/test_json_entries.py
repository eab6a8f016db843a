"""The members of large JSON objects, in blocks and one by one, whole and damaged."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rl_insight.errors import ReadError
from rl_insight.problems import Problems
from rl_insight.readers.json_entries import entries

CONTENT: dict[str, Any] = {
    "task": "tensor",
    "data": {
        f"call.{number}": {"list": [number, {"deep": 'a "quoted", {text}\n  "x": 1'}], "é": None}
        for number in range(3_000)
    },
    "after": [1, 2],
}


def read(path: Path, keep_bytes: int = 1 << 20, inside: str | None = "data") -> dict[str, Any]:
    """All members, decoded; those that were too long are None."""
    problems = Problems()
    found = list(entries(path, problems, keep_bytes, inside))
    assert not list(problems)
    assert len({key for key, _ in found}) == len(found)
    return {key: None if text is None else json.loads(text) for key, text in found}


@pytest.mark.parametrize("indent", [None, 0, 1, 4, "\t"])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_members_come_as_they_stand_however_the_text_is_laid_out(
    tmp_path: Path, indent: int | str | None, separators: tuple[str, str]
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(CONTENT, indent=indent, separators=separators), "utf-8")
    flat = {"task": CONTENT["task"], **CONTENT["data"], "after": CONTENT["after"]}
    assert read(path) == flat
    assert read(path, inside=None) == CONTENT


def test_more_than_one_block_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    content = {f"call.{number}": "x" * 1_000 for number in range(5_000)}
    path.write_text(json.dumps(content, indent=1))
    assert path.stat().st_size > 4 << 20
    assert read(path) == content


def test_what_only_python_takes_for_json_costs_no_member(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    content = {f"call.{number}": [number, float("inf")] for number in range(100)}
    path.write_text(json.dumps(content, indent=1))
    assert read(path) == content


def test_a_long_value_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    content = {"a": "short", "b": "x" * 3_000_000, "c": ["y" * 5_000], "d": 5}
    for indent in (None, 1):
        path.write_text(json.dumps(content, indent=indent))
        assert read(path, keep_bytes=1_000) == {"a": "short", "b": None, "c": None, "d": 5}


def test_a_gzip_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(gzip.compress(json.dumps({"a": 1}).encode()))
    assert read(path) == {"a": 1}


@pytest.mark.parametrize("indent", [None, 1])
def test_what_breaks_off_is_read_up_to_there(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "x.json"
    text = json.dumps(CONTENT, indent=indent)
    for share in (0.2, 0.5, 0.99):
        cut = text[: int(len(text) * share)]
        path.write_text(cut)
        problems = Problems()
        found = [key for key, _ in entries(path, problems, 1 << 20, "data")]
        # Whole are those whose successor has begun, and at most one more.
        begun = cut.count('"call.')
        assert found[0] == "task"
        assert len(found) - 1 in (begun - 1, begun)
        (problem,) = problems
        assert problem.code == "json_damaged"
        assert problem.offset is not None
        assert problem.offset <= len(cut)


@pytest.mark.parametrize("text", ["", "[1]", "hello", "\0\0"])
def test_what_is_no_object_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    problems = Problems()
    assert list(entries(path, problems, 100)) == []
    assert [one.example for one in problems] == ["it holds no JSON object"]


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        list(entries(tmp_path / "x.json", Problems(), 100))
