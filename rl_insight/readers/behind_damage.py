"""The rows of a damaged SQLite table that lie behind the damage.

A table is a tree of pages in the order of its rows' ids (SQLite, "Database File Format", 1.6). A
query from its beginning ends at the first damaged page; one from its end reaches the last.
"""

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
        self._columns = columns
        self._table = table
        self._condition = condition
        self._given = given
        self.lost = "rows"

    def __iter__(self) -> Iterator[list[tuple[object, ...]]]:
        try:
            before = self._last_before()
        except DAMAGE:
            # A table without ids, or one of which not even these can be read again.
            return
        self.lost = f"its rows from {before + 1:,} on" if before else "all its rows"
        query = (
            f"SELECT rowid, {self._columns} FROM {self._table} "
            f"WHERE ({self._condition}) AND rowid > {before} ORDER BY rowid DESC"
        )
        try:
            for chunk in chunks(self._connection, query):
                first = chunk[-1][0]
                if isinstance(first, int):
                    self.lost = f"its rows {before + 1:,} to {first - 1:,}"
                yield [row[1:] for row in chunk]
        except DAMAGE:
            return

    def _last_before(self) -> int:
        """The id of the last row that was given; 0 where there was none."""
        if not self._given:
            return 0
        query = (
            f"SELECT rowid FROM {self._table} WHERE {self._condition} "
            f"ORDER BY rowid LIMIT 1 OFFSET {self._given - 1}"
        )
        found = self._connection.execute(query).fetchone()
        return int(found[0]) if found is not None else 0
