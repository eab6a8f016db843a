import gzip
import json
from pathlib import Path

import pytest

from rl_insight.data.names import facts
from rl_insight.data.tree import scan
from rl_insight.parsers.torch import PARSER

TRACE = {"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1}]}


def write(root: Path, path: str, content: object = TRACE) -> None:
    """Write JSON, or bytes as they are; gzip if the name says so."""
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(raw) if path.endswith(".gz") else raw)


def found(root: Path) -> dict[str, str | None]:
    """Path -> why it is skipped, or None for one that is parsed."""
    listed = list(PARSER.discover(scan(root)))
    assert all(one.files == (one.path,) for one in listed)
    return {one.path: one.skip for one in listed}


@pytest.mark.parametrize(
    "path",
    [
        "actor_update/prof_rank-0.json.gz",
        "actor_update/actor_prof_rank-0_4711_20260814122731089.json.gz",
        "actor_update/actor-rollout-ref_actor-update_rank3-of-8_pid7_20260814122731089.json.gz",
        "actor-rollout-ref_train_step1_rank0-of-16_tp0-pp0-dp0_pid10256_20260814122731089.json.gz",
        "x_actor-update_step1_rank0-of-16_pid10256_20260814122731089_mb0-3.json.gz",
        "agent_loop_rollout_replica_0/huawei_372640.1771730291744166997.pt.trace.json.gz",
        "agent_loop_rollout_replica_0/dp0_pp0_tp1_dcp0_ep0_rank1.1771730291744166997.pt.trace.json.gz",
        "agent_loop_rollout_replica_0/1771730291.25-TP-0.trace.json.gz",
        "rollout-replica4-globalrank8_1771730291-TP-0.trace.json.gz",
        "worker0_step_12.1694128201545.pt.trace.json",
    ],
)
def test_a_trace_is_known_by_its_name_without_being_opened(tmp_path: Path, path: str) -> None:
    # What stands in it cannot be known: only parsing may say that it is broken.
    write(tmp_path, path, b"broken")
    assert found(tmp_path) == {path: None}


@pytest.mark.parametrize("name", ["mine.json", "mine.json.gz", "deep/er/mine.json"])
def test_a_trace_of_any_name_is_known_by_its_first_bytes(tmp_path: Path, name: str) -> None:
    write(tmp_path, name)
    assert found(tmp_path) == {name: None}


def test_the_first_bytes_count_and_not_the_suffix(tmp_path: Path) -> None:
    (tmp_path / "packed.json").write_bytes(gzip.compress(json.dumps(TRACE).encode()))
    (tmp_path / "plain.json.gz").write_bytes(json.dumps(TRACE).encode())
    (tmp_path / "other.json.gz").write_bytes(json.dumps({"a": 1}).encode())
    skipped = found(tmp_path)
    assert skipped["packed.json"] is None and skipped["plain.json.gz"] is None
    assert skipped["other.json.gz"] == "JSON of another kind: it holds no trace events"


def test_a_bare_list_of_events_is_a_trace(tmp_path: Path) -> None:
    write(tmp_path, "list.json", TRACE["traceEvents"])
    assert found(tmp_path) == {"list.json": None}


@pytest.mark.parametrize(
    "content",
    [
        {"metrics": {"loss": 1}, "args": []},
        [1, 2, 3],
        [{"name": "x"}],
        "text",
    ],
)
def test_json_that_is_certainly_something_else_is_skipped_with_a_reason(
    tmp_path: Path, content: object
) -> None:
    write(tmp_path, "results.json", content)
    (reason,) = found(tmp_path).values()
    assert reason is not None and ("no trace" in reason)


@pytest.mark.parametrize(
    "name",
    ["profiler_info.json", "profiler_info_3.json", "profiler_metadata.json", "dump.json"],
)
def test_the_neighbours_of_profiles_are_no_traces_whatever_their_size(
    tmp_path: Path, name: str
) -> None:
    write(tmp_path, name, {"x": ["y" * 200_000]})
    assert found(tmp_path) == {name: "JSON of another kind: it accompanies a profile"}


