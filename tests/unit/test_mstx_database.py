"""The database form: any table and any column may be missing, and the file may be damaged."""

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rl_insight.errors import ReadError
from rl_insight.parsers import Parsed
from tests.ascend_captures import (
    BASE_NS,
    BUSY,
    DATABASE,
    STRINGS,
    TASK_COLUMNS,
    database_in,
    info,
    one,
    parsed,
    problem,
    rows,
    stages,
    times,
    write_database,
    write_text,
)

Content = tuple[str, Iterable[Sequence[Any]]]


def strings(**more: str) -> Content:
    """STRING_IDS with more texts, by their number: `_20="text"`."""
    extra = [(int(name[1:]), text) for name, text in more.items()]
    return "id, value", [*STRINGS.items(), *extra]


def read(tmp_path: Path, folder: str = "actor_update", **changed: Any) -> Parsed:
    depth = changed.pop("depth", 2)
    rank = changed.pop("rank", 3)
    capture = tmp_path / "run" / folder / "a_ascend_pt"
    database_in(capture, rank, **changed)
    return parsed(capture, tmp_path / "run", depth)


def test_a_database_gives_all_tables(tmp_path: Path) -> None:
    found = read(tmp_path)

    assert (found.status, found.detail, list(found.problems)) == ("ok", None, [])
    lane, span = one(found, "lanes"), one(found, "spans")
    assert {name: lane[name] for name in ("rank_id", "host", "pid", "device", "clock")} == {
        "rank_id": 3,
        "host": "node-a",
        "pid": 4711,
        "device": 0,
        "clock": "utc",
    }
    assert stages(found) == [("actor_update", 50_000, 200_000)]
    assert {name: span[name] for name in ("raw_name", "tid", "domain", "rank_id", "host")} == {
        "raw_name": "update_actor",
        "tid": "4712",
        "domain": "default",
        "rank_id": 3,
        "host": "node-a",
    }
    assert times(one(found, "breakdown")) == (200_000, 30_000, 50_000, 10_000, 10_000, 120_000)
    assert [(row["category"], row["duration_ns"]) for row in rows(found, "activity")] == [
        ("computing", 30_000),
        ("communication", 50_000),
        ("memory", 10_000),
    ]
    assert one(found, "collectives") == {
        "lane_id": lane["lane_id"],
        "span_id": span["span_id"],
        "group": "tp_group",
        "op": "hcom_allReduce",
        "seq": 0,
        "start_ns": BASE_NS + 120_000,
        "duration_ns": 50_000,
        "bytes": 4_000,
    }
    assert [(row["category"], row["name"], row["total_ns"]) for row in rows(found, "ops")] == [
        ("computing", "MatMul", 30_000),
        ("communication", "hcom_allReduce", 50_000),
        ("memory", "MEMCPY_ASYNC", 10_000),
    ]


@pytest.mark.parametrize("table", sorted(DATABASE))
def test_any_table_may_be_missing(tmp_path: Path, table: str) -> None:
    found = read(tmp_path, **{table: None})

    # Without ranges the stage is what the device did; without texts nothing is called a stage.
    expected = [("actor_update", 50_000, 200_000)]
    if table in ("STRING_IDS", "MSTX_EVENTS"):
        expected = [(None, 100_000, 70_000)]
    assert stages(found) == expected
    assert found.status == "ok"


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (table, column)
        for table, (columns, _) in sorted(DATABASE.items())
        for column in columns.split(", ")
    ],
)
def test_any_column_may_be_missing(tmp_path: Path, table: str, column: str) -> None:
    columns, content = DATABASE[table]
    names = columns.split(", ")
    at = names.index(column)
    left = ", ".join(names[:at] + names[at + 1 :])
    cut = (left, [[*row[:at], *row[at + 1 :]] for row in content])

    found = read(tmp_path, **{table: cut})

    assert found.status == "ok"
    assert len(rows(found, "spans")) == 1
    assert "table_unreadable" not in found.problems


# Devices


