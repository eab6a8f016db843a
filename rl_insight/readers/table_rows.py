"""The rows of one SQLite table, around the pages of it that are damaged.

A table is a tree of pages in the order of its rows' ids (SQLite, "Database File Format", 1.6). A
query from its beginning ends at the first damaged page; one from its end reaches the last.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rl_insight.readers.sqlite import DAMAGE, chunks, quoted

Rows = list[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class TableQuery:
    """What is asked for of a table, as SQL: at most one row for each of its own.

    `join` gives such a row columns of other tables, of which each has at most one row to give.
    """

    table: str
    columns: str
    condition: str = "TRUE"
    join: str = ""

    @property
    def text(self) -> str:
        """The whole query, in the order of the table's ids: that of an index has no end."""
        source = f"{quoted(self.table)} NOT INDEXED {self.join}"
        return f"SELECT {self.columns} FROM {source} WHERE ({self.condition})"

    @property
    def rowid(self) -> str:
        """The id of a row, as SQL."""
        return f"{quoted(self.table)}.rowid"

    def with_ids(self) -> "TableQuery":
        """The same with the id as its first column."""
        return TableQuery(self.table, f"{self.rowid}, {self.columns}", self.condition, self.join)


class LostRowsError(sqlite3.DatabaseError):
    """A table has lost rows: `lost` says which, the text why."""

    def __init__(self, lost: str, why: str) -> None:
        super().__init__(why)
        self.lost = lost


def table_chunks(
    connection: sqlite3.Connection, query: TableQuery, values: Sequence[object] = ()
) -> Iterator[Rows]:
    """The rows of `query`, some ten thousand at a time.

    Where the table is damaged these are all rows before the first damaged page, and then all behind
    the last, the last first. Raises LostRowsError when they were given.
    """
    given = 0
    try:
        for chunk in chunks(connection, query.text, values):
            given += len(chunk)
            yield chunk
    except DAMAGE as error:
        behind = _Behind(connection, query, values, given)
        yield from behind
        raise LostRowsError(behind.lost, str(error)) from error


class _Behind:
    """The rows that a query did not reach which failed after `given`; `lost` says which stay so."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        query: TableQuery,
        values: Sequence[object],
        given: int,
    ) -> None:
        self._connection = connection
        self._query = query.with_ids()
        self._values = values
        self._given = given
        self.lost = "rows"

    def __iter__(self) -> Iterator[Rows]:
        try:
            before = self._last_before()
        except DAMAGE:
            # A table without ids, or one of which not even these can be read again.
            return
        self.lost = f"its rows from {before + 1:,} on" if before else "all its rows"
        rowid = self._query.rowid
        query = f"{self._query.text} AND {rowid} > {before} ORDER BY {rowid} DESC"
        with contextlib.suppress(*DAMAGE):
            for chunk in chunks(self._connection, query, self._values):
                self.lost = f"its rows {before + 1:,} to {_id(chunk) - 1:,}"
                yield [row[1:] for row in chunk]

    def _last_before(self) -> int:
        """The id of the last row that was given; 0 where there was none."""
        if not self._given:
            return 0
        query = f"{self._query.text} ORDER BY {self._query.rowid} LIMIT 1 OFFSET {self._given - 1}"
        found = self._connection.execute(query, self._values).fetchone()
        return _id([found]) if found is not None else 0


def _id(chunk: Rows) -> int:
    """The id of its last row."""
    found = chunk[-1][0]
    if not isinstance(found, int):
        raise sqlite3.DatabaseError("a column of its own is called rowid")
    return found
