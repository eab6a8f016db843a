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

from rl_insight.errors import ConfigError
from rl_insight.pipeline.places import check_places
from tests.workflow.conftest import CHECKOUT, rows, run
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


def test_whatever_a_run_leaves_would_not_be_written_through_a_link(
    captures: Captures, tmp_path: Path
) -> None:
    # GIVEN what a run wrote
    source, output = captures("*actor-update_step1_rank0*"), tmp_path / "out"
    words = ("--input-path", str(source), "--profiler-type", "torch", "--vis-type", "html,png")
    first = run(output, *words)
    assert first.code == 0, first.text
    units = {path.with_suffix("") for path in output.glob("parsed/torch/*.json")}
    left = [
        path
        for path in output.rglob("*")
        if ".snakemake" not in path.parts
        and path != output / "parsed" / ".input"
        and not units.intersection(path.parents)
    ]
    assert len(left) > 20
    for path in left:
        # WHEN any of it is a link that leads out
        aside = tmp_path / "aside"
        path.rename(aside)
        path.symlink_to(aside)
        # THEN the next run refuses, by its name
        with pytest.raises(ConfigError) as refused:
            check_places(output, ("rl_timeline.html", "rl_timeline.png"))
        assert repr(str(path)) in str(refused.value)
        path.unlink()
        aside.rename(path)
    check_places(output, ("rl_timeline.html", "rl_timeline.png"))


def test_a_folder_that_snakemake_keeps_elsewhere_is_no_obstacle(
    captures: Captures, tmp_path: Path
) -> None:
    source, output = captures("*actor-update_step1_rank0*"), tmp_path / "out"
    (tmp_path / "fast").mkdir()
    output.mkdir()
    (output / ".snakemake").symlink_to(tmp_path / "fast")
    done = run(output, "--input-path", str(source), "--profiler-type", "torch")
    assert done.code == 0, done.text


def test_a_link_in_the_way_of_bare_snakemake_is_named(captures: Captures, tmp_path: Path) -> None:
    source, output = captures("*actor-update_step1_rank0*"), tmp_path / "out"
    (tmp_path / "theirs").mkdir()
    output.mkdir()
    (output / "tables").symlink_to(tmp_path / "theirs")
    words = [f"input={{path: {source}}}", f"output={{path: {output}}}"]
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", "--config", *words],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"{str(output / 'tables')!r} is a link to" in done.stderr
    assert not list((tmp_path / "theirs").iterdir())
