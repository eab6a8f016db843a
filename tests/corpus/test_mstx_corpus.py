"""Real Ascend captures against their own summaries, and against a slow, plain reading of them."""

import csv
import json
import sqlite3
from collections import defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rl_insight.data.tree import scan
from rl_insight.parsers import Parsed
from rl_insight.parsers.mstx import PARSER
from tests.ascend_captures import drawn, parsed

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
MSTX = CORPUS / "mstx"
TEXT = [MSTX / f"level1-text/rank{rank}_ascend_pt" for rank in (0, 1)]
DATABASE = [MSTX / f"level1-db/rank{rank}_ascend_pt" for rank in (0, 1)]
SAMPLES = MSTX / "rl-insight/mstx_data/mstx_profile"

pytestmark = pytest.mark.skipif(not MSTX.is_dir(), reason="the corpus of real files is not here")

Edges = list[tuple[int, int]]


@cache
def read(capture: Path) -> Parsed:
    return parsed(capture, MSTX)


def one(capture: Path, table: str) -> dict[str, Any]:
    (row,) = read(capture).tables[table].to_pylist()
    found: dict[str, Any] = row
    return found


def total(capture: Path, name: str) -> int:
    found: int = one(capture, "breakdown")[f"{name}_ns"]
    return found


# A slow reading: json.load and Decimal, or plain SQL; and intervals as lists


def ns(microseconds: object) -> int:
    return round(Decimal(str(microseconds)) * 1000)


def united(intervals: Edges) -> Edges:
    found: Edges = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def length(intervals: Edges) -> int:
    return sum(end - start for start, end in united(intervals))


def overlap_rows(capture: Path) -> dict[str, Edges]:
    """The intervals of each row of the overlap analysis, by name."""
    events = json.loads((capture / "ASCEND_PROFILER_OUTPUT/trace_view.json").read_text())
    (pid,) = {
        event["pid"]
        for event in events
        if event["ph"] == "M" and event["args"].get("name") == "Overlap Analysis"
    }
    found: dict[str, Edges] = defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event["pid"] == pid:
            found[event["name"]].append((ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])))
    return found


@cache
def queried(capture: Path, query: str) -> Edges:
    (path,) = capture.glob("ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_*.db")
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    found: Edges = connection.execute(query).fetchall()
    connection.close()
    return found


COMPUTING = """
    SELECT startNs, endNs FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId)
"""
COMMUNICATION = "SELECT startNs, endNs FROM COMMUNICATION_OP"
COPIES = """
    SELECT startNs, endNs FROM TASK
    WHERE taskType IN (SELECT id FROM STRING_IDS WHERE value = 'MEMCPY_ASYNC')
"""


# Text


@pytest.mark.parametrize("capture", TEXT, ids=lambda path: path.name)
def test_totals_of_the_text_are_those_of_its_own_summary(capture: Path) -> None:
    # GIVEN the profiler's own step_trace_time.csv, in µs
    with (capture / "ASCEND_PROFILER_OUTPUT/step_trace_time.csv").open() as file:
        (summary,) = csv.DictReader(file)
    wanted = {name: float(text) * 1_000 for name, text in summary.items()}

    assert total(capture, "computing") == pytest.approx(wanted["Computing"], rel=1e-3)
    assert total(capture, "communication") == pytest.approx(wanted["Communication"], rel=1e-3)
    assert total(capture, "overlapped") == pytest.approx(wanted["Overlapped"], rel=1e-3)
    not_overlapped = total(capture, "communication") - total(capture, "overlapped")
    name = "Communication(Not Overlapped)"
    assert not_overlapped == pytest.approx(wanted[name], rel=1e-3)
    # The profiler's «Free» knows no copies.
    idle = total(capture, "free") + total(capture, "memory")
    assert idle == pytest.approx(wanted["Free"], rel=1e-3)
    assert total(capture, "window") == pytest.approx(wanted["Stage"], rel=1e-3)


@pytest.mark.parametrize("capture", TEXT, ids=lambda path: path.name)
def test_times_of_the_text_are_those_of_its_rows_to_the_nanosecond(capture: Path) -> None:
    rows = overlap_rows(capture)
    every = [interval for intervals in rows.values() for interval in intervals]
    span = one(capture, "spans")
    assert span["start_ns"] == min(start for start, _ in every)
    assert span["start_ns"] + span["duration_ns"] == max(end for _, end in every)
    assert total(capture, "computing") == length(rows["Computing"])
    assert total(capture, "communication") == length(rows["Communication"])