def test_the_overlap_analysis_is_used_where_it_is(tmp_path: Path) -> None:
    analysis = (
        "id, deviceId, startNs, endNs, type",
        [
            (1, 0, BASE_NS + 100_000, BASE_NS + 120_000, 0),
            (2, 0, BASE_NS + 110_000, BASE_NS + 150_000, 1),
            (3, 0, BASE_NS + 120_000, BASE_NS + 150_000, 2),
            (4, 0, BASE_NS + 150_000, BASE_NS + 200_000, 3),
        ],
    )
    found = read(tmp_path, OVERLAP_ANALYSIS=analysis, MSTX_EVENTS=None)
    assert stages(found) == [(None, 100_000, 100_000)]
    assert times(one(found, "breakdown")) == (100_000, 20_000, 40_000, 10_000, 10_000, 40_000)


def test_classes_of_the_analysis_are_told_by_their_names(tmp_path: Path) -> None:
    analysis = ("deviceId, startNs, endNs, type", [(0, BASE_NS + 100_000, BASE_NS + 120_000, 7)])
    names = ("id, name", [(7, "COMMUNICATION"), (8, "COMPUTE")])
    found = read(tmp_path, OVERLAP_ANALYSIS=analysis, ENUM_OVERLAP_ANALYSIS_TYPE=names)
    assert times(one(found, "breakdown"))[1:3] == (0, 20_000)


def test_an_analysis_that_is_not_finished_is_not_used(tmp_path: Path) -> None:
    # MindStudio Insight makes its own, and notes how far it is.
    analysis = ("deviceId, startNs, endNs, type", [(0, BASE_NS + 100_000, BASE_NS + 101_000, 0)])
    status = ("id, key, value", [(1, "OVERLAP_ANALYSIS_STATUS", "NOT_FINISH")])
    found = read(tmp_path, OVERLAP_ANALYSIS=analysis, status_info=status)
    assert times(one(found, "breakdown"))[1:3] == (30_000, 50_000)


def test_each_device_is_a_lane_with_the_rank_that_the_map_gives_it(tmp_path: Path) -> None:
    tasks = [
        (BASE_NS + 100_000, BASE_NS + 130_000, 0, 1, 11, 4711, 4),
        (BASE_NS + 100_000, BASE_NS + 140_000, 5, 2, 12, 4711, 4),
    ]
    found = read(
        tmp_path,
        TASK=(TASK_COLUMNS, tasks),
        COMPUTE_TASK_INFO=("name, globalTaskId", [(3, 11), (3, 12)]),
        RANK_DEVICE_MAP=("rankId, deviceId", [(8, 0), (9, 5)]),
        MSTX_EVENTS=None,
        rank=None,
    )
    # The collective has no device of its own; the task that it launched has.
    assert [
        (lane["device"], lane["rank_id"], span["duration_ns"])
        for lane, span in zip(rows(found, "lanes"), rows(found, "spans"), strict=True)
    ] == [(0, 8, 30_000), (5, 9, 70_000)]
    assert one(found, "collectives")["lane_id"] == "s-1"


def test_a_collective_names_its_device_in_newer_versions(tmp_path: Path) -> None:
    columns, content = DATABASE["COMMUNICATION_OP"]
    found = read(
        tmp_path,
        COMMUNICATION_OP=(f"{columns}, deviceId", [(*row, 6) for row in content]),
        MSTX_EVENTS=None,
    )
    assert [lane["device"] for lane in rows(found, "lanes")] == [0, 6]
    assert one(found, "collectives")["lane_id"] == "s-1"


def test_without_compute_task_info_the_type_of_a_task_tells(tmp_path: Path) -> None:
    found = read(tmp_path, COMPUTE_TASK_INFO=None)
    assert times(one(found, "breakdown"))[1:5] == (30_000, 50_000, 10_000, 10_000)
    names = [row["name"] for row in rows(found, "ops")]
    assert names == ["KERNEL_AICORE", "hcom_allReduce", "MEMCPY_ASYNC"]


def test_copies_are_told_by_their_own_table_too(tmp_path: Path) -> None:
    # GIVEN a copy whose type says nothing
    tasks = [(BASE_NS + 180_000, BASE_NS + 190_000, 0, 3, 13, 4711, 20)]
    found = read(
        tmp_path,
        STRING_IDS=strings(_20="SOMETHING_NEW"),
        TASK=(TASK_COLUMNS, tasks),
        MEMCPY_INFO=("globalTaskId, size, memcpyOperation", [(13, 100, 1)]),
    )
    assert times(one(found, "breakdown"))[4] == 10_000


