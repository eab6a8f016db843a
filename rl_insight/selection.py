"""Which ranks, steps and roles a run asked for: kept in the file of the table that it made.

A picture that says what is missing must not miss what was left out on purpose. What was left out
is not in the tables; the merge knows it.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass

import msgspec
import pyarrow as pa

_KEY = b"rl_insight.selection"


@dataclass(frozen=True, slots=True)
class Selection:
    """What was asked for; None means all."""

    ranks: frozenset[int] | None = None
    steps: frozenset[int] | None = None
    roles: frozenset[str] | None = None


def attach(
    table: pa.Table,
    ranks: Collection[int] | None,
    steps: Collection[int] | None,
    roles: Collection[str] | None,
) -> pa.Table:
    """The same table with what was asked for in the metadata of its schema."""
    chosen = {"ranks": ranks, "steps": steps, "roles": roles}
    plain = {name: sorted(some) for name, some in chosen.items() if some is not None}
    content = json.dumps(plain).encode("ascii")
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: content})


def of(schema: pa.Schema) -> Selection:
    """What the table that has this schema was asked for; all where it does not tell."""
    content = (schema.metadata or {}).get(_KEY)
    if content is None:
        return Selection()
    try:
        return msgspec.convert(json.loads(content), Selection)
    except (ValueError, RecursionError):
        return Selection()
