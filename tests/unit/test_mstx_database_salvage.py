"""Databases of Ascend captures as killed writers, full disks and careless copies leave them.

Each is built from scratch and goes through discovery, parsing and merge beside a sound one; what is
checked is what a person sees: the spans and the device's time, the status and the sentence.
"""

import contextlib
import gzip
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.ascend_captures import BASE_NS, DATABASE, TASK_COLUMNS, database_in, drawn
from tests.merged_runs import problems, states

BROKEN, SOUND = "e2e/a_ascend_pt", "e2e/b_ascend_pt"
PAGE = 4_096
WHOLE = [("actor_update", 50_000, 200_000)]
RANGES, SOUND_RANGES = DATABASE["MSTX_EVENTS"]
_, SOUND_TASKS = DATABASE["TASK"]
DAY_NS = 24 * 3_600 * 10**9


class Seen(NamedTuple):
    """What a person sees of the broken capture; times in ns, None where they cannot be told."""

    stages: list[tuple[str | None, int, int]]
    computing: int | None
    communication: int | None
    state: tuple[str, str | None]
    problems: dict[str, int]


def total(times: Iterable[int | None]) -> int | None:
    known = list(times)
    return None if None in known else sum(one for one in known if one is not None)


def run(
    tmp_path: Path, damage: Callable[[Path], object] = lambda path: None, **changed: Any
) -> Seen:
    """Draw a capture of rank 3 beside a sound one of rank 4; `damage` is done to its database."""
    root = tmp_path / "run"
    path = database_in(root / BROKEN, **changed)
    database_in(root / SOUND, 4, RANK_DEVICE_MAP=("rankId, deviceId", [(4, 0)]))
    damage(path)
    before = sorted(one.name for one in path.parent.iterdir())

    tables = drawn(root, tmp_path / "out")

    assert sorted(one.name for one in path.parent.iterdir()) == before
    assert states(tables)[SOUND] == ("ok", None)
    (source,) = [row["source_id"] for row in tables["sources"] if row["path"] == BROKEN]
    lanes = {row["lane_id"] for row in tables["lanes"] if row["source_id"] == source}
    times = [row for row in tables["breakdown"] if row["lane_id"] in lanes]
    return Seen(
        [
            (one["name"], one["start_ns"] - BASE_NS, one["duration_ns"])
            for one in sorted(tables["spans"], key=lambda span: span["start_ns"])
            if one["source_id"] == source
        ],
        total(row["computing_ns"] for row in times),
        total(row["communication_ns"] for row in times),
        states(tables)[BROKEN],
        {code: count for code, (count, _) in problems(tables, BROKEN).items()},
    )


WELL = Seen(WHOLE, 30_000, 50_000, ("ok", None), {})


def pages(path: Path, table: str) -> list[int]:
    """The leaves of a table, by their numbers from 0, in the order of its rows."""
    content = path.read_bytes()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        ((root,),) = connection.execute(query, (table,)).fetchall()
    page = content[(root - 1) * PAGE : root * PAGE]
    # An interior page of a table (SQLite, "Database File Format", 1.6): cells of 4 bytes of a child
    # and its key, whose places stand behind the header of 12 bytes that ends with the last child.
    assert page[0] == 5
    places = [int.from_bytes(page[at : at + 2]) for at in range(12, 12 + 2 * page[4], 2)]
    assert page[3] == 0
    children = [int.from_bytes(page[at : at + 4]) for at in (*places, 8)]
    return [child - 1 for child in children]


def zeroed(path: Path, number: int) -> None:
    content = bytearray(path.read_bytes())
    content[number * PAGE : (number + 1) * PAGE] = bytes(PAGE)
    path.write_bytes(bytes(content))


def rows_in(path: Path, number: int) -> int:
    """The rows on a leaf."""
    page = path.read_bytes()[number * PAGE :]
    assert page[0] == 13
    return int.from_bytes(page[3:5])


# 5,000 tasks of 500 ns each, a µs apart, in the time behind the collective, all of them computing.
TASKS = [
    (BASE_NS + 200_000 + n * 1_000, BASE_NS + 200_500 + n * 1_000, 0, 9, 100 + n, 4711, 4)
    for n in range(5_000)
]
MANY: dict[str, Any] = {
    "TASK": (TASK_COLUMNS, [*SOUND_TASKS, *TASKS]),
    "COMPUTE_TASK_INFO": ("name, globalTaskId", [(3, 11), *((3, 100 + n) for n in range(5_000))]),
}


