"""Captures of the Ascend profiler that are damaged, or made to cost more than they are worth."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rl_insight.errors import ReadError
from rl_insight.parsers import mstx_text
from rl_insight.parsers.mstx_events import MstxArgs, MstxEvent
from rl_insight.parsers.mstx_processes import Process
from rl_insight.parsers.op_names import OpNames
from tests.ascend_captures import (
    BASE_NS,
    BUSY,
    DATABASE,
    STRINGS,
    TASK_COLUMNS,
    collective,
    database_in,
    info,
    one,
    parsed,
    problem,
    process,
    rows,
    task,
    write_text,
)


def count(found: Any, code: str) -> int:
    return int(found.problems.count(code))


def stage_names(found: Any) -> list[str | None]:
    return [row.get("raw_name") for row in rows(found, "spans") if row["kind"] == "stage"]


# The database beside the text, where one or both are damaged.


def damaged_database(capture: Path) -> None:
    """A database whose last tables are cut off."""
    tasks = [(BASE_NS + i * 1_000, BASE_NS + i * 1_000 + 500, 0, 1, i, 1, 4) for i in range(5_000)]
    database = database_in(capture, TASK=(TASK_COLUMNS, tasks))
    content = database.read_bytes()
    database.write_bytes(content[: len(content) * 2 // 3])


@pytest.mark.parametrize("text", [b"", b"no JSON", b"{}", b'[{"ph":"X","na', b"\x00" * 100])
def test_what_is_left_of_a_database_is_read_where_the_text_gives_nothing(
    tmp_path: Path, text: bytes
) -> None:
    # GIVEN a capture with a damaged database and a text that is nothing
    capture = write_text(tmp_path / "a_ascend_pt", text, told=info(3))
    damaged_database(capture)
    # WHEN it is parsed
    found = parsed(capture)
    # THEN what is left of the database is drawn, and both are told
    assert found.status == "salvaged"
    assert str(found.detail).startswith("the database is damaged (")
    assert len(rows(found, "spans")) == 1
    assert problem(found, "text_unreadable")


def test_what_is_left_of_a_text_is_read_where_the_database_gives_nothing(tmp_path: Path) -> None:
    capture = write_text(tmp_path / "a_ascend_pt", told=info(3))
    trace = capture / "ASCEND_PROFILER_OUTPUT/trace_view.json"
    trace.write_bytes(trace.read_bytes()[:-40])
    (capture / "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_3.db").write_bytes(b"")
    found = parsed(capture)
    assert (found.status, len(rows(found, "spans"))) == ("salvaged", 1)
    assert problem(found, "database_unreadable").startswith("the database is empty")


def test_where_nothing_is_left_of_both_both_are_told(tmp_path: Path) -> None:
    capture = write_text(tmp_path / "a_ascend_pt", b"no JSON", told=info(3))
    (capture / "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_3.db").write_bytes(b"")
    with pytest.raises(ReadError, match=r"the database is empty .*; .*trace_view\.json"):
        parsed(capture)


def test_the_problems_of_one_form_are_not_told_of_the_other(tmp_path: Path) -> None:
    # GIVEN a whole text beside a damaged database, and metadata that is odd
    capture = write_text(tmp_path / "a_ascend_pt", told=info([1]))
    damaged_database(capture)
    found = parsed(capture)
    # THEN the metadata is told once, and of the database only that it was not read
    assert found.status == "ok"
    assert count(found, "odd_metadata") == 1
    assert count(found, "table_unreadable") == 0
    assert "the database is damaged" in problem(found, "database_unreadable")


# What is dropped from a database is counted.


def test_ranges_without_a_message_are_counted(tmp_path: Path) -> None:
    database_in(tmp_path / "a_ascend_pt", STRING_IDS=("id, value", [(2, "default"), (1, None)]))
    found = parsed(tmp_path / "a_ascend_pt")
    assert stage_names(found) == [None]
    assert (count(found, "unnamed_range"), count(found, "unnamed_kernel")) == (1, 1)


def test_ranges_of_libraries_are_counted(tmp_path: Path) -> None:
    strings = {**STRINGS, 2: "communication"}
    database_in(tmp_path / "a_ascend_pt", STRING_IDS=("id, value", list(strings.items())))
    assert count(parsed(tmp_path / "a_ascend_pt"), "library_ranges") == 1


@pytest.mark.parametrize(
    ("table", "columns", "row"),
    [
        ("MSTX_EVENTS", "startNs, endNs", (1, 2)),
        ("TASK", "begin, endNs", (1, 2)),
        ("COMMUNICATION_OP", "startNs, opName", (1, 2)),
        ("OVERLAP_ANALYSIS", "startNs, endNs", (1, 2)),
        ("PYTORCH_API", "startNs, name", (1, 2)),
        ("STRING_IDS", "id, text", (1, "x")),
    ],
)
def test_a_table_without_a_needed_column_is_told(
    tmp_path: Path, table: str, columns: str, row: Sequence[object]
) -> None:
    database_in(tmp_path / "a_ascend_pt", 3, **{table: (columns, [row])})
    found = parsed(tmp_path / "a_ascend_pt")
    assert problem(found, "column_missing").startswith(f"{table} has no column ")


def test_numbers_of_names_may_stand_as_text(tmp_path: Path) -> None:
    # GIVEN a database in which the numbers of texts became text themselves
    typed = {
        name: (", ".join(f"{column} INTEGER" for column in columns.split(", ")), content)
        for name, (columns, content) in DATABASE.items()
        if name in ("MSTX_EVENTS", "COMPUTE_TASK_INFO", "COMMUNICATION_OP", "TASK")
    }
    typed["STRING_IDS"] = ("id TEXT, value", list(STRINGS.items()))
    database_in(tmp_path / "a_ascend_pt", 3, **typed)
    found = parsed(tmp_path / "a_ascend_pt")
    assert stage_names(found) == ["update_actor"]
    assert {row["name"] for row in rows(found, "ops")} >= {"MatMul"}
    assert count(found, "unnamed_kernel") == 0


def test_of_two_texts_of_one_number_the_first_counts(tmp_path: Path) -> None:
    strings = [*STRINGS.items(), (1, "ref"), (3, "MatMul")]
    database_in(tmp_path / "a_ascend_pt", STRING_IDS=("id, value", strings))
    found = parsed(tmp_path / "a_ascend_pt")
    assert stage_names(found) == ["update_actor"]
    assert count(found, "string_conflict") == 1


def test_more_texts_than_are_kept_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rl_insight.parsers.mstx_queries._MOST_TEXTS", 0)
    database_in(tmp_path / "a_ascend_pt", MSTX_EVENTS=None, COMMUNICATION_OP=None)
    found = parsed(tmp_path / "a_ascend_pt")
    # The kernel's name, and the types of three tasks, of which two have a text.
    assert count(found, "strings_left_out") == 4
    assert one(found, "breakdown")["computing_ns"] == 30_000


# What multiplies.


def test_task_numbers_that_repeat_do_not_multiply(tmp_path: Path) -> None:
    # GIVEN 20,000 tasks and as many of their names, all of the same number
    count_ = 20_000
    tasks = [(BASE_NS + i * 1_000, BASE_NS + i * 1_000 + 500, 0, 1, 0, 1, 4) for i in range(count_)]
    database_in(
        tmp_path / "a_ascend_pt",
        TASK=(TASK_COLUMNS, tasks),
        COMPUTE_TASK_INFO=("name, globalTaskId", [(3, 0)] * count_),
        COMMUNICATION_OP=None,
        MSTX_EVENTS=None,
    )
    # WHEN it is parsed THEN each task is read once
    found = parsed(tmp_path / "a_ascend_pt")
    assert found.events == count_
    assert one(found, "breakdown")["computing_ns"] == count_ * 500


def test_very_many_devices_of_a_database_become_one(tmp_path: Path) -> None:
    # GIVEN 100 tasks, each of a device of its own
    tasks = [(BASE_NS + i * 1_000, BASE_NS + i * 1_000 + 500, i, 1, i, 1, 4) for i in range(100)]
    names = [(3, i) for i in range(100)]
    database_in(
        tmp_path / "a_ascend_pt",
        TASK=(TASK_COLUMNS, tasks),
        COMPUTE_TASK_INFO=("name, globalTaskId", names),
        COMMUNICATION_OP=None,
        MSTX_EVENTS=None,
    )
    found = parsed(tmp_path / "a_ascend_pt")
    # THEN 64 have a lane, the others have one together, and all their time is there
    assert len(rows(found, "lanes")) == 65
    assert sum(row["computing_ns"] for row in rows(found, "breakdown")) == 100 * 500
    assert "more than 64 devices" in problem(found, "devices_joined")


def test_very_many_processes_in_one_block_of_a_text_are_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN 40,000 processes, more than 16 bits count, of which 50 are kept (the analysis is one),
    # and of the last a second event
    monkeypatch.setattr(mstx_text, "_MOST_PROCESSES", 50)
    events = [task("k", "KERNEL_AICORE", 100 + i % 50, 1, pid=i) for i in range(40_000)]
    events.append(task("k", "KERNEL_AICORE", 100, 1, pid=39_999))
    found = parsed(write_text(tmp_path / "a_ascend_pt", [*BUSY, *events]))
    assert found.status == "ok"
    assert count(found, "processes_left_out") == 40_001 - 49


def test_groups_are_found_by_their_thread_among_many(tmp_path: Path) -> None:
    # GIVEN threads that are named after their group, by a number or by its text
    pid = collective("x", 0, 1, 1)["pid"]
    named = [
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
        for tid, name in ((0, "Group tp_a Communication"), ("1", "Group tp_b Communication"))
    ]
    calls = [collective("hcom_allReduce__9_0_1", 100 + i, 1, 4, tid=i) for i in range(2)]
    events = [*BUSY, *process(pid, "Communication"), *named, *calls]
    found = parsed(write_text(tmp_path / "a_ascend_pt", events))
    assert [row["group"] for row in rows(found, "collectives")] == ["tp_a", "tp_b"]


@pytest.mark.parametrize(
    ("device", "expected"), [(0, 0), (7, 7), (31, None)], ids=["first", "another", "the host"]
)
def test_the_device_of_a_process_is_told_by_its_number(device: int, expected: int | None) -> None:
    # GIVEN a process numbered as msprof does, `<os pid> << 10 | <layer> << 5 | <device>`
    known = Process(4711 << 10 | 13 << 5 | device, OpNames())
    known.describe(MstxEvent(name="process_sort_index", args=MstxArgs(sort_index=13)))
    # THEN its device is the last part, of which 31 is none
    assert known.device_number == expected


@pytest.mark.parametrize("table", sorted(DATABASE))
def test_a_view_that_never_ends_in_place_of_any_table_is_told(tmp_path: Path, table: str) -> None:
    # GIVEN a database with such a view in place of a table, which its schema calls a table
    path = database_in(tmp_path / "a_ascend_pt")
    names = DATABASE[table][0].split(", ")
    columns = ", ".join(f"n AS {name}" for name in names)
    with sqlite3.connect(path) as connection:
        connection.executescript(
            f"ALTER TABLE {table} RENAME TO old; CREATE VIEW {table} AS WITH RECURSIVE c(n) AS "
            f"(SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT {columns} FROM c; "
            "PRAGMA writable_schema = ON; "
            f"UPDATE sqlite_master SET type = 'table', rootpage = 2 WHERE name = '{table}';"
        )
    connection.close()
    # WHEN it is parsed THEN that ends, and the rest is drawn
    found = parsed(tmp_path / "a_ascend_pt")
    assert found.status == "salvaged"
    assert len(rows(found, "spans")) == 1
