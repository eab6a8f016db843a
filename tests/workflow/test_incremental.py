"""Only what is stale is made anew; each test counts the jobs that a real Snakemake started."""

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.conftest import rows, run

pytestmark = pytest.mark.workflow

UPDATES = "*actor-update_step1_*"
BOTH = "timeline.visualizer.type=html,png"
PICTURES = {"timeline_html": 1, "timeline_png": 1}

Captures = Callable[[str], Path]


def shifted(path: Path, nanoseconds: int) -> None:
    """Rewrite a capture so that it begins later: a changed file, as a new run would leave it."""
    trace = json.loads(gzip.decompress(path.read_bytes()))
    trace["baseTimeNanoseconds"] += nanoseconds
    path.write_bytes(gzip.compress(json.dumps(trace).encode()))


def test_a_second_run_does_nothing_and_a_lost_cache_costs_one_parse(
    captures: Captures, tmp_path: Path
) -> None:
    source, output = captures(UPDATES), tmp_path / "out"
    words = ("--input-path", str(source), "--profiler-type", "torch", BOTH)

    first = run(output, *words)
    assert first.code == 0, first.text
    assert first.jobs == Counter({"parse": 4, "merge": 1, **PICTURES})

    again = run(output, *words)
    assert (again.code, again.jobs) == (0, Counter())

    for capture in source.iterdir():
        capture.touch()
    touched = run(output, *words)
    assert (touched.code, touched.jobs) == (0, Counter())

    shutil.rmtree(next(path for path in (output / "parsed" / "torch").iterdir() if path.is_dir()))
    lost = run(output, *words)
    assert lost.code == 0, lost.text
    assert lost.jobs == Counter({"parse": 1, "merge": 1, **PICTURES})


def test_a_new_step_and_a_changed_capture_run_only_their_own_jobs(
    captures: Captures, tmp_path: Path
) -> None:
    # [78]
    source, output = captures(UPDATES), tmp_path / "out"
    words = ("--input-path", str(source), "--profiler-type", "torch")
    run(output, *words)
    before = {row["path"]: row["start_ns"] for row in _stages(output)}

    captures("*actor-update_step2_*")
    grown = run(output, *words)
    assert grown.jobs == Counter({"parse": 4, "merge": 1, "timeline_html": 1}), grown.text
    assert {row["step"] for row in rows(output, "lanes")} == {1, 2}

    changed = next(iter(sorted(source.glob(UPDATES))))
    shifted(changed, 1_000_000_000)
    rerun = run(output, *words)
    assert rerun.jobs == Counter({"parse": 1, "merge": 1, "timeline_html": 1}), rerun.text
    after = {row["path"]: row["start_ns"] for row in _stages(output)}
    assert after[changed.name] == before[changed.name] + 1_000_000_000

    changed.unlink()
    gone = run(output, *words)
    assert gone.jobs == Counter({"merge": 1, "timeline_html": 1}), gone.text
    assert changed.name not in {row["path"] for row in rows(output, "sources")}


def test_a_copied_input_folder_is_not_parsed_again(captures: Captures, tmp_path: Path) -> None:
    source, output = captures(UPDATES), tmp_path / "out"
    run(output, "--input-path", str(source), "--profiler-type", "torch")
    copied = tmp_path / "elsewhere" / "profiles"
    shutil.copytree(source, copied, copy_function=shutil.copy)
    shutil.rmtree(source)

    again = run(output, "--input-path", str(copied), "--profiler-type", "torch")

    assert (again.code, again.jobs["parse"]) == (0, 0), again.text


def test_a_drawing_option_draws_only_that_picture(captures: Captures, tmp_path: Path) -> None:
    source, output = captures(UPDATES), tmp_path / "out"
    words = ("--input-path", str(source), "--profiler-type", "torch", BOTH)
    run(output, *words)

    wider = run(output, *words, "timeline.visualizer.width=1000")

    assert wider.jobs == Counter({"timeline_png": 1}), wider.text


def test_a_wider_filter_parses_only_what_is_new(captures: Captures, tmp_path: Path) -> None:
    source, output = captures("*actor-update_step*"), tmp_path / "out"
    words = ("--input-path", str(source), "--profiler-type", "torch")

    one = run(output, *words, "timeline.parser.step=1", "--rank-list", "0,2")
    assert one.code == 0, one.text
    assert {(row["step"], row["rank_id"]) for row in rows(output, "spans")} == {(1, 0), (1, 2)}
    filtered = [row for row in rows(output, "sources") if row["status"] == "skipped"]
    assert len(filtered) == 6

    both = run(output, *words)
    assert one.jobs["parse"] + both.jobs["parse"] == 8, (one.jobs, both.jobs)
    assert both.jobs["parse"] >= 4
    assert len({(row["step"], row["rank_id"]) for row in rows(output, "spans")}) == 8

    narrow = run(output, *words, "timeline.parser.role=critic_update")
    assert narrow.jobs["parse"] == 0
    assert narrow.code == 1, "nothing is left to draw"


def _stages(output: Path) -> list[dict[str, object]]:
    paths = {row["source_id"]: row["path"] for row in rows(output, "sources")}
    return [
        {**row, "path": paths[row["source_id"]]}
        for row in rows(output, "spans")
        if row["kind"] == "stage"
    ]
