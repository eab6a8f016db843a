"""What is lost of a device's activity must not count as time in which it was free."""

import json
from pathlib import Path

import numpy as np
import pytest

from rl_insight.parsers import Parsed
from rl_insight.parsers.base import Source
from rl_insight.parsers.losses import is_in_part
from rl_insight.parsers.mstx import PARSER as MSTX
from rl_insight.problems import Problems
from rl_insight.visualizers import timeline_data
from tests import ascend_captures as ascend
from tests import nvtx_exports as nsys
from tests.timeline_tables import Tables
from tests.unit import test_nvtx_parser as nvtx
from tests.unit import test_torch_parser as torch


def measured(parsed: Parsed) -> list[tuple[int | None, int | None]]:
    """Computing and free time of each stage in ns."""
    rows = parsed.tables["breakdown"].to_pylist()
    return [(row["computing_ns"], row["free_ns"]) for row in rows]


def cut_off(parsed: Parsed) -> list[bool]:
    spans = parsed.tables["spans"].to_pylist()
    return [row["truncated"] for row in spans if row["kind"] == "stage"]


# A stage of 100 µs in which the device works twice for 40 µs.
TORCH = [
    torch.annotation("actor_update", 100, 100),
    torch.kernel("first", 100, 40),
    torch.kernel("second", 150, 40),
]


def test_a_torch_trace_that_breaks_off_claims_no_free_time(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": TORCH})
    # GIVEN the whole trace: 80 µs of work, 20 µs without
    torch.write(tmp_path, torch.PATH, text.encode())
    whole = torch.parse_file(tmp_path, torch.PATH)
    assert (measured(whole), cut_off(whole)) == ([(80_000, 20_000)], [False])
    # WHEN it is cut in its last event
    torch.write(tmp_path, torch.PATH, text[: text.index("second")].encode())
    cut = torch.parse_file(tmp_path, torch.PATH)
    # THEN the stage is drawn as long as it was, and nobody is told that 60 µs were free
    assert torch.times(torch.stage(cut)) == (100, 100)
    assert (measured(cut), cut_off(cut)) == ([(None, None)], [True])
    (row,) = cut.tables["breakdown"].to_pylist()
    assert (row["window_ns"], row["device_start_ns"], row["device_end_ns"]) == (100_000, None, None)


@pytest.mark.parametrize(("damaged", "expected"), [(10, (80_000, 20_000)), (11, (None, None))])
def test_a_few_events_that_cannot_be_read_leave_the_breakdown(
    tmp_path: Path, damaged: int, expected: tuple[int | None, int | None]
) -> None:
    events = [json.dumps(event) for event in TORCH] + ['{"ph": "X", "ts": 1.2.3}'] * damaged
    torch.write(tmp_path, torch.PATH, f'{{"traceEvents": [{", ".join(events)}]}}'.encode())
    parsed = torch.parse_file(tmp_path, torch.PATH)
    assert parsed.status == "salvaged"
    assert parsed.problems.count("event_undecodable") == damaged
    assert measured(parsed) == [expected]
    assert cut_off(parsed) == [expected[0] is None]


def test_of_many_events_one_in_a_thousand_may_be_lost() -> None:
    problems = Problems()
    problems.add("event_undecodable", "warning", 20)
    assert not is_in_part(problems, 20_000)
    assert is_in_part(problems, 19_999)


def test_an_ascend_trace_that_breaks_off_claims_no_free_time(tmp_path: Path) -> None:
    folder = tmp_path / "host_1_20260312032448000_ascend_pt"
    ascend.write_text(folder, ascend.BUSY)
    (trace,) = folder.rglob("trace_view.json")
    source = Source("abc", folder.name, tmp_path, (trace.relative_to(tmp_path).as_posix(),))
    whole = MSTX.parse(source, {"timeline.parser.range_depth": 2})
    assert (measured(whole), cut_off(whole)) == ([(30_000, 30_000)], [False])
    text = trace.read_text()
    trace.write_text(text[: text.rindex("{")])
    cut = MSTX.parse(source, {"timeline.parser.range_depth": 2})
    assert cut.status == "salvaged"
    assert (measured(cut), cut_off(cut)) == ([(None, None)], [True])


# Two stages of 100 ns, in each of which the device works for 60 ns.
NSYS = [
    nsys.string(1, "gemm"),
    nsys.text_range(100, 200, "actor_compute_log_prob"),
    nsys.text_range(300, 400, "update_actor"),
    nsys.kernel(110, 170, 1),
    nsys.kernel(310, 370, 1),
]


def test_an_export_of_nsys_that_breaks_off_claims_no_free_time_in_any_stage(
    tmp_path: Path,
) -> None:
    path = nsys.write_lines(tmp_path / "a.jsonl", NSYS)
    whole = nvtx.parse_file(tmp_path, path.name)
    assert (measured(whole), cut_off(whole)) == ([(60, 40), (60, 40)], [False, False])
    text = path.read_bytes().rstrip()
    path.write_bytes(text[:-5])
    cut = nvtx.parse_file(tmp_path, path.name)
    assert cut.status == "salvaged"
    # AND the second stage, of whose kernels none is left, stands beside the first
    assert measured(cut) == [(None, None), (None, None)]
    assert cut_off(cut) == [True, True]


def test_a_table_of_ranges_that_is_damaged_costs_no_device_time(tmp_path: Path) -> None:
    folder = nsys.write_folder(tmp_path / "export_pqtdir", NSYS)
    ranges = folder / "NVTX_EVENTS.parquet"
    ranges.write_bytes(ranges.read_bytes()[:-20])
    parsed = nvtx.parse_file(tmp_path, folder.name)
    assert parsed.status == "salvaged"
    # Without its ranges it is one stage, from the first kernel's start to the last one's end.
    assert measured(parsed) == [(120, 140)]


def test_a_stage_says_why_its_device_time_is_not_divided(tmp_path: Path) -> None:
    made = Tables()
    made.lane("0", role="actor_update", rank_id=0)
    made.sources[0] = {**made.sources[0], "status": "salvaged", "detail": "it breaks off"}
    for start, computing in ((0, None), (100, 5)):
        span = made.span("0", start, 50, role="actor_update", rank_id=0, truncated=True)
        made.breakdown.append({"span_id": span, "window_ns": 50, "computing_ns": computing})
    spans = timeline_data.load(made.write(tmp_path)).spans
    assert spans.remarks == [
        (
            "Read in part: it breaks off.",
            "How busy the device was cannot be told: a part of its activity is lost.",
        ),
        ("Read in part: it breaks off.",),
    ]
    assert np.array_equal(spans.truncated, [True, True])
