"""A log of a job tells whether a library crashed in it, as Python itself writes that down."""

import subprocess
import sys
from pathlib import Path

import pytest

from rl_insight.pipeline.crash import crash_in

CALLS = """
import faulthandler, signal, sys, threading
faulthandler.enable(open(sys.argv[1], "w"))
{thread}
def read():
    signal.raise_signal(signal.SIG{name})
read()
"""


def crashed(folder: Path, name: str, thread: str = "") -> Path:
    """The log of a job whose line 6 of a module of this package ended it by that signal."""
    module = folder / "rl_insight" / "readers" / "made_up.py"
    module.parent.mkdir(parents=True)
    module.write_text(CALLS.format(name=name, thread=thread))
    log = folder / "job.log"
    done = subprocess.run([sys.executable, module, log], capture_output=True, check=False)
    assert done.returncode < 0
    return log


@pytest.mark.parametrize(
    ("name", "said"),
    [("ABRT", "Aborted"), ("SEGV", "Segmentation fault"), ("BUS", "Bus error")],
)
def test_a_crash_is_told_with_the_line_that_led_to_it(tmp_path: Path, name: str, said: str) -> None:
    log = crashed(tmp_path, name)
    assert crash_in(log) == f"{said} in rl_insight/readers/made_up.py, line 6"


def test_the_line_is_of_the_thread_that_crashed(tmp_path: Path) -> None:
    waits = "threading.Thread(target=threading.Event().wait, daemon=True).start()"
    log = crashed(tmp_path, "ABRT", waits)
    assert log.read_text().count("hread 0x") == 2
    assert crash_in(log) == "Aborted in rl_insight/readers/made_up.py, line 6"


def test_what_was_killed_or_stumbled_is_no_crash(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    assert crash_in(log) is None
    log.touch()
    assert crash_in(log) is None
    log.write_text('Traceback (most recent call last):\n  File "a.py", line 1\nMemoryError\n')
    assert crash_in(log) is None


def test_a_crash_outside_of_this_package_has_no_line(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text('Fatal Python error: Aborted\n\nCurrent thread 0x1:\n  File "/a.py", line 1\n')
    assert crash_in(log) == "Aborted"
