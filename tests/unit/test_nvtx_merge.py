"""NVTX captures on the common timeline: whose lanes they are, and on which clock. [40] [64]"""

import json
from pathlib import Path
from typing import Any

import pytest

from rl_insight import tables
from rl_insight.data.identity import compile_rules
from rl_insight.data.tree import scan
from rl_insight.parsers import PARSERS
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.merge import merge
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.parse import parse_unit
from rl_insight.pipeline.units import source_id
from tests.nvtx_exports import (
    EPOCH,
    SECOND,
    UPTIME,
    Row,
    details,
    session,
    system_fact,
    text_range,
    variable,
    write_database,
    write_lines,
)

Tables = dict[str, list[dict[str, Any]]]


def merged(root: Path, output: Path, **filters: frozenset[Any]) -> Tables:
    """Discover, parse and merge the captures below `root`, a job for each."""
    folders = []
    for number, found in enumerate(PARSERS.get("nvtx").discover(scan(root))):
        files = [{"path": path, "fingerprint": ""} for path in found.files]
        sources = [{"source_id": source_id(found.path), "path": found.path, "files": files}]
        unit = output / "parsed" / "nvtx" / f"{number}.json"
        unit.parent.mkdir(parents=True, exist_ok=True)
        unit.write_text(json.dumps({"parser": "nvtx", "sources": sources}))
        folders.append(unit.with_suffix(""))
        parse_unit(unit, root, folders[-1], {})
    skipped = output / "skipped.json"
    skipped.write_text("[]")
    options = MergeOptions(compile_rules([]), Filters(**filters), root.name)
    merge(folders, skipped, output / "tables", options)
    return {
        path.stem: tables.read(path).to_pylist() for path in (output / "tables").glob("*.parquet")
    }


def worker(
    root: Path, pid: int, number: int, start: int, stage: str, *more: Row, rank: int = 0
) -> None:
    """One of the captures that verl makes of a worker, with a stage from 1 s to 3 s."""
    rows = [
        details(start),
        text_range(SECOND, 3 * SECOND, stage, pid=pid),
        variable("RANK", f'"{rank}"'),
    ]
    write_lines(root / "nvtx_profile" / f"worker_process_{pid}.{number}.jsonl", [*rows, *more])


def drawn(result: Tables) -> list[tuple[str, int | None, int]]:
    """Role, rank and start of all stages, in order of time."""
    stages = sorted(result["spans"], key=lambda span: (span["start_ns"], str(span["rank_id"])))
    return [(span["role"], span["rank_id"], span["start_ns"]) for span in stages]


def codes(result: Tables) -> set[tuple[str, str]]:
    return {
        (problem["code"], problem["severity"])
        for row in result["sources"]
        for problem in row["problems"]
    }


def test_captures_of_one_host_stand_as_far_apart_as_its_clock_says(tmp_path: Path) -> None:
    root = tmp_path / "in"
    for rank in (0, 1):
        worker(root, 7 + rank, 1, UPTIME, "compute_log_prob", rank=rank)
        worker(root, 7 + rank, 2, UPTIME + 25 * SECOND, "update_actor", rank=rank)
    result = merged(root, tmp_path / "out")
    first, second = UPTIME + SECOND, UPTIME + 26 * SECOND
    assert drawn(result) == [
        ("actor_compute_log_prob", 0, first),
        ("actor_compute_log_prob", 1, first),
        ("actor_update", 0, second),
        ("actor_update", 1, second),
    ]
    assert [row["role"] for row in result["sources"]] == [
        "actor_compute_log_prob",
        "actor_update",
    ] * 2
    assert codes(result) == {("clock_boot", "info")}


def test_a_time_of_the_session_is_settled_per_host(tmp_path: Path) -> None:
    # GIVEN an old nsys, whose captures all tell when their session began
    root = tmp_path / "in"
    host = system_fact("Hostname", "node-1")
    for number, (after, stage) in enumerate(
        ((0, "compute_log_prob"), (25, "compute_values"), (31, "update_critic")), 1
    ):
        worker(root, 7, number, UPTIME + after * SECOND, stage, session(EPOCH, None), host)
    result = merged(root, tmp_path / "out")
    # THEN the median holds for all: the second stays, the others keep their distance to it
    assert [start - EPOCH for _, _, start in drawn(result)] == [
        -24 * SECOND,
        SECOND,
        7 * SECOND,
    ]
    assert codes(result) == {("clock_of_session", "warning")}
    assert [row["clock_offset_ns"] for row in result["lanes"]] == [-25 * SECOND, 0, 6 * SECOND]


def test_nodes_that_tell_the_time_are_not_shifted(tmp_path: Path) -> None:
    # [64] uptimes of half a minute and of 76 days
    root = tmp_path / "in"
    for rank, (uptime, late) in enumerate(((35_255_823_190, 0), (6_589_107_243_593_703, 2))):
        more = (session(EPOCH + late, uptime), system_fact("Hostname", f"node-{rank}"))
        worker(root, 7 + rank, 1, uptime, "update_actor", *more, rank=rank)
    result = merged(root, tmp_path / "out")
    assert drawn(result) == [
        ("actor_update", 0, EPOCH + SECOND),
        ("actor_update", 1, EPOCH + SECOND + 2),
    ]
    assert codes(result) == set()


