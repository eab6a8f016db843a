"""Around the damaged pages of a table all rows come, each once, and the lost ones are named."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rl_insight.readers.sqlite import database
from rl_insight.readers.table_rows import LostRowsError, TableQuery, table_chunks

PAGE = 4096
# An index in whose order a query with a condition on `kind` would come, were it asked; and another
# table, of which each event has one row.
SCRIPT = (
    "CREATE TABLE events (x, kind, y); WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
    "FROM n LIMIT 1000) INSERT INTO events SELECT x, x % 3, zeroblob(100) FROM n;"
    "CREATE TABLE names (kind, name);"
    "INSERT INTO names VALUES (0, 'none'), (1, 'one'), (2, 'two');"
)
INDEX = "CREATE INDEX kinds ON events (kind);"


def made(folder: Path, script: str = SCRIPT) -> Path:
    path = folder / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        connection.commit()
    return path


def rows_on(content: bytes, page: int) -> int:
    """How many rows a leaf of a table holds (SQLite, "Database File Format", 1.6)."""
    assert content[page * PAGE] == 13
    return int.from_bytes(content[page * PAGE + 3 : page * PAGE + 5])


def zeroed(path: Path, *pages: int) -> int:
    """Put zeros in place of leaves; gives how many rows were on the first of them."""
    content = bytearray(path.read_bytes())
    count = rows_on(bytes(content), pages[0])
    for page in pages:
        content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    path.write_bytes(content)
    return count


def read(path: Path, query: TableQuery, *values: object) -> tuple[list[object], str | None]:
    """The first value of each row, and what is said to be lost."""
    seen: list[object] = []
    with database(path) as connection:
        try:
            for chunk in table_chunks(connection, query, values):
                seen += [row[0] for row in chunk]
        except LostRowsError as error:
            assert "malformed" in str(error)
            return seen, error.lost
    return seen, None


EVENTS = TableQuery("events", "x")
QUERIES = {
    "all": (EVENTS, (), lambda x: True),
    "some": (TableQuery("events", "x", "kind = ?"), (2,), lambda x: x % 3 == 2),
    "either": (TableQuery("events", "x", "kind = 0 OR kind = 1"), (), lambda x: x % 3 < 2),
    "joined": (
        TableQuery(
            "events",
            "x, name",
            join="CROSS JOIN (SELECT kind AS k, min(name) AS name FROM names GROUP BY kind) "
            "ON k = events.kind",
        ),
        (),
        lambda x: True,
    ),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("script", [SCRIPT, SCRIPT + INDEX], ids=["plain", "with an index"])
def test_a_whole_table_loses_nothing(tmp_path: Path, script: str, name: str) -> None:
    query, values, wanted = QUERIES[name]
    path = made(tmp_path, script)
    assert read(path, query, *values) == ([x for x in range(1, 1001) if wanted(x)], None)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("script", [SCRIPT, SCRIPT + INDEX], ids=["plain", "with an index"])
def test_only_the_rows_on_the_page_are_lost(tmp_path: Path, script: str, name: str) -> None:
    # GIVEN a page of zeros in the middle
    query, values, wanted = QUERIES[name]
    path = made(tmp_path, script)
    on_page = zeroed(path, 12)
    # WHEN the table is asked
    seen, lost = read(path, query, *values)
    # THEN each row that is wanted is there once, but those on the page
    left = sorted(int(str(x)) for x in seen)
    missing = sorted(set(range(1, 1001)).intersection(filter(wanted, range(1, 1001))) - set(left))
    assert len(left) == len(set(left))
    assert missing[-1] - missing[0] < on_page
    assert len([x for x in range(missing[0], missing[-1] + 1) if wanted(x)]) == len(missing)
    if name == "all":
        assert lost == f"its rows {missing[0]:,} to {missing[-1]:,}"
        assert len(missing) == on_page
    else:
        # Rows that nobody asked for stand beside them, and their ids are not known.
        assert lost is not None
        assert lost.startswith("its rows ")


def test_of_two_damaged_pages_what_lies_between_is_said_to_be_lost(tmp_path: Path) -> None:
    path = made(tmp_path)
    content = path.read_bytes()
    each = rows_on(content, 12)
    zeroed(path, 12, 14)
    seen, lost = read(path, EVENTS)
    missing = sorted(set(range(1, 1001)) - set(seen))
    # Three pages of as many rows: nothing points to the one between.
    assert (len(seen), len(missing)) == (1_000 - 3 * each, 3 * each)
    assert lost == f"its rows {missing[0]:,} to {missing[-1]:,}"


def test_of_a_table_without_an_end_the_beginning_comes(tmp_path: Path) -> None:
    path = made(tmp_path)
    path.write_bytes(path.read_bytes()[: 12 * PAGE])
    seen, lost = read(path, EVENTS)
    assert seen == list(range(1, len(seen) + 1))
    assert lost == f"its rows from {len(seen) + 1:,} on"


def test_a_table_without_ids_gives_what_stands_before(tmp_path: Path) -> None:
    path = made(
        tmp_path,
        "CREATE TABLE events (x INTEGER PRIMARY KEY, y) WITHOUT ROWID; WITH RECURSIVE n(x) AS "
        "(SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000) "
        "INSERT INTO events SELECT x, zeroblob(100) FROM n",
    )
    assert read(path, EVENTS) == (list(range(1, 1001)), None)
    content = bytearray(path.read_bytes())
    content[12 * PAGE : 13 * PAGE] = bytes(PAGE)
    path.write_bytes(content)
    seen, lost = read(path, EVENTS)
    assert seen == list(range(1, len(seen) + 1))
    assert (0 < len(seen) < 1_000, lost) == (True, "rows")
