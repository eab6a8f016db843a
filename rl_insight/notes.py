"""What was decided or doubted while making a table: kept in the table's own file.

`sources` tells what is wrong with an input. Some doubts come up only when all inputs are there and
depend on how the table is to be read; they stand as JSON in the metadata of the Arrow schema, which
Parquet keeps, so that a picture can say them and nothing has to be worked out again.
"""

import json

import msgspec
import pyarrow as pa

from rl_insight.problems import Problem, Problems

_KEY = b"rl_insight.notes"

EXPERT_IDS_LOCAL = "expert_ids_local"
"""The code that says that one index may be different experts on different ranks of a role."""


def attach(table: pa.Table, notes: Problems) -> pa.Table:
    """The same table with `notes` in its metadata, in place of any that it has."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata(notes)})


def metadata(notes: Problems) -> dict[bytes, bytes]:
    """`notes` as metadata of a schema, or of a file that is written bit by bit."""
    return {_KEY: json.dumps([msgspec.to_builtins(note) for note in notes]).encode("ascii")}


def of(schema: pa.Schema) -> list[Problem]:
    """The notes of a table that has this schema; none where it has none that can be read."""
    content = (schema.metadata or {}).get(_KEY)
    if content is None:
        return []
    try:
        return msgspec.convert(json.loads(content), list[Problem])
    except (ValueError, RecursionError):
        return []
