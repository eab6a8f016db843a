"""Real exports of nsys, and the documented samples, against a slow, plain reading of them."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rl_insight import tables
from rl_insight.data import summary_events
from rl_insight.data.tree import scan
from rl_insight.parsers import PARSERS, Parsed, Source
from tests.nvtx_exports import write_folder

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "nvtx"
H100 = "real/h100_2gpu_1s.sqlite"
TWIN = "derived/h100_2gpu_1s.jsonl"
WITHOUT_RANGES = "real/nsight-2025.5.2.sqlite"
SAMPLES = CORPUS / "rl-insight" / "nvtx_data"
SECRET = "canary-must-not-leak"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real files is not here")

NVTX = PARSERS.get("nvtx")


@cache
def parsed(path: str) -> Parsed:
    return NVTX.parse(Source("s", path, CORPUS, (path,)), {"timeline.parser.range_depth": 2})


def rows(path: str, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parsed(path).tables[table].to_pylist()
    return found


@cache
def select(path: str, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{CORPUS / path}?mode=ro&immutable=1", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_every_file_is_found_once() -> None:
    found = [(one.path, one.skip) for one in NVTX.discover(scan(CORPUS))]
    samples = [
        f"rl-insight/nvtx_data/nvtx_profile/worker_process_{pid}.{number}.jsonl"
        for pid in (70_000, 70_001)
        for number in (1, 2, 3)
    ]
    assert found == [(path, None) for path in (TWIN, H100, WITHOUT_RANGES, *samples)]


# -- nsys 2026.2, two processes, push/pop ranges, no rank ----------------------------------------


def test_two_processes_are_two_ranks_in_utc() -> None:
    lanes = rows(H100, "lanes")
    assert [(lane["pid"], lane["rank_id"], lane["device"]) for lane in lanes] == [
        (111, 0, 0),
        (112, 1, 1),
    ]
    ((utc, system),) = select(
        H100, "SELECT utcEpochNs, systemClockNs FROM TARGET_INFO_SESSION_START_TIME"
    )
    ((start, stop),) = select(H100, "SELECT startTime, stopTime FROM ANALYSIS_DETAILS")
    assert start == system
    for lane in lanes:
        assert (lane["clock"], lane["host"]) == ("utc", "host0")
        assert (lane["capture_start_ns"], lane["capture_end_ns"]) == (utc, utc + stop - start)
    assert "rank_by_pid_order" in parsed(H100).problems
    assert parsed(H100).status == "ok"


@pytest.mark.parametrize("path", [H100, TWIN])
def test_a_process_without_stages_is_drawn_from_its_first_range_to_its_last(path: str) -> None:
    expected = []
    for pid in (111, 112):
        ((first, last),) = select(
            H100,
            "SELECT min(start), max(end) FROM NVTX_EVENTS "
            f"WHERE ((globalTid >> 24) & 16777215) = {pid}",
        )
        expected.append((1_779_630_014_975_716_426 + first, last - first))
    stages = [span for span in rows(path, "spans") if span["kind"] == "stage"]
    assert [(span["start_ns"], span["duration_ns"]) for span in stages] == expected
    assert [(span["role"], span["raw_name"]) for span in stages] == [(None, None)] * 2


def test_the_json_lines_twin_gives_the_same_spans() -> None:
    assert rows(TWIN, "spans") == rows(H100, "spans")
    assert rows(TWIN, "lanes") == rows(H100, "lanes")


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_the_same_export_as_a_folder_gives_the_same_tables(tmp_path: Path, form: str) -> None:
    content = []
    for table in ("StringIds", "NVTX_EVENTS", "ANALYSIS_DETAILS", "META_DATA_CAPTURE"):
        content += dictionaries(table)
    for table in ("TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_SYSTEM_ENV"):
        content += dictionaries(table)
    for table in ("KERNEL", "MEMCPY", "MEMSET"):
        content += dictionaries(f"CUPTI_ACTIVITY_KIND_{table}")
    folder = write_folder(tmp_path / "x_pqtdir", content, form)
    files = tuple(f"x_pqtdir/{file.name}" for file in sorted(folder.iterdir()))
    found = NVTX.parse(Source("s", "x_pqtdir", tmp_path, files), {})
    for name, table in parsed(H100).tables.items():
        assert found.tables[name].to_pylist() == table.to_pylist(), name


def dictionaries(table: str) -> list[dict[str, object]]:
    names = [row[1] for row in select(H100, f"PRAGMA table_info({table})")]
    return [
        {"table": table, **dict(zip(names, row, strict=True))}
        for row in select(H100, f"SELECT * FROM {table}")
    ]


def test_the_operators_that_are_kept_are_the_longest_of_each_process() -> None:
    lengths: dict[int, list[int]] = defaultdict(list)
    query = "SELECT (globalTid >> 24) & 16777215, end - start FROM NVTX_EVENTS"
    for pid, length in select(H100, query):
        lengths[pid].append(length)
    shortest = {pid: sorted(found)[-2_000] for pid, found in lengths.items()}
    pid_of = {lane["lane_id"]: lane["pid"] for lane in rows(H100, "lanes")}
    kept = [span for span in rows(H100, "spans") if span["kind"] == "range"]
    assert all(span["duration_ns"] >= shortest[pid_of[span["lane_id"]]] for span in kept)
    # What hides on top of the second level is deeper, and only that is missing.
    longest = max(kept, key=lambda span: span["duration_ns"])
    assert (longest["name"], longest["duration_ns"]) == ("aten::is_nonzero", 428_573_559)
    assert longest["raw_name"] == "aten::is_nonzero, op_id = 317126"
    assert parsed(H100).problems.count("operators_left_out") == sum(
        len(found) - 2_000 for found in lengths.values()
    )


def test_ranges_lie_inside_the_one_above_them() -> None:
    spans = {span["span_id"]: span for span in rows(H100, "spans")}
    for span in spans.values():
        if span["parent_id"] is None:
            continue
        above = spans[span["parent_id"]]
        assert above["start_ns"] <= span["start_ns"]
        end = span["start_ns"] + span["duration_ns"]
        assert end <= above["start_ns"] + above["duration_ns"]
        assert span["depth"] == above["depth"] + 1 <= 2


def sweep(device: int, low: int, high: int) -> dict[str, int]:
    """What a device did in a window, instant by instant between the edges of its events."""
    edges: list[tuple[int, int, str]] = []
    for table, kind in (("KERNEL", "computing"), ("MEMCPY", "memory"), ("MEMSET", "memory")):
        query = f"SELECT start, end, deviceId FROM CUPTI_ACTIVITY_KIND_{table}"
        for start, end, own in select(H100, query):
            start, end = max(start, low), min(end, high)
            if own == device and start < end:
                edges += [(start, 1, kind), (end, -1, kind)]
    edges.sort()
    active = {"computing": 0, "memory": 0}
    found = {"computing": 0, "memory": 0, "free": 0}
    before = low
    for at, change, kind in [*edges, (high, 0, "memory")]:
        state = "computing" if active["computing"] else "memory" if active["memory"] else "free"
        found[state] += at - before
        before = at
        active[kind] += change
    return found


def test_the_breakdown_equals_a_sweep_over_the_edges_of_all_events() -> None:
    stages = [span for span in rows(H100, "spans") if span["kind"] == "stage"]
    base = rows(H100, "lanes")[0]["capture_start_ns"]
    for device, (span, row) in enumerate(zip(stages, rows(H100, "breakdown"), strict=True)):
        low = span["start_ns"] - base
        expected = sweep(device, low, low + span["duration_ns"])
        assert (row["computing_ns"], row["memory_ns"], row["free_ns"]) == tuple(expected.values())
        assert (row["communication_ns"], row["overlapped_ns"]) == (0, 0)


def test_operations_sum_up_to_what_the_tables_hold() -> None:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows(H100, "ops"):
        found[row["category"], row["name"]] += row["total_ns"]
    ((first, last),) = select(H100, "SELECT min(start), max(end) FROM NVTX_EVENTS")
    query = (
        "SELECT s.value, sum(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        f"JOIN StringIds s ON s.id = k.demangledName WHERE k.start BETWEEN {first} AND {last} "
        "GROUP BY 1 ORDER BY 2 DESC LIMIT 3"
    )
    for name, total in select(H100, query):
        assert found["computing", name] == total


# -- nsys 2025.5, device activity without ranges -------------------------------------------------


def test_an_export_without_ranges_is_drawn_by_its_device_activity() -> None:
    ((first, last),) = select(
        WITHOUT_RANGES,
        "SELECT min(start), max(end) FROM (SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL "
        "UNION ALL SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY "
        "UNION ALL SELECT start, end FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE)",
    )
    (stage,) = rows(WITHOUT_RANGES, "spans")
    (lane,) = rows(WITHOUT_RANGES, "lanes")
    # This version tells no systemClockNs: the time is that at which the capture began.
    ((utc,),) = select(WITHOUT_RANGES, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")
    assert (stage["start_ns"], stage["duration_ns"]) == (utc + first, last - first)
    assert (lane["clock"], lane["capture_start_ns"], lane["rank_id"]) == ("utc", utc, None)
    assert {row["name"] for row in rows(WITHOUT_RANGES, "ops")} >= {"CUDA graph"}


# -- the documented samples ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of the command line on the documented samples."""
    output = tmp_path_factory.mktemp("samples")
    ended = run(SAMPLES, output)
    assert ended.returncode == 0, ended.stderr
    return output


