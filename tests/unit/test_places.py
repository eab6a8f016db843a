"""What stands in the way in an output folder is named before anything is written."""

import os
import re
from pathlib import Path

import pytest

from rl_insight.errors import ConfigError
from rl_insight.main import main
from rl_insight.pipeline.places import check_places
from rl_insight.pipeline.workflow import Run
from tests.made_up_parser import NoteParser, capture, write_note

PAGES = ("rl_timeline.html", "rl_timeline.png")
FOLDERS = (
    "tables",
    "parsed",
    "parsed/torch",
    "parsed/torch/rank0-0123456789",
    "logs",
    "logs/parse",
    "logs/parse/torch",
    "benchmarks",
    "benchmarks/parse",
    "benchmarks/parse/torch",
)
FILES = (
    *PAGES,
    "manifest.json",
    "config.yaml",
    "live.js",
    ".lock",
    "tables/sources.parquet",
    "tables/spans.parquet",
    "tables/expert_balance.parquet",
    "parsed/skipped.json",
    "parsed/growing.json",
    "parsed/attempt.txt",
    "parsed/unfinished",
    "parsed/expert_load.parquet",
    "parsed/torch/rank0-0123456789.json",
    "logs/merge.log",
    "logs/rl-insight.log",
    "logs/parse/torch/rank0.log",
    "benchmarks/merge.tsv",
    "benchmarks/parse/torch/rank0.tsv",
)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def linked(path: Path, target: Path | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def refused(output: Path, path: Path, why: str) -> None:
    with pytest.raises(ConfigError) as error:
        check_places(output, PAGES)
    text = str(error.value)
    assert text.startswith(f"output.path: {str(path)!r} is {why}"), text
    assert text.endswith(", or choose another folder"), text


@pytest.mark.parametrize("place", (*FOLDERS, *FILES))
def test_a_link_that_leads_out_is_refused(output: Path, elsewhere: Path, place: str) -> None:
    target = elsewhere / "theirs"
    if place in FOLDERS:
        target.mkdir()
    else:
        target.touch()
    path = linked(output / place, target)
    refused(output, path, f"a link to {str(target)!r}, and nothing is written outside of ")


@pytest.mark.parametrize("place", (*FOLDERS, *FILES))
def test_a_link_to_nothing_is_refused(output: Path, place: str) -> None:
    refused(output, linked(output / place, "gone"), "a link to nothing: remove the link")


@pytest.mark.parametrize("target", ["../elsewhere/gone", "/nowhere/at/all"])
def test_a_link_to_nothing_elsewhere_is_refused(output: Path, target: str) -> None:
    path = linked(output / "rl_timeline.html", target)
    refused(output, path, f"a link to {target!r}, and nothing is written outside of ")


def test_a_link_that_leads_in_a_circle_is_refused(output: Path) -> None:
    refused(output, linked(output / "tables", "tables"), "a link to nothing: remove the link")


@pytest.mark.parametrize("place", FILES)
def test_a_folder_in_the_place_of_a_file_is_refused(output: Path, place: str) -> None:
    (output / place).mkdir(parents=True)
    refused(output, output / place, "a folder where a file is to be written: move it away")


@pytest.mark.parametrize("place", FOLDERS)
def test_a_file_in_the_place_of_a_folder_is_refused(output: Path, place: str) -> None:
    (output / place).parent.mkdir(parents=True, exist_ok=True)
    (output / place).touch()
    refused(output, output / place, "a file where a folder is to be written: move it away")


def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_opened(output: Path) -> None:
    os.mkfifo(output / ".lock")
    refused(output, output / ".lock", "no regular file where a file is to be written")


def test_what_is_not_ours_and_what_leads_nowhere_else_is_left_alone(
    output: Path, elsewhere: Path
) -> None:
    # Ours: the link to the input, a cache that was put aside, a page of another run.
    linked(output / "parsed" / ".input", elsewhere)
    linked(output / "tables", "aside")
    (output / "aside").mkdir()
    (output / "gmm_heatmap.png").mkdir()
    # Snakemake's own folder, which some put on a faster disk.
    linked(output / ".snakemake", elsewhere)
    # Somebody else's.
    linked(output / "notes", elsewhere)
    linked(output / "aside" / "notes.parquet", elsewhere)
    linked(output / "logs" / "slurm.d", elsewhere)
    check_places(output, PAGES)


def test_the_output_folder_itself_may_be_a_link(output: Path, tmp_path: Path) -> None:
    (output / "tables").mkdir()
    (output / "rl_timeline.html").touch()
    check_places(linked(tmp_path / "report", output), PAGES)


def test_a_folder_that_is_not_there_yet_is_fine(output: Path) -> None:
    check_places(output / "new", PAGES)


@pytest.mark.parametrize(
    ("place", "more"),
    [
        ("tables", {}),
        ("rl_timeline.png", {"timeline.visualizer.type": "png"}),
        ("gmm_heatmap.html", {"preset": "all", "heatmap.visualizer.type": "gmm_heatmap_html"}),
    ],
)
def test_every_run_looks_before_it_writes(
    tmp_path: Path, elsewhere: Path, notes: NoteParser, place: str, more: dict[str, str]
) -> None:
    # GIVEN captures, and a link where something of the run would be
    write_note(tmp_path / "in" / "rank0.note", **capture())
    output = tmp_path / "out"
    linked(output / place, elsewhere)
    values = {"input.path": str(tmp_path / "in"), "output.path": str(output), "input.settle": 0}
    # WHEN Snakemake looks at them, THEN the link is named, and nothing was written
    with pytest.raises(ConfigError, match=re.escape(str(output / place))):
        Run.prepare({**values, "timeline.parser.type": "notes", **more}, main_process=True)
    assert [path.name for path in output.iterdir()] == [place]
    assert not list(elsewhere.iterdir())


def test_the_command_line_ends_with_a_sentence_and_2(
    tmp_path: Path, notes: NoteParser, capsys: pytest.CaptureFixture[str]
) -> None:
    write_note(tmp_path / "in" / "rank0.note", **capture())
    (tmp_path / "out" / "rl_timeline.html").mkdir(parents=True)
    words = ["--input-path", str(tmp_path / "in"), "--output-path", str(tmp_path / "out")]
    assert main([*words, "--profiler-type", "notes", "--settle", "0"]) == 2
    path = tmp_path / "out" / "rl_timeline.html"
    assert capsys.readouterr().err == (
        f"error: output.path: {str(path)!r} is a folder where a file is to be written: "
        "move it away, or choose another folder\n"
    )


def test_what_nobody_expected_is_logged_nowhere_else(
    tmp_path: Path,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stumble(config: object, arguments: object) -> int:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("rl_insight.main._draw", stumble)
    linked(tmp_path / "out" / "logs", elsewhere)
    assert main(["--input-path", str(tmp_path), f"output.path={tmp_path / 'out'}"]) == 1
    assert not list(elsewhere.iterdir())
    assert "(details: run it again with RL_INSIGHT_DEBUG=1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "place",
    ["README", "parsed/README", "parsed/torch/notes", "logs/old", "logs/x.log", "benchmarks/NOTES"],
)
def test_what_a_person_keeps_there_may_be_anything(
    output: Path, elsewhere: Path, place: str
) -> None:
    path = output / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    check_places(output, PAGES)
    path.unlink()
    path.mkdir()
    check_places(output, PAGES)
    path.rmdir()
    linked(path, elsewhere)
    check_places(output, PAGES)


@pytest.mark.parametrize("target", [None, "gone", ".snakemake"])
def test_snakemakes_folder_must_be_one(output: Path, target: str | None) -> None:
    path = output / ".snakemake"
    if target is None:
        path.touch()
    else:
        linked(path, target)
    refused(output, path, "no folder, and Snakemake keeps its notes there: remove it")
