"""Rows of an nsys export as an SQLite database (`nsys export --type sqlite`)."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rl_insight.errors import ReadError
from rl_insight.parsers import nvtx_environment as environment
from rl_insight.parsers import nvtx_rows as rows
from rl_insight.parsers import nvtx_schema
from rl_insight.parsers.nvtx_names import are_operators
from rl_insight.parsers.nvtx_numbers import column, ends, whole
from rl_insight.parsers.nvtx_rows import (
    LONGEST_NAME,
    Batch,
    EncodedTexts,
    Fact,
    Ranges,
    Strings,
    Work,
)
from rl_insight.problems import Problems
from rl_insight.readers.sqlite import check, columns, database, decoded, names_nothing, quoted
from rl_insight.readers.table_rows import LostRowsError, Rows, TableQuery, table_chunks

_LONGEST_VALUE: Final = 300
_TEXTS: Final = ("name", "value", "text")
_USES: Final = (
    (nvtx_schema.RANGES, "textId"),
    (nvtx_schema.KERNEL, "demangledName"),
    (nvtx_schema.KERNEL, "shortName"),
)


class SqliteRows:
    """Reads `tables` of one database once; iterating gives its batches.

    `rows_seen` counts the rows that were read. `problems` gets `table_damaged` where rows of a
    table are lost, and `column_missing` where one that is needed is not there.
    Iterating raises ReadError when the file is no database, or no export of nsys.
    """

    def __init__(
        self, path: Path, problems: Problems, tables: Sequence[str] = nvtx_schema.TABLES
    ) -> None:
        self._path = path
        self._tables = tables
        self._problems = problems
        self.rows_seen = 0
        self.damaged: set[str] = set()

    @property
    def tabled(self) -> int:
        """How many rows are of a table: all."""
        return self.rows_seen

    def __iter__(self) -> Iterator[Batch]:
        with database(self._path, self._problems) as connection:
            present = self._present(connection)
            if not present and "table_damaged" not in self._problems:
                if names_nothing(connection):
                    raise ReadError("the database cannot be read: the list of its tables is lost")
                raise ReadError("this database is no export of nsys: it has none of its tables")
            for table in self._tables:
                # Most names of ranges are never looked at, so they are not decoded either.
                connection.text_factory = bytes if table == nvtx_schema.RANGES else decoded
                for chunk in self._chunks(connection, table, present):
                    self.rows_seen += len(chunk)
                    yield from _batches(table, chunk)
            if not present:
                raise ReadError("the database cannot be read: none of its tables can be")

    def _chunks(
        self, connection: sqlite3.Connection, table: str, present: Mapping[str, Sequence[str]]
    ) -> Iterator[Rows]:
        """The rows of `table`; of a damaged one those before and behind the damage."""
        try:
            for query in self._queries(table, present):
                try:
                    yield from table_chunks(connection, query)
                except LostRowsError:
                    if table != nvtx_schema.STRINGS:
                        raise
                    # Asked for were those that other tables speak of, and one of these may be
                    # damaged.
                    yield from table_chunks(connection, TableQuery(table, query.columns))
                    return
            if table in present:
                check(connection, table)
        except LostRowsError as error:
            self.damaged.add(table)
            example = f"{table} has lost {error.lost}: {error}"
            self._problems.add("table_damaged", "warning", example=example)
        except sqlite3.DatabaseError as error:
            self._lose(table, str(error))

    def _present(self, connection: sqlite3.Connection) -> dict[str, Sequence[str]]:
        """The tables that are there, with the names of their columns."""
        present: dict[str, Sequence[str]] = {}
        for table in self._tables:
            try:
                names = columns(connection, table)
            except sqlite3.DatabaseError as error:
                self._lose(table, str(error))
            else:
                if names:
                    present[table] = names
        return present

    def _lose(self, table: str, why: str) -> None:
        self.damaged.add(table)
        self._problems.add("table_damaged", "warning", example=f"{table}: {why}")

    def _queries(self, table: str, present: Mapping[str, Sequence[str]]) -> Iterator[TableQuery]:
        """What is asked for of `table`: rows that nobody needs never leave the database."""
        names = present.get(table, ())
        missing = [name for name in rows.NEEDED.get(table, ()) if name not in names]
        if not names:
            return
        if missing:
            self.damaged.add(table)
            example = f"{table} has no column {missing[0]}"
            self._problems.add("column_missing", "warning", len(missing), example=example)
            return
        # A column that this version of nsys does not write is null.
        wanted = [_bounded(name) if name in names else "NULL" for name in rows.COLUMNS[table]]
        for condition in _conditions(table, present):
            yield TableQuery(table, ", ".join(wanted), condition)


def _bounded(name: str) -> str:
    """A column such that no value of it is large, whatever was put there: any column of SQLite can
    hold anything. Numbers that are text are numbers, and all else that is not null is a text.
    """
    own = quoted(name)
    if name in _TEXTS:
        return f"CASE typeof({own}) WHEN 'text' THEN substr({own}, 1, {LONGEST_NAME}) END"
    return (
        f"CASE typeof({own}) WHEN 'integer' THEN {own} WHEN 'real' THEN {own} WHEN 'null' THEN NULL"
        f" WHEN 'text' THEN CASE WHEN {own} GLOB '[0-9]*' AND {own} NOT GLOB '*[^0-9]*' "
        f"THEN CAST({own} AS INTEGER) ELSE '?' END ELSE '?' END"
    )


def _conditions(table: str, present: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if table == nvtx_schema.RANGES:
        kinds = ", ".join(map(str, (*nvtx_schema.RANGE_KINDS, nvtx_schema.DOMAIN_KIND)))
        # In a column without a type a number may stand as text, which is equal to no number.
        yield f""""eventType" IN ({kinds}) OR typeof("eventType") <> 'integer'"""
    elif table == nvtx_schema.STRINGS:
        # One after the other: a table that breaks off must not cost the names of another.
        for owner, name in _USES:
            if name in present.get(owner, ()):
                used = f"SELECT CAST({quoted(name)} AS INTEGER) FROM {quoted(owner)}"
                yield f'"id" IN ({used})'
    elif table in (nvtx_schema.CAPTURE, nvtx_schema.SYSTEM, nvtx_schema.EXPORT):
        yield f"{_named(table)} AND length(value) < {_LONGEST_VALUE}"
    else:
        yield "TRUE"


def _named(table: str) -> str:
    """The rows whose values may be read at all; see `nvtx_environment`."""
    conditions = [f"name = '{name}'" for name in environment.wanted_names(table)]
    if table == nvtx_schema.CAPTURE:
        # Only whole numbers, with or without quotes around them.
        assigned = " OR ".join(
            f"(value LIKE '{name}=%' AND trim(substr(value, {len(name) + 2}), '\"0123456789') = '')"
            for name in environment.VARIABLES
        )
        conditions += [
            f"(name LIKE 'PROCESS\\_%:ENVIRONMENT\\_VARIABLE' ESCAPE '\\' AND ({assigned}))",
            "(name LIKE 'PROCESS\\_%:PID' ESCAPE '\\' AND trim(value, '0123456789') = '')",
        ]
    return f"({' OR '.join(conditions)})"


def _batches(table: str, chunk: Sequence[tuple[object, ...]]) -> Iterator[Batch]:
    by_column = list(zip(*chunk, strict=True))
    if table == nvtx_schema.RANGES:
        starts, stops, kinds, threads, domains, texts, text_ids = by_column
        yield Ranges(
            column(starts),
            ends(stops),
            column(kinds),
            column(threads),
            column(domains),
            EncodedTexts(texts),
            column(text_ids),
            are_operators(texts),
        )
    elif table == nvtx_schema.STRINGS:
        known = [
            (number, value)
            for number, value in chunk
            if isinstance(number, int) and isinstance(value, str)
        ]
        yield Strings([number for number, _ in known], [value for _, value in known])
    elif table in rows.ACTIVITY:
        yield _work(table, by_column)
    elif table in (nvtx_schema.DETAILS, nvtx_schema.SESSION):
        for row in chunk:
            for fact, given in zip(rows.COLUMNS[table], row, strict=True):
                said = whole(given)
                if said is not None:
                    yield Fact(fact, said)
    else:
        for name, value in chunk:
            yield from environment.facts_in(table, name, value)


def _work(table: str, by_column: Sequence[Sequence[object]]) -> Work:
    starts, stops, devices, processes, *names = by_column
    chosen: Sequence[object] = [None] * len(starts)
    if table == nvtx_schema.KERNEL:
        chosen = [short if long is None else long for long, short in zip(*names, strict=True)]
    elif table == nvtx_schema.MEMCPY:
        (chosen,) = names
    return Work(
        table, column(starts), column(stops), column(devices), column(processes), column(chosen)
    )
