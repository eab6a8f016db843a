"""Reading what one parse job left, where it is known what that holds: no parser is needed here."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from rl_insight import tables
from rl_insight.errors import CacheError
from rl_insight.pipeline import layout
from rl_insight.schema import SCHEMAS
from rl_insight.table_parts import read_part


@dataclass(frozen=True, slots=True)
class Unit:
    """The cache folder of a unit, and the tables that its parser fills: it need not fill all."""

    folder: Path
    filled: frozenset[str]


def read_filled(unit: Unit, name: str, columns: Collection[str] | None = None) -> pa.Table:
    """The part of a table that `unit` left, or only `columns` of it, for `tables.concat`.

    Raises CacheError that names the folder to delete when it is incomplete.
    """
    if name not in unit.filled:
        return tables.empty(SCHEMAS[name])
    try:
        return read_part(layout.table(unit.folder, name), SCHEMAS[name], columns)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CacheError(
            f"the cache of one parse job is incomplete ({name}: {error}): "
            f"delete the folder {unit.folder} and run again"
        ) from error
