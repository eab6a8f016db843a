"""Rows of an nsys export as a folder of Parquet or Arrow files, one per table
(`nsys export --type parquetdir`, `--type arrowdir`).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rl_insight.errors import ReadError
from rl_insight.intervals import IntArray
from rl_insight.parsers import nvtx_environment as environment
from rl_insight.parsers import nvtx_rows as rows
from rl_insight.parsers.nvtx_rows import MISSING, Batch, Fact, Ranges, Strings, Work
from rl_insight.problems import Problems
from rl_insight.readers.arrow_folder import batches, integers, texts


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
        self.rows_seen = 0

    @property
    def tabled(self) -> int:
        """How many rows are of a table: all."""
        return self.rows_seen

    def __iter__(self) -> Iterator[Batch]:
        damaged: list[ReadError] = []
        for table in rows.TABLES:
            if table not in self._files:
                continue
            try:
                for batch in batches(self._files[table], rows.COLUMNS[table]):
                    self.rows_seen += batch.num_rows
                    yield from self._batches(table, _Columns(batch))
            except ReadError as error:
                damaged.append(error)
                self._problems.add("table_damaged", "warning", example=str(error))
        if damaged and not self.rows_seen:
            raise damaged[0]

    def _batches(self, table: str, batch: "_Columns") -> Iterator[Batch]:
        missing = [name for name in rows.NEEDED.get(table, ()) if name not in batch]
        if missing:
            if table not in self._incomplete:
                self._incomplete.add(table)
                example = f"{table} has no column {missing[0]}"
                self._problems.add("column_missing", "warning", len(missing), example=example)
        elif table == rows.RANGES:
            yield _ranges(batch)
        elif table == rows.STRINGS:
            yield _strings(batch)
        elif table in rows.ACTIVITY:
            yield _work(table, batch)
        elif table in (rows.DETAILS, rows.SESSION):
            yield from _values(table, batch)
        else:
            yield from _named(table, batch)


class _Columns:
    """The columns of one batch by name; one that is not there is null."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def __contains__(self, name: str) -> bool:
        return name in self._batch.schema.names

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def numbers(self, name: str) -> IntArray:
        if name not in self:
            return np.full(len(self), MISSING, np.int64)
        return integers(self._batch.column(name), MISSING)

    def texts(self, name: str) -> list[str | None]:
        return texts(self._batch.column(name)) if name in self else [None] * len(self)

    def where(self, mask: pa.Array) -> "_Columns":
        return _Columns(self._batch.filter(mask))

    def plain(self, name: str) -> pa.Array:
        """A column of text as Arrow holds it."""
        return self._batch.column(name).cast(pa.string())


def _ranges(batch: _Columns) -> Ranges:
    return Ranges(
        batch.numbers("start"),
        batch.numbers("end"),
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
    names = batch.numbers("copyKind" if table == rows.MEMCPY else "demangledName")
    if table == rows.KERNEL:
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
    if "name" not in batch or "value" not in batch:
        return
    name, value = batch.plain("name"), batch.plain("value")
    allowed = pc.is_in(name, value_set=_strings_of(environment.wanted_names(table)))
    if table == rows.CAPTURE:
        variable = pc.match_substring_regex(name, environment.VARIABLE_ROW)
        assigned = pc.match_substring_regex(value, environment.ASSIGNMENT, ignore_case=True)
        process = pc.match_substring_regex(name, environment.PID_ROW)
        counted = pc.match_substring_regex(value, environment.NUMBER)
        for more in (pc.and_kleene(variable, assigned), pc.and_kleene(process, counted)):
            allowed = pc.or_kleene(allowed, more)
    # A row without a name or a value is dropped by the filter: `fill_null` would import pandas.
    chosen = batch.where(allowed)
    for one, said in zip(chosen.texts("name"), chosen.texts("value"), strict=True):
        yield from environment.facts_in(table, one, said)


def _strings_of(values: list[str]) -> pa.Array:
    builder = pa.lib.StringBuilder()
    for value in values:
        builder.append(value)
    return builder.finish()
