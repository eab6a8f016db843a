"""A folder with one Parquet or Arrow file per table, read by columns, some rows at a time.

Columns come as numpy arrays and lists, made from Arrow's buffers: `to_pylist` and `to_numpy` import
pandas where it is installed, which a parse job has no use for.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rl_insight.errors import ReadError
from rl_insight.intervals import IntArray

PARQUET_MAGIC = b"PAR1"
ARROW_FILE_MAGIC = b"ARROW1"

_BATCH_ROWS = 65_536


def batches(path: Path, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of the table in the file at `path`, with those of the columns `wanted` that it has.

    Parquet, Arrow IPC file or Arrow IPC stream, told by the first bytes.
    Raises ReadError where the file cannot be read on; the batches before that are good.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(ARROW_FILE_MAGIC))
            file.seek(0)
            yield from _opened(file, head, wanted)
    except MemoryError as error:
        # Batches are small: only a damaged length asks for more than there is.
        raise ReadError(f"{path.name} cannot be read: damaged ({error})") from error
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ReadError(f"{path.name} cannot be read: {reason}") from error


def _opened(file: object, head: bytes, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if head.startswith(PARQUET_MAGIC):
        with pq.ParquetFile(file) as parquet:
            present = [name for name in wanted if name in parquet.schema_arrow.names]
            yield from parquet.iter_batches(_BATCH_ROWS, columns=present)
    elif head.startswith(ARROW_FILE_MAGIC):
        with pa.ipc.open_file(file) as arrow:
            for number in range(arrow.num_record_batches):
                yield _selected(arrow.get_batch(number), wanted)
    elif head:
        with pa.ipc.open_stream(file) as stream:
            for batch in stream:
                yield _selected(batch, wanted)
    else:
        raise EOFError("it is empty: its writer was killed")


def _selected(batch: pa.RecordBatch, wanted: Sequence[str]) -> pa.RecordBatch:
    # The buffers come as they stand in the file, and nobody checked those.
    batch.validate(full=True)
    return batch.select([name for name in wanted if name in batch.schema.names])


def integers(column: pa.Array, missing: int) -> IntArray:
    """A column of numbers as int64, with `missing` where it is null.

    Raises ReadError for a column of another kind, or with a number that int64 cannot hold.
    """
    column = _decoded(column)
    if pa.types.is_null(column.type):
        return np.full(len(column), missing, np.int64)
    if not pa.types.is_integer(column.type):
        raise ReadError(f"a column of whole numbers holds {column.type}")
    try:
        column = column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise ReadError(f"a column holds a number that is too large: {error}") from error
    values = np.frombuffer(column.buffers()[1] or b"", np.int64)
    values = values[column.offset : column.offset + len(column)]
    if column.null_count:
        values = np.where(_valid(column), values, missing)
    return values


def texts(column: pa.Array) -> list[str | None]:
    """A column of text; None where it is null, and everywhere for a column of another kind."""
    column = _decoded(column)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return [None] * len(column)
    wide = pa.types.is_large_string(column.type)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets or b"", np.int64 if wide else np.int32)
    ends = ends[column.offset : column.offset + len(column) + 1].tolist()
    raw = memoryview(data or b"")
    result: list[str | None] = [
        str(raw[start:end], "utf-8", "replace") for start, end in pairwise(ends)
    ]
    if column.null_count:
        for at in np.flatnonzero(~_valid(column)).tolist():
            result[at] = None
    return result


def _valid(column: pa.Array) -> np.ndarray:
    bits = np.frombuffer(column.buffers()[0], np.uint8)
    whole = np.unpackbits(bits, bitorder="little")[column.offset : column.offset + len(column)]
    return whole.astype(bool)


def _decoded(column: pa.Array) -> pa.Array:
    if isinstance(column, pa.DictionaryArray):
        return column.dictionary_decode()
    return column