def test_kernels_that_drive_collectives_do_not_compute(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        STRING_IDS=strings(_20="AllReduceAivKernel"),
        COMPUTE_TASK_INFO=("name, globalTaskId", [(20, 11)]),
    )
    assert times(one(found, "breakdown"))[1] == 0


def test_data_types_are_those_that_the_database_names(tmp_path: Path) -> None:
    found = read(tmp_path, ENUM_HCCL_DATA_TYPE=("id, name", [(4, "FP64")]))
    assert one(found, "collectives")["bytes"] == 8_000


# Ranges


def test_marks_and_the_ranges_of_collectives_are_passed_over(tmp_path: Path) -> None:
    ranges = [
        (BASE_NS + 1_000, BASE_NS + 9_000, 0, 1, 2, 1),
        (BASE_NS + 1_000, BASE_NS + 9_000, 3, 1, 2, 1),
        (BASE_NS + 1_000, BASE_NS + 9_000, 2, 1, 20, 1),
        (BASE_NS + 50_000, BASE_NS + 60_000, 1, 1, 65535, 1),
    ]
    columns = DATABASE["MSTX_EVENTS"][0]
    found = read(tmp_path, STRING_IDS=strings(_20="communication"), MSTX_EVENTS=(columns, ranges))
    assert stages(found) == [("actor_update", 50_000, 10_000)]


def test_stages_and_batches_among_the_operations_of_pytorch_are_ranges(tmp_path: Path) -> None:
    # Their times are text.
    operations = [
        (str(BASE_NS + 60_000), str(BASE_NS + 240_000), (4711 << 32) | 4712, 20),
        (str(BASE_NS + 60_000), str(BASE_NS + 61_000), (4711 << 32) | 4712, 21),
    ]
    found = read(
        tmp_path,
        STRING_IDS=strings(_20="micro_batch2", _21="aten::mm"),
        PYTORCH_API=("startNs, endNs, globalTid, name", operations),
    )
    stage, batch = rows(found, "spans")
    assert (stage["name"], batch["name"], batch["micro_batch"]) == (
        "actor_update",
        "micro_batch2",
        2,
    )
    assert batch["parent_id"] == stage["span_id"]


def test_stages_that_last_for_minutes_are_believed(tmp_path: Path) -> None:
    minute = 60 * 10**9
    columns = DATABASE["MSTX_EVENTS"][0]
    ranges = [(BASE_NS, BASE_NS + 5 * minute, 2, 1, 2, 1)]
    found = read(tmp_path, MSTX_EVENTS=(columns, ranges))
    assert stages(found) == [("actor_update", 0, 5 * minute)]


# Whose it is


def test_the_session_says_from_when_to_when(tmp_path: Path) -> None:
    session = ("startTimeNs, endTimeNs", [(BASE_NS + 10, BASE_NS + 10**9)])
    lane = one(read(tmp_path, SESSION_TIME_INFO=session), "lanes")
    assert (lane["capture_start_ns"], lane["capture_end_ns"]) == (BASE_NS + 10, BASE_NS + 10**9)


@pytest.mark.parametrize("session", [(0, 0), (None, None), ("x", "y"), (5, 4)])
def test_a_session_without_a_time_tells_nothing(tmp_path: Path, session: tuple[Any, Any]) -> None:
    found = read(tmp_path, SESSION_TIME_INFO=("startTimeNs, endTimeNs", [session]))
    assert one(found, "lanes")["capture_start_ns"] == BASE_NS + 50_000


def test_metadata_in_the_database_is_read_but_for_the_environment(tmp_path: Path) -> None:
    groups = '{"tp_group": {"group_name": "tp", "group_rank": 1, "global_ranks": [2, 3]}}'
    content = [
        ("role", '"rollout_generate"'),
        ("parallel_group_info", groups),
        ("ENV_VARIABLES", '{"TOKEN": "canary-must-not-leak"}'),
        ("SCHEMA_VERSION", "1.2.0"),
    ]
    found = read(tmp_path, META_DATA=("name, value", content))
    lane = one(found, "lanes")
    assert (lane["role"], lane["tp"]) == ("rollout_generate", 1)
    assert one(found, "collectives")["group"] == "tp (tp_group)"
    assert "canary" not in str([rows(found, table) for table in found.tables])


