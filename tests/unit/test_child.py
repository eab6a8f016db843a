"""An interrupt ends the child in good order, whatever sends it."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

PARENT = """
import sys
from rl_insight.pipeline.child import wait_for
try:
    code = wait_for([sys.executable, "-c", sys.argv[1]])
except KeyboardInterrupt:
    sys.exit(130)
sys.exit(code)
"""
CHILD = """
import pathlib, time, sys
place = pathlib.Path({place!r})
try:
    place.write_text("started")
    for _ in range(600):  # a signal just before a single long sleep would be seen after it only
        time.sleep(0.1)
except KeyboardInterrupt:
    place.write_text("tidied up")
    sys.exit(1)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_child_is_told_and_waited_for(number: signal.Signals, tmp_path: Path) -> None:
    place = tmp_path / "state"
    child = textwrap.dedent(CHILD.format(place=str(place)))
    parent = subprocess.Popen([sys.executable, "-c", PARENT, child], stderr=subprocess.DEVNULL)
    while not place.exists() or place.read_text() != "started":
        assert parent.poll() is None
    os.kill(parent.pid, number)
    assert parent.wait(timeout=30) == 130
    assert place.read_text() == "tidied up"


def test_a_child_of_a_background_job_that_ignores_interrupts_is_ended_too(tmp_path: Path) -> None:
    # So a shell script starts what stands before `&`.
    place = tmp_path / "state"
    child = textwrap.dedent(CHILD.format(place=str(place)))
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, child],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    while not place.exists() or place.read_text() != "started":
        assert parent.poll() is None
    parent.terminate()
    assert parent.wait(timeout=30) == 130
    assert place.read_text() == "tidied up"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child")
def test_a_child_ends_in_good_order_when_its_parent_is_killed(tmp_path: Path) -> None:
    place = tmp_path / "state"
    child = textwrap.dedent(CHILD.format(place=str(place)))
    parent = subprocess.Popen([sys.executable, "-c", PARENT, child], stderr=subprocess.DEVNULL)
    while not place.exists() or place.read_text() != "started":
        assert parent.poll() is None
    parent.kill()
    parent.wait(timeout=30)
    limit = time.monotonic() + 30
    while place.read_text() != "tidied up":
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_the_exit_code_is_the_childs() -> None:
    done = subprocess.run([sys.executable, "-c", PARENT, "raise SystemExit(7)"], check=False)
    assert done.returncode == 7
