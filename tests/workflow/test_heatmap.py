"""Expert load from dump to picture, in real runs that count which jobs Snakemake started."""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.group_lists import write_dump
from tests.workflow.conftest import DEMO, rows, run

pytestmark = pytest.mark.workflow

LAYERS = ([8, 1, 1, 2], [3, 3, 3, 3], [0, 0, 6, 6])


def dumped(root: Path, step: int, ranks: int = 2) -> Path:
    """Three layers of three grouped matmuls each on every rank of one step."""
    calls = [[step + load for load in layer] for layer in LAYERS for _ in range(3)]
    for rank in range(ranks):
        write_dump(root, step, "actor_compute_log_prob", rank, calls, group_list_type=1)
    return root


def test_only_a_new_step_is_parsed_and_an_option_redraws(tmp_path: Path) -> None:
    source, output = dumped(tmp_path / "dump", 1), tmp_path / "out"
    words = ("preset=heatmap", f"input.path={source}")
    first = run(output, *words)
    assert first.code == 0, first.text
    every = {"merge": 1, "structure": 1, "heatmap_gmm_heatmap": 1}
    assert first.jobs == Counter({"parse": 1, **every})
    assert (output / "gmm_heatmap.png").read_bytes().startswith(b"\x89PNG")
    assert "Expert load: 3 layers, 4 experts, 2 ranks, 1 step." in first.text
    assert not (output / "tables" / "spans.parquet").exists()

    again = run(output, *words)
    assert (again.code, again.jobs) == (0, Counter())

    dumped(source, 2)
    grown = run(output, *words)
    assert grown.jobs == Counter({"parse": 1, **every}), grown.text
    assert {row["step"] for row in rows(output, "expert_load")} == {1, 2}

    redrawn = run(output, *words, "heatmap.visualizer.dpi=90")
    assert redrawn.jobs == Counter({"heatmap_gmm_heatmap": 1}), redrawn.text
    other = run(output, *words, "heatmap.visualizer.dpi=90", "heatmap.visualizer.gmm_per_layer=9")
    assert other.jobs == Counter({"structure": 1, "heatmap_gmm_heatmap": 1}), other.text

    fewer = run(output, *words, "heatmap.parser.step=2", "input.rank_list=1")
    assert fewer.jobs == Counter(every), fewer.text
    assert {(row["step"], row["rank_id"]) for row in rows(output, "expert_load")} == {(2, 1)}


def test_what_failed_is_tried_again_although_the_tables_from_before_are_back(
    tmp_path: Path,
) -> None:
    source, output = dumped(tmp_path / "dump", 1), tmp_path / "out"
    words = ("preset=heatmap", f"input.path={source}")
    assert run(output, *words).code == 0
    assert {row["layer"] for row in rows(output, "expert_load")} == {0, 1, 2}

    # WHEN the structure step fails with other options, for a reason that passes
    loads = output / "parsed" / "expert_load.parquet"
    whole, before = loads.read_bytes(), loads.stat()
    loads.write_bytes(b"no table")
    words += ("heatmap.visualizer.gmm_per_layer=9",)
    failed = run(output, *words)
    assert failed.code == 1
    assert "delete it and run again" in failed.text
    loads.write_bytes(whole)
    os.utime(loads, ns=(before.st_atime_ns, before.st_mtime_ns))

    # THEN the next run does what was asked, and the one after has nothing to do
    mended = run(output, *words)
    assert mended.code == 0, mended.text
    assert {row["layer"] for row in rows(output, "expert_load")} == {None}
    assert run(output, *words).jobs == Counter()


def test_both_kinds_in_one_folder_are_drawn_by_one_run_and_keep_each_other(tmp_path: Path) -> None:
    # GIVEN captures and dumps in one folder
    source, output = dumped(tmp_path / "input", 1), tmp_path / "out"
    for capture in DEMO.glob("*actor-update_step1_rank[01]*"):
        shutil.copy2(capture, source)
    # WHEN everything is drawn
    words = (f"input.path={source}", "timeline.parser.type=torch")
    both = run(output, *words, "preset=all")
    # THEN both pictures are there, and a later run of one kind keeps the other's
    assert both.code == 0, both.text
    assert both.jobs == Counter(
        {"parse": 3, "merge": 1, "structure": 1, "heatmap_gmm_heatmap": 1, "timeline_html": 1}
    )
    parsers = {row["parser"] for row in rows(output, "sources")}
    assert parsers == {"torch", "gmm"}
    later = run(output, *words, "preset=heatmap", "input.rank_list=0")
    assert later.code == 0, later.text
    assert {row["parser"] for row in rows(output, "sources")} == parsers
    assert (output / "rl_timeline.html").is_file()
    assert len(rows(output, "spans")) > 0


def test_all_draws_what_there_is(tmp_path: Path) -> None:
    source, output = dumped(tmp_path / "dump", 1), tmp_path / "out"
    ended = run(output, "preset=all", "timeline.parser.type=auto", f"input.path={source}")
    assert ended.code == 0, ended.text
    assert (output / "gmm_heatmap.png").is_file()
    assert not (output / "rl_timeline.html").exists()


def test_one_bad_rank_costs_only_itself_and_is_told(tmp_path: Path) -> None:
    source, output = dumped(tmp_path / "dump", 1, ranks=3), tmp_path / "out"
    (bad,) = source.rglob("rank1/dump_tensor_data")
    for file in bad.iterdir():
        file.write_bytes(b"no tensor at all")
    ended = run(output, "preset=heatmap", f"input.path={source}", "--strict")
    assert ended.code == 3, ended.text
    assert "rank1/dump_tensor_data" in ended.text
    assert {row["rank_id"] for row in rows(output, "expert_load")} == {0, 2}


def test_the_output_may_name_the_picture(tmp_path: Path) -> None:
    source, output = dumped(tmp_path / "dump", 1), tmp_path / "report" / "load.png"
    ended = run(output, "preset=heatmap", f"input.path={source}")
    assert ended.code == 0, ended.text
    assert output.read_bytes().startswith(b"\x89PNG")
    assert (output.parent / "tables" / "expert_balance.parquet").is_file()
    assert not (output.parent / "gmm_heatmap.png").exists()


def test_a_folder_without_dumps_says_what_it_holds(tmp_path: Path) -> None:
    source = tmp_path / "input"
    source.mkdir()
    for capture in DEMO.glob("*actor-update_step1_rank0*"):
        shutil.copy2(capture, source)
    ended = run(tmp_path / "out", "preset=heatmap", f"input.path={source}")
    assert ended.code == 2
    assert "1 torch input" in ended.text
    assert "--profiler-type torch" in ended.text
