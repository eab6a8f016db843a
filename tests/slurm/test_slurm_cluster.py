"""Runs whose jobs a real Slurm starts, loses and cancels."""

import gzip
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from rl_insight import tables
from rl_insight.table_names import TIMELINE_TABLES
from tests.slurm.cluster import Cluster, wait_until
from tests.workflow.conftest import CHECKOUT, DEMO, Ended, rows, run

pytestmark = pytest.mark.slurm

# What a user says after `--`; but for the waiting, which suits a cluster that does nothing else.
ON_SLURM = (
    *("--jobs", "4", "--latency-wait", "10"),
    *("--slurm-init-seconds-before-status-checks", "8", "--slurm-status-command", "squeue"),
    *("--default-resources", "slurm_partition=ci", "slurm_account=x", "mem_mb=500", "runtime=5"),
)
OF_TORCH = ("timeline.parser.type=torch", "--profile", "slurm")


def recorded(folder: Path, pattern: str, step: int | None = None) -> Path:
    """Copy demo captures into `folder`, as those of another step if one is given."""
    folder.mkdir(exist_ok=True)
    for source in sorted(DEMO.glob(pattern)):
        if step is None:
            shutil.copy2(source, folder)
            continue
        trace = json.loads(gzip.decompress(source.read_bytes()))
        trace["baseTimeNanoseconds"] += 10_000_000_000
        target = folder / source.name.replace("_step2_", f"_step{step}_")
        target.write_bytes(gzip.compress(json.dumps(trace).encode()))
    return folder


def grown(capture: Path, events: int) -> Path:
    """Repeat the events of a capture until there are so many: reading it takes a while."""
    trace = json.loads(gzip.decompress(capture.read_bytes()))
    one = json.dumps(trace.pop("traceEvents"))[1:-1]
    again = 1 + events // one.count('"ph"')
    head = json.dumps(trace)[:-1]
    capture.unlink()
    capture = capture.with_suffix("")
    capture.write_text(f'{head}, "traceEvents": [{", ".join([one] * again)}]}}')
    return capture


def on_slurm(cluster: Cluster, output: Path, *words: str) -> Ended:
    """A run of the command line whose jobs the cluster starts."""
    return run(output, *words, *OF_TORCH, "--", *ON_SLURM, env=cluster.environment)


