"""A scheduler of which Snakemake knows nothing but three commands runs the jobs."""

import importlib.util
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.conftest import rows, run

pytestmark = pytest.mark.workflow

# How Snakemake's log tells that a parse job begins, and with how much memory in MB.
_PARSE_MEMORY = re.compile(
    r"^rule parse:(?:\n    .*)*?\n    resources:.*\bmem_mb=(\d+)", re.MULTILINE
)

PLUGIN = "snakemake_executor_plugin_cluster_generic"


@pytest.fixture(autouse=True)
def _plugin() -> None:
    if importlib.util.find_spec(PLUGIN) is None:
        reason = f"no {PLUGIN} (pip install -e '.[cluster-generic]')"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def test_jobs_go_through_the_commands_of_a_scheduler_and_a_killed_one_is_tried_again(
    captures: Callable[[str], Path], tmp_path: Path
) -> None:
    # GIVEN a scheduler that kills one of the parse jobs
    folder = tmp_path / "scheduler"
    folder.mkdir()
    (folder / "refuse").write_text("rank2")
    program = [sys.executable, str(Path(__file__).with_name("scheduler.py"))]
    submit, status = (
        shlex.join([*program, command, str(folder)]) for command in ("submit", "status")
    )
    # WHEN a run hands it the jobs
    output, source = tmp_path / "out", captures("*actor-update_step1_*")
    done = run(
        output,
        *(f"input.path={source}", "timeline.parser.type=torch", "--profile", "cluster-generic"),
        *("--", "--jobs", "4", "--latency-wait", "5", "--seconds-between-status-checks", "1"),
        *("--cluster-generic-submit-cmd", submit, "--cluster-generic-status-cmd", status),
    )
    # THEN it did all that is long, one job twice, and the page was drawn here
    assert done.code == 0, done.text
    assert done.jobs == Counter({"parse": 5, "merge": 1, "timeline_html": 1})
    codes = Counter(path.read_text().strip() for path in folder.iterdir() if path.name.isdigit())
    assert codes == Counter({"0": 5, "137": 1})
    # with more memory than the others
    (log,) = (output / ".snakemake" / "log").glob("*.log")
    assert Counter(_PARSE_MEMORY.findall(log.read_text())) == Counter({"600": 4, "1200": 1})
    assert [row["status"] for row in rows(output, "sources")] == ["ok"] * 4
    assert (output / "rl_timeline.html").is_file()


def test_the_profile_without_a_submit_command_says_what_is_missing(
    captures: Callable[[str], Path], tmp_path: Path
) -> None:
    source = captures("*actor-update_step1_rank0-*")
    words = (f"input.path={source}", "timeline.parser.type=torch", "--profile", "cluster-generic")
    done = run(tmp_path / "out", *words)
    assert done.code == 1
    assert "--cluster-generic-submit-cmd" in done.text and "Traceback" not in done.text