@pytest.mark.parametrize("place", [1, 5, -2])
def test_a_damaged_page_costs_only_the_rows_on_it(tmp_path: Path, place: int) -> None:
    # GIVEN a page of tasks that never reached the disk, not the first and not the last
    lost = first = 0

    def damage(path: Path) -> None:
        nonlocal lost, first
        leaves = pages(path, "TASK")
        number = leaves[place]
        lost = rows_in(path, number)
        # The tasks have ids from 1 on.
        first = 1 + sum(rows_in(path, before) for before in leaves[:place])
        zeroed(path, number)

    seen = run(tmp_path, damage, **MANY)

    # THEN all tasks before it and behind it are counted, and all other tables
    assert 50 < lost < 300
    assert seen.stages == WHOLE
    assert seen.problems == {"table_unreadable": 1}
    # Within the stage, which ends 50 µs after the first of the many tasks.
    again = drawn(tmp_path / "run", tmp_path / "again")
    rank = {row["span_id"]: row["rank_id"] for row in again["spans"]}
    own = [row for row in again["ops"] if rank[row["span_id"]] == 3]
    counted = {
        name: sum(row["total_ns"] for row in own if row["category"] == name)
        for name in ("computing", "communication")
    }
    assert counted == {"computing": 30_000 + 50 * 500, "communication": 50_000}
    # AND nobody knows when the lost ones were: they may be time that would count as free
    assert (seen.computing, seen.communication) == (None, None)
    (bar,) = [one for one in again["spans"] if one["rank_id"] == 3 and one["kind"] == "stage"]
    assert bar["truncated"]
    # The computing tasks once, the copy, the call and the range; as many as were not lost.
    kept = 1 + 5_000 - lost + 1 + 1 + 1
    assert seen.state == (
        "salvaged",
        f"the database is damaged (TASK: its rows {first:,} to {first + lost - 1:,} are lost: "
        "database disk image is malformed); "
        f"the {kept:,} rows that could be read are kept",
    )


def test_names_are_found_although_the_table_that_points_at_them_is_cut_off(
    tmp_path: Path,
) -> None:
    # GIVEN the ranges last in the file, of which the second half is gone
    more = [(BASE_NS + 300_000 + n, BASE_NS + 300_001 + n, 2, 1, 2, 1) for n in range(20_000)]

    def damage(path: Path) -> None:
        path.unlink()
        database_in(path.parents[1], MSTX_EVENTS=None)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(f"CREATE TABLE MSTX_EVENTS ({RANGES})")
            ranges = [*SOUND_RANGES, *more]
            connection.executemany("INSERT INTO MSTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)", ranges)
            connection.commit()
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])

    seen = run(tmp_path, damage)

    assert seen.stages[0] == WHOLE[0]
    assert len(seen.stages) > 5_000
    assert {name for name, _, _ in seen.stages} == {"actor_update"}
    assert seen.problems == {"table_unreadable": 1}
    assert seen.state[0] == "salvaged"
    assert str(seen.state[1]).startswith("the database is damaged (MSTX_EVENTS: ")


def test_without_the_names_of_the_tasks_their_types_tell(tmp_path: Path) -> None:
    # GIVEN a page of COMPUTE_TASK_INFO that is zero
    seen = run(tmp_path, lambda path: zeroed(path, pages(path, "COMPUTE_TASK_INFO")[3]), **MANY)

    assert seen.stages == WHOLE
    assert seen.computing == 30_000 + 50 * 500
    assert seen.problems == {"table_unreadable": 1}
    assert "(COMPUTE_TASK_INFO: " in str(seen.state[1])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the database is empty (0 bytes): its writer was killed"),
        (
            bytes(5_000),
            "this is no SQLite database, whatever its name says: it begins with zero bytes; "
            "copy it again",
        ),
        (
            gzip.compress(b"SQLite format 3\0"),
            "this is no SQLite database, whatever its name says: it is packed with gzip; unpack it",
        ),
        (b"<html>404</html>", "this is no SQLite database, whatever its name says"),
    ],
    ids=["nothing", "zeros", "gzip", "a page"],
)
def test_what_is_no_database_is_named(tmp_path: Path, content: bytes, sentence: str) -> None:
    seen = run(tmp_path, lambda path: path.write_bytes(content))

    assert seen == Seen([], 0, 0, ("failed", sentence), {})


def test_a_database_of_which_only_its_first_page_is_left_says_so(tmp_path: Path) -> None:
    seen = run(tmp_path, lambda path: path.write_bytes(path.read_bytes()[:PAGE]))

    assert seen.stages == []
    assert seen.state == (
        "failed",
        "the database is damaged (HOST_INFO and 6 more: database disk image is malformed); "
        "nothing could be read of it",
    )


def test_a_damaged_table_of_names_costs_only_names(tmp_path: Path) -> None:
    seen = run(tmp_path, lambda path: zeroed(path, 1))

    # Without its name the stage is not known as one: the folder tells the role of what the device
    # did.
    assert seen.stages == [("e2e", 100_000, 70_000)]
    assert (seen.computing, seen.communication) == (30_000, 50_000)
    assert seen.problems == {"table_unreadable": 1, "unnamed_range": 1, "unnamed_kernel": 1}
    assert str(seen.state[1]).startswith("the database is damaged (STRING_IDS: ")


