"""Real runs of the command line and of Snakemake, on copies of the demo captures."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rl_insight import tables

CHECKOUT = Path(__file__).resolve().parents[2]
DEMO = CHECKOUT / "examples" / "demo" / "data"

_RULE = re.compile(r"^(?:local)?rule (\w+):", re.MULTILINE)


@dataclass(frozen=True)
class Ended:
    """A run of the command line that has ended: what it said and which jobs Snakemake started."""

    code: int
    text: str
    jobs: Counter[str]


def _logs(output: Path) -> set[Path]:
    return set((output / ".snakemake" / "log").glob("*.log"))


def run(
    output: Path,
    *words: str,
    env: dict[str, str] | None = None,
    before: Callable[[], None] | None = None,
    cwd: Path | None = None,
) -> Ended:
    """Run the command line with `output` as its output folder; `before` runs in its process.

    What a test has written is complete: nobody waits for it to settle.
    """
    known = _logs(output)
    done = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "rl_insight.main",
            f"output.path={output}",
            "input.settle=0",
            *words,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
        preexec_fn=before,
        cwd=cwd,
    )
    try:
        said, errors = done.communicate(timeout=300)
    except BaseException:
        # To kill it, as `subprocess.run` does, would leave Snakemake and its jobs at work.
        done.terminate()
        done.communicate(timeout=60)
        raise
    started: Counter[str] = Counter()
    for log in _logs(output) - known:
        started.update(_RULE.findall(log.read_text()))
    started.pop("all", None)
    return Ended(done.returncode, said + errors, started)


def rows(output: Path, table: str) -> list[dict[str, object]]:
    """The rows of a table that a run left."""
    found: list[dict[str, object]] = tables.read(output / "tables" / f"{table}.parquet").to_pylist()
    return found


@pytest.fixture
def captures(tmp_path: Path) -> Callable[[str], Path]:
    """Copy the demo captures whose name matches a pattern into the folder `profiles`."""

    def copy(pattern: str) -> Path:
        folder = tmp_path / "profiles"
        for source in DEMO.rglob(pattern):
            target = folder / source.relative_to(DEMO)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
        return folder

    return copy