def test_what_is_too_long_to_be_certain_is_claimed(tmp_path: Path) -> None:
    # All that stands in front of the events may be metadata.
    write(tmp_path, "long.json", {"notes": "y" * 200_000, **TRACE})
    write(tmp_path, "long.json.gz", {"notes": [i * i for i in range(90_000)], **TRACE})
    assert found(tmp_path) == {"long.json": None, "long.json.gz": None}


@pytest.mark.parametrize("name", ["rank3.json", "prof_rank-3_1.json.gz"])
def test_garbage_under_the_name_of_a_rank_is_claimed_so_that_it_is_named_as_broken(
    tmp_path: Path, name: str
) -> None:
    write(tmp_path, name, b"<html>not found</html>")
    assert found(tmp_path) == {name: None}


def test_text_under_any_other_name_is_skipped(tmp_path: Path) -> None:
    write(tmp_path, "notes.json", b"these are my notes")
    assert found(tmp_path) == {"notes.json": "no trace: it begins neither with { nor with ["}


def test_the_front_end_trace_of_vllm_is_skipped_by_its_name(tmp_path: Path) -> None:  # [37]
    name = "agent_loop_rollout_replica_0/h_4711.async_llm.1771730291744166997.pt.trace.json.gz"
    write(tmp_path, name)
    assert found(tmp_path) == {name: "vLLM front-end trace: CPU only, no rank"}


@pytest.mark.parametrize("suffix", [".json.tmp", ".json.gz.tmp"])
def test_what_a_killed_writer_left_is_skipped(tmp_path: Path, suffix: str) -> None:  # [14]
    write(tmp_path, f"prof_rank-0{suffix}", b'{"traceEvents": [')
    (reason,) = found(tmp_path).values()
    assert reason is not None and reason.startswith("left by a killed writer")


def test_captures_of_the_ascend_profiler_belong_to_another_parser(tmp_path: Path) -> None:
    write(tmp_path, "actor_update/h_1_20260814122731089_ascend_pt/ASCEND_PROFILER_OUTPUT/a.json")
    write(tmp_path, "h_1_20260814122731089_ascend_pt/profiler_info_0.json", {"rank_id": 0})
    assert found(tmp_path) == {}


def test_a_trace_of_the_ascend_profiler_outside_its_folder_is_named_as_one(tmp_path: Path) -> None:
    write(tmp_path, "trace_view.json", TRACE["traceEvents"])
    (reason,) = found(tmp_path).values()
    assert reason is not None and "mstx" in reason


def test_files_of_other_kinds_are_not_looked_at(tmp_path: Path) -> None:
    for name in ("profiler_out_0.txt", "a.jsonl", "b.db", "c.pickle"):
        write(tmp_path, name, b"x")
    assert found(tmp_path) == {}


def test_an_empty_file_is_claimed_so_that_it_is_named_as_empty(tmp_path: Path) -> None:
    write(tmp_path, "mine.json", b"")
    assert found(tmp_path) == {"mine.json": None}


