"""Files and folders may be called anything, also what Snakemake and shells give a meaning."""

import os
import shutil
from pathlib import Path

import pytest

from tests.workflow.conftest import DEMO, rows, run

pytestmark = pytest.mark.workflow

PREFIXES = (b"sp ace ", b"new\nline_", b"not utf-8 \xff_", b"-dash_", b"{braces}_", b"*[glob]?_")


def test_captures_of_any_name_are_drawn_and_not_drawn_again(tmp_path: Path) -> None:
    # GIVEN a folder and files with such names, and an expression with braces of its own
    source = tmp_path / os.fsdecode(b"-in {x} 'q' \xff")
    source.mkdir()
    captures = sorted(DEMO.glob("*actor-update_step*"))[: len(PREFIXES)]
    for prefix, capture in zip(PREFIXES, captures, strict=True):
        shutil.copy2(capture, source / (os.fsdecode(prefix) + capture.name))
    words = ["--input-path", str(source), "--profiler-type", "torch"]
    words += ["input.identity=pid(?P<rank>[0-9]{4})_"]

    # WHEN they are drawn
    first = run(tmp_path / "out", *words)

    # THEN each has its lane, with the rank that the expression finds
    assert first.code == 0, first.text
    assert first.jobs == {"parse": 6, "merge": 1, "timeline_html": 1}
    expected = [int(capture.name.partition("_pid")[2][:4]) for capture in captures]
    assert sorted(row["rank_id"] for row in rows(tmp_path / "out", "lanes")) == sorted(expected)
    assert {row["status"] for row in rows(tmp_path / "out", "sources")} == {"ok"}

    again = run(tmp_path / "out", *words)
    assert again.code == 0, again.text
    assert not again.jobs
