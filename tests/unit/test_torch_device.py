"""What the torch parser tells of a device and of collectives, on small traces made here."""

from pathlib import Path

import pytest

from tests.torch_traces import ARGS, NOW_US, annotation, kernel, lane, parse, rows, times, x

# -- what the device did -------------------------------------------------------------------------


def test_the_time_of_a_stage_is_divided_exactly(tmp_path: Path) -> None:
    # GIVEN a stage of 1,000 µs in which the device computes 100-300 on two streams, communicates
    # 250-400, copies 380-450, and waits for the rest; and work before and after the stage
    parsed = parse(
        tmp_path,
        annotation("update_actor", 50, 1_000),
        kernel("gemm", 100, 150),
        kernel("gelu", 200, 100),
        kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 250, 150),
        kernel("Memcpy DtoD", 380, 40, "gpu_memcpy"),
        kernel("Memset (Device)", 420, 30, "gpu_memset"),
        kernel("gemm", 10, 80),
        kernel("gemm", 1_000, 500),
    )
    # THEN the parts are cut at its edges (10-90 to 50-90, 1000-1500 to 1000-1050) and add up
    (row,) = rows(parsed, "breakdown")
    assert row == {
        "span_id": "abc-0-0",
        "lane_id": "abc-0",
        "role": None,
        "rank_id": None,
        "replica": None,
        "step": None,
        "window_ns": 1_000_000,
        "device_start_ns": (NOW_US + 50) * 1000,
        "device_end_ns": (NOW_US + 1_050) * 1000,
        "computing_ns": (200 + 40 + 50) * 1000,
        "communication_ns": 150_000,
        "overlapped_ns": 50_000,
        "memory_ns": 50_000,
        "free_ns": (1_000 - 40 - 350 - 50) * 1000,
    }


def test_without_device_data_there_is_no_breakdown(tmp_path: Path) -> None:
    parsed = parse(tmp_path, annotation("update_actor", 50, 1_000), x("aten::mm", 60, 40))
    assert rows(parsed, "breakdown") == rows(parsed, "activity") == rows(parsed, "ops") == []


@pytest.mark.parametrize(
    ("cat", "name", "category"),
    [
        ("kernel", "ampere_bf16_s16816gemm", "computing"),
        ("kernel", "ncclDevKernel_AllGather_RING_LL", "communication"),
        ("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float", "communication"),
        ("kernel", "void nvshmemi_transfer", "communication"),
        ("kernel", "void vllm::cross_device_reduce_1stage<__half, 2>", "communication"),
        ("kernel", "rcclDevKernel", "communication"),
        ("kernel", "void not_nccl_at_all", "computing"),
        ("kernel", "Memcpy DtoD", "memory"),
        ("kernel", "hipMemset", "memory"),
        ("Kernel", "gemmk1_kernel", "computing"),
        ("Memcpy", "HtoD (Pageable -> Device)", "memory"),
        ("Memset", "fill", "memory"),
        ("gpu_memcpy", "CopyDeviceToDevice", "memory"),
        ("mtia_ccp_events", "pe_exe", "computing"),
        ("mtia_ccp_events", "dma_request", "memory"),
        ("collective_comm", "xccl::allreduce", "communication"),
    ],
)
def test_device_events_have_a_class(tmp_path: Path, cat: str, name: str, category: str) -> None:
    parsed = parse(tmp_path, x("a", 10, 100), kernel(name, 20, 30, cat))
    (row,) = rows(parsed, "ops")
    assert (row["category"], row["name"], row["total_ns"]) == (category, name, 30_000)
    (interval,) = rows(parsed, "activity")
    assert (interval["category"], interval["duration_ns"]) == (category, 30_000)
    (breakdown,) = rows(parsed, "breakdown")
    assert breakdown[f"{category}_ns"] == 30_000


@pytest.mark.parametrize(
    ("cat", "name"),
    [
        ("mtia_ccp_events", "event_wait"),
        ("mtia_ccp_events", "event_record"),
        ("cuda_sync", "Stream Wait Event"),
        ("cuda_runtime", "cudaLaunchKernel"),
        ("mtia_runtime", "runFunction"),
        ("hpu_op", "aten::add"),
        ("python_function", "nccl.py(1): run"),
        ("overhead", "Activity Buffer Request"),
    ],
)
def test_waiting_and_the_host_are_no_device_time(tmp_path: Path, cat: str, name: str) -> None:
    parsed = parse(tmp_path, x("a", 10, 100), kernel(name, 20, 30, cat))
    assert rows(parsed, "breakdown") == rows(parsed, "ops") == []