def test_ranks_that_disagree_are_a_problem(tmp_path: Path) -> None:
    capture = tmp_path / "run/actor_update/a_ascend_pt"
    database_in(capture, rank=7)
    (capture / "profiler_info.json").write_text('{"rank_id": "1"}')
    found = parsed(capture, tmp_path / "run")
    assert one(found, "lanes")["rank_id"] == 1
    assert problem(found, "rank_conflict") == (
        "rank 1 in profiler_info.json, 3 in the database's RANK_DEVICE_MAP, "
        "7 in the name ascend_pytorch_profiler_7.db; the first is used"
    )


def test_the_name_of_the_file_tells_the_rank_where_nothing_else_does(tmp_path: Path) -> None:
    found = read(tmp_path, RANK_DEVICE_MAP=("rankId, deviceId", [(-1, 0)]), rank=12)
    assert one(found, "lanes")["rank_id"] == 12


def test_a_database_outside_of_a_capture_is_read(tmp_path: Path) -> None:
    path = write_database(tmp_path / "all" / "ascend_pytorch_profiler_3.db", DATABASE)
    assert stages(parsed(path)) == [("actor_update", 50_000, 200_000)]


# Both forms


def both(tmp_path: Path) -> Path:
    """A capture with both forms, which differ in the time that they give."""
    capture = write_text(tmp_path / "run/actor_update/a_ascend_pt", BUSY, told=info(3))
    database_in(capture)
    return capture


def test_a_capture_with_both_forms_is_read_once_from_its_database(tmp_path: Path) -> None:
    found = parsed(both(tmp_path), tmp_path / "run")
    assert stages(found) == [("actor_update", 50_000, 200_000)]


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00 and nothing more", b"text"])
def test_where_the_database_is_damaged_the_text_is_read(tmp_path: Path, content: bytes) -> None:
    capture = both(tmp_path)
    (database,) = capture.glob("*/*.db")
    database.write_bytes(content)
    found = parsed(capture, tmp_path / "run")
    assert stages(found) == [(None, 100_000, 100_000)]
    assert "database" in problem(found, "database_unreadable")


def test_where_the_database_has_no_times_the_text_is_read(tmp_path: Path) -> None:
    capture = both(tmp_path)
    (database,) = capture.glob("*/*.db")
    database.unlink()
    database_in(capture, TASK=None, COMMUNICATION_OP=None, MSTX_EVENTS=None, OTHER=("x", []))
    assert stages(parsed(capture, tmp_path / "run")) == [(None, 100_000, 100_000)]


# Damage


