"""Databases that nobody checked: what is called a table may be anything."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from rl_insight.errors import ReadError
from rl_insight.problems import Problems
from rl_insight.readers.sqlite import check, chunks, columns, database

ENDLESS = (
    "CREATE VIEW events AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
    "SELECT x FROM n"
)


def made(path: Path, script: str) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.commit()
    connection.close()
    return path


def test_columns_are_those_of_the_table(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db", 'CREATE TABLE "od""d" (a, b)')
    with database(path) as connection:
        assert columns(connection, 'od"d') == ("a", "b")
        assert columns(connection, "none") == ()


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("CREATE VIEW events AS SELECT 1 AS x", "of the kind «view»"),
        ("CREATE TABLE t (a); CREATE INDEX events ON t (a)", "of the kind «index»"),
        ("CREATE VIRTUAL TABLE events USING fts4(x)", "of the kind «virtual table»"),
    ],
)
def test_what_is_no_table_is_said(tmp_path: Path, script: str, what: str) -> None:
    path = made(tmp_path / "a.db", script)
    with pytest.raises(ReadError, match=what), database(path) as connection:
        columns(connection, "events")


@pytest.mark.parametrize(
    "lie",
    [
        "UPDATE sqlite_master SET type = 'table' WHERE name = 'events'",
        "UPDATE sqlite_master SET type = 'table', rootpage = 2 WHERE name = 'events'",
        "UPDATE sqlite_master SET name = 'other' WHERE name = 'events';"
        "INSERT INTO sqlite_master VALUES ('table', 'events', 'events', 2, 'CREATE TABLE t2 (x)')",
    ],
)
def test_a_view_that_never_ends_is_not_asked_whatever_the_schema_says(
    tmp_path: Path, lie: str
) -> None:
    # GIVEN a database whose schema passes off such a view as a table
    path = made(
        tmp_path / "a.db", f"CREATE TABLE t (x); {ENDLESS}; PRAGMA writable_schema = ON; {lie};"
    )
    # WHEN its rows are asked for THEN that ends, with an error
    with pytest.raises(ReadError), database(path) as connection:
        columns(connection, "events")
        connection.execute("SELECT x FROM events").fetchone()


def test_the_rows_before_the_damage_are_given(tmp_path: Path) -> None:
    # GIVEN a table of 1,000 rows, of which the file ends before the last ones
    script = (
        "CREATE TABLE events (x, y); WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
        "FROM n LIMIT 1000) INSERT INTO events SELECT x, zeroblob(100) FROM n"
    )
    path = made(tmp_path / "a.db", script)
    path.write_bytes(path.read_bytes()[: 10 * 4096])
    # WHEN they are asked for
    seen: list[object] = []
    with pytest.raises(ReadError), database(path) as connection:
        for chunk in chunks(connection, "SELECT x FROM events"):
            seen += [x for (x,) in chunk]
    # THEN those before come, in order, and then the error
    assert 100 < len(seen) < 1_000
    assert seen == list(range(1, len(seen) + 1))


def test_a_journal_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    # GIVEN a database whose writer still runs, lets nobody else in, and keeps a journal
    path = made(tmp_path / "a.db", "CREATE TABLE events (x); INSERT INTO events VALUES (1)")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = PERSIST")
    writer.execute("INSERT INTO events VALUES (1)")
    writer.execute("DELETE FROM events WHERE rowid = 2")
    writer.execute("BEGIN EXCLUSIVE")
    # WHEN it is read THEN what is not in the journal is there, and the rest is told
    problems = Problems()
    with database(path, problems) as connection:
        assert connection.execute("SELECT x FROM events").fetchall() == [(1,)]
    writer.close()
    (told,) = problems
    assert (told.code, told.example) == (
        "journal_unread",
        "what is only in a.db-journal is not read: database is locked",
    )


@pytest.mark.parametrize("locking", ["NORMAL", "EXCLUSIVE"])
@pytest.mark.parametrize("ended", [True, False])
def test_nothing_is_written_beside_a_database_with_a_log(
    tmp_path: Path, locking: str, ended: bool
) -> None:
    # GIVEN a database in WAL mode, whose writer was killed in the middle or closed it well
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.mkdir()
    path = made(source / "a.db", "CREATE TABLE events (x); INSERT INTO events VALUES (1)")
    writer = sqlite3.connect(path)
    writer.executescript(f"PRAGMA locking_mode = {locking}; PRAGMA journal_mode = WAL")
    writer.executescript("INSERT INTO events VALUES (2)")
    if ended:
        writer.close()
    copy.mkdir()
    for name in ("a.db", "a.db-wal"):
        if (source / name).exists():
            shutil.copy(source / name, copy)
    before = {file.name: file.read_bytes() for file in copy.iterdir()}
    # WHEN it is read THEN all rows are there, and the folder is as it was
    problems = Problems()
    with database(copy / "a.db", problems) as connection:
        assert connection.execute("SELECT x FROM events").fetchall() == [(1,), (2,)]
        assert {file.name for file in copy.iterdir()} == set(before)
    assert {file.name: file.read_bytes() for file in copy.iterdir()} == before
    assert len(problems) == 0
    writer.close()


def test_a_journal_beside_a_database_is_read(tmp_path: Path) -> None:
    # GIVEN the same, whose writer lets others in
    path = made(tmp_path / "a.db", "CREATE TABLE events (x); INSERT INTO events VALUES (1)")
    writer = sqlite3.connect(path)
    writer.executescript("PRAGMA journal_mode = WAL; INSERT INTO events VALUES (2)")
    problems = Problems()
    with database(path, problems) as connection:
        assert connection.execute("SELECT x FROM events").fetchall() == [(1,), (2,)]
    writer.close()
    assert len(problems) == 0


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    # GIVEN a folder whose name is no UTF-8, with what means something in a URI
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff?b=c#d%41"))
    folder.mkdir()
    path = made(folder / "a.db", "CREATE TABLE events (x); INSERT INTO events VALUES (7)")
    # WHEN a database in it is opened THEN its rows are there
    with database(path) as connection:
        assert connection.execute("SELECT x FROM events").fetchall() == [(7,)]


def test_a_page_that_sqlite_reads_over_is_damage(tmp_path: Path) -> None:
    # GIVEN a table of many pages, and zeros in the middle of one that holds rows
    script = (
        "CREATE TABLE events (x, y); WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
        "FROM n LIMIT 1000) INSERT INTO events SELECT x, zeroblob(100) FROM n"
    )
    path = made(tmp_path / "a.db", script)
    raw = bytearray(path.read_bytes())
    with database(path) as connection:
        check(connection, "events")
    start = 10 * 4096 + 2048
    raw[start : start + 1024] = bytes(1024)
    path.write_bytes(raw)
    # WHEN its rows are read THEN SQLite gives some, without a word
    with database(path) as connection:
        assert sum(map(len, chunks(connection, "SELECT x FROM events"))) > 0
    # AND a look at its pages tells
    with pytest.raises(ReadError, match=r"damaged inside: .*page"), database(path) as connection:
        check(connection, "events")


def test_what_a_check_says_of_values_is_no_damage(tmp_path: Path) -> None:
    script = "CREATE TABLE t (x); INSERT INTO t VALUES (NULL), ('1')"
    path = made(tmp_path / "a.db", script)
    # GIVEN a schema that was made stricter afterwards
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = "
            "'CREATE TABLE t (x INTEGER NOT NULL CHECK (x > 5))' WHERE name = 't'"
        )
    connection.close()
    with database(path) as connection:
        check(connection, "t")


def test_a_hot_journal_leaves_what_stands_on_disk(tmp_path: Path) -> None:
    # GIVEN a writer that was killed inside a transaction: its journal says what to take back
    path = made(tmp_path / "a.db", "CREATE TABLE events (x); INSERT INTO events VALUES (1)")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN")
    writer.execute(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 5000) "
        "INSERT INTO events SELECT x FROM n"
    )
    killed = tmp_path / "killed"
    killed.mkdir()
    for name in ("a.db", "a.db-journal"):
        (killed / name).write_bytes((tmp_path / name).read_bytes())
    writer.close()
    assert (killed / "a.db-journal").stat().st_size > 512
    before = {entry.name: entry.read_bytes() for entry in killed.iterdir()}
    # WHEN it is read
    problems = Problems()
    with database(killed / "a.db", problems) as connection:
        rows = connection.execute("SELECT x FROM events LIMIT 1").fetchall()
    # THEN what stands on disk is given, that is told, and nothing is written
    assert rows == [(1,)]
    (told,) = problems
    assert told.code == "journal_unread"
    assert {entry.name: entry.read_bytes() for entry in killed.iterdir()} == before
