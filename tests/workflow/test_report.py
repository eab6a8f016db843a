"""Snakemake's report of a run: one file to hand on."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.conftest import run

pytestmark = pytest.mark.workflow


def test_a_report_holds_the_pictures_with_captions_and_the_runtimes(
    captures: Callable[[str], Path], tmp_path: Path
) -> None:
    source, output = captures("*actor-update_step1_*"), tmp_path / "out"
    words = ("--input-path", str(source), "--profiler-type", "torch", "--vis-type", "html,png")

    # WHEN one command draws into a folder that is new, and is to report on that
    told = run(output, *words, "--", "--report", "report.zip")

    # THEN it does both, and says where the report is beside the pictures
    assert told.code == 0, told.text
    assert told.jobs["timeline_html"] == told.jobs["timeline_png"] == 1
    opened = [line.partition(" ")[2] for line in told.text.splitlines() if line.startswith("Open")]
    files = ("rl_timeline.html", "rl_timeline.png", "report.zip")
    assert opened == [str(output / name) for name in files]
    with zipfile.ZipFile(output / "report.zip") as report:
        names = {Path(name).name for name in report.namelist()}
        assert {"rl_timeline.html", "rl_timeline.png", "report.html"} <= names
        (page,) = (name for name in report.namelist() if name.endswith("report.html"))
        text = report.read(page).decode()
    for expected in (
        "Cross-rank timeline of a reinforcement-learning run",  # what the whole is
        "on one clock",  # the pictures' caption
        "Timeline",  # their category
        "page, opens offline",  # what tells them apart
        "picture",
        "timeline_png",  # runtimes by rule
        "merge",
    ):
        assert expected in text, expected


def test_a_run_that_fails_has_no_report(captures: Callable[[str], Path], tmp_path: Path) -> None:
    source, output = captures("*actor-update_step1_rank0*"), tmp_path / "out"
    words = ("--input-path", str(source), "--profiler-type", "torch")
    told = run(output, *words, "--", "--report", "report.zip", "no_such_target")
    assert told.code == 1
    assert "the run failed" in told.text
    assert not (output / "report.zip").exists()
    assert not any(line.startswith("Open") for line in told.text.splitlines())
