"""Writing a run's tables bit by bit, in bounded memory; all of them appear, or none does."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from rl_insight import tables
from rl_insight.files import replacing
from rl_insight.schema import SCHEMAS

ROW_GROUP = 65_536
"""Rows of a row group: enough that a reader hardly notices that there are several."""

# Columns with a value of its own in nearly every row: Parquet would try a dictionary in vain.
_UNIQUE = ("span_id", "_ns")


class TableWriter:
    """Appends rows to one table that `tables.read` reads, in row groups of ROW_GROUP.

    What the schema of the first rows tells besides the columns stands in the file.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        self._file = file
        self._schema = schema
        self._held: list[pa.Table] = []
        self._rows = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, table: pa.Table) -> None:
        """Append the rows of `table`, which must have the schema."""
        if self._writer is None and not self._held:
            self._schema = table.schema
        self._held.append(table)
        self._rows += table.num_rows
        if self._rows >= ROW_GROUP:
            self._write(self._rows - self._rows % ROW_GROUP)

    def finish(self) -> None:
        """Write what is left, and the end of the file."""
        self._write(self._rows)
        self.end()

    def end(self) -> None:
        """Write no more rows, also where some are left."""
        if self._writer is not None:
            self._writer.close()

    def _write(self, rows: int) -> None:
        content = tables.concat(self._schema, self._held)
        if self._writer is None:
            repeated = [name for name in self._schema.names if not name.endswith(_UNIQUE)]
            self._writer = pq.ParquetWriter(
                self._file, self._schema, compression="zstd", use_dictionary=repeated
            )
        self._writer.write_table(content.slice(0, rows), row_group_size=ROW_GROUP)
        self._held, self._rows = [content.slice(rows)], self._rows - rows


@contextlib.contextmanager
def writing(folder: Path, names: Iterable[str]) -> Iterator[dict[str, TableWriter]]:
    """A writer for each table of `names` in `folder`, by name.

    When all went well the files appear, or replace what was there; else nothing changes.
    """
    with contextlib.ExitStack() as complete:
        complete.enter_context(_folder(folder))
        writers: dict[str, TableWriter] = {}
        with contextlib.ExitStack() as files:
            for name in names:
                temporary = complete.enter_context(replacing(folder / f"{name}.parquet"))
                file = files.enter_context(temporary.open("wb"))
                writers[name] = TableWriter(file, SCHEMAS[name])
                files.callback(writers[name].end)
            yield writers
            for writer in writers.values():
                writer.finish()


@contextlib.contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """Make `folder` where there is none, and take it away again when nothing came of it."""
    there = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        if not there:
            # One that holds anything is not removed.
            with contextlib.suppress(OSError):
                folder.rmdir()
