"""What happens to the output folder when runs meet there, break off, or find somebody's files."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.conftest import rows, run
from tests.workflow.stopping import processes

pytestmark = pytest.mark.workflow

Captures = Callable[[str], Path]


def test_a_killed_run_is_followed_by_one_that_finishes(captures: Captures, tmp_path: Path) -> None:
    source, output = captures("*actor-update_step1_*"), tmp_path / "out"
    words = ["--input-path", str(source), "--profiler-type", "torch"]
    first = subprocess.Popen(
        [sys.executable, "-m", "rl_insight.main", f"output.path={output}", *words, "--cores", "1"],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    while not list(output.glob("logs/parse/torch/*.log")):
        assert first.poll() is None
        time.sleep(0.05)
    refused = run(output, *words)
    assert refused.code == 2, refused.text
    assert "another run is at work" in refused.text

    for process in processes(first.pid):
        os.kill(process, signal.SIGKILL)
    first.wait()
    again = run(output, *words)
    assert again.code == 0, again.text
    assert len(rows(output, "lanes")) == 4


def test_a_run_that_is_killed_takes_its_jobs_along(captures: Captures, tmp_path: Path) -> None:
    source, output = captures("*actor-update_step1_*"), tmp_path / "out"
    words = ["--input-path", str(source), "--profiler-type", "torch", f"output.path={output}"]
    first = subprocess.Popen(
        [sys.executable, "-m", "rl_insight.main", *words, "--cores", "1"],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    while not list(output.glob("logs/parse/torch/*.log")):
        assert first.poll() is None
        time.sleep(0.05)
    # WHEN only the command itself is killed
    own = processes(first.pid)
    first.kill()
    first.wait()
    # THEN nothing of it goes on
    limit = time.monotonic() + 60
    while any(Path("/proc", str(process)).exists() for process in own):
        assert time.monotonic() < limit
        time.sleep(0.1)
    again = run(output, *words)
    assert again.code == 0, again.text


def test_lost_tables_are_made_again(captures: Captures, tmp_path: Path) -> None:
    source, output = captures("*actor-update_step1_rank[01]*"), tmp_path / "out"
    words = ("--input-path", str(source), "--profiler-type", "torch")
    run(output, *words)
    shutil.rmtree(output / "tables")

    again = run(output, *words)

    assert again.code == 0, again.text
    assert again.jobs["parse"] == 0
    assert len(rows(output, "lanes")) == 2


def test_files_of_somebody_else_are_not_overwritten_and_not_passed_over(
    captures: Captures, tmp_path: Path
) -> None:
    source = captures("*actor-update_step1_rank0*")
    words = ("--input-path", str(source), "--profiler-type", "torch")
    notes = tmp_path / "mine" / "config.yaml"
    notes.parent.mkdir()
    notes.write_text("# my notes\n")
    refused = run(notes.parent, *words)
    assert (refused.code, notes.read_text()) == (2, "# my notes\n"), refused.text
    assert "was not written by a run" in refused.text

    role = source / "ref_compute_log_prob"
    role.mkdir()
    shutil.copy(next(source.glob("*.gz")), role)
    refused = run(role, *words)
    assert refused.code == 2, refused.text
    assert "holds files of its own" in refused.text
