"""Writing one table of a cache folder bit by bit, in bounded memory."""

import contextlib
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from rl_insight import tables
from rl_insight.table_parts import write_part

# Held in memory before it is written as a row group, which takes several times as much. Most tables
# of a parse job never come to that.
_HELD_BYTES = 2_000_000


class PartWriter:
    """Collects tables of `schema` and leaves at `path` what `table_parts.read_part` reads.

    A context manager: the file is complete when it ends, and where it stands nobody looks before
    (a parse job writes into a temporary folder).
    """

    def __init__(self, path: Path, schema: pa.Schema, held_bytes: int = _HELD_BYTES) -> None:
        self._path = path
        self._schema = schema
        self._limit = held_bytes
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._open = contextlib.ExitStack()

    def add(self, table: pa.Table) -> None:
        """Append the rows of `table`, which must have the schema."""
        self._held.append(table)
        self._held_bytes += table.nbytes
        if self._held_bytes > self._limit:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._open:
            if error is not None:
                return
            if self._writer is None:
                write_part(self._path, tables.concat(self._schema, self._held))
            elif self._held:
                self._flush()

    def _flush(self) -> None:
        content = tables.concat(self._schema, self._held)
        self._held, self._held_bytes = [], 0
        if self._writer is None:
            file = self._open.enter_context(self._path.open("wb"))
            self._writer = self._open.enter_context(
                pq.ParquetWriter(
                    file,
                    self._schema,
                    compression="zstd",
                    write_statistics=False,
                    store_schema=False,
                )
            )
        self._writer.write_table(content)