def run(source: Path, output: Path) -> "subprocess.CompletedProcess[str]":
    words = ["--input-path", str(source), "--profiler-type", "nvtx", "--cores", "1"]
    words += ["--vis-type", "html,png", "--output-path", str(output)]
    return subprocess.run(
        [sys.executable, "-m", "rl_insight.main", *words],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ,
        check=False,
    )


def test_the_documented_samples_give_the_documented_rows(samples: Path) -> None:
    # GIVEN the rows as the reference computes them: startTime + start, in ms, the name as role
    canonical = {
        "compute_log_prob": "actor_compute_log_prob",
        "compute_values": "critic_compute_values",
        "update_critic": "critic_update",
    }
    expected = []
    for path in sorted(SAMPLES.rglob("*.jsonl")):
        found = {row["table"]: row for row in map(json.loads, path.read_text().splitlines())}
        event, begun = found["NVTX_EVENTS"], found["ANALYSIS_DETAILS"]["startTime"]
        rank = int(found["META_DATA_CAPTURE"]["value"].removeprefix('RANK="').removesuffix('"'))
        expected.append(
            {
                "name": canonical[found["StringIds"]["value"]],
                "role": canonical[found["StringIds"]["value"]],
                "domain": "default",
                "start_time_ms": (begun + event["start"]) / 1e6,
                "end_time_ms": (begun + event["end"]) / 1e6,
                "duration_ms": (event["end"] - event["start"]) / 1e6,
                "rank_id": rank,
                "tid": path.name.split(".")[0].removeprefix("worker_process_"),
            }
        )
    # WHEN they are read back from a run
    frame = summary_events(tables.read(samples / "tables" / "spans.parquet"))
    # THEN these are its rows
    found_rows = frame.to_dict("records")
    assert found_rows == sorted(expected, key=lambda row: float(row["start_time_ms"]))
    assert {row["rank_id"] for row in found_rows} == {0, 1}


