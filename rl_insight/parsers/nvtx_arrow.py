"""Rows of an nsys export as a folder of Parquet or Arrow files, one per table
(`nsys export --type parquetdir`, `--type arrowdir`).
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rl_insight.errors import ReadError
from rl_insight.intervals import IntArray
from rl_insight.parsers import nvtx_environment as environment
from rl_insight.parsers import nvtx_rows as rows
from rl_insight.parsers import nvtx_schema
from rl_insight.parsers.nvtx_rows import (
    LONGEST_NAME,
    MISSING,
    UNREADABLE,
    Batch,
    Fact,
    Ranges,
    Strings,
    Work,
)
from rl_insight.problems import Problems
from rl_insight.readers.arrow_columns import are_text, integers, matching, nulls, texts
from rl_insight.readers.arrow_folder import batches


class ArrowRows:
    """Reads the files of one export once; `files` maps a table to its file.

    `rows_seen` counts the rows that were read. `problems` gets `table_damaged` where a file breaks
    off or cannot be read, and `column_missing` where a column that is needed is not there.
    Iterating raises ReadError when no file can be read.
    """

    def __init__(self, files: Mapping[str, Path], problems: Problems) -> None:
        self._files = files
        self._problems = problems
        self._incomplete: set[str] = set()
        self._table = ""
        self.rows_seen = 0
        self.damaged: set[str] = set()

    @property
    def tabled(self) -> int:
        """How many rows are of a table: all."""
        return self.rows_seen

    def __iter__(self) -> Iterator[Batch]:
        damaged: list[ReadError] = []
        for table in nvtx_schema.TABLES:
            if table not in self._files:
                continue
            self._table = table
            try:
                for batch in batches(self._files[table], rows.COLUMNS[table], self._lose):
                    self.rows_seen += batch.num_rows
                    yield from self._batches(table, _Columns(batch, table, self._problems))
            except ReadError as error:
                damaged.append(error)
            except pa.ArrowException as error:
                damaged.append(ReadError(f"{table} cannot be read: {_first_line(error)}"))
            else:
                continue
            self._lose(str(damaged[-1]))
        if damaged and not self.rows_seen:
            raise damaged[0]

    def _lose(self, what: str) -> None:
        self.damaged.add(self._table)
        self._problems.add("table_damaged", "warning", example=what)

    def _batches(self, table: str, batch: "_Columns") -> Iterator[Batch]:
        missing = [name for name in rows.NEEDED.get(table, ()) if name not in batch]
        if missing:
            if table not in self._incomplete:
                self._incomplete.add(table)
                self.damaged.add(table)
                example = f"{table} has no column {missing[0]}"
                self._problems.add("column_missing", "warning", len(missing), example=example)
        elif table == nvtx_schema.RANGES:
            yield _ranges(batch)
        elif table == nvtx_schema.STRINGS:
            yield _strings(batch)
        elif table in rows.ACTIVITY:
            yield _work(table, batch)
        elif table in (nvtx_schema.DETAILS, nvtx_schema.SESSION):
            yield from _values(table, batch)
        else:
            yield from _named(table, batch)


class _Columns:
    """The columns of one batch by name; one that is not there is null."""

    def __init__(self, batch: pa.RecordBatch, table: str, problems: Problems) -> None:
        self._batch = batch
        self._table = table
        self._problems = problems

    def __contains__(self, name: str) -> bool:
        return name in self._batch.schema.names

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def numbers(self, name: str) -> IntArray:
        if name not in self:
            return np.full(len(self), MISSING, np.int64)
        try:
            return integers(self._batch.column(name), MISSING)
        except ReadError as error:
            self._lose(name, str(error))
            return np.full(len(self), MISSING, np.int64)

    def ends(self) -> IntArray:
        """When ranges ended: UNREADABLE where there is something that is no number."""
        found = self.numbers("end")
        odd = found == MISSING
        if odd.any() and "end" in self:
            odd &= ~nulls(self._batch.column("end"))
            found = np.where(odd, UNREADABLE, found)
        return found

    def texts(self, name: str) -> list[str | None]:
        if name not in self:
            return [None] * len(self)
        column = self._batch.column(name)
        if not are_text(column):
            self._lose(name, f"it holds {column.type}, not text")
        # As many bytes as that many characters can have.
        return texts(column, 4 * LONGEST_NAME)

    def matching(
        self, name: str, pattern: str, *, ignore_case: bool = False
    ) -> npt.NDArray[np.bool_]:
        """Which texts of a column `pattern` is found in."""
        try:
            return matching(self._batch.column(name), pattern, ignore_case=ignore_case)
        except ReadError as error:
            self._lose(name, str(error))
            return np.zeros(len(self), dtype=bool)

    def where(self, chosen: npt.NDArray[np.bool_]) -> "_Columns":
        return _Columns(self._batch.take(_positions(chosen)), self._table, self._problems)

    def _lose(self, name: str, why: str) -> None:
        """Count a column that cannot be used: it is read as null, and costs no other."""
        example = f"the column {name} of {self._table} cannot be used: {why}"
        self._problems.add("column_odd", "warning", len(self), example=example)


def _positions(chosen: npt.NDArray[np.bool_]) -> pa.Array:
    at = np.flatnonzero(chosen)
    return pa.Array.from_buffers(pa.int64(), len(at), [None, pa.py_buffer(at)])


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


def _ranges(batch: _Columns) -> Ranges:
    return Ranges(
        batch.numbers("start"),
        batch.ends(),
        batch.numbers("eventType"),
        batch.numbers("globalTid"),
        batch.numbers("domainId"),
        batch.texts("text"),
        batch.numbers("textId"),
    )


def _strings(batch: _Columns) -> Strings:
    known = [
        (number, value)
        for number, value in zip(batch.numbers("id").tolist(), batch.texts("value"), strict=True)
        if number != MISSING and value is not None
    ]
    return Strings([number for number, _ in known], [value for _, value in known])


def _work(table: str, batch: _Columns) -> Work:
    names = batch.numbers("copyKind" if table == nvtx_schema.MEMCPY else "demangledName")
    if table == nvtx_schema.KERNEL:
        names = np.where(names == MISSING, batch.numbers("shortName"), names)
    return Work(
        table,
        batch.numbers("start"),
        batch.numbers("end"),
        batch.numbers("deviceId"),
        batch.numbers("globalPid"),
        names,
    )


def _values(table: str, batch: _Columns) -> Iterator[Fact]:
    for name in rows.COLUMNS[table]:
        for value in batch.numbers(name).tolist():
            if value != MISSING:
                yield Fact(name, value)


def _named(table: str, batch: _Columns) -> Iterator[Fact]:
    """What the rows say whose values may be read; the others never become text."""
    named = "|".join(map(re.escape, environment.wanted_names(table)))
    allowed = batch.matching("name", f"^({named})$" if named else "^$")
    if table == nvtx_schema.CAPTURE:
        assigned = batch.matching("value", environment.ASSIGNMENT, ignore_case=True)
        counted = batch.matching("value", environment.NUMBER)
        allowed |= batch.matching("name", environment.VARIABLE_ROW) & assigned
        allowed |= batch.matching("name", environment.PID_ROW) & counted
    chosen = batch.where(allowed)
    for name, value in zip(chosen.texts("name"), chosen.texts("value"), strict=True):
        yield from environment.facts_in(table, name, value)
