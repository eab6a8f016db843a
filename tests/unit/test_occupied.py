"""One run at a time in one output folder, however the one before ended."""

import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rl_insight.errors import UsageError
from rl_insight.pipeline.occupied import inherited, occupy


def holder(output: Path, more: str = "") -> "subprocess.Popen[str]":
    """Another process that holds `output` until it is killed."""
    code = f"""
        import subprocess, sys, time, pathlib
        from rl_insight.pipeline.occupied import inherited, occupy
        occupy(pathlib.Path({str(output)!r}))
        {more}
        print("held", flush=True)
        time.sleep(60)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_is_refused_by_name_and_welcome_once_the_first_has_ended(
    tmp_path: Path,
) -> None:
    with holder(tmp_path) as first:
        with pytest.raises(UsageError) as refused:
            occupy(tmp_path)
        assert f"(process {first.pid} on {socket.gethostname()})" in str(refused.value)
        first.kill()
    assert occupy(tmp_path) is False
    assert occupy(tmp_path) is False, "the same process may go on in its folder"
    assert inherited()


def test_a_folder_that_was_deleted_and_made_anew_is_held_anew(tmp_path: Path) -> None:
    # GIVEN a watch that goes on in an output folder that somebody deleted
    output = tmp_path / "out"
    output.mkdir()
    again = f"folder = pathlib.Path({str(output)!r}); import shutil; shutil.rmtree(folder)"
    with holder(output, f"{again}; folder.mkdir(); occupy(folder)") as watch:
        # WHEN another run begins there, THEN it is refused
        with pytest.raises(UsageError):
            occupy(output)
        watch.kill()


def test_a_child_that_outlives_its_run_still_holds_the_folder(tmp_path: Path) -> None:
    child = "subprocess.Popen(['sleep', '60'], pass_fds=inherited(), stdout=subprocess.DEVNULL)"
    with holder(tmp_path, f"print({child}.pid, file=open({str(tmp_path / 'pid')!r}, 'w'))") as run:
        run.kill()
    orphan = int((tmp_path / "pid").read_text())
    try:
        # The first is gone: naming it would send people after a process that is not there.
        with pytest.raises(UsageError, match="of a run that was killed are still at work"):
            occupy(tmp_path)
    finally:
        subprocess.run(["kill", "-9", str(orphan)], check=True)


@pytest.mark.parametrize(("host", "released"), [(socket.gethostname(), True), ("other", False)])
def test_snakemakes_lock_is_released_only_after_a_run_of_this_machine(
    host: str, released: bool, tmp_path: Path
) -> None:
    (tmp_path / ".snakemake" / "locks").mkdir(parents=True)
    (tmp_path / ".snakemake" / "locks" / "0.input.lock").touch()
    (tmp_path / ".lock").write_text(f"{signal.SIGKILL + 10**6} {host}\n")
    assert occupy(tmp_path) is released
