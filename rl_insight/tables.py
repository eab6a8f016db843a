"""Columns to Parquet and back, without pandas.

`pa.array`, `pa.table` and `to_pylist` import pandas where it is installed, which costs a parse job
0.4 s and 50 MB. So columns are built from buffers here, and files are read by `ParquetFile`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rl_insight.files import replacing

Column = Sequence[object] | np.ndarray

_NUMPY_OF = {pa.int64(): np.int64, pa.int32(): np.int32}


def table(schema: pa.Schema, columns: Mapping[str, Column]) -> pa.Table:
    """A table of `schema` from equally long `columns`; a column that is not given is null.

    Raises ValueError for columns that the schema does not know or that differ in length.
    """
    unknown = set(columns) - set(schema.names)
    if unknown:
        raise ValueError(f"no such column: {', '.join(sorted(unknown))}")
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"columns differ in length: {sorted(lengths)}")
    rows = lengths.pop() if lengths else 0
    arrays = [
        _array(columns[field.name], field.type)
        if field.name in columns
        else _nulls(rows, field.type)
        for field in schema
    ]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, schema=schema)])


def from_rows(schema: pa.Schema, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """A table of `schema` from a few row mappings; keys that a row lacks are null."""
    return table(schema, {name: [row.get(name) for row in rows] for name in schema.names})


def empty(schema: pa.Schema) -> pa.Table:
    """A table of `schema` with no rows."""
    return table(schema, {})


def write(path: Path, content: pa.Table) -> None:
    """Write `content` as zstd Parquet; the file appears whole or not at all."""
    with replacing(path) as temporary:
        pq.write_table(content, temporary, compression="zstd")


def read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file, or only `columns` of it."""
    with pq.ParquetFile(path) as file:
        return file.read(columns=list(columns) if columns is not None else None)


def concat(schema: pa.Schema, tables: Iterable[pa.Table]) -> pa.Table:
    """One table of `schema` from many, dictionaries unified."""
    parts = [part for part in tables if part.num_rows]
    if not parts:
        return empty(schema)
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def _array(values: Column, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return _dictionary(values, kind)
    if pa.types.is_string(kind):
        return _strings(values)
    if kind in _NUMPY_OF:
        return _integers(values, kind)
    if pa.types.is_boolean(kind):
        return _booleans(values)
    if pa.types.is_list(kind):
        return _lists(values, kind)
    if pa.types.is_struct(kind):
        return _structs(values, kind)
    raise TypeError(f"no column builder for {kind}")


def _nulls(rows: int, kind: pa.DataType) -> pa.Array:
    return pa.nulls(rows, kind)


def _bitmap(flags: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little").tobytes())


def _validity(values: Column) -> tuple[pa.Buffer | None, int]:
    valid = np.fromiter((value is not None for value in values), dtype=bool, count=len(values))
    missing = int(len(values) - valid.sum())
    return (_bitmap(valid) if missing else None), missing


def _integers(values: Column, kind: pa.DataType) -> pa.Array:
    target = _NUMPY_OF[kind]
    if isinstance(values, np.ndarray):
        data = np.ascontiguousarray(values, dtype=target)
        return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(data)])
    validity, missing = _validity(values)
    data = np.fromiter((0 if v is None else v for v in values), dtype=target, count=len(values))
    return pa.Array.from_buffers(kind, len(data), [validity, pa.py_buffer(data)], missing)


def _booleans(values: Column) -> pa.Array:
    validity, missing = _validity(values)
    flags = np.fromiter((bool(value) for value in values), dtype=bool, count=len(values))
    return pa.Array.from_buffers(pa.bool_(), len(flags), [validity, _bitmap(flags)], missing)


def _strings(values: Column) -> pa.Array:
    builder = pa.lib.StringBuilder()
    for value in values:
        # A lone surrogate (a file name that is not UTF-8) cannot be stored: show it replaced.
        builder.append(
            None if value is None else str(value).encode("utf-8", "replace").decode("utf-8")
        )
    return builder.finish()


def _dictionary(values: Column, kind: pa.DataType) -> pa.Array:
    position: dict[object, int] = {}
    codes = [
        None if value is None else position.setdefault(value, len(position)) for value in values
    ]
    return pa.DictionaryArray.from_arrays(
        _integers(codes, kind.index_type), _strings(list(position))
    )


def _lists(values: Column, kind: pa.DataType) -> pa.Array:
    validity, missing = _validity(values)
    lengths = [0 if value is None else len(value) for value in values]  # type: ignore[arg-type]
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    flat = [item for value in values if value is not None for item in value]  # type: ignore[attr-defined]
    child = _array(flat, kind.value_type)
    return pa.Array.from_buffers(
        kind, len(lengths), [validity, pa.py_buffer(offsets)], missing, children=[child]
    )


def _structs(values: Column, kind: pa.DataType) -> pa.Array:
    children = [
        _array([_member(value, kind.field(i).name) for value in values], kind.field(i).type)
        for i in range(kind.num_fields)
    ]
    return pa.Array.from_buffers(kind, len(values), [None], 0, children=children)


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name)
