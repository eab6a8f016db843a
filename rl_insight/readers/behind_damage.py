"""The rows of a damaged SQLite table that lie behind the damage.

A table is a tree of pages in the order of its rows' ids (SQLite, "Database File Format", 1.6). A
query from its beginning ends at the first damaged page; one from its end reaches the last.
"""

import contextlib
import sqlite3
from collections.abc import Iterator

from rl_insight.readers.sqlite import DAMAGE, chunks


class Behind:
    """Iterate for the rows that a query did not reach, the last first.

    The query, `SELECT columns FROM table WHERE condition` in the table's own order, failed after it
    had given `given` rows. `lost` says afterwards what the table has lost.
    """

    def __init__(
        self, connection: sqlite3.Connection, columns: str, table: str, condition: str, given: int
    ) -> None:
        self._connection = connection
        self._select = f"SELECT rowid, {columns} FROM {table} WHERE ({condition})"
        self._given = given
        self.lost = "rows"

    def __iter__(self) -> Iterator[list[tuple[object, ...]]]:
        try:
            before = self._last_before()
        except DAMAGE:
            # A table without ids, or one of which not even these can be read again.
            return
        self.lost = f"its rows from {before + 1:,} on" if before else "all its rows"
        query = f"{self._select} AND rowid > {before} ORDER BY rowid DESC"
        with contextlib.suppress(*DAMAGE):
            for chunk in chunks(self._connection, query):
                self.lost = f"its rows {before + 1:,} to {_id(chunk) - 1:,}"
                yield _without_ids(chunk)

    def _last_before(self) -> int:
        """The id of the last row that was given; 0 where there was none."""
        if not self._given:
            return 0
        query = f"{self._select} ORDER BY rowid LIMIT 1 OFFSET {self._given - 1}"
        found = self._connection.execute(query).fetchone()
        return _id([found]) if found is not None else 0


def _id(chunk: list[tuple[object, ...]]) -> int:
    """The id of its last row."""
    found = chunk[-1][0]
    if not isinstance(found, int):
        raise sqlite3.DatabaseError("a column of its own is called rowid")
    return found


def _without_ids(chunk: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [row[1:] for row in chunk]
