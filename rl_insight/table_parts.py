"""The parts of a table that parse jobs leave: very many small Parquet files, read by one merge.

What a file of a few rows costs a reader is hardly its rows: it is the columns, their dictionaries
and their compression.
"""

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow._parquet import ParquetReader

from rl_insight.files import replacing

# Below this many bytes compression costs a reader more than it saves.
_SMALL = 65_536

# Texts of which each row has one of its own.
_UNIQUE = ("span_id", "path", "detail")

# Schemas of parts that were found to be right, of each table; most parts of a run have the same.
# A table's own schema stands beside them: as long as it is held, its identity is nobody else's.
_RIGHT: dict[int, tuple[pa.Schema, list[pa.Schema]]] = {}
_MOST_REMEMBERED = 16


def write_part(path: Path, content: pa.Table) -> None:
    """Write one of very many tables that a merge will join; only `read_part` reads it as it was.

    Three times as fast to read as what `write` leaves: columns of nulls alone are left out, labels
    are plain text, and for a few rows neither compression nor statistics pay.
    """
    names = content.schema.names
    kept = [name for name in names if content[name].null_count < content.num_rows] or names[:1]
    # Of numbers, and of what each row has its own, a dictionary is no smaller and slower to read.
    labels = [name for name in kept if _repeats(content.schema.field(name))]
    # A column of a thousand rows takes zstd longer to begin with than lz4 to read.
    compression = "lz4" if content.nbytes > _SMALL else "none"
    with replacing(path) as temporary, open(temporary, "wb") as file:
        pq.write_table(
            content.select(kept),
            file,
            compression=compression,
            use_dictionary=labels,
            write_statistics=False,
            store_schema=False,
        )


def read_part(path: Path, schema: pa.Schema, columns: Collection[str] | None = None) -> pa.Table:
    """Read what `write_part` wrote of a table of `schema`, or only `columns` of it, for `concat`.

    It lacks the columns that hold nothing, and labels are plain text.
    Raises ValueError when it is no part of a table of `schema`.
    """
    # From memory: Parquet goes back and forth in a file, and each step through Python costs.
    with open(path, "rb", buffering=0) as raw:
        content = raw.read()
    # What `ParquetFile` does around this reader takes as long as reading a small file.
    reader = ParquetReader()
    reader.open(pa.BufferReader(content))
    wanted = None
    if columns is not None:
        wanted = [at for at, path in enumerate(reader.column_paths) if path[0] in columns]
    part = reader.read_all(column_indices=wanted, use_threads=False)
    _check(part.schema, schema)
    return part


def _repeats(field: pa.Field) -> bool:
    """Whether a column holds texts that stand in many rows."""
    # Not by looking at them: Arrow's compute module takes a parse job longer to load than that.
    is_text = pa.types.is_string(field.type) and field.name not in _UNIQUE
    return is_text or bool(pa.types.is_dictionary(field.type))


def _check(found: pa.Schema, schema: pa.Schema) -> None:
    """Raises ValueError unless `found` is that of a part of a table of `schema`."""
    right = _RIGHT.setdefault(id(schema), (schema, []))[1]
    if any(one.equals(found) for one in right):
        return
    stored = {
        field.name: field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        for field in schema
    }
    for name, kind in zip(found.names, found.types, strict=True):
        if stored.get(name) != kind:
            raise ValueError(f"no column {name} ({kind}) is known")
    if len(right) < _MOST_REMEMBERED:
        right.append(found)
