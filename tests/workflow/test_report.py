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
    drawn = run(output, *words)
    assert drawn.code == 0, drawn.text

    told = run(output, *words, "--", "--report", "report.zip")

    assert told.code == 0, told.text
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