def test_a_database_of_zero_bytes_is_an_error(tmp_path: Path) -> None:
    capture = tmp_path / "a_ascend_pt"
    (capture / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    (capture / "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db").touch()
    with pytest.raises(ReadError, match="the database is empty"):
        parsed(capture)


def test_a_database_of_another_kind_is_an_error(tmp_path: Path) -> None:
    path = write_database(tmp_path / "ascend_pytorch_profiler_0.db", {"T": ("x", [(1,)])})
    with pytest.raises(ReadError, match="none of the tables of an Ascend capture"):
        parsed(path)


def test_a_folder_that_is_called_like_a_database_is_none(tmp_path: Path) -> None:
    capture = write_text(tmp_path / "a_ascend_pt")
    (capture / "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db").mkdir()
    assert stages(parsed(capture)) == [(None, 100_000, 100_000)]


def cut_off(capture: Path) -> Path:
    """A database whose last and largest table is cut off."""
    rest = [(BASE_NS + 300_000 + i, BASE_NS + 300_001 + i, 2, 1, 2, 1) for i in range(20_000)]
    columns, first = DATABASE["MSTX_EVENTS"]
    tables = {**DATABASE}
    del tables["MSTX_EVENTS"]
    database = write_database(
        capture / "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_3.db",
        {**tables, "MSTX_EVENTS": (columns, [*first, *rest])},
    )
    size = database.stat().st_size
    with database.open("rb+") as file:
        file.truncate(size // 2)
    return database


def test_a_truncated_database_gives_what_is_left_of_it(tmp_path: Path) -> None:
    cut_off(tmp_path / "a_ascend_pt")

    found = parsed(tmp_path / "a_ascend_pt")

    assert found.status == "salvaged"
    assert str(found.detail).startswith("the database is damaged (MSTX_EVENTS: ")
    assert times(one(found, "breakdown"))[1:3] == (30_000, 50_000)


def test_a_whole_text_is_read_rather_than_a_truncated_database(tmp_path: Path) -> None:
    capture = write_text(tmp_path / "a_ascend_pt", BUSY, told=info(3))
    cut_off(capture)

    found = parsed(capture)

    assert (found.status, stages(found)) == ("ok", [(None, 100_000, 100_000)])
    assert "MSTX_EVENTS" in problem(found, "database_unreadable")


@pytest.mark.parametrize("keep", [20, 100, 1_000, 4_096, 5_000])
def test_a_database_that_is_nearly_gone_is_an_error_in_words(tmp_path: Path, keep: int) -> None:
    capture = tmp_path / "a_ascend_pt"
    database = database_in(capture)
    database.write_bytes(database.read_bytes()[:keep])
    with pytest.raises(ReadError, match="database"):
        parsed(capture)


def test_a_damaged_schema_is_an_error_in_words(tmp_path: Path) -> None:
    # GIVEN a schema that SQLite quotes in its message, and that is no UTF-8
    capture = tmp_path / "a_ascend_pt"
    database = database_in(capture)
    content = database.read_bytes()
    database.write_bytes(content.replace(b"CREATE TABLE TASK (", b"CREATE TABLE TASK \xd8"))
    with pytest.raises(ReadError, match="the database cannot be read"):
        parsed(capture)


def test_a_database_in_a_folder_that_is_not_writable_is_read(ordinary_folder: Path) -> None:
    capture = ordinary_folder / "a_ascend_pt"
    database = database_in(capture)
    # A writer's journal mode, for which SQLite would make files beside it.
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    database.chmod(0o400)
    database.parent.chmod(0o500)

    assert stages(parsed(capture)) == [("actor_update", 50_000, 200_000)]


@pytest.mark.parametrize(
    "row",
    [
        (None, None, 0, 1, 11, 4711, 4),
        ("text", "text", 0, 1, 11, 4711, 4),
        (-5, 10, 0, 1, 11, 4711, 4),
        (2**63 - 1, -(2**63), 0, 1, 11, 4711, 4),
        (BASE_NS + 5, BASE_NS, 0, 1, 11, 4711, 4),
        (1, 2, 0, 1, 11, 4711, 4),
    ],
)
def test_impossible_times_are_counted_and_cost_nothing_else(
    tmp_path: Path, row: tuple[Any, ...]
) -> None:
    columns, content = DATABASE["TASK"]
    found = read(tmp_path, TASK=(columns, [*content, row]))
    assert times(one(found, "breakdown")) == (200_000, 30_000, 50_000, 10_000, 10_000, 120_000)
    assert len(found.problems) == 1


def test_odd_numbers_of_names_and_devices_cost_nothing_else(tmp_path: Path) -> None:
    start, end = BASE_NS + 100_000, BASE_NS + 130_000
    tasks = [
        (start, end, "x'; DROP TABLE TASK", 1, 11, None, "text"),
        (start, end, -1, 1, 12, 1, None),
    ]
    found = read(
        tmp_path,
        TASK=(TASK_COLUMNS, tasks),
        STRING_IDS=("id, value", [("a", "b"), (None, None), (1, b"\xff\x00"), (2, 7)]),
        COMPUTE_TASK_INFO=("name, globalTaskId", [("x", 11), (None, 12)]),
        HOST_INFO=("hostUid, hostName", [(1, 2)]),
    )
    assert found.status == "ok"
    assert one(found, "breakdown")["computing_ns"] == 30_000


def test_a_level_without_device_data_is_asked_about(tmp_path: Path) -> None:
    found = read(tmp_path, TASK=None, COMMUNICATION_OP=None)
    assert stages(found) == [("actor_update", 50_000, 200_000)]
    assert found.detail == (
        "no Overlap Analysis and no device tasks (collected at level_none?); "
        "it is drawn without a breakdown"
    )


def test_without_ranges_and_devices_the_host_tells_from_when_to_when(tmp_path: Path) -> None:
    api = ("startNs, endNs, globalTid, name", [(str(BASE_NS + 7), str(BASE_NS + 9), 1, 3)])
    found = read(tmp_path, TASK=None, COMMUNICATION_OP=None, MSTX_EVENTS=None, PYTORCH_API=api)
    assert stages(found) == [(None, 7, 2)]
