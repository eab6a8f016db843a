"""Typed access to the columns of one Parquet table, for drawing."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rl_insight import tables
from rl_insight.errors import CacheError


class Columns:
    """A table's columns as Python lists and numpy arrays, all of them `len(self)` long."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def schema(self) -> pa.Schema:
        """The table's schema, with its metadata."""
        return self._table.schema

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def where(self, mask: np.ndarray) -> "Columns":
        """The rows where the boolean `mask` holds."""
        return Columns(self._table.take(pa.array(np.flatnonzero(mask))))

    def strings(self, name: str) -> list[str | None]:
        """A text column; dictionaries are decoded."""
        values: list[str | None] = self._table[name].to_pylist()
        return values

    def optional(self, name: str) -> list[int | None]:
        """An integer column whose nulls are None."""
        values: list[int | None] = self._table[name].to_pylist()
        return values

    def structs(self, name: str) -> list[list[dict[str, object]]]:
        """A column of lists of structs; null is an empty list."""
        return [value or [] for value in self._table[name].to_pylist()]

    def rows(self) -> list[dict[str, object]]:
        """All rows as dictionaries: for tables of captures and files, not of spans."""
        found: list[dict[str, object]] = self._table.to_pylist()
        return found

    def integers(self, name: str, unknown: int) -> np.ndarray:
        """An integer column as int64, nulls replaced by `unknown`."""
        filled = pc.fill_null(pc.cast(self._table[name], pa.int64()), unknown)
        return np.asarray(filled.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.int64)

    def decimals(self, name: str) -> list[float | None]:
        """A column of floats whose nulls are None."""
        values: list[float | None] = self._table[name].to_pylist()
        return values

    def coded(self, name: str) -> tuple[np.ndarray, list[str]]:
        """A text column as positions in its sorted distinct texts; null is one after the last."""
        column = pc.cast(self._table[name], pa.string()).combine_chunks().dictionary_encode()
        texts: list[str] = column.dictionary.to_pylist()
        order = sorted(range(len(texts)), key=texts.__getitem__)
        places = np.empty(len(texts) + 1, dtype=np.int64)
        places[[*order, len(texts)]] = np.arange(len(texts) + 1)
        codes = pc.fill_null(column.indices, len(texts)).to_numpy(zero_copy_only=False)
        return places[codes], [texts[at] for at in order]

    def among(self, name: str, texts: Sequence[str | None]) -> np.ndarray:
        """Where a text column holds one of `texts`."""
        wanted = pa.array([text for text in texts if text is not None], pa.string())
        found = pc.is_in(pc.cast(self._table[name], pa.string()), wanted).combine_chunks()
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)

    def flags(self, name: str) -> np.ndarray:
        """A boolean column, null being False."""
        filled = pc.fill_null(self._table[name], False)
        return np.asarray(filled.combine_chunks().to_numpy(zero_copy_only=False), dtype=bool)

    def present(self, name: str) -> np.ndarray:
        """Where the column is not null."""
        valid = pc.is_valid(self._table[name]).combine_chunks()
        return np.asarray(valid.to_numpy(zero_copy_only=False), dtype=bool)

    def filled(self, name: str) -> np.ndarray:
        """Where a column of lists holds at least one item."""
        lengths = pc.fill_null(pc.list_value_length(self._table[name]), 0).combine_chunks()
        return np.asarray(lengths.to_numpy(zero_copy_only=False)) > 0

    def positions(self, name: str, among: str) -> np.ndarray:
        """For each text of column `name` the row that holds it in column `among`, else -1."""
        rows = {text: row for row, text in enumerate(self.strings(among)) if text is not None}
        return np.array([rows.get(text or "", -1) for text in self.strings(name)], dtype=np.int64)


def read(folder: Path, name: str, schema: pa.Schema, columns: Sequence[str]) -> Columns:
    """`columns` of the table `name` in `folder`; no rows when the file is not there.

    Raises CacheError when it is damaged.
    """
    path = folder / f"{name}.parquet"
    if not path.exists():
        return Columns(tables.empty(schema).select(list(columns)))
    try:
        return Columns(tables.read(path, columns))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CacheError(f"{path}: damaged ({error}); delete it and run again") from error
