"""Reading the cache: what parse jobs left, one folder of Parquet tables per unit."""

from collections.abc import Collection, Iterable
from pathlib import Path

import pyarrow as pa

from rl_insight import tables
from rl_insight.errors import CacheError
from rl_insight.parsers import PARSERS
from rl_insight.pipeline import layout
from rl_insight.schema import SCHEMAS


def preset_of(folder: Path) -> str:
    """What the unit in the cache `folder` feeds: `timeline` or `heatmap`."""
    # parsed/<parser>/<unit>
    return PARSERS.get(folder.parent.name).preset


def read_all(folders: Iterable[Path], name: str) -> pa.Table:
    """One table out of the parts of many units. Raises CacheError as `read_unit_table` does."""
    return tables.concat(SCHEMAS[name], (read_unit_table(folder, name) for folder in folders))


def read_unit_table(folder: Path, name: str, columns: Collection[str] | None = None) -> pa.Table:
    """The part of a table that one unit left, or only `columns` of it, for `tables.concat`.

    Raises CacheError that names the folder to delete when it is incomplete.
    """
    # A parser need not fill every table.
    if name != "sources" and name not in PARSERS.get(folder.parent.name).tables:
        return tables.empty(SCHEMAS[name])
    try:
        return tables.read_part(layout.table(folder, name), SCHEMAS[name], columns)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CacheError(
            f"the cache of one parse job is incomplete ({name}: {error}): "
            f"delete the folder {folder} and run again"
        ) from error
