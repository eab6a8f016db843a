"""Questions to the database of an Ascend capture, by column name: its schema has many versions.

Sources: msprof, docs/en/user_guide/profile_data_file_references_db.md and db_assembler.cpp;
torch_npu, _constant.py (TableColumnsManager). Any table and any column may be missing. Numbers are
cast, since PYTORCH_API keeps its times as text.
"""

import sqlite3
from collections.abc import Iterator, Sequence

from rl_insight.problems import Problems
from rl_insight.readers import sqlite
from rl_insight.readers.table_rows import LostRowsError, Rows, TableQuery, table_chunks

_LONGEST_TEXT = 500
_MOST_ROWS = 10_000
_MOST_TEXTS = 200_000
_MOST_CHARACTERS = 32 << 20


class AscendDatabase:
    """An open database. A table that cannot be read is a problem, and then has no (more) rows."""

    def __init__(self, connection: sqlite3.Connection, problems: Problems) -> None:
        self._connection = connection
        self._problems = problems
        self._columns: dict[str, tuple[str, ...]] = {}
        self._checked: set[str] = set()
        self._damaged: dict[str, str] = {}

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is a table with these columns."""
        if table not in self._columns:
            try:
                self._columns[table] = sqlite.columns(self._connection, table)
            except sqlite.DAMAGE as error:
                self._columns[table] = ()
                self._lose(table, error)
        known = self._columns[table]
        return bool(known) and set(columns) <= set(known)

    def needs(self, table: str, *columns: str) -> bool:
        """The same; where the table is there without one of them, that is a problem."""
        if self.has(table) and not self.has(table, *columns):
            missing = [name for name in columns if name not in self._columns[table]]
            example = f"{table} has no column {missing[0]}, and is not read"
            self._problems.add("column_missing", "warning", len(missing), example=example)
            return False
        return self.has(table, *columns)

    def chunks(self, query: TableQuery, values: Sequence[object] = ()) -> Iterator[Rows]:
        """The rows of `query` in chunks; around a damaged page those before it and behind it."""
        try:
            yield from table_chunks(self._connection, query, values)
            self._check(query.table)
        except sqlite.DAMAGE as error:
            self._lose(query.table, error)

    def is_whole(self, table: str) -> bool:
        """Whether no page of `table` is damaged; where one is, that is a problem."""
        try:
            self._check(table)
        except sqlite.DAMAGE as error:
            self._lose(table, error)
        return table not in self._damaged

    def _check(self, table: str) -> None:
        if table not in self._checked:
            self._checked.add(table)
            sqlite.check(self._connection, table)

    def first(self, table: str, columns: str) -> tuple[object, ...] | None:
        """The `columns` of some row of `table`; None where it has none."""
        query = f"SELECT {columns} FROM {sqlite.quoted(table)} LIMIT 1"
        try:
            found: tuple[object, ...] | None = self._connection.execute(query).fetchone()
            self._check(table)
        except sqlite.DAMAGE as error:
            self._lose(table, error)
            return None
        return found

    def rows(self, query: TableQuery, values: Sequence[object] = ()) -> Rows:
        """All rows of a `query` that gives few; of a hostile one some ten thousand."""
        found: Rows = []
        for chunk in self.chunks(query, values):
            found += chunk
            if len(found) >= _MOST_ROWS:
                break
        return found

    def texts(self, table: str, column: str) -> dict[object, str]:
        """The texts of STRING_IDS that a column of `table` points at, by their number.

        Of two texts with one number the first counts.
        """
        if not self.needs("STRING_IDS", "id", "value") or not self.has(table, column):
            return {}
        condition = "value IS NOT NULL"
        if self.is_whole(table):
            # Else this would end with the first of its damaged pages, before any text was found.
            condition += f" AND id IN (SELECT {column} FROM {table})"
        columns = f"CAST(id AS INTEGER), substr(CAST(value AS TEXT), 1, {_LONGEST_TEXT})"
        query = TableQuery("STRING_IDS", columns, condition)
        found: dict[object, str] = {}
        characters = conflicts = left_out = 0
        for chunk in self.chunks(query):
            for number, text in chunk:
                name = str(text)
                if number in found:
                    conflicts += found[number] != name
                elif len(found) < _MOST_TEXTS and characters < _MOST_CHARACTERS:
                    found[number] = name
                    characters += len(name)
                else:
                    left_out += 1
        self._problems.add("string_conflict", "warning", conflicts, example="two texts of one id")
        self._problems.add("strings_left_out", "warning", left_out, example="more than are kept")
        return found

    def enumeration(self, table: str) -> dict[object, str]:
        """The names in an ENUM table, by their number."""
        if not self.has(table, "id", "name"):
            return {}
        rows = self.rows(TableQuery(table, "id, name"))
        return {number: str(name) for number, name in rows}

    def times(self, table: str) -> str:
        """The two columns with which every question about times begins, in ns."""
        return f"CAST({table}.startNs AS INTEGER), CAST({table}.endNs AS INTEGER)"

    def optional(self, table: str, column: str) -> str:
        """A column as a whole number, or NULL where the table does not have it."""
        return f"CAST({table}.{column} AS INTEGER)" if self.has(table, column) else "NULL"

    @property
    def damage(self) -> str | None:
        """What went wrong, for a person: the first damaged table, and how many others there are."""
        if not self._damaged:
            return None
        (table, why), *others = self._damaged.items()
        more = f" and {len(others)} more" if others else ""
        return f"{table}{more}: {why}"

    def is_damaged(self, tables: frozenset[str]) -> bool:
        """Whether rows of any of `tables` are lost."""
        return not tables.isdisjoint(self._damaged)

    def _lose(self, table: str, error: Exception) -> None:
        if table not in self._damaged:
            why = str(error)
            if isinstance(error, LostRowsError):
                why = f"{error.lost} are lost: {error}"
            self._damaged[table] = why
            self._problems.add("table_unreadable", "warning", example=f"{table}: {why}")
