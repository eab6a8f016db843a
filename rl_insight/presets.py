"""Which preset each parser of a `sources` table feeds: kept in the table's own file.

A visualizer must not list the failed inputs of the other preset as its own losses. It does not know
parsers, which may come from any package; the merge does.
"""

import json
from collections.abc import Mapping

import msgspec
import pyarrow as pa

_KEY = b"rl_insight.presets"


def attach(sources: pa.Table, presets: Mapping[str, str]) -> pa.Table:
    """The same table with `presets`, by the name of the parser, in the metadata of its schema."""
    content = json.dumps(dict(sorted(presets.items()))).encode("ascii")
    return sources.replace_schema_metadata({**(sources.schema.metadata or {}), _KEY: content})


def of(schema: pa.Schema) -> dict[str, str]:
    """The presets of a table that has this schema; none where it has none that can be read."""
    content = (schema.metadata or {}).get(_KEY)
    if content is None:
        return {}
    try:
        return msgspec.convert(json.loads(content), dict[str, str])
    except (ValueError, RecursionError):
        return {}
