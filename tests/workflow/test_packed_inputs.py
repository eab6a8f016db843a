"""A rank that somebody packed is missing in the picture, and the run says so of every profiler."""

import json
import shutil
from pathlib import Path

import pytest

from tests.ascend_captures import ANALYSIS, info, mstx, overlap, write_text
from tests.group_lists import write_dump
from tests.nvtx_exports import details, string, text_range, write_database
from tests.workflow.conftest import rows, run

pytestmark = pytest.mark.workflow

ZSTD = b"\x28\xb5\x2f\xfd" + bytes(range(200))
UNPACK = "which is not read: unpack it"
TRACE = {
    "distributedInfo": {"rank": 0},
    "baseTimeNanoseconds": 1_790_000_000_000_000_000,
    "traceEvents": [
        {"ph": "X", "name": "update_actor", "cat": "user_annotation", "ts": 1, "dur": 9}
    ],
}

# Packed inputs: the role that their path tells, their rank, and the sentence about them.
PACKED = {
    "torch/actor_update/rank1.json.zst": (
        *("actor_update", 1),
        "is no trace: it holds zstandard-compressed data; unpack it with zstd -d",
    ),
    "mstx/actor_update/dp0_pp0_tp1_dcp0_ep1_rank1_7_20260812094501123_ascend_pt.tar.gz": (
        *("actor_update", 1),
        f"packed as .tar.gz, {UNPACK}",
    ),
    "mstx/ref_compute_log_prob/ascend_pytorch_profiler_2.db.gz": (
        *("ref_compute_log_prob", 2),
        f"packed as .gz, {UNPACK}",
    ),
    "nvtx/worker_process_112.1.sqlite.gz": (None, None, f"packed as .gz, {UNPACK}"),
    "nvtx/worker_process_113.1.nsys-rep.zst": (
        *(None, None),
        f"a report packed as .zst, {UNPACK}, and run rl-insight preprocess on the input folder",
    ),
    "step_1/actor_update/step0/rank1.zip": ("actor_update", 1, f"packed as .zip, {UNPACK}"),
    "sglang/agent_loop_rollout/expert_distribution_recorder_1773285904.123456_3.pt.gz": (
        *("agent_loop_rollout", 3),
        f"packed as .gz, {UNPACK}",
    ),
}
SOUND = 4  # inputs, one of each profiler but SGLang's


def write_sound(root: Path) -> None:
    torch = root / "torch/actor_update/rank0.json"
    torch.parent.mkdir(parents=True)
    torch.write_text(json.dumps(TRACE))
    ascend = [*ANALYSIS, overlap("Computing", 100, 30), mstx("update_actor", 0, 1_000)]
    write_text(root / "mstx/actor_update/a_ascend_pt", ascend, told=info(0))
    nsys = [string(1, "a"), details(), text_range(1, 2, "update_actor")]
    (root / "nvtx").mkdir()
    write_database(root / "nvtx/worker_process_111.1.sqlite", nsys)
    write_dump(root, rank=0, calls=[[8, 1, 1, 2]] * 6, group_list_type=1)


def write_packed(root: Path) -> None:
    for path in PACKED:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(ZSTD)


def test_a_packed_rank_of_each_profiler_is_failed_and_said_to_be_unpacked(tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    write_sound(source)
    write_packed(source)
    words = (f"input.path={source}", "preset=all", "heatmap.parser.type=gmm,sglang")

    ended = run(output, *words, "timeline.parser.type=auto", "--strict")

    assert ended.code == 3, ended.text
    found = {row["path"]: row for row in rows(output, "sources")}
    assert len([row for row in found.values() if row["status"] == "ok"]) == SOUND
    assert {path for path, row in found.items() if row["status"] != "ok"} == set(PACKED)
    for path, (role, rank, sentence) in PACKED.items():
        row = found[path]
        assert (row["status"], row["detail"]) == ("failed", sentence), path
        assert (row["role"], row["rank_id"]) == (role, rank), path
        assert row["step"] == (1 if "step_1" in path else None)
    page = (output / "rl_timeline.html").read_text("utf-8")
    for path in PACKED:
        if path.startswith(("torch", "mstx", "nvtx")):
            assert path.rpartition("/")[2] in page


@pytest.mark.parametrize("folder", ["mstx", "nvtx", "step_1", "sglang"])
def test_a_folder_of_packed_captures_alone_is_told_as_such(tmp_path: Path, folder: str) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    write_packed(source)
    for other in source.iterdir():
        if other.name != folder:
            shutil.rmtree(other)
    parsers = {"step_1": "heatmap.parser.type=gmm", "sglang": "heatmap.parser.type=sglang"}
    chosen = parsers.get(folder, "timeline.parser.type=auto")

    ended = run(output, f"input.path={source}", f"preset={chosen.partition('.')[0]}", chosen)

    # As a folder of other files that cannot be read.
    assert ended.code == 1, ended.text
    assert "Traceback" not in ended.text
    own = {path: told for path, told in PACKED.items() if path.startswith(f"{folder}/")}
    assert {row["path"]: (row["status"], row["detail"]) for row in rows(output, "sources")} == {
        path: ("failed", told[-1]) for path, told in own.items()
    }
    for path, told in own.items():
        assert path in ended.text and told[-1] in ended.text