@contextmanager
def at_work(cluster: Cluster, output: Path, *words: str) -> Iterator[Future[Ended]]:
    """The same, while something happens to the cluster."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(on_slurm, cluster, output, *words)


def ended(cluster: Cluster, before: set[int]) -> Counter[str]:
    """The states of the jobs since `before`."""
    return Counter(state for number, (state, _) in cluster.jobs().items() if number not in before)


def cancel_next(cluster: Cluster, output: Path, capture: str, known: set[int]) -> int:
    """Cancel the next job, none of the `known`, that reads a capture; gives its number.

    Its first try is cancelled only when it has begun to read.
    """
    found: list[int] = []

    def reads() -> bool:
        units = [one for one in output.glob("parsed/torch/*.json") if capture in one.read_text()]
        if not units:
            return False
        unit = units[0].stem
        found[:] = [
            number
            for number, (state, comment) in cluster.jobs().items()
            if number not in known and state == "RUNNING" and unit in comment
        ]
        return bool(found) and (output / "logs" / "parse" / "torch" / f"{unit}.log").exists()

    wait_until(reads, f"a job reads {capture}", 120)
    cluster.ask("scancel", str(found[0]))
    return found[0]


def test_the_cluster_reads_two_steps_and_a_third_costs_only_its_jobs(
    cluster: Cluster, tmp_path: Path
) -> None:
    # GIVEN twelve captures of two steps, six to a job
    output, source = tmp_path / "out", recorded(tmp_path / "in", "*actor-update_step*")
    recorded(source, "*ref-compute-log-prob_step*_rank[01]-*")
    words = (f"input.path={source}", "parse.ranks_per_job=6")
    before = set(cluster.jobs())

    # WHEN Slurm reads them
    first = on_slurm(cluster, output, *words)

    # THEN it did what is long, and the page was drawn here
    assert first.code == 0, first.text
    assert first.jobs == Counter({"parse": 2, "merge": 1, "timeline_html": 1})
    assert ended(cluster, before) == Counter({"COMPLETED": 3})
    sources = rows(output, "sources")
    assert len(sources) == 12 and {row["status"] for row in sources} == {"ok"}
    assert {(row["step"], row["rank_id"]) for row in rows(output, "spans")} == {
        (step, rank) for step in (1, 2) for rank in range(4)
    }
    assert (output / "rl_timeline.html").read_text("utf-8").rstrip().endswith("</html>")
    # AND the tables are those of a run on this machine
    alone = run(tmp_path / "alone", *words, *OF_TORCH[:1], "--", "--until", "merge")
    assert alone.code == 0, alone.text
    for name in ("sources", *TIMELINE_TABLES):
        table, other = (
            tables.read(folder / "tables" / f"{name}.parquet")
            for folder in (output, tmp_path / "alone")
        )
        assert table.equals(other), name

    # WHEN the next step is there
    before = set(cluster.jobs())
    recorded(source, "*actor-update_step2_*", step=3)
    third = on_slurm(cluster, output, *words)

    # THEN only its captures are read
    assert third.code == 0, third.text
    assert third.jobs == Counter({"parse": 1, "merge": 1, "timeline_html": 1})
    assert ended(cluster, before) == Counter({"COMPLETED": 2})
    assert {row["step"] for row in rows(output, "lanes")} == {1, 2, 3}
    assert len(rows(output, "sources")) == 16


def test_bare_snakemake_tries_a_job_again_that_was_cancelled(
    cluster: Cluster, tmp_path: Path
) -> None:
    # GIVEN a run of Snakemake itself that has one job at work
    source = recorded(tmp_path / "in", "*actor-update_step1_rank[01]-*")
    file, before = tmp_path / "run.yaml", set(cluster.jobs())
    config = {
        "input": {"path": str(source)},
        "output": {"path": str(tmp_path / "out")},
        "timeline": {"parser": {"type": "torch"}},
        "parse": {"ranks_per_job": 2},
    }
    file.write_text(yaml.safe_dump(config))
    words = ["--configfile", str(file), "--replace-workflow-config", "--executor", "slurm"]
    with subprocess.Popen(
        [sys.executable, "-m", "snakemake", *words, *ON_SLURM],
        cwd=CHECKOUT,
        env=cluster.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as snakemake:
        wait_until(lambda: bool(cluster.running()), "a job runs", 120)
        # WHEN it is cancelled
        cluster.ask("scancel", *map(str, cluster.running()))
        assert snakemake.wait(300) == 0

    # THEN its next try brings the captures in
    assert ended(cluster, before) == Counter({"CANCELLED": 1, "COMPLETED": 2})
    sources = rows(tmp_path / "out", "sources")
    assert [row["status"] for row in sources] == ["ok", "ok"]
    assert {row["rank_id"] for row in rows(tmp_path / "out", "spans")} == {0, 1}
    assert (tmp_path / "out" / "rl_timeline.html").is_file()


def test_a_node_that_goes_down_and_comes_back_costs_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    output, source = tmp_path / "out", recorded(tmp_path / "in", "*actor-update_step1_*")
    before = set(cluster.jobs())
    with at_work(cluster, output, f"input.path={source}", "parse.ranks_per_job=2") as going:
        # GIVEN jobs at work
        wait_until(lambda: bool(cluster.running()), "a job runs", 120)
        hit = cluster.running()
        # WHEN their node goes down and comes back
        cluster.set_node("state=down", "reason=test")
        wait_until(lambda: not cluster.running(), "no job runs on a dead node", 60)
        cluster.set_node("state=resume")
        done = going.result()
    # THEN Slurm starts them anew, and the run ends as any other
    assert done.code == 0, done.text
    assert done.jobs == Counter({"parse": 2, "merge": 1, "timeline_html": 1})
    assert hit and all(cluster.restarts(number) == 1 for number in hit)
    assert ended(cluster, before) == Counter({"COMPLETED": 3})
    assert [row["status"] for row in rows(output, "sources")] == ["ok"] * 4


def test_a_capture_whose_job_is_always_cancelled_is_left_out(
    cluster: Cluster, tmp_path: Path
) -> None:
    # GIVEN two captures, one of which takes its time
    output, source = tmp_path / "out", recorded(tmp_path / "in", "*actor-update_step1_rank[01]-*")
    name = grown(next(source.glob("*_rank1-*")), 600_000).name
    words, before = (f"input.path={source}",), set(cluster.jobs())

    # WHEN its job is cancelled, and both further tries
    with at_work(cluster, output, *words) as going:
        known = before
        for _ in range(3):
            known = known | {cancel_next(cluster, output, name, known)}
        done = going.result()

    # THEN the rest is drawn without it, and it is named
    assert done.code == 0, done.text
    assert name in done.text
    assert ended(cluster, before) == Counter({"CANCELLED": 3, "COMPLETED": 2})
    sources = {str(row["path"]): row for row in rows(output, "sources")}
    assert sources[name]["status"] == "failed"
    assert "its parse job did not finish" in str(sources[name]["detail"])
    assert {row["rank_id"] for row in rows(output, "spans")} == {0}
    assert name in (output / "rl_timeline.html").read_text("utf-8")
