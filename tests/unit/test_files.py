"""A file appears whole or not at all."""

import os
from pathlib import Path

import pytest

from rl_insight.files import replacing


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with replacing(path) as temporary:
        temporary.write_text("half")
        assert not path.exists()
        temporary.write_text("whole")
    assert path.read_text() == "whole"
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_the_temporary_file_lies_in_the_same_folder_so_that_moving_it_is_one_step(
    tmp_path: Path,
) -> None:
    with replacing(tmp_path / "page.html") as temporary:
        assert temporary.parent == tmp_path
        temporary.touch()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_was_there_stays_when_writing_fails(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "page.html"
    path.write_text("the page of yesterday")
    with pytest.raises(type(error)), replacing(path) as temporary:
        temporary.write_text("half")
        raise error
    assert path.read_text() == "the page of yesterday"
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_writing_nothing_is_an_error_and_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("the page of yesterday")
    with pytest.raises(FileNotFoundError), replacing(path):
        pass
    assert path.read_text() == "the page of yesterday"


def test_a_file_may_be_called_anything(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"- {x} *\n\xff.json")
    with replacing(path) as temporary:
        temporary.write_text("whole")
    assert path.read_text() == "whole"