def test_nodes_that_do_not_tell_the_time_meet_at_a_stage_and_say_so(tmp_path: Path) -> None:
    # [64] without utcEpochNs
    root = tmp_path / "in"
    for rank, uptime in enumerate((35_255_823_190, 6_589_107_243_593_703)):
        more = system_fact("Hostname", f"node-{rank}")
        worker(root, 7 + rank, 1, uptime, "update_actor", more, rank=rank)
    result = merged(root, tmp_path / "out")
    assert len({start for _, _, start in drawn(result)}) == 1
    assert {row["clock"] for row in result["lanes"]} == {"boot"}
    assert codes(result) == {("clock_boot", "warning")}


def test_a_node_whose_clock_is_off_is_told(tmp_path: Path) -> None:
    # [40] ranks 1 and 3 stand on a node that is 7 s late
    root = tmp_path / "in"
    for rank in range(4):
        late = 7 * SECOND * (rank % 2)
        more = (session(EPOCH + late), system_fact("Hostname", f"node-{rank % 2}"))
        worker(root, 7 + rank, 1, UPTIME, "update_actor", *more, rank=rank)
    result = merged(root, tmp_path / "out")
    assert codes(result) == {("clock_skew", "warning")}
    told = sorted(row["rank_id"] for row in result["sources"] if row["problems"])
    assert told == [1, 3]


def broken(root: Path, pid: int, number: int, *rows: Row) -> None:
    """A report that breaks off after these rows, in the middle of another."""
    path = root / "nvtx_profile" / f"worker_process_{pid}.{number}.jsonl"
    write_lines(path, rows)
    with path.open("a") as file:
        file.write('{"table": "NVTX_EV')


def test_a_report_that_lost_its_date_and_host_is_dated_by_the_others_of_its_process(
    tmp_path: Path,
) -> None:
    root = tmp_path / "in"
    host = system_fact("Hostname", "node-1")
    worker(root, 7, 1, UPTIME, "compute_log_prob", session(), host, rank=5)
    # GIVEN a second report, 25 s later, of which only the time since boot is left
    own = text_range(SECOND, 3 * SECOND, "update_actor", pid=7)
    broken(root, 7, 2, details(UPTIME + 25 * SECOND), own)
    result = merged(root, tmp_path / "out")
    # THEN the boot of its host, which the first report tells, dates it
    assert drawn(result) == [
        ("actor_compute_log_prob", 5, EPOCH + SECOND),
        ("actor_update", 5, EPOCH + 26 * SECOND),
    ]
    assert {row["host"] for row in result["lanes"]} == {"node-1"}
    assert {("rank_inferred", "info"), ("host_inferred", "info"), ("clock_boot", "info")} < codes(
        result
    )


def test_a_report_without_any_clock_does_not_become_the_first(tmp_path: Path) -> None:
    root = tmp_path / "in"
    worker(root, 7, 1, UPTIME, "compute_log_prob", session(), rank=5)
    broken(root, 7, 2, text_range(SECOND // 2, SECOND, "update_actor", pid=7))
    result = merged(root, tmp_path / "out")
    assert sorted(drawn(result)) == [
        ("actor_compute_log_prob", 5, EPOCH + SECOND),
        ("actor_update", 5, EPOCH + SECOND),
    ]
    assert ("clock_unknown", "warning") in codes(result)


def test_a_relocated_capture_tells_its_host_in_its_name(tmp_path: Path) -> None:
    # [65] the same process id on two hosts
    root = tmp_path / "in"
    for rank, host in enumerate(("node-1.cluster", "node-2.cluster")):
        rows = [details(), session(), text_range(1, 9, "update_actor"), variable("RANK", str(rank))]
        write_database(root / f"actor_{host}_worker_process_111.3.sqlite", rows)
    result = merged(root, tmp_path / "out")
    assert [(row["host"], row["pid"], row["rank_id"]) for row in result["lanes"]] == [
        ("node-1.cluster", 111, 0),
        ("node-2.cluster", 111, 1),
    ]
    assert {role for role, _, _ in drawn(result)} == {"actor_update"}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"ranks": frozenset({1})}, [1]),
        ({"roles": frozenset({"update_actor"})}, [0, 1]),
        ({"roles": frozenset({"critic_update"})}, []),
    ],
)
def test_filters_hold_for_every_process_of_a_capture(
    tmp_path: Path, filters: dict[str, frozenset[Any]], expected: list[int]
) -> None:
    root = tmp_path / "in"
    rows = [text_range(1, 9, "update_actor", pid=pid) for pid in (111, 112)]
    write_lines(root / "torchrun.jsonl", [details(), session(), *rows])
    result = merged(root, tmp_path / "out", **filters)
    assert [rank for _, rank, _ in drawn(result)] == expected
