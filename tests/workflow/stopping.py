"""Stops a run of its own accord at a chosen moment, so that a test can kill it right there.

`site_that_stops` makes a folder for PYTHONPATH. In a process whose script ends with `script`, the
run stands still just before the file or folder of a name is moved to its final place: what was
written so far is on disk under a temporary name, and what stood there before still stands.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.workflow.conftest import CHECKOUT

# The interpreter runs it before anything else; an audit hook sees every rename of the process.
_HOOK = """
import os, signal, sys
def stop(event, arguments):
    if event != "os.rename" or not sys.argv[0].endswith({script!r}):
        return
    if os.path.basename(os.fsdecode(arguments[1])).startswith({name!r}):
        open({reached!r}, "w").close()
        {act}
sys.addaudithook(stop)
"""


def site_that_stops(folder: Path, script: str, name: str, act: str = "signal.pause()") -> Path:
    """A folder whose hook stops `script` before what begins with `name` gets its final place."""
    folder.mkdir(parents=True, exist_ok=True)
    text = _HOOK.format(script=script, name=name, reached=str(folder / "reached"), act=act)
    (folder / "sitecustomize.py").write_text(text)
    return folder


def environment(site: Path) -> dict[str, str]:
    """The environment of a run with the hook in `site`."""
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{CHECKOUT}"}


def killed_at(site: Path, output: Path, *words: str) -> None:
    """Run the command line up to the moment for which `site` was made, and kill all of it."""
    run = subprocess.Popen(
        [sys.executable, "-m", "rl_insight.main", "--cores", "1", f"output.path={output}", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(site),
    )
    limit = time.monotonic() + 120
    while not (site / "reached").exists():
        assert run.poll() is None and time.monotonic() < limit, f"the run never came to {site.name}"
        time.sleep(0.05)
    for process in processes(run.pid):
        os.kill(process, signal.SIGKILL)
    run.wait()


def processes(process: int) -> list[int]:
    """A process and all below it, whichever of its threads started them."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    children = [child for task in tasks for child in task.read_text().split()]
    return [process, *(one for child in children for one in processes(int(child)))]