@pytest.mark.parametrize("capture", TEXT, ids=lambda path: path.name)
def test_the_tasks_of_the_text_are_those_of_its_analysis(capture: Path) -> None:
    # GIVEN operations by name, whose time the analysis knows only as a whole: they do not overlap
    ops = read(capture).tables["ops"].to_pylist()
    computing = sum(row["total_ns"] for row in ops if row["category"] == "computing")
    assert computing == pytest.approx(length(overlap_rows(capture)["Computing"]), rel=1e-3)


def test_ranks_devices_and_processes_of_the_text() -> None:
    names = ("rank_id", "device", "pid", "clock")
    lanes = [one(capture, "lanes") for capture in TEXT]
    assert [[lane[name] for name in names] for lane in lanes] == [
        [0, 0, 3096504, "utc"],
        [1, 1, 3096506, "utc"],
    ]


# Database


@pytest.mark.parametrize("capture", DATABASE, ids=lambda path: path.name)
def test_totals_of_the_database_are_those_of_an_interval_union(capture: Path) -> None:
    computing, communication = queried(capture, COMPUTING), queried(capture, COMMUNICATION)
    copies = queried(capture, COPIES)
    busy = length(computing + communication)
    window = united(computing + communication)
    low, high = window[0][0], window[-1][1]
    inside = [
        (max(start, low), min(end, high)) for start, end in copies if start < high and end > low
    ]

    assert abs(total(capture, "computing") - length(computing)) <= 1_000
    assert abs(total(capture, "communication") - length(communication)) <= 1_000
    overlapped = length(computing) + length(communication) - busy
    assert abs(total(capture, "overlapped") - overlapped) <= 1_000
    assert abs(total(capture, "window") - (high - low)) <= 1_000
    memory = length(computing + communication + inside) - busy
    assert abs(total(capture, "memory") - memory) <= 1_000
    assert abs(total(capture, "free") - (high - low - busy - memory)) <= 1_000


def test_ranks_hosts_and_devices_of_the_databases() -> None:
    names = ("rank_id", "device", "host", "pid", "clock")
    lanes = [one(capture, "lanes") for capture in DATABASE]
    assert [[lane[name] for name in names] for lane in lanes] == [
        [0, 0, "ubuntu", 3136493, "utc"],
        [1, 1, "ubuntu", 3136495, "utc"],
    ]


@pytest.mark.parametrize("captures", [TEXT, DATABASE], ids=["text", "database"])
def test_the_same_collectives_are_found_on_both_ranks(captures: list[Path]) -> None:
    both = [read(capture).tables["collectives"].to_pylist() for capture in captures]
    seen = [[(row["group"], row["op"], row["seq"], row["bytes"]) for row in rows] for rows in both]
    assert seen[0] == seen[1]
    # The sums of the counts of float32 in the profile.
    assert sum(row["bytes"] for row in both[0]) == 4 * (4097000 + 16781312 + 37752832 + 2469696)


# Samples of the reference tool


def test_the_documented_samples_have_the_documented_roles_ranks_and_times(tmp_path: Path) -> None:
    tables = drawn(SAMPLES, tmp_path / "out")

    # GIVEN min(ts) and max(ts + dur) of the rows of each file, as the reference tool has them
    wanted = {}
    for role in SAMPLES.iterdir():
        every = [one for rows in overlap_rows(role / "xxx_ascend_pt").values() for one in rows]
        start, end = min(low for low, _ in every), max(high for _, high in every)
        wanted[role.name.removesuffix("_replica_0")] = (0, start, end - start)
    assert len(wanted) == 4
    spans = tables["spans"]
    assert wanted == {
        span["role"]: (span["rank_id"], span["start_ns"], span["duration_ns"]) for span in spans
    }
    assert {span["replica"] for span in spans if "rollout" in span["role"]} == {0}
    assert {row["status"] for row in tables["sources"]} == {"ok"}


def test_every_capture_of_the_corpus_is_claimed_once() -> None:
    claimed = [found.path for found in PARSER.discover(scan(MSTX))]
    folders = {path.relative_to(MSTX).as_posix() for path in MSTX.rglob("*_ascend_pt")}
    assert sorted(claimed) == sorted(folders)


def test_nothing_else_of_the_corpus_is_claimed() -> None:
    for folder in ("torch", "nvtx", "gmm"):
        assert list(PARSER.discover(scan(CORPUS / folder))) == []
