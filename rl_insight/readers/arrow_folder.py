"""A folder with one Parquet or Arrow file per table, read by columns, some rows at a time.

Columns come as numpy arrays and lists, made from Arrow's buffers: `to_pylist` and `to_numpy` import
pandas where it is installed, which a parse job has no use for.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rl_insight.errors import ReadError
from rl_insight.intervals import IntArray
from rl_insight.readers.parquet_footer import MAGIC as PARQUET_MAGIC
from rl_insight.readers.parquet_footer import Chunk, row_groups
from rl_insight.readers.parquet_pages import check_pages
from rl_insight.readers.pseudo_files import holds_bytes

ARROW_FILE_MAGIC = b"ARROW1"

_BATCH_ROWS: Final = 65_536
_BATCH_BYTES: Final = 16 << 20
_BUFFER_BYTES: Final = 1 << 20
_LIMIT: Final = float(2**63)
# Behind the magic of an IPC file, padded to 8 bytes.
_ARROW_STREAM: Final = 8
_DAMAGE: Final = (pa.ArrowException, OSError, EOFError, ValueError, MemoryError)


Lost = Callable[[str], None]
"""Is told of rows that are lost while others come: which, and why."""


def batches(path: Path, wanted: Sequence[str], lost: Lost) -> Iterator[pa.RecordBatch]:
    """The rows of the table in the file at `path`, with those of the columns `wanted` that it has.

    Parquet, Arrow IPC file or Arrow IPC stream, told by the first bytes. Damage inside costs only
    the row group or batch that it is in; `lost` is told of each.
    Raises ReadError where the file cannot be read on, or nothing of it can.
    """
    told: list[str] = []
    given = False
    try:
        with path.open("rb") as file:
            head = file.read(len(ARROW_FILE_MAGIC)) if holds_bytes(file) else b""
            file.seek(0)
            for batch in _opened(file, head, wanted, told.append):
                given = True
                yield batch
    except _DAMAGE as error:
        raise ReadError(f"{path.name} cannot be read: {_reason(error)}") from error
    finally:
        for what in told if given else ():
            lost(f"{path.name}: {what}")
    if told and not given:
        raise ReadError(f"{path.name} cannot be read: {told[0]}")


def _reason(error: BaseException) -> str:
    # Batches are small: only a damaged length asks for more than there is.
    said = f"damaged ({error})" if isinstance(error, MemoryError) else str(error)
    return " ".join(said.split())[:200]


def _opened(
    file: BinaryIO, head: bytes, wanted: Sequence[str], lost: Lost
) -> Iterator[pa.RecordBatch]:
    if head.startswith(PARQUET_MAGIC):
        yield from _of_parquet(file, wanted, lost)
    elif head.startswith(ARROW_FILE_MAGIC):
        yield from _of_arrow_file(file, wanted, lost)
    elif not head:
        raise EOFError("it is empty: its writer was killed")
    elif not head.strip(b"\0"):
        raise EOFError("it begins with zero bytes: the data never reached the disk")
    else:
        yield from _of_stream(file, wanted)


def _of_stream(file: BinaryIO, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_stream(file) as stream:
        for batch in stream:
            yield from _parts(batch, wanted)


def _of_arrow_file(file: BinaryIO, wanted: Sequence[str], lost: Lost) -> Iterator[pa.RecordBatch]:
    """The batches of an IPC file, which is a stream with its beginnings at the end.

    Without these it is read as that stream (Arrow columnar format, "IPC File Format").
    """
    file.seek(-len(ARROW_FILE_MAGIC), os.SEEK_END)
    if file.read() != ARROW_FILE_MAGIC:
        lost("it breaks off")
        file.seek(_ARROW_STREAM)
        # How it ends is told already.
        with contextlib.suppress(*_DAMAGE):
            yield from _of_stream(file, wanted)
        return
    with pa.ipc.open_file(file) as arrow:
        for number in range(arrow.num_record_batches):
            try:
                yield from _parts(arrow.get_batch(number), wanted)
            except _DAMAGE as error:
                lost(f"batch {number + 1} of {arrow.num_record_batches} is lost: {_reason(error)}")


def _of_parquet(file: BinaryIO, wanted: Sequence[str], lost: Lost) -> Iterator[pa.RecordBatch]:
    groups = row_groups(file)
    with pq.ParquetFile(file) as known:
        schema, metadata = known.schema_arrow, known.metadata
    present = [name for name in dict.fromkeys(wanted) if name in schema.names]
    texts = [name for name in present if _is_text(schema.types[schema.names.index(name)])]
    # Not by `metadata.row_group`, whose columns end the process where they are damaged.
    for number, group in zip(range(metadata.num_row_groups), groups, strict=True):
        chunks = [chunk for chunk in group.chunks if chunk.column in present]
        rows = 0
        try:
            for chunk in chunks:
                check_pages(file, chunk)
            # Texts that repeat stand in the file once, and must not become many in memory. Where
            # they do not, Arrow would make a dictionary of them all.
            repeating = {chunk.column for chunk in chunks if chunk.has_dictionary}
            with pq.ParquetFile(
                file,
                metadata=metadata,
                read_dictionary=[name for name in texts if name in repeating],
                # Otherwise all of a column is read before its first value is given.
                pre_buffer=False,
                buffer_size=_BUFFER_BYTES,
                # Only some writers give one, and nothing else tells of changed numbers.
                page_checksum_verification=True,
            ) as parquet:
                # In this thread: nothing catches what one of Arrow's own stumbles over.
                for batch in parquet.iter_batches(
                    _batch_rows(chunks, group.rows),
                    row_groups=[number],
                    columns=present,
                    use_threads=False,
                ):
                    rows += len(batch)
                    yield _selected(batch, present)
        except (ReadError, *_DAMAGE) as error:
            where = f"row group {number + 1} of {metadata.num_row_groups} is lost"
            lost(f"{where}{f' from its row {rows + 1:,} on' if rows else ''}: {_reason(error)}")


def _batch_rows(chunks: Sequence[Chunk], rows: int) -> int:
    """How many rows to read at a time, so that long texts take no more than some MB."""
    each = sum(chunk.unpacked for chunk in chunks) // max(1, rows)
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(1, each)))


def _parts(batch: pa.RecordBatch, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """A batch of any length, in pieces."""
    # The buffers come as they stand in the file, and nobody checked those.
    batch.validate(full=True)
    chosen = _selected(batch, wanted)
    for at in range(0, len(chosen), _BATCH_ROWS):
        yield chosen.slice(at, _BATCH_ROWS)


def _selected(batch: pa.RecordBatch, wanted: Sequence[str]) -> pa.RecordBatch:
    """Those of the columns `wanted` that are there; of several of one name the first."""
    names = batch.schema.names
    return batch.select([names.index(name) for name in wanted if name in names])


def integers(column: pa.Array, missing: int) -> IntArray:
    """A column of numbers as int64, with `missing` where it is null or holds no whole number.

    Other programs make numbers with decimals of a column that has nulls (pandas), or text.
    Raises ReadError for a column that holds no numbers at all.
    """
    if isinstance(column, pa.DictionaryArray):
        known = np.append(integers(column.dictionary, missing), np.int64(missing))
        return known[_places(column)]
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), missing, np.int64)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        if kind.unit != "ns":
            raise ReadError(f"it holds {kind}, not whole numbers")
        return _plain(column, np.int64, np.int64(missing))
    if pa.types.is_uint64(kind):
        # Beyond int64 such a number looks negative.
        raw = _plain(column, np.uint64, np.uint64(2**63)).view(np.int64)
        return np.where(raw < 0, missing, raw)
    if pa.types.is_integer(kind):
        return _plain(column.cast(pa.int64()), np.int64, np.int64(missing))
    if pa.types.is_floating(kind):
        decimal = _plain(column.cast(pa.float64()), np.float64, np.float64(np.nan))
        whole = (np.floor(decimal) == decimal) & (np.abs(decimal) < _LIMIT)
        return np.where(whole, np.where(whole, decimal, 0).astype(np.int64), missing)
    if pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    if not _is_text(column.type):
        raise ReadError(f"it holds {kind}, not whole numbers")
    found = [missing if text is None else _whole(text, missing) for text in texts(column, 40)]
    return np.array(found, np.int64)


def _whole(text: str, missing: int) -> int:
    digits = text.strip()
    number = int(digits) if digits.isascii() and digits.isdigit() else missing
    return number if number < 2**63 else missing


def texts(column: pa.Array, longest: int | None = None) -> list[str | None]:
    """A column of text; None where it is null, and everywhere for a column of another kind.

    Of each text at most `longest` bytes are looked at.
    """
    if isinstance(column, pa.DictionaryArray):
        # Not decoded by Arrow: few long texts may stand in very many rows.
        places = _places(column)
        used, which = np.unique(places, return_inverse=True)
        some = _texts_at(column.dictionary, used[used >= 0], longest)
        known = [None, *some] if len(some) < len(used) else some
        return [known[at] for at in which.tolist()]
    return _texts_at(column, None, longest)


def _texts_at(column: pa.Array, places: IntArray | None, longest: int | None) -> list[str | None]:
    """The texts at `places`, or all."""
    column = _viewed(column)
    if not _is_text(column.type):
        return [None] * len(column if places is None else places)
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, offsets, data = column.buffers()
    ends = _items(offsets, np.dtype(np.int64 if wide else np.int32), column, more=1)
    starts, stops = (ends[:-1], ends[1:]) if places is None else (ends[places], ends[places + 1])
    if longest is not None:
        stops = np.minimum(stops, starts + longest)
    raw = memoryview(data or b"")
    result: list[str | None] = [
        str(raw[start:stop], "utf-8", "replace")
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
    ]
    if column.null_count:
        valid = _valid(column) if places is None else _valid(column)[places]
        for at in np.flatnonzero(~valid).tolist():
            result[at] = None
    return result


def are_text(column: pa.Array) -> bool:
    """Whether a column holds text, or nothing at all."""
    if isinstance(column, pa.DictionaryArray):
        return are_text(column.dictionary)
    return pa.types.is_null(column.type) or _is_text(_viewed(column).type)


def matching(column: pa.Array, pattern: str, *, ignore_case: bool = False) -> npt.NDArray[np.bool_]:
    """Which texts of a column the regular expression `pattern` (RE2) is found in.

    None of them becomes text of Python. Raises ReadError for a column of another kind.
    """
    if isinstance(column, pa.DictionaryArray):
        known = matching(column.dictionary, pattern, ignore_case=ignore_case)
        return np.append(known, False)[_places(column)]
    column = _viewed(column)
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=bool)
    if not _is_text(column.type):
        raise ReadError(f"it holds {column.type}, not text")
    found = pc.match_substring_regex(column, pattern, ignore_case=ignore_case)
    return _bits(found.buffers()[1], found) & _valid(found)


def nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Where a column is null; of decimals that are no number, too: such is null in pandas."""
    found = pc.is_null(column, nan_is_null=True)
    return _bits(found.buffers()[1], found)


