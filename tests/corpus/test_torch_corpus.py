"""Real traces against a slow, plain reading of them: json.load, Decimal, and a sweep in Python."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rl_insight.data.tree import scan
from rl_insight.parsers.base import Parsed, Source
from rl_insight.parsers.torch import PARSER

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
TORCH = CORPUS / "torch"

pytestmark = pytest.mark.skipif(not TORCH.is_dir(), reason="the corpus of real files is not here")

DLRM = [
    "dlrm-8-ranks/worker0_step_12.1694128201545.pt.trace.json",
    "dlrm-8-ranks/worker1_step_12.1694128201556.pt.trace.json",
    "dlrm-8-ranks/worker2_step_12.1694128201554.pt.trace.json",
    "dlrm-8-ranks/worker3_step_12.1694128201557.pt.trace.json",
    "dlrm-8-ranks/worker4_step_12.1694128201547.pt.trace.json",
    "dlrm-8-ranks/worker5_step_12.1694128201549.pt.trace.json",
    "dlrm-8-ranks/worker6_step_12.1694128201553.pt.trace.json",
    "dlrm-8-ranks/worker7_step_12.1694128201553.pt.trace.json",
]
OTHERS_WITH_A_DEVICE = [
    "engines/gpu_only_trace.json.gz",
    "engines/graph_execution.json.gz",
    "engines/sglang_Qwen3-8B_decode.json.gz",
    "hta/mtia_inference_trace/mtia_inference_rank_0.json.gz",
    "hta/nccl_parser_config/nccl_data.json.gz",
    "hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "hta/trace_file_list/inference_rank_1.json.gz",
    "hta/trace_filter/sampled_rank-0.json.gz",
    "hta/trace_filter/sampled_rank-1.json.gz",
]
WITHOUT_A_DEVICE = [
    "hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
    "hta/distributed_info_unavailable/distributed_info_not_found.json.gz",
    "hta/rank_unavailable/rank_not_found.json.gz",
    "rl-insight/torch_data/torch_profile/actor_compute_log_prob/prof_rank-0_031847.json.gz",
    "rl-insight/torch_data/torch_profile/actor_compute_log_prob/prof_rank-1_031847.json.gz",
    "rl-insight/torch_data/torch_profile/actor_update/prof_rank-0_031904.json.gz",
    "rl-insight/torch_data/torch_profile/actor_update/prof_rank-1_031904.json.gz",
    "rl-insight/torch_data/torch_profile/agent_loop_rollout_replica_0/"
    "huawei_372640.1771730291744166997.pt.trace.json.gz",
    "rl-insight/torch_data/torch_profile/agent_loop_rollout_replica_0/"
    "huawei_372640.1771730370159969000.pt.trace.json.gz",
]
WITH_A_DEVICE = DLRM + OTHERS_WITH_A_DEVICE
ALL = WITH_A_DEVICE + WITHOUT_A_DEVICE

# rank and world size as read in the files by eye
IDENTITY: dict[str, tuple[int | None, int | None]] = {
    **{path: (rank, 8) for rank, path in enumerate(DLRM)},
    "engines/gpu_only_trace.json.gz": (None, None),
    "hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz": (34, 300),
    "hta/mtia_inference_trace/mtia_inference_rank_0.json.gz": (None, None),
    "hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": (0, 1),
    "hta/rank_unavailable/rank_not_found.json.gz": (None, None),
    "hta/distributed_info_unavailable/distributed_info_not_found.json.gz": (None, None),
    "hta/trace_file_list/inference_rank_1.json.gz": (1, None),
    "hta/trace_filter/sampled_rank-0.json.gz": (0, 128),
    "hta/trace_filter/sampled_rank-1.json.gz": (1, 128),
}

Events = list[dict[str, Any]]


@cache
def parsed(path: str) -> Parsed:
    return PARSER.parse(Source("id", path, TORCH, (path,)), {"timeline.parser.range_depth": 2})


def rows(path: str, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parsed(path).tables[table].to_pylist()
    return found


@cache
def slow(path: str) -> tuple[Events, int]:
    """All events with a duration and real, with `start` and `end` in ns of Unix time."""
    raw = (TORCH / path).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    content = json.loads(raw, parse_float=Decimal, strict=False)
    base = int(content.get("baseTimeNanoseconds", 0))
    events = []
    for event in content["traceEvents"]:
        if event["ph"] == "X" and event.get("cat") not in ("Trace", "gpu_user_annotation"):
            event["start"] = base + int(event["ts"] * 1000)
            event["end"] = event["start"] + int(event["dur"] * 1000)
            events.append(event)
    return events, len(content["traceEvents"])


def classified(events: Events) -> Iterator[tuple[str, dict[str, Any]]]:
    """Device events with their class, by the rules that docs/data.md names."""
    for event in events:
        category, name = event.get("cat"), event["name"]
        if category in ("gpu_memcpy", "gpu_memset"):
            yield "memory", event
        elif category in ("kernel", "Kernel", "mtia_ccp_events"):
            lower = name.lower()
            if (
                "Collective name" in event.get("args", {})
                or lower.startswith(("nccl", "rccl", "hccl"))
                or "ncclkernel" in lower
                or "nvshmem" in lower
                or "cross_device_reduce" in lower
            ):
                yield "communication", event
            elif re.match("(hip)?Mem(cpy|set)|dma", name):
                yield "memory", event
            elif name not in ("event_wait", "event_record"):
                yield "computing", event


def sweep(events: Events, low: int, high: int) -> dict[str, int]:
    """Walk over all edges inside [low, high), knowing at each what is going on."""
    edges: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for kind, event in classified(events):
        start, end = max(low, event["start"]), min(high, event["end"])
        if start < end:
            edges[start][kind] += 1
            edges[end][kind] -= 1
    found = dict.fromkeys(("computing", "communication", "overlapped", "memory", "free"), 0)
    going: dict[str, int] = defaultdict(int)
    at = low
    for edge in [*sorted(edges), high]:
        long = edge - at
        computing, communicating = going["computing"] > 0, going["communication"] > 0
        found["computing"] += long * computing
        found["communication"] += long * communicating
        found["overlapped"] += long * (computing and communicating)
        if not computing and not communicating:
            found["memory" if going["memory"] > 0 else "free"] += long
        for kind, change in edges[edge].items():
            going[kind] += change
        at = edge
    return found


def test_every_trace_of_the_corpus_is_looked_at_here() -> None:
    files = {path.relative_to(TORCH).as_posix() for path in TORCH.rglob("*.json*")}
    assert files == set(ALL)


def test_every_trace_of_the_corpus_is_claimed() -> None:
    assert {one.path: one.skip for one in PARSER.discover(scan(TORCH))} == dict.fromkeys(ALL)


def test_what_accompanies_the_corpus_is_passed_over_with_a_reason() -> None:
    skipped = {one.path: one.skip for one in PARSER.discover(scan(CORPUS / "other"))}
    assert skipped["trace_view_tiny.json"] is not None
    data_frame = "upstream-samples/summary_event_data/summary_event_dataframe_sample.json"
    assert skipped[data_frame] is not None
    # A list of metadata rows only: nothing tells it from a trace but parsing it.
    path = "event_list.json"
    assert skipped[path] is None
    empty = PARSER.parse(Source("id", path, CORPUS / "other", (path,)), {})
    assert empty.status == "empty"
    assert not any("ascend_pt" in path for path in skipped)


@pytest.mark.parametrize("path", ALL)
def test_every_trace_is_read_to_its_end(path: str) -> None:
    _, count = slow(path)
    assert (parsed(path).status, parsed(path).detail) == ("ok", None)
    assert parsed(path).events == count
    assert all(one.severity == "info" for one in parsed(path).problems)


@pytest.mark.parametrize("path", ALL)
def test_the_stage_goes_from_the_first_to_the_last_real_event(path: str) -> None:
    # None of these traces has the annotation of a known stage.
    events, _ = slow(path)
    first, last = min(one["start"] for one in events), max(one["end"] for one in events)
    (stage,) = [row for row in rows(path, "spans") if row["kind"] == "stage"]
    assert (stage["start_ns"], stage["duration_ns"]) == (first, last - first)
    (lane,) = rows(path, "lanes")
    assert lane["clock"] == "utc"
    assert lane["capture_start_ns"] <= first < last <= lane["capture_end_ns"]


@pytest.mark.parametrize("path", IDENTITY)
def test_rank_and_world_size_are_the_files_own(path: str) -> None:
    (lane,) = rows(path, "lanes")
    assert (lane["rank_id"], lane["world_size"]) == IDENTITY[path]


@pytest.mark.parametrize("path", WITH_A_DEVICE)
def test_the_breakdown_equals_a_slow_sweep_to_the_nanosecond(path: str) -> None:
    events, _ = slow(path)
    (row,) = rows(path, "breakdown")
    low, high = min(one["start"] for one in events), max(one["end"] for one in events)
    expected = sweep(events, low, high)
    assert {name: row[f"{name}_ns"] for name in expected} == expected
    assert row["window_ns"] == high - low
    device = [event for _, event in classified(events)]
    assert row["device_start_ns"] == min(one["start"] for one in device)
    assert row["device_end_ns"] == max(one["end"] for one in device)
    assert row["window_ns"] == (
        row["computing_ns"]
        + row["communication_ns"]
        - row["overlapped_ns"]
        + row["memory_ns"]
        + row["free_ns"]
    )


@pytest.mark.parametrize("path", WITH_A_DEVICE)
def test_operations_account_for_all_device_time(path: str) -> None:
    totals: dict[str, int] = defaultdict(int)
    by_name: dict[tuple[str, str], list[int]] = defaultdict(list)
    for kind, event in classified(slow(path)[0]):
        totals[kind] += event["end"] - event["start"]
        by_name[kind, event["name"]].append(event["end"] - event["start"])
    named: dict[str, int] = defaultdict(int)
    every: dict[str, int] = defaultdict(int)
    for row in rows(path, "ops"):
        every[row["category"]] += row["total_ns"]
        if row["name"] != "(other)":
            named[row["category"]] += row["total_ns"]
            lengths = by_name[row["category"], row["name"]]
            assert (row["count"], row["total_ns"], row["max_ns"]) == (
                len(lengths),
                sum(lengths),
                max(lengths),
            )
    assert every == totals
    assert all(named[kind] >= 0.99 * total for kind, total in totals.items())


@pytest.mark.parametrize("path", WITH_A_DEVICE)
def test_activity_covers_the_busy_time_of_each_class(path: str) -> None:
    (row,) = rows(path, "breakdown")
    for kind in ("computing", "communication"):
        intervals = [one for one in rows(path, "activity") if one["category"] == kind]
        assert len(intervals) <= 2_000
        total = sum(one["duration_ns"] for one in intervals)
        gap = max((one["joined_gap_ns"] for one in intervals), default=0)
        if gap == 0:
            assert total == row[f"{kind}_ns"]
        else:
            # What was joined lies between at most as many neighbours as there were kernels.
            kernels = sum(own == kind for own, _ in classified(slow(path)[0]))
            assert row[f"{kind}_ns"] < total < row[f"{kind}_ns"] + gap * kernels


def test_collectives_carry_the_arguments_of_nccl() -> None:
    path = "hta/nccl_parser_config/nccl_data.json.gz"
    expected = sorted(
        (
            event["start"],
            event["end"] - event["start"],
            event["args"]["Collective name"],
            event["args"]["In msg nelems"]
            * {"Float": 4, "Long": 8, "Byte": 1}[event["args"]["dtype"]],
        )
        for event in slow(path)[0]
        if "Collective name" in event.get("args", {}) and event["cat"] == "kernel"
    )
    found = rows(path, "collectives")
    assert len(found) == 21
    assert [
        (row["start_ns"], row["duration_ns"], row["op"], row["bytes"]) for row in found
    ] == expected
    assert {row["group"] for row in found} == {"default_pg (0)"}


def test_gloo_collectives_of_a_trace_without_a_device_are_its_annotations() -> None:
    path = "hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz"
    expected = sorted(
        (event["start"], event["end"] - event["start"])
        for event in slow(path)[0]
        if event["name"] == "gloo:all_reduce"
    )
    found = rows(path, "collectives")
    assert [(row["start_ns"], row["duration_ns"]) for row in found] == expected
    assert len(found) == 10


def test_the_documented_sample_starts_when_its_file_name_says() -> None:
    # prof_rank-0_031847: 03:18:47 UTC on 2026-02-22.
    (stage,) = rows(WITHOUT_A_DEVICE[3], "spans")
    assert stage["start_ns"] // 10**9 == 1_771_730_327
