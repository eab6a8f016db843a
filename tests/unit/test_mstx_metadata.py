"""What an Ascend capture says of itself, and whom to believe when it contradicts itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from rl_insight.parsers.mstx_metadata import Told, read, take_device_map, take_metadata
from rl_insight.problems import Problems

# The members of groups as verl's Megatron workers register them, of rank 5 of 8.
GROUPS = {
    "group_name_1": {"group_name": "default_group", "group_rank": 5, "global_ranks": [*range(8)]},
    "group_name_2": {"group_name": "tp", "group_rank": 1, "global_ranks": [4, 5]},
    "group_name_3": {"group_name": "dp_cp", "group_rank": 0, "global_ranks": [5, 7]},
    "group_name_4": {"group_name": "pp", "group_rank": 1, "global_ranks": [1, 5]},
    "group_name_5": {"group_name": "exp", "group_rank": 3, "global_ranks": [1, 3, 5, 7]},
}


def told_by(folder: Path, **files: object) -> tuple[Told, Problems]:
    """Write `files` (by their name without `.json`), as they are or as JSON, and read them."""
    names = []
    for name, content in files.items():
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        (folder / f"{name}.json").write_bytes(raw)
        names.append(f"{name}.json")
    problems = Problems()
    return read(folder, names, problems), problems


def codes(problems: Problems) -> dict[str, str | None]:
    return {one.code: one.example for one in problems}


@pytest.mark.parametrize("value", [7, "7", " 7 "])
def test_the_rank_is_that_of_profiler_info(tmp_path: Path, value: object) -> None:
    told, problems = told_by(tmp_path, profiler_info_7={"rank_id": value})
    assert told.rank(problems) == 7
    assert codes(problems) == {}


@pytest.mark.parametrize("value", [None, -1, "-1"])
def test_a_rank_that_torch_npu_did_not_know_is_none(tmp_path: Path, value: object) -> None:
    told, problems = told_by(tmp_path, profiler_info={"rank_id": value})
    assert told.rank(problems) is None
    assert codes(problems) == {}


@pytest.mark.parametrize("value", ["abc", -5, 2**40, 10**30, 1.5, True, [0], {"rank": 0}, ""])
def test_an_odd_rank_is_a_problem_and_the_name_of_the_file_counts(
    tmp_path: Path, value: object
) -> None:
    told, problems = told_by(tmp_path, profiler_info_2={"rank_id": value})
    assert told.rank(problems) == 2
    assert codes(problems) == {
        "odd_metadata": f"rank_id of profiler_info_2.json is {value!r}",
    }


@pytest.mark.parametrize(
    "name", ["profiler_info", "profiler_info_abc", "profiler_info_99999999999"]
)
def test_a_name_without_a_rank_tells_none(tmp_path: Path, name: str) -> None:
    told, problems = told_by(tmp_path, **{name: {}})
    assert told.rank(problems) is None


def test_ranks_that_disagree_are_a_problem_and_the_most_trusted_counts(tmp_path: Path) -> None:
    told, problems = told_by(tmp_path, profiler_info_2={"rank_id": 1})
    take_device_map(told, [(3, 0)], problems)
    told.tell_rank("name", 4, "the name ascend_pytorch_profiler_4.db")

    assert told.rank(problems) == 1
    assert codes(problems) == {
        "rank_conflict": "rank 1 in profiler_info_2.json, "
        "3 in the database's RANK_DEVICE_MAP, 2 in the name profiler_info_2.json, "
        "4 in the name ascend_pytorch_profiler_4.db; the first is used"
    }


def test_the_device_map_is_trusted_more_than_a_name(tmp_path: Path) -> None:
    told, problems = told_by(tmp_path, profiler_info_2={})
    take_device_map(told, [(-1, 0), ("3", 0)], problems)
    assert told.rank(problems) == 3
    assert told.devices == {0: 3}


def test_a_device_map_of_several_ranks_tells_devices_apart(tmp_path: Path) -> None:
    told, problems = Told(), Problems()
    take_device_map(told, [(4, 0), (5, 1), (None, 2), (6, -1)], problems)
    assert told.rank(problems) is None
    assert told.devices == {0: 4, 1: 5}


def test_groups_tell_the_place_among_the_ranks(tmp_path: Path) -> None:
    told, problems = told_by(tmp_path, profiler_metadata={"parallel_group_info": GROUPS})
    assert (told.world_size, told.tp, told.dp, told.pp, told.ep) == (8, 1, 0, 1, 3)
    assert told.rank(problems) == 5
    assert told.group("group_name_2") == "tp (group_name_2)"
    assert told.group("unheard_of") == "unheard_of"
    assert told.group(None) is None
    assert codes(problems) == {}


def test_a_role_and_a_step_of_the_user_are_kept(tmp_path: Path) -> None:
    told, _ = told_by(tmp_path, profiler_metadata={"role": " rollout_generate ", "step": "4"})
    assert (told.role, told.step) == ("rollout_generate", 4)


def test_what_the_files_say_stays_when_the_database_says_something_else(tmp_path: Path) -> None:
    told, problems = told_by(tmp_path, profiler_metadata={"role": "actor_update"})
    take_metadata(told, {"role": "critic_update", "step": 2}, problems)
    assert (told.role, told.step) == ("actor_update", 2)


def test_the_begin_of_the_capture_follows_from_two_clocks(tmp_path: Path) -> None:
    # GIVEN an end at 5,000 s of Unix time, when the monotonic clock stood at 70 s
    end = {"collectionTimeEnd": 5_000 * 10**9, "MonotonicTimeEnd": 70 * 10**9}
    start = {"start_monotonic": 68 * 10**9}
    told, _ = told_by(tmp_path, profiler_info={"start_info": start, "end_info": end})
    assert (told.started_ns, told.ended_ns) == (4_998 * 10**9, 5_000 * 10**9)


@pytest.mark.parametrize(
    ("ended", "monotonic", "began"),
    [(60, 70, 68), (70, 70, 68), (5_000, 70, 71)],
    ids=["ends before the machine was started", "at that moment", "begins after its end"],
)
def test_clocks_that_contradict_each_other_tell_no_begin(
    tmp_path: Path, ended: int, monotonic: int, began: int
) -> None:
    end = {"collectionTimeEnd": ended, "MonotonicTimeEnd": monotonic}
    start = {"start_monotonic": began}
    told, _ = told_by(tmp_path, profiler_info={"start_info": start, "end_info": end})
    assert (told.started_ns, told.ended_ns) == (None, ended)


def test_the_level_is_kept(tmp_path: Path) -> None:
    config = {"experimental_config": {"_profiler_level": "Level_none"}}
    told, _ = told_by(tmp_path, profiler_info={"config": config})
    assert told.level == "Level_none"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is no JSON"),
        (b"{", "it is no JSON"),
        (b"\x00\x00\xff\xfe", "it is no JSON"),
        (b'{"ENV_VARIABLES": {"TOKEN": "canary"} "rank_id"', "it is no JSON"),
        (b"[1, 2]", "it holds no JSON object"),
        (b"null", "it holds no JSON object"),
        (b"[" * 100_000, "it is no JSON"),
    ],
)
def test_a_damaged_file_is_a_problem_and_never_quoted(
    tmp_path: Path, content: bytes, why: str
) -> None:
    told, problems = told_by(tmp_path, profiler_info_4=content)
    assert told.rank(problems) == 4
    assert codes(problems) == {"metadata_damaged": f"profiler_info_4.json: {why}"}


def test_a_file_that_vanished_is_a_problem(tmp_path: Path) -> None:
    problems = Problems()
    read(tmp_path, ["profiler_metadata.json"], problems)
    assert codes(problems) == {
        "metadata_damaged": "profiler_metadata.json: cannot be read: No such file or directory"
    }


@pytest.mark.parametrize(
    "content",
    [
        {"config": 3, "start_info": [], "end_info": "x"},
        {"config": {"experimental_config": {"_profiler_level": {}}}},
        {"end_info": {"collectionTimeEnd": -1, "MonotonicTimeEnd": 2**70}},
        {"parallel_group_info": {"x": 3, "y": {"group_name": 4}, "z": {}}},
        {"role": 3, "step": "many"},
        {"role": "  "},
    ],
)
def test_odd_values_are_unknown(tmp_path: Path, content: dict[str, Any]) -> None:
    told, problems = told_by(tmp_path, profiler_info=content, profiler_metadata=content)
    assert (told.level, told.role, told.step, told.started_ns) == (None, None, None, None)
    assert (told.world_size, told.groups) == (None, {})
    assert codes(problems) == {}


def test_groups_of_another_shape_are_a_problem(tmp_path: Path) -> None:
    _, problems = told_by(tmp_path, profiler_metadata={"parallel_group_info": ["tp"]})
    assert codes(problems) == {"odd_metadata": "parallel_group_info is ['tp']"}