def _places(column: pa.DictionaryArray) -> IntArray:
    """Where in its dictionary each value stands; -1, the last place of all, for null."""
    return integers(column.indices, -1)


def _viewed(column: pa.Array) -> pa.Array:
    """The same, where it holds views of texts, as text of the usual kind."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    return column.cast(pa.large_binary()) if pa.types.is_binary_view(column.type) else column


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _plain(column: pa.Array, kind: type[np.generic], missing: np.generic) -> np.ndarray:
    """The values of a column of 64-bit numbers, with `missing` where it is null."""
    values = _items(column.buffers()[1], np.dtype(kind), column)
    return np.where(_valid(column), values, missing) if column.null_count else values


def _items(buffer: pa.Buffer | None, kind: np.dtype, column: pa.Array, more: int = 0) -> np.ndarray:
    """The items of `buffer` that are those of `column`; it may be of any length behind them."""
    if buffer is None or len(column) == 0:
        return np.empty(0, kind)
    return np.frombuffer(buffer, kind, len(column) + more, column.offset * kind.itemsize)


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    bits = column.buffers()[0]
    return np.ones(len(column), dtype=bool) if bits is None else _bits(bits, column)


def _bits(bits: pa.Buffer, column: pa.Array) -> npt.NDArray[np.bool_]:
    whole = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return whole[column.offset : column.offset + len(column)].astype(bool)
