"""Columns to Parquet and back, without pandas.

`pa.array`, `pa.table` and `to_pylist` import pandas where it is installed, which costs a parse job
0.4 s and 50 MB. So columns are built from buffers here, and files are read by `ParquetFile`.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rl_insight.files import replacing

Column = Sequence[object] | np.ndarray

_NUMPY_OF: dict[pa.DataType, type[np.signedinteger]] = {pa.int64(): np.int64, pa.int32(): np.int32}
_LONGEST = 2**31 - 1


def table(schema: pa.Schema, columns: Mapping[str, Column]) -> pa.Table:
    """A table of `schema` from equally long `columns`; a column that is not given is null.

    Raises ValueError for columns that the schema does not know or that differ in length, and for a
    value that its column cannot hold: it is never cut, wrapped or guessed.
    """
    unknown = set(columns) - set(schema.names)
    if unknown:
        raise ValueError(f"no such column: {', '.join(sorted(unknown))}")
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"columns differ in length: {sorted(lengths)}")
    rows = lengths.pop() if lengths else 0
    arrays = [
        _column(field, columns[field.name]) if field.name in columns else pa.nulls(rows, field.type)
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
    # Arrow takes a path only as UTF-8 text, and a folder may be called anything: open it here.
    with replacing(path) as temporary, open(temporary, "wb") as file:
        pq.write_table(content, file, compression="zstd")


@contextlib.contextmanager
def opened(path: Path) -> Iterator[pq.ParquetFile]:
    """A Parquet file to read bit by bit: with `use_threads=False`, always.

    A thread of Arrow that holds the last of a file opened by Python waits for the interpreter, and
    ends the process with SIGABRT when that goes down first.
    Raises OSError or ValueError when it cannot be opened or is no sound Parquet.
    """
    with open(path, "rb") as stream, pq.ParquetFile(stream, pre_buffer=False) as file:
        yield file


def read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file, or only `columns` of it. Raises as `opened` does."""
    with opened(path) as file:
        content = file.read(list(columns) if columns is not None else None, use_threads=False)
    # Each row group has a dictionary of its own, and Arrow does not group by several.
    return content.unify_dictionaries()


def concat(schema: pa.Schema, tables: Iterable[pa.Table]) -> pa.Table:
    """One table of `schema` from many, or from many parts; dictionaries are unified."""
    parts = [part for part in tables if part.num_rows]
    if not parts:
        return empty(schema)
    joined = pa.concat_tables(parts, promote_options="default")
    joined = joined.unify_dictionaries().combine_chunks()
    if joined.schema.equals(schema):
        return joined
    return pa.Table.from_arrays([_completed(joined, field) for field in schema], schema=schema)


def _completed(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    if field.name not in table.schema.names:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    column = table[field.name]
    return column.dictionary_encode() if pa.types.is_dictionary(field.type) else column


def _column(field: pa.Field, values: Column) -> pa.Array:
    try:
        return _array(values, field.type)
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"column {field.name} ({field.type}): {error}") from error


