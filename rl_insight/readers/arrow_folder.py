"""A folder with one Parquet or Arrow file per table, read by columns, some rows at a time."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from rl_insight.errors import ReadError
from rl_insight.readers.arrow_columns import is_text
from rl_insight.readers.parquet_footer import MAGIC as PARQUET_MAGIC
from rl_insight.readers.parquet_footer import Chunk, row_groups
from rl_insight.readers.parquet_pages import check_pages
from rl_insight.readers.pseudo_files import holds_bytes

ARROW_FILE_MAGIC = b"ARROW1"

_BATCH_ROWS: Final = 65_536
_BATCH_BYTES: Final = 16 << 20
_BUFFER_BYTES: Final = 1 << 20
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
    texts = [name for name in present if is_text(schema.types[schema.names.index(name)])]
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
