"""An interrupt ends the child in good order, whatever sends it."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rl_insight.pipeline.child import wait_for
from rl_insight.pipeline.endings import endings_interrupt, noted_endings

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


class Interrupted(subprocess.Popen[bytes]):
    """A child behind whose start, where nobody knows of it yet, an interrupt comes."""

    def __init__(self, words: list[str], **more: Any) -> None:
        super().__init__(words, **more)
        wait_for_start(Path(words[-1]))
        signal.raise_signal(signal.SIGINT)


def wait_for_start(place: Path) -> None:
    limit = time.monotonic() + 30
    while not place.exists() or place.read_text() != "started":
        assert time.monotonic() < limit
        time.sleep(0.01)


def words_of(place: Path) -> list[str]:
    child = textwrap.dedent(CHILD.format(place=str(place)))
    return [sys.executable, "-c", child, str(place)]


def test_an_interrupt_right_behind_the_start_reaches_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "state"
    monkeypatch.setattr("rl_insight.pipeline.child.subprocess.Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        wait_for(words_of(place))
    assert place.read_text() == "tidied up"


def test_a_signal_that_no_system_call_is_interrupted_by_is_seen_before_the_child_ends(
    tmp_path: Path,
) -> None:
    # As is one that comes just before a system call: here another thread gets it.
    place = tmp_path / "state"

    def interrupt() -> None:
        wait_for_start(place)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        wait_for(words_of(place))
    other.join()
    assert place.read_text() == "tidied up"


def test_a_second_interrupt_kills_the_child_and_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Interrupted] = []

    class Twice(Interrupted):
        def send_signal(self, sig: int) -> None:
            # It hears of none, and another comes.
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    place = tmp_path / "state"
    monkeypatch.setattr("rl_insight.pipeline.child.subprocess.Popen", Twice)
    with pytest.raises(KeyboardInterrupt):
        wait_for(words_of(place))
    assert [child.returncode for child in started] == [-signal.SIGKILL]
    assert place.read_text() == "started"


def test_handlers_are_those_of_before_however_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
    before = [signal.getsignal(number) for number in numbers]
    files = len(list(Path("/dev/fd").iterdir()))
    assert wait_for([sys.executable, "-c", "raise SystemExit(3)"]) == 3
    with pytest.raises(FileNotFoundError):
        wait_for([str(tmp_path / "nowhere")])
    monkeypatch.setattr("rl_insight.pipeline.child.subprocess.Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        wait_for(words_of(tmp_path / "state"))
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.set_wakeup_fd(-1) == -1
    assert len(list(Path("/dev/fd").iterdir())) == files


def test_a_thread_waits_for_a_child_too() -> None:
    codes: list[int] = []
    words = [sys.executable, "-c", "raise SystemExit(7)"]
    thread = threading.Thread(target=lambda: codes.append(wait_for(words)))
    thread.start()
    thread.join()
    assert codes == [7]


def test_what_nohup_has_us_ignore_ends_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with noted_endings() as endings:
            signal.raise_signal(signal.SIGHUP)
        assert endings.count == 0
        with endings_interrupt():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
