"""The text form: rows are told by what they are, whatever process and thread they stand in."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rl_insight.errors import ReadError
from rl_insight.parsers import Parsed
from rl_insight.parsers.mstx_events import QUICK_EVENT, MstxArgs, MstxEvent
from rl_insight.parsers.mstx_processes import Process, host_pid
from rl_insight.parsers.op_names import OpNames
from tests.ascend_captures import (
    ANALYSIS,
    BASE_NS,
    BUSY,
    COMMUNICATION_PID,
    HARDWARE_PID,
    OVERLAP_PID,
    Event,
    at,
    collective,
    event,
    info,
    mstx,
    one,
    overlap,
    parsed,
    problem,
    process,
    rows,
    stages,
    task,
    times,
    write_text,
)

HARDWARE = process(HARDWARE_PID, "Ascend Hardware", sort_index=13)
HCCL = process(COMMUNICATION_PID, "HCCL", sort_index=15)


def read(tmp_path: Path, events: Any = None, folder: str = "actor_update", **more: Any) -> Parsed:
    depth = more.pop("depth", 2)
    capture = write_text(tmp_path / "run" / folder / "a_ascend_pt", events, **more)
    return parsed(capture, tmp_path / "run", depth)


# The documented sample


def test_the_documented_times_are_those_of_the_overlap_rows(tmp_path: Path) -> None:
    # GIVEN the reference tool's own fixture: ts 1000000, dur 500000 µs, and a role in the metadata
    pid = 12345
    named = {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "Overlap Analysis"}}
    row = {**event("Computing", pid, 0, 500000, args={}), "ts": "1000000"}
    found = read(tmp_path, [named, row], metadata={"role": "rollout_generate"})

    # THEN the stage goes from 1000.0 to 1500.0 ms, on a clock that tells no date
    span, lane = one(found, "spans"), one(found, "lanes")
    assert (span["start_ns"] / 1e6, span["duration_ns"] / 1e6) == (1000.0, 500.0)
    assert (lane["role"], lane["rank_id"], lane["clock"]) == ("rollout_generate", 0, "relative")


# The profiler's own overlap analysis


def test_the_breakdown_is_that_of_the_overlap_rows(tmp_path: Path) -> None:
    found = read(tmp_path)

    assert found.status == "ok"
    assert stages(found) == [(None, 100_000, 100_000)]
    row = one(found, "breakdown")
    assert times(row) == (100_000, 30_000, 50_000, 10_000, 0, 30_000)
    assert row["device_start_ns"] - BASE_NS == 100_000
    assert row["device_end_ns"] - BASE_NS == 170_000
    assert [
        (row["category"], row["start_ns"] - BASE_NS, row["duration_ns"])
        for row in rows(found, "activity")
    ] == [("computing", 100_000, 30_000), ("communication", 120_000, 50_000)]


@pytest.mark.parametrize("tids", [(0, 1, 2, 3), (2, 0, 1, 3), (5, 5, 5, 5)])
def test_rows_are_told_by_their_name_never_by_their_thread(
    tmp_path: Path, tids: tuple[int, ...]
) -> None:
    events = [*ANALYSIS]
    events += [{**row, "tid": tid} for row, tid in zip(BUSY[len(ANALYSIS) :], tids, strict=True)]
    assert times(one(read(tmp_path, events), "breakdown"))[1:4] == (30_000, 50_000, 10_000)


def test_what_is_not_overlapped_is_communication_where_nothing_else_tells(tmp_path: Path) -> None:
    events = [
        *ANALYSIS,
        overlap("Computing", 0, 10),
        overlap("Communication(Not Overlapped)", 10, 5),
    ]
    assert times(one(read(tmp_path, events), "breakdown"))[1:4] == (10_000, 5_000, 0)


def test_the_order_of_rows_and_names_does_not_matter(tmp_path: Path) -> None:
    found = read(tmp_path, [*BUSY[len(ANALYSIS) :], *ANALYSIS])
    assert times(one(found, "breakdown")) == (100_000, 30_000, 50_000, 10_000, 0, 30_000)


def test_an_analysis_that_lost_its_name_is_known_by_its_rows(tmp_path: Path) -> None:
    assert stages(read(tmp_path, BUSY[len(ANALYSIS) :])) == [(None, 100_000, 100_000)]


def test_rows_of_these_names_in_another_process_are_no_analysis(tmp_path: Path) -> None:
    events = [*BUSY, *process(6, "Somebody", "CPU"), overlap("Computing", 0, 1_000, pid=6)]
    assert stages(read(tmp_path, events)) == [(None, 100_000, 100_000)]


def test_copies_come_from_the_tasks_and_take_only_time_that_is_free(tmp_path: Path) -> None:
    # GIVEN a copy that begins 5 µs before the communication ends, and lasts 15
    events = [*BUSY, *HARDWARE, task("MEMCPY_ASYNC", "PCIE_DMA_SQE", 165, 15)]
    assert times(one(read(tmp_path, events), "breakdown")) == (
        *(100_000, 30_000, 50_000, 10_000),
        *(10_000, 20_000),
    )


def test_the_analysis_says_when_and_the_tasks_only_with_what(tmp_path: Path) -> None:
    # GIVEN a task that msprof does not count as computing: it only drives a collective
    events = [
        *BUSY,
        *HARDWARE,
        task("MatMul", "AI_CORE", 100, 20),
        task("Add", "AI_VECTOR_CORE", 120, 10),
        task("Add", "MIX_AIV", 60, 5),
        task("AllReduceAicpuKernel", "AI_CPU", 180, 20),
        task("EVENT_WAIT", "EVENT_WAIT_SQE", 180, 20),
    ]
    found = read(tmp_path, events)

    # THEN the task outside of the analysis changes nothing in it
    assert times(one(found, "breakdown"))[:4] == (100_000, 30_000, 50_000, 10_000)
    assert [
        (row["category"], row["name"], row["count"], row["total_ns"]) for row in rows(found, "ops")
    ] == [("computing", "MatMul", 1, 20_000), ("computing", "Add", 1, 10_000)]


def test_without_an_analysis_the_tasks_are_united(tmp_path: Path) -> None:
    events = [
        *HARDWARE,
        *HCCL,
        task("MatMul", "AI_CORE", 100, 20),
        task("Add", "AI_VECTOR_CORE", 110, 20),
        collective("hcom_allReduce__586_0_1", 120, 50, 1_000),
        task("Notify Wait", "Notify Wait", 120, 60),
        task("MEMCPY_ASYNC", "SDMA_SQE", 180, 10),
    ]
    found = read(tmp_path, events)

    # THEN copies do not widen the stage: it goes to the end of the collective
    assert stages(found) == [(None, 100_000, 70_000)]
    assert times(one(found, "breakdown")) == (70_000, 30_000, 50_000, 10_000, 0, 0)
    assert "no_overlap_analysis" in found.problems


def test_device_rows_without_arguments_are_tasks_by_their_name(tmp_path: Path) -> None:
    events = [
        event("aclnnMatmul", HARDWARE_PID, 100, 20, args={}),
        event("MEMCPY_ASYNC", HARDWARE_PID, 130, 5),
        event("EVENT_WAIT", HARDWARE_PID, 130, 90),
        event("Notify_Wait", HARDWARE_PID, 130, 90),
        event("hcom_broadcast__586_0_1", COMMUNICATION_PID, 110, 30),
        *HARDWARE,
        *HCCL,
    ]
    found = read(tmp_path, events)
    assert times(one(found, "breakdown")) == (40_000, 20_000, 30_000, 10_000, 0, 0)
    assert one(found, "collectives")["op"] == "hcom_broadcast"


# Collectives


def test_collectives_tell_their_operation_number_group_and_size(tmp_path: Path) -> None:
    found = read(tmp_path, [*BUSY, *HCCL, collective("hcom_allReduce__586_7_1", 120, 50, 1_000)])
    (span,) = rows(found, "spans")
    assert one(found, "collectives") == {
        "lane_id": "s-0",
        "span_id": span["span_id"],
        "group": "586",
        "op": "hcom_allReduce",
        "seq": 7,
        "start_ns": BASE_NS + 120_000,
        "duration_ns": 50_000,
        "bytes": 4_000,
    }
    assert [(row["category"], row["name"]) for row in rows(found, "ops")] == [
        ("communication", "hcom_allReduce")
    ]


@pytest.mark.parametrize(
    ("thread", "group"),
    [
        ("Group 0 Communication", "586"),
        ("Group group_name_2 Communication", "tp (group_name_2)"),
        ("Group unheard_of Communication", "unheard_of"),
        ("Communication", "586"),
        ("Plane 3", "586"),
    ],
)
def test_a_group_is_called_as_its_thread_and_the_metadata_say(
    tmp_path: Path, thread: str, group: str
) -> None:
    # GIVEN the name of the thread after its rows; older versions number groups rank by rank
    name: Event = {"ph": "M", "name": "thread_name", "pid": COMMUNICATION_PID, "tid": 4}
    name["args"] = {"name": thread}
    events = [*BUSY, *HCCL, collective("hcom_allReduce__586_7_1", 120, 50, 1_000, tid=4), name]
    groups = {"group_name_2": {"group_name": "tp", "group_rank": 0, "global_ranks": [0, 1]}}

    found = read(tmp_path, events, metadata={"parallel_group_info": groups})

    assert one(found, "collectives")["group"] == group


def test_the_steps_of_a_collective_are_no_calls(tmp_path: Path) -> None:
    args = {"task type": "Memcpy", "notify_id": "1", "size(Byte)": 4}
    events = [*BUSY, *HCCL, event("Memcpy", COMMUNICATION_PID, 120, 50, args=args)]
    found = read(tmp_path, events)
    assert rows(found, "collectives") == []
    assert rows(found, "ops") == []


# Several devices


def test_each_device_is_a_lane(tmp_path: Path) -> None:
    # GIVEN two devices of one process, told apart by the label or, in older versions, the pid
    other = OVERLAP_PID + 1
    events = [
        *BUSY,
        *process(other, "Overlap Analysis", "NPU", sort_index=29),
        overlap("Computing", 300, 200, pid=other),
    ]
    found = read(tmp_path, events, told=info(5))

    # THEN each has its own time, and the rank is that of the busier one
    lanes = rows(found, "lanes")
    assert [(lane["device"], lane.get("rank_id")) for lane in lanes] == [(0, None), (1, 5)]
    spans = rows(found, "spans")
    assert [(span["lane_id"], span["duration_ns"]) for span in spans] == [
        (lanes[0]["lane_id"], 100_000),
        (lanes[1]["lane_id"], 200_000),
    ]
    assert problem(found, "several_devices") == (
        "2 devices in one capture; the rank is that of the busiest, device 1"
    )


def test_devices_that_nothing_tells_apart_are_lanes_all_the_same(tmp_path: Path) -> None:
    events = [
        *process(3, "Overlap Analysis", "NPU"),
        *process(4, "Overlap Analysis", "NPU"),
        overlap("Computing", 0, 10, pid=3),
        overlap("Computing", 0, 20, pid=4),
    ]
    found = read(tmp_path, events)
    assert sorted(span["duration_ns"] for span in rows(found, "spans")) == [10_000, 20_000]
    assert all("device" not in lane for lane in rows(found, "lanes"))


# Stages


def test_stages_are_the_ranges_of_the_host_and_the_device_is_seen_through_them(
    tmp_path: Path,
) -> None:
    events = [
        *BUSY,
        mstx("compute_ref_log_prob", 60, 70),
        mstx("actor_update", 130, 100, event_type="push/pop"),
    ]
    found = read(tmp_path, events, folder="e2e")

    assert stages(found) == [
        ("ref_compute_log_prob", 60_000, 70_000),
        ("actor_update", 130_000, 100_000),
    ]
    # Computing is over when the second begins; communication goes on for 40 µs.
    first, second = rows(found, "breakdown")
    assert times(first) == (70_000, 30_000, 10_000, 10_000, 0, 40_000)
    assert times(second) == (100_000, 0, 40_000, 0, 0, 60_000)


def test_ranges_inside_a_stage_are_kept_with_their_batches(tmp_path: Path) -> None:
    events = [
        *BUSY,
        mstx("update_actor", 100, 100),
        mstx("mini_batch0", 100, 90),
        # torch_npu makes operations of PyTorch's own ranges.
        event("micro_batch1", 7, 110, 10, tid=9, cat="cpu_op"),
        event("aten::mm", 7, 110, 10, tid=9, cat="cpu_op"),
        event("loss", 7, 120, 10, tid=9, cat="user_annotation"),
    ]
    found = read(tmp_path, events)
    assert [
        (row["name"], row["depth"], row.get("mini_batch"), row.get("micro_batch"))
        for row in rows(found, "spans")
    ] == [
        ("actor_update", 0, None, None),
        ("mini_batch0", 1, 0, None),
        ("micro_batch1", 2, 0, 1),
        ("loss", 2, 0, None),
    ]


def test_marks_and_the_ranges_of_collectives_are_passed_over(tmp_path: Path) -> None:
    events = [
        *BUSY,
        mstx("update_actor", 100, 0, event_type="marker"),
        mstx("update_actor", 100, 50, domain="communication"),
    ]
    found = read(tmp_path, events)
    assert stages(found) == [(None, 100_000, 100_000)]
    assert len(rows(found, "spans")) == 1


def test_what_the_device_saw_of_a_stage_counts_only_where_the_host_recorded_nothing(
    tmp_path: Path,
) -> None:
    # GIVEN the device's side of a range, which is no task although it stands among them
    args = {"Physic Stream Id": 2, "Task Id": 9}
    device = event("update_actor", HARDWARE_PID, 105, 80, args=args)
    marker = event("micro_note", HARDWARE_PID, 110, 50, args=args)

    alone = read(tmp_path / "1", [*BUSY, *HARDWARE, device, marker])
    both = read(tmp_path / "2", [*BUSY, *HARDWARE, device, mstx("update_actor", 90, 110)])

    assert stages(alone) == [("actor_update", 105_000, 80_000)]
    assert stages(both) == [("actor_update", 90_000, 110_000)]
    assert rows(alone, "ops") == []


def test_a_range_that_is_called_like_the_folder_is_a_stage(tmp_path: Path) -> None:
    found = read(tmp_path, [*BUSY, mstx("my_stage", 90, 110)], folder="my_stage")
    assert stages(found) == [("my_stage", 90_000, 110_000)]


def test_the_depth_of_ranges_is_limited(tmp_path: Path) -> None:
    events = [*BUSY, mstx("update_actor", 100, 90), mstx("outer", 100, 80), mstx("inner", 100, 70)]
    names = [row["name"] for row in rows(read(tmp_path, events, depth=1), "spans")]
    assert names == ["actor_update", "outer"]


# From when to when


def test_the_capture_goes_from_when_to_when_the_profiler_says(tmp_path: Path) -> None:
    # GIVEN clocks that were read 1 s after the base, when 900 ms had passed
    end = {"collectionTimeEnd": BASE_NS + 10**9, "MonotonicTimeEnd": 5 * 10**9}
    told = {**info(), "end_info": end, "start_info": {"start_monotonic": 4_100_000_000}}
    # The profiler cannot have begun after its first event.
    later = [{**row, "ts": at(200_000)} if row["ph"] == "X" else row for row in BUSY]

    lane = one(read(tmp_path / "1", later, told=told), "lanes")
    assert lane["capture_start_ns"] - BASE_NS == 100_000_000
    assert lane["capture_end_ns"] - BASE_NS == 1_000_000_000

    lane = one(read(tmp_path / "2", told=told), "lanes")
    assert lane["capture_start_ns"] - BASE_NS == 100_000


def test_a_stage_is_cut_only_where_the_profiler_stopped_in_it(tmp_path: Path) -> None:
    events = [*BUSY, mstx("compute_log_prob", 60, 40), mstx("update_actor", 110, 190)]
    end = {"end_info": {"collectionTimeEnd": BASE_NS + 300_000}}

    unknown = rows(read(tmp_path / "1", events), "spans")
    stopped = rows(read(tmp_path / "2", events, told={**info(), **end}), "spans")

    assert [span["truncated"] for span in unknown] == [False, False]
    assert [span["truncated"] for span in stopped] == [False, True]


def test_the_host_process_is_known_by_its_number(tmp_path: Path) -> None:
    assert one(read(tmp_path / "1"), "lanes")["pid"] == 3467369
    events = [*BUSY, *process(4711, "Python", "CPU")]
    assert one(read(tmp_path / "2", events), "lanes")["pid"] == 4711


@pytest.mark.parametrize(
    ("host", "sort_index", "others", "pid"),
    [
        # As torch_npu writes it: the number of the system, that layers of a device repeat.
        (4000, 0, [4000 << 10 | 29 << 5], 4000),
        # Numbered like a layer, which another layer proves.
        (4000 << 10 | 1 << 5, 1, [4000 << 10 | 29 << 5], 4000),
        # The same without a second opinion, or against it: by chance or not, nobody knows.
        (4000 << 10 | 1 << 5, 1, [], None),
        (4000 << 10 | 1 << 5, 1, [5000 << 10 | 29 << 5], None),
        # No system numbers a process so high.
        (5000 << 10 | 1 << 5, 0, [], None),
        # A container has numbers of its own.
        (77, 0, [4000 << 10 | 29 << 5], 77),
        # Without the program's own rows, devices that agree tell it.
        (None, 0, [4000 << 10 | 29 << 5, 4000 << 10 | 13 << 5], 4000),
        (None, 0, [4000 << 10 | 29 << 5, 5000 << 10 | 13 << 5], None),
    ],
)
def test_the_number_of_a_row_is_not_taken_for_that_of_the_process(
    host: int | None, sort_index: int, others: list[int], pid: int | None
) -> None:
    events = [] if host is None else process(host, "Python", "CPU", sort_index)
    for number in others:
        events += process(number, "Ascend Hardware", "NPU 0", number >> 5 & 31)
    made = [Process(number, OpNames()) for number in dict.fromkeys(e["pid"] for e in events)]
    for layer in made:
        for row in events:
            if row["pid"] == layer.pid:
                args = MstxArgs(**row["args"])
                layer.describe(MstxEvent(ph="M", name=row["name"], pid=layer.pid, tid=0, args=args))

    assert host_pid(made) == pid


# Damage


def test_nonsense_times_stretch_nothing(tmp_path: Path) -> None:
    events = [
        *BUSY,
        {**overlap("Computing", 0, 5), "ts": "0"},
        {**overlap("Computing", 0, 5), "ts": None},
        {**overlap("Computing", 0, 5), "ts": "no time"},
        overlap("Computing", 150, -5),
        overlap("Computing", 150, 1e15),
        {**overlap("Computing", 0, 5), "ts": "5.000"},
    ]
    found = read(tmp_path, events)
    assert stages(found) == [(None, 100_000, 100_000)]
    assert {one.code: one.count for one in found.problems} == {
        "zero_time": 1,
        "no_time": 2,
        "negative_duration": 1,
        "impossible_duration": 1,
        "outside_capture": 1,
    }


def test_names_are_data_whatever_they_look_like(tmp_path: Path) -> None:
    name = '<script>alert("x")</script>\x00\U0001f600'
    events = [*BUSY, *HARDWARE, task(name, "AI_CORE", 100, 20), mstx(name, 110, 5)]
    found = read(tmp_path, events, metadata={"role": name})
    assert one(found, "ops")["name"] == name
    assert one(found, "lanes")["role"] == name


@pytest.mark.parametrize(
    "odd",
    [
        {"pid": None},
        {"pid": "text", "tid": 2**70},
        {"args": 3},
        {"args": [1, {"Task Type": "AI_CORE"}]},
        {"args": {"Task Type": ["AI_CORE"], "name": {}}},
        {"name": None},
        {"name": 7, "cat": 3},
    ],
)
def test_odd_values_cost_nothing_else(tmp_path: Path, odd: Event) -> None:
    found = read(tmp_path, [*BUSY, {**event("x", 5, 120, 3), **odd}])
    assert stages(found) == [(None, 100_000, 100_000)]


@pytest.mark.parametrize(
    ("content", "status", "detail"),
    [
        (b"", "empty", "the file is empty"),
        (b"[]", "empty", "the trace holds no events"),
        (
            json.dumps(ANALYSIS).encode(),
            "empty",
            "no timed events: none of its 3 events has a duration",
        ),
    ],
)
def test_a_trace_that_gives_nothing_says_why(
    tmp_path: Path, content: bytes, status: str, detail: str
) -> None:
    found = read(tmp_path, content)
    assert (found.status, found.detail) == (status, detail)
    assert rows(found, "spans") == []


@pytest.mark.parametrize("content", [b"\x00" * 100, b"no JSON at all", b"<html>"])
def test_a_trace_that_is_no_json_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ReadError, match="is no trace"):
        read(tmp_path, content)


@pytest.mark.parametrize("content", [b'{"a": 1}', b'[{"a": 1}]'])
def test_json_of_another_kind_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ReadError, match="JSON of another kind: it holds no trace events"):
        read(tmp_path, content)


@pytest.mark.parametrize("phase", [{}, {"ph": None}, {"ph": 7}, {"ph": "?"}, {"ph": "BX"}])
def test_events_of_an_unheard_of_phase_are_passed_over(tmp_path: Path, phase: Event) -> None:
    # GIVEN a phase for which the quicker way of decoding is not made
    events = [*BUSY, *HARDWARE, task("MatMul", "AI_CORE", 100, 20), mstx("update_actor", 90, 120)]
    other = {"name": "x", "pid": 1, "ts": at(0), "dur": 10, **phase}

    found = read(tmp_path, [*events, other])

    assert (found.status, stages(found)) == ("ok", [("actor_update", 90_000, 120_000)])
    assert list(found.problems) == []
    assert found.tables == read(tmp_path / "healthy", events).tables


@pytest.mark.parametrize("phase", list("BEXiICbnestfPNODSTpFMVvRc()"))
def test_every_phase_of_the_format_is_known(tmp_path: Path, phase: str) -> None:
    decoded = msgspec.json.decode(json.dumps({"ph": phase, "name": "x"}), type=QUICK_EVENT)
    assert decoded.ph == phase


def test_one_broken_event_costs_only_itself(tmp_path: Path) -> None:
    text = json.dumps(BUSY)[:-1] + ', {"name": "lib = "ns"", "ph": "X", "ts": 1, "dur": 1}]'
    found = read(tmp_path, text)
    assert stages(found) == [(None, 100_000, 100_000)]
    assert found.status in ("ok", "salvaged")


def test_many_events_and_processes_are_read_in_bounded_memory(tmp_path: Path) -> None:
    # GIVEN rows of more processes than any trace has
    events = [overlap("Computing", 100 + pid, 1, pid=pid) for pid in range(1, 3_000)]
    found = read(tmp_path, events)
    assert found.status == "ok"
    assert len(rows(found, "lanes")) <= 64
    assert "processes_left_out" in found.problems


def test_reading_imports_no_pandas(tmp_path: Path) -> None:
    capture = write_text(tmp_path / "run/actor_update/a_ascend_pt")
    code = (
        "import sys; from pathlib import Path; from tests.ascend_captures import parsed; "
        f"parsed(Path({str(capture)!r})); sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
