"""No more jobs run at a time than the cores and the memory that a run may use."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.conftest import run

pytestmark = pytest.mark.workflow

# How Snakemake's log tells that a parse job begins, and that a job has ended.
_BEGINS = re.compile(r"^(?:local)?rule parse:(?:\n    .*)*?\n    jobid: (\d+)$", re.MULTILINE)
_ENDS = re.compile(r"^Finished jobid: (\d+)", re.MULTILINE)


def at_a_time(output: Path) -> int:
    """How many parse jobs were at work at the same time, at most."""
    (log,) = (output / ".snakemake" / "log").glob("*.log")
    text = log.read_text()
    begins = {found[1]: found.start() for found in _BEGINS.finditer(text)}
    ends = {found[1]: found.start() for found in _ENDS.finditer(text) if found[1] in begins}
    assert len(begins) == len(ends) == 4
    events = sorted([(at, 1) for at in begins.values()] + [(at, -1) for at in ends.values()])
    return max(sum(step for _, step in events[: count + 1]) for count in range(len(events)))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--cores", "3"), 3),
        # A parse job asks for 600 MB.
        (("--cores", "4", "--", "--resources", "mem_mb=1300"), 2),
    ],
)
def test_parse_jobs_run_at_a_time_as_cores_and_memory_allow(
    captures: Callable[[str], Path], tmp_path: Path, words: tuple[str, ...], expected: int
) -> None:
    output, source = tmp_path / "out", captures("*actor-update_step1_*")
    done = run(output, f"input.path={source}", "timeline.parser.type=torch", *words)
    assert done.code == 0, done.text
    assert at_a_time(output) == expected