def test_a_database_in_utf_16_is_read(tmp_path: Path) -> None:
    def damage(path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            script = "\n".join(connection.iterdump())
        path.unlink()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executescript(f"PRAGMA encoding = 'UTF-16le'; {script}")

    assert run(tmp_path, damage) == WELL


def test_names_of_no_encoding_and_with_control_characters_are_read(tmp_path: Path) -> None:
    def damage(path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE STRING_IDS SET value = CAST(x'6DFF0164' AS TEXT) WHERE id=3")
            connection.commit()

    assert run(tmp_path, damage) == WELL


# -- Writers that are at work, or were killed ----------------------------------------------------

_WRITER = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    connection.execute(statement)
os._exit(9)
"""


def killed(*statements: str) -> Callable[[Path], object]:
    """What a writer leaves that is killed after these statements."""
    return lambda path: subprocess.run(
        [sys.executable, "-c", _WRITER, str(path), *statements], check=False
    )


def test_a_locked_database_is_read(tmp_path: Path) -> None:
    writers = []

    def damage(path: Path) -> None:
        writers.append(sqlite3.connect(path, isolation_level=None))
        writers[0].execute("BEGIN EXCLUSIVE")

    seen = run(tmp_path, damage)
    writers[0].close()

    assert seen == WELL


def test_a_hot_journal_is_told_and_what_stands_in_the_file_is_read(tmp_path: Path) -> None:
    # GIVEN a writer that was killed in the middle of a change, which it had begun to write
    fill = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 200) "
    damage = killed(
        "PRAGMA cache_size = 1",
        "BEGIN",
        "CREATE TABLE more (x)",
        f"{fill} INSERT INTO more SELECT zeroblob(3000) FROM n",
    )

    seen = run(tmp_path, damage)

    assert seen == Seen(
        WHOLE,
        None,  # what the journal holds may be tasks
        None,
        (
            "salvaged",
            "the database was still being written: it is read without its journal; "
            "the 4 rows that could be read are kept",
        ),
        {"journal_unread": 1},
    )


def test_a_log_that_was_not_merged_is_read(tmp_path: Path) -> None:
    row = f"({BASE_NS + 300_000}, {BASE_NS + 350_000}, 2, 1, 2, 1)"
    damage = killed("PRAGMA journal_mode = WAL", f"INSERT INTO MSTX_EVENTS VALUES {row}")

    seen = run(tmp_path, damage)

    assert seen == WELL._replace(stages=[*WHOLE, ("actor_update", 300_000, 50_000)])


# -- Times ---------------------------------------------------------------------------------------

NOW = BASE_NS + 60_000
IMPOSSIBLE: dict[str, tuple[Sequence[Any], str]] = {
    "no end": ((NOW, None), "no_time"),
    "beyond 64 bits": (("18446744073709551616", "18446744073709551620"), "no_time"),
    "infinite": ((float("inf"), float("inf")), "no_time"),
    "zero": ((0, 0), "zero_time"),
    "from zero until now": ((0, NOW), "impossible_duration"),
    "before 1970": ((-5, 10), "negative_time"),
    "ends before it begins": ((NOW, NOW - 1), "negative_duration"),
    "an end of zero": ((NOW, 0), "negative_duration"),
    "an end of -1": ((NOW, -1), "negative_duration"),
    "eight days": ((NOW, NOW + 8 * DAY_NS), "impossible_duration"),
    "hours, in a capture of a millisecond": ((NOW, NOW + DAY_NS // 4), "impossible_duration"),
    "a year later": ((NOW + 400 * DAY_NS, NOW + 400 * DAY_NS + 5), "outside_capture"),
    "a year before": ((NOW - 400 * DAY_NS, NOW - 400 * DAY_NS + 5), "outside_capture"),
    "relative among absolute": ((12_500, 12_600), "outside_capture"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_an_impossible_time_of_a_range_is_counted_and_stretches_nothing(
    tmp_path: Path, case: str
) -> None:
    times, code = IMPOSSIBLE[case]

    seen = run(tmp_path, MSTX_EVENTS=(RANGES, [(*times, 2, 1, 2, 1), *SOUND_RANGES]))

    assert seen == WELL._replace(problems={code: 1})


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_an_impossible_time_of_a_task_is_counted_and_stretches_nothing(
    tmp_path: Path, case: str
) -> None:
    times, code = IMPOSSIBLE[case]
    # GIVEN a second task with the number of the first, so that it computes, too
    odd = (*times, 0, 1, 11, 4711, 4)

    seen = run(tmp_path, TASK=(TASK_COLUMNS, [odd, *SOUND_TASKS]))

    assert seen == WELL._replace(problems={code: 1})
