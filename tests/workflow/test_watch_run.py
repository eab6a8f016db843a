"""`rl-insight watch` on a folder that a job goes on writing to."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.conftest import DEMO, rows

pytestmark = pytest.mark.workflow


def until(true: Callable[[], bool], process: "subprocess.Popen[str]", log: Path) -> None:
    """Wait until something is true, while the process runs."""
    limit = time.monotonic() + 120
    while not true():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < limit, log.read_text()
        time.sleep(0.2)


def steps(output: Path) -> set[object]:
    try:
        return {row["step"] for row in rows(output, "lanes")}
    except FileNotFoundError:
        return set()


def test_a_watch_draws_what_comes_and_stops_cleanly(tmp_path: Path) -> None:
    # GIVEN a watch on a folder that is not there yet
    source, output, log = tmp_path / "run 1", tmp_path / "out", tmp_path / "log"
    words = [sys.executable, "-m", "rl_insight.main", "watch", str(source)]
    words += ["--profiler-type", "torch", "--output-path", str(output), "--settle", "0.5"]
    live = output / "live.js"
    with log.open("w") as told:
        process = subprocess.Popen(words, stdout=told, stderr=told, text=True)
        try:
            until(lambda: "Watching" in log.read_text(), process, log)

            # WHEN a step comes, THEN it is drawn
            source.mkdir()
            for capture in DEMO.rglob("*actor-update_step1_*"):
                shutil.copy(capture, source)
            until(lambda: live.exists() and "rl_timeline.html" in live.read_text(), process, log)
            assert steps(output) == {1}
            stamp = live.read_text()

            # WHEN another comes, THEN that is drawn too, and open pages are told
            for capture in DEMO.rglob("*actor-update_step2_*"):
                shutil.copy(capture, source)
            until(lambda: live.read_text() != stamp, process, log)
            assert steps(output) == {1, 2}

            # WHEN Ctrl-C is pressed
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            # THEN it says so and ends well, and pages stop asking
            assert process.wait(60) == 0
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
    text = log.read_text()
    assert text.count("Open ") == 2, text
    assert "No longer watching" in text
    assert "Traceback" not in text
    assert live.read_text() == "rlInsightLive(null);\n"
    assert not list(output.glob(".live*"))
