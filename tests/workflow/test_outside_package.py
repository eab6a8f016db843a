"""Another package adds a parser and a visualizer; docs/extending.md shows this one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.conftest import CHECKOUT, rows, run

pytestmark = pytest.mark.workflow


def test_an_outside_package_adds_a_parser_and_a_visualizer(tmp_path: Path) -> None:
    site = tmp_path / "site"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
            *("--no-build-isolation", "--target", str(site)),
            str(CHECKOUT / "tests" / "data" / "outside_package"),
        ],
        check=True,
        timeout=120,
    )
    source, output = tmp_path / "profiles", tmp_path / "out"
    source.mkdir()
    (source / "a.stopwatch.csv").write_text(
        "0,update_actor,1790000000000000000,2500000000\n"
        "0,compute_log_prob,1790000003000000000,500000000\n"
    )
    (source / "b.stopwatch.csv").write_text("1,update_actor,1790000000000000000,4000000000\n")
    (source / "c.stopwatch.csv").write_text("not,a,stop,watch\n")

    ended = run(
        output,
        *("--input-path", str(source), "--profiler-type", "stopwatch"),
        "timeline.visualizer.type=slowest,html",
        env={"PYTHONPATH": str(site) + os.pathsep + str(CHECKOUT)},
    )

    assert ended.code == 0, ended.text
    assert (output / "slowest.txt").read_text() == "actor_update on rank 1: 4.0 s\n"
    assert (output / "rl_timeline.html").is_file()
    assert {(row["rank_id"], row["name"]) for row in rows(output, "spans")} == {
        (0, "actor_update"),
        (0, "actor_compute_log_prob"),
        (1, "actor_update"),
    }
    broken = [row for row in rows(output, "sources") if row["status"] == "failed"]
    assert [row["detail"] for row in broken] == ["line 1 is not rank,stage,start_ns,duration_ns"]