def test_a_documented_file_is_a_lane_of_its_stage(samples: Path) -> None:
    lanes = tables.read(samples / "tables" / "lanes.parquet").to_pylist()
    # The folder nvtx_profile means profiles in general and is no role.
    assert sorted((lane["role"], lane["rank_id"]) for lane in lanes) == [
        (role, rank)
        for role in ("actor_compute_log_prob", "critic_compute_values", "critic_update")
        for rank in (0, 1)
    ]
    assert {lane["clock"] for lane in lanes} == {"boot"}
    assert {lane["clock_offset_ns"] for lane in lanes} == {0}
    page = (samples / "rl_timeline.html").read_text()
    assert "critic_update" in page


# -- secrets -------------------------------------------------------------------------------------


def test_planted_secrets_reach_no_output_and_no_log(tmp_path: Path) -> None:
    # GIVEN the exports with planted secrets, alone and as JSON lines and Parquet
    source = tmp_path / "in"
    source.mkdir()
    shutil.copy(CORPUS / H100, source / "one.sqlite")
    secrets = [*dictionaries("META_DATA_CAPTURE"), *dictionaries("TARGET_INFO_SYSTEM_ENV")]
    assert SECRET in repr(secrets)
    ranges = dictionaries("NVTX_EVENTS")[:200]
    lines = "".join(f"{json.dumps(row)}\n" for row in [*secrets, *ranges])
    (source / "two.jsonl").write_text(lines)
    (source / "three.jsonl").write_text(f"{lines[:5_000]}\x01broken\n{lines[5_000:-40]}")
    write_folder(source / "four_pqtdir", [*secrets, *ranges])
    # WHEN they are drawn
    output = tmp_path / "out"
    ended = run(source, output)
    # THEN no file that the run left, packed or not, holds one, nor anything that was printed
    assert ended.returncode == 0, ended.stderr
    assert SECRET not in ended.stdout + ended.stderr
    files = [path for path in output.rglob("*") if path.is_file()]
    assert len(files) > 20
    for path in files:
        if source in path.resolve().parents:
            continue  # the link to the input
        assert SECRET.encode() not in path.read_bytes(), path
        if path.suffix == ".parquet":
            assert SECRET not in repr(pq.read_table(path).to_pylist()), path
