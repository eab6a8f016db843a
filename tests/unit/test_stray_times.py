"""One time that cannot be must not stretch a lane over years, in any format: it is counted."""

from pathlib import Path

import pytest

from rl_insight.parsers import Parsed
from tests import ascend_captures as ascend
from tests import nvtx_exports as nsys
from tests.unit import test_nvtx_parser as nvtx
from tests.unit import test_torch_parser as torch
from tests.unit.test_nvtx_parser import Form, form

__all__ = ["form"]

# In 1973 by Unix time, and 3 years after the beginning of a capture that counts from there.
FAR_NS = 10**17


def counted(parsed: Parsed) -> dict[str, int]:
    return {one.code: one.count for one in parsed.problems if one.severity != "info"}


def rows(parsed: Parsed, table: str, since: int) -> list[tuple[int, int]]:
    return [
        (row["start_ns"] - since, row["duration_ns"]) for row in parsed.tables[table].to_pylist()
    ]


def test_a_torch_capture_forgets_stray_kernels_and_collectives(tmp_path: Path) -> None:
    stray = torch.kernel("ncclKernel", 1, 50, **{"Collective name": "allreduce"})
    parsed = torch.parse(
        tmp_path,
        torch.annotation("actor_update", 1, 1_000),
        torch.kernel("ncclKernel", 10, 50, **{"Collective name": "allreduce"}),
        torch.kernel("gemm", 100, 50),
        {**stray, "ts": FAR_NS // 1_000},
        {**stray, "ts": torch.NOW_US + 10**13},
    )
    since = torch.NOW_US * 1_000
    assert rows(parsed, "spans", since) == [(1_000, 1_000_000)]
    assert sorted(rows(parsed, "activity", since)) == [(10_000, 50_000), (100_000, 50_000)]
    assert rows(parsed, "collectives", since) == [(10_000, 50_000)]
    assert counted(parsed) == {"outside_capture": 2}


@pytest.mark.parametrize("far", [FAR_NS // 1_000, torch.NOW_US + 10**13])
def test_a_torch_capture_forgets_stray_stages(tmp_path: Path, far: int) -> None:
    stage = torch.annotation("actor_update", 1, 1_000)
    parsed = torch.parse(tmp_path, stage, torch.kernel("gemm", 100, 50), {**stage, "ts": far})
    assert rows(parsed, "spans", torch.NOW_US * 1_000) == [(1_000, 1_000_000)]
    assert counted(parsed) == {"outside_capture": 1}


def test_an_ascend_capture_forgets_stray_rows(tmp_path: Path) -> None:
    far = f"{FAR_NS // 1_000}.500"
    strays = [
        {**ascend.overlap("Computing", 0, 5), "ts": far},
        {**ascend.mstx("micro_batch_1", 0, 5), "ts": far},
        {**ascend.collective("hcom_allReduce_", 0, 5, 8), "ts": far},
    ]
    capture = ascend.write_text(tmp_path / "a_ascend_pt", [*ascend.BUSY, *strays])
    parsed = ascend.parsed(capture)
    assert ascend.stages(parsed) == [(None, 100_000, 100_000)]
    activity = sorted(rows(parsed, "activity", ascend.BASE_NS))
    assert activity == [(100_000, 30_000), (120_000, 50_000)]
    assert rows(parsed, "collectives", ascend.BASE_NS) == []
    assert counted(parsed) == {"outside_capture": 3}


@pytest.mark.parametrize("says_its_length", [True, False])
def test_an_nsys_capture_forgets_stray_ranges_and_kernels(
    tmp_path: Path, form: Form, says_its_length: bool
) -> None:
    parsed = nvtx.parse_as(
        form,
        tmp_path,
        *([nsys.details(0)] if says_its_length else []),
        nsys.string(1, "gemm"),
        nsys.text_range(10, 20_000, "update_actor"),
        *(nsys.kernel(n * 100, n * 100 + 50, 1) for n in (1, 2, 3)),
        nsys.text_range(FAR_NS, FAR_NS + 5, "stray"),
        nsys.text_range(FAR_NS, None, "stray and open"),
        nsys.kernel(FAR_NS, FAR_NS + 5, 1),
    )
    assert rows(parsed, "spans", 0) == [(10, 19_990)]
    assert rows(parsed, "activity", 0) == [(100, 50), (200, 50), (300, 50)]
    (lane,) = parsed.tables["lanes"].to_pylist()
    assert lane["capture_end_ns"] == (100 * nsys.SECOND if says_its_length else 20_000)
    assert counted(parsed) == {"outside_capture": 3}


def test_an_nsys_capture_of_absolute_times_survives_a_time_of_zero(
    tmp_path: Path, form: Form
) -> None:
    now = nsys.EPOCH
    parsed = nvtx.parse_as(
        form,
        tmp_path,
        nsys.text_range(now, now + 5_000, "update_actor"),
        nsys.text_range(now + 6_000, now + 7_000, "update_actor"),
        nsys.text_range(0, 7, "stray"),
    )
    assert rows(parsed, "spans", now) == [(0, 5_000), (6_000, 1_000)]
    assert counted(parsed) == {"outside_capture": 1}


def test_an_nsys_capture_may_have_pauses(tmp_path: Path, form: Form) -> None:
    # GIVEN steps with half an hour between them, in a capture that says nothing of its length
    half = 1_800 * nsys.SECOND
    steps = [nsys.text_range(n * half, n * half + 5, "update_actor") for n in range(1, 6)]
    parsed = nvtx.parse_as(form, tmp_path, *steps)
    assert rows(parsed, "spans", half) == [(n * half, 5) for n in range(5)]
    assert counted(parsed) == {}