def test_a_kernel_of_any_name_communicates_when_it_names_its_collective(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path,
        x("a", 10, 100),
        kernel("my_kernel", 20, 30, **{"Collective name": "allreduce"}),
        kernel("my_kernel", 60, 5),
    )
    assert [(row["category"], row["name"], row["total_ns"]) for row in rows(parsed, "ops")] == [
        ("computing", "my_kernel", 5_000),
        ("communication", "my_kernel", 30_000),
    ]


def test_the_busiest_device_is_the_captures_own_and_others_are_counted(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path,
        x("a", 10, 1_000),
        kernel("stray", 20, 30, pid=0),
        kernel("gemm", 100, 200, pid=3),
        kernel("gemm", 400, 100, pid=3),
    )
    (row,) = rows(parsed, "breakdown")
    assert (lane(parsed)["device"], row["computing_ns"]) == (3, 300_000)
    assert [row["name"] for row in rows(parsed, "ops")] == ["gemm"]
    assert parsed.problems.count("other_devices") == 1


def test_collectives_recorded_on_the_host_are_the_own_devices(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path,
        kernel("gemm", 100, 20, pid=3),
        kernel("xccl::allreduce", 110, 30, "collective_comm", pid=4711),
    )
    (row,) = rows(parsed, "breakdown")
    assert (row["computing_ns"], row["communication_ns"], row["overlapped_ns"]) == (
        20_000,
        30_000,
        10_000,
    )
    assert (lane(parsed)["device"], len(parsed.problems)) == (3, 0)


def test_activity_is_united_per_category(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path,
        kernel("a", 10, 20),
        kernel("b", 25, 15),
        kernel("c", 50, 10),
        kernel("nccl", 12, 5),
    )
    assert [
        (row["category"], times(row), row["joined_gap_ns"], row["lane_id"])
        for row in rows(parsed, "activity")
    ] == [
        ("computing", (10, 30), 0, "abc-0"),
        ("computing", (50, 10), 0, "abc-0"),
        ("communication", (12, 5), 0, "abc-0"),
    ]


# -- collectives ---------------------------------------------------------------------------------


def test_a_collective_says_who_took_part_and_how_much(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path,
        annotation("update_actor", 100, 500),
        kernel("ncclDevKernel_AllReduce", 150, 40, **ARGS),
        kernel("ncclDevKernel_AllReduce", 700, 40, **{**ARGS, "Seq": 43, "dtype": "BFloat16"}),
    )
    first, second = rows(parsed, "collectives")
    assert first == {
        "lane_id": "abc-0",
        "span_id": "abc-0-0",
        "group": "mesh_dp (1)",
        "op": "allreduce",
        "seq": 42,
        "start_ns": (NOW_US + 150) * 1000,
        "duration_ns": 40_000,
        "bytes": 6_637_568 * 4,
    }
    assert (second["seq"], second["span_id"], second["bytes"]) == (43, None, 6_637_568 * 2)


@pytest.mark.parametrize(
    ("changed", "column", "expected"),
    [
        ({"Process Group Description": "undefined"}, "group", "1"),
        ({"Process Group Name": None}, "group", "mesh_dp"),
        ({"Process Group Name": 7}, "group", "mesh_dp (7)"),
        ({"dtype": "Float8_e4m3fn"}, "bytes", 6_637_568),
        ({"dtype": "Quaternion"}, "bytes", None),
        ({"In msg nelems": "10"}, "bytes", 40),
        ({"In msg nelems": -1}, "bytes", None),
        ({"In msg nelems": 2**63 - 1}, "bytes", None),
        ({"Seq": 18_446_744_073_709_551_615}, "seq", None),
        ({"Seq": None}, "seq", None),
    ],
)
def test_odd_arguments_of_a_collective(
    tmp_path: Path, changed: dict[str, object], column: str, expected: object
) -> None:
    parsed = parse(tmp_path, kernel("ncclDevKernel", 150, 40, **{**ARGS, **changed}))
    (row,) = rows(parsed, "collectives")
    assert row[column] == expected


def test_gloo_works_on_the_host_and_nccl_ranges_there_are_only_launches(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path,
        annotation("update_actor", 100, 500),
        annotation("gloo:all_reduce", 150, 80, tid=9),
        annotation("nccl:all_reduce", 150, 2),
    )
    (row,) = rows(parsed, "collectives")
    assert (row["op"], row["duration_ns"], row["span_id"]) == ("all_reduce", 80_000, "abc-0-0")
    assert (row["group"], row["seq"], row["bytes"]) == (None, None, None)
    assert len(rows(parsed, "spans")) == 1