def test_an_empty_role_folder_gives_nothing_and_stops_nothing(tmp_path: Path) -> None:  # [38]
    (tmp_path / "critic_update").mkdir()
    write(tmp_path, "actor_update/prof_rank-0_1.json.gz")
    assert list(found(tmp_path)) == ["actor_update/prof_rank-0_1.json.gz"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_other_encodings_of_a_trace_are_claimed(tmp_path: Path, encoding: str) -> None:
    write(tmp_path, "mine.json", json.dumps(TRACE).encode(encoding))
    assert found(tmp_path) == {"mine.json": None}


def test_a_damaged_gzip_of_unknown_name_is_claimed(tmp_path: Path) -> None:
    (tmp_path / "mine.json.gz").write_bytes(b"\x1f\x8b\x08\x00garbage garbage")
    assert found(tmp_path) == {"mine.json.gz": None}


@pytest.mark.parametrize("name", ["rank0.JSON", "rank0.json.GZ", "rank0.Json.Gz"])
def test_suffixes_in_capitals_are_those_of_traces(tmp_path: Path, name: str) -> None:
    write(tmp_path, name)
    assert found(tmp_path) == {name: None}


@pytest.mark.parametrize(
    ("suffix", "reason"),
    [
        (".json.gz.part", "left by a killed writer or copier"),
        (".json.zst.part", "left by a killed writer or copier"),
        (".json.1", "an older file that was kept beside its successor: give it a name in .json to"),
        (
            ".json.gz.1",
            "an older file that was kept beside its successor: give it a name in .json.gz",
        ),
        (".json.bak", "a copy that an editor or a person kept"),
        (".json.gz.BAK", "a copy that an editor or a person kept"),
        (".json~", "a copy that an editor or a person kept"),
    ],
)
def test_a_trace_under_a_suffix_that_is_not_read_has_a_row_that_says_why(
    tmp_path: Path, suffix: str, reason: str
) -> None:
    write(tmp_path, f"rank0{suffix}")
    (why,) = found(tmp_path).values()
    assert why is not None and why.startswith(reason)


PACKINGS = (".zst", ".XZ", ".bz2", ".zip", ".lz4", ".7z", ".Z", ".lzma", ".tgz", ".tar.gz", ".tar")
VERL = "actor_update_step1_rank2-of-4_pid7_20260814122731089"


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("name", [f"{VERL}.json", f"{VERL}.json.gz", "rank2.json", VERL])
def test_what_is_packed_otherwise_is_claimed_by_its_name_so_that_its_rank_is_said_to_be_lost(
    tmp_path: Path, packing: str, name: str
) -> None:
    write(tmp_path, name + packing, b"?")
    assert found(tmp_path) == {name + packing: None}
    assert facts(name + packing).rank == 2


def test_what_is_packed_otherwise_and_says_nothing_by_its_name_is_passed_over_with_a_reason(
    tmp_path: Path,
) -> None:
    write(tmp_path, "mine.json.zst", b"?")
    assert found(tmp_path) == {
        "mine.json.zst": "packed as .zst, which is not read: unpack it, or pack it with gzip"
    }


@pytest.mark.parametrize(
    "name", ["code.zip", "logs.tar.gz", "rank0.tar", "step_3.7z", "a.jsonl.xz"]
)
def test_archives_that_are_not_called_like_a_trace_are_nobodys(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, b"?")
    assert found(tmp_path) == {}


@pytest.mark.parametrize("kept", [".json", ".json.gz"])
@pytest.mark.parametrize("packed", [".json.zst", ".json.gz.zip", ".zip"])
def test_a_trace_that_is_there_unpacked_too_is_read_once(
    tmp_path: Path, kept: str, packed: str
) -> None:
    write(tmp_path, f"a/{VERL}{kept}")
    write(tmp_path, f"a/{VERL}{packed}", b"?")
    assert found(tmp_path) == {
        f"a/{VERL}{kept}": None,
        f"a/{VERL}{packed}": f"the same capture is there as {VERL}{kept}",
    }


def test_what_is_no_trace_by_its_name_is_none_when_it_is_packed(tmp_path: Path) -> None:
    write(tmp_path, "profiler_info_3.json.zst", b"?")
    write(tmp_path, "h_4711.async_llm.1771730291744166997.pt.trace.json.zip", b"?")
    assert list(found(tmp_path).values()) == [
        "vLLM front-end trace: CPU only, no rank",
        "JSON of another kind: it accompanies a profile",
    ]


def test_json_lines_of_another_kind_are_no_trace(tmp_path: Path) -> None:
    row = b'{"id":1,"table":"StringIds","value":"a"}\n'
    for number, content in enumerate((row * 2, row * 5_000, b'{"NvtxEvent":{"Type":59}}\n{"a":1}')):
        write(tmp_path, f"{number}.json", content)
        write(tmp_path, f"worker_process_{number}.json.gz", content)
    assert set(found(tmp_path).values()) == {
        "JSON lines of another kind: they hold no trace events"
    }
    # Events one to a line are a trace whatever stands around them.
    write(tmp_path, "0.json", b'{"ph":"X","name":"a","ts":1,"dur":1}\n' * 2)
    assert found(tmp_path)["0.json"] is None