def _array(values: Column, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return _dictionary(values, kind)
    if pa.types.is_string(kind):
        return _strings(values)
    if kind in _NUMPY_OF:
        return _integers(values, kind)
    if pa.types.is_float64(kind):
        return _floats(values)
    if pa.types.is_boolean(kind):
        return _booleans(values)
    if pa.types.is_list(kind):
        return _lists(values, kind)
    if pa.types.is_struct(kind):
        return _structs(values, kind)
    raise TypeError(f"no column builder for {kind}")


def _bitmap(flags: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little").tobytes())


def _validity(values: Column) -> tuple[pa.Buffer | None, int]:
    valid = np.fromiter((value is not None for value in values), dtype=bool, count=len(values))
    missing = int(len(values) - valid.sum())
    return (_bitmap(valid) if missing else None), missing


def _integers(values: Column, kind: pa.DataType) -> pa.Array:
    target = _NUMPY_OF[kind]
    if isinstance(values, np.ndarray):
        validity, missing, given = None, 0, values
    else:
        validity, missing = _validity(values)
        # Without a given type numpy tells what is in there; with one it would cut decimals off.
        given = np.array([0 if value is None else value for value in values])
    if given.size and not _all_fit(given, target):
        wrong = next((value for value in values if not _fits(value, target)), values)
        raise ValueError(f"{wrong!s:.100} is no whole number that it can hold")
    data = np.ascontiguousarray(given, dtype=target)
    return pa.Array.from_buffers(kind, len(data), [validity, pa.py_buffer(data)], missing)


def _all_fit(values: np.ndarray, target: type[np.signedinteger]) -> bool:
    if values.dtype == target:
        return values.ndim == 1
    limits = np.iinfo(target)
    return (
        values.ndim == 1
        and values.dtype.kind in "iu"
        and int(values.min()) >= limits.min
        and int(values.max()) <= limits.max
    )


def _fits(value: object, target: type[np.signedinteger]) -> bool:
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    limits = np.iinfo(target)
    return limits.min <= int(value) <= limits.max


def _floats(values: Column) -> pa.Array:
    validity, missing = _validity(values)
    for value in values:
        if value is not None and not isinstance(value, float | int | np.floating):
            raise ValueError(f"{value!s:.100} is no number")
    data = np.array([0.0 if value is None else value for value in values], dtype=np.float64)
    return pa.Array.from_buffers(pa.float64(), len(data), [validity, pa.py_buffer(data)], missing)


def _booleans(values: Column) -> pa.Array:
    validity, missing = _validity(values)
    for value in values:
        if value is not None and not isinstance(value, bool | np.bool_):
            raise ValueError(f"{value!s:.100} is neither true nor false")
    flags = np.fromiter((bool(value) for value in values), dtype=bool, count=len(values))
    return pa.Array.from_buffers(pa.bool_(), len(flags), [validity, _bitmap(flags)], missing)


def _strings(values: Iterable[object]) -> pa.Array:
    builder = pa.lib.StringBuilder()
    for value in values:
        builder.append(None if value is None else _storable(value))
    return builder.finish()


def _storable(value: object) -> str:
    """The text of `value`; a lone surrogate (of a file name that is not UTF-8) is shown as `?`."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _dictionary(values: Column, kind: pa.DataType) -> pa.Array:
    position: dict[object, int] = {}
    codes = [
        None if value is None else position.setdefault(value, len(position)) for value in values
    ]
    texts = [_storable(value) for value in position]
    place = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    if len(place) < len(texts):
        # Two values that cannot be told apart once stored: a dictionary names each text once.
        codes = [None if code is None else place[texts[code]] for code in codes]
    return pa.DictionaryArray.from_arrays(_integers(codes, kind.index_type), _strings(place))


def _lists(values: Column, kind: pa.DataType) -> pa.Array:
    validity, missing = _validity(values)
    lengths = [0 if value is None else len(value) for value in values]  # type: ignore[arg-type]
    if sum(lengths) > _LONGEST:
        raise ValueError(f"{sum(lengths)} items in all, at most {_LONGEST} can be held")
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    child = _array(_joined(values), kind.value_type)
    return pa.Array.from_buffers(
        kind, len(lengths), [validity, pa.py_buffer(offsets)], missing, children=[child]
    )


def _joined(lists: Column) -> Column:
    """All items of `lists` one after the other."""
    given = [one for one in lists if one is not None]
    arrays = [one for one in given if isinstance(one, np.ndarray)]
    if arrays and len(arrays) == len(given):
        return np.concatenate(arrays)
    return [item for one in given for item in one]  # type: ignore[union-attr]


def _structs(values: Column, kind: pa.DataType) -> pa.Array:
    validity, missing = _validity(values)
    children = [
        _array([_member(value, kind.field(i).name) for value in values], kind.field(i).type)
        for i in range(kind.num_fields)
    ]
    return pa.Array.from_buffers(kind, len(values), [validity], missing, children=children)


def _member(value: object, name: str) -> object:
    if value is None:
        return None
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name)
