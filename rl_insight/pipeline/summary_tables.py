"""Reading a run's own tables again, for what is said about them."""

from pathlib import Path

import pyarrow as pa

from rl_insight import tables
from rl_insight.errors import CacheError


def read(path: Path, columns: list[str]) -> pa.Table:
    """These columns of a table. Raises FileNotFoundError, or CacheError when it is damaged."""
    try:
        table = tables.read(path, columns)
        missing = set(columns).difference(table.schema.names)
        if missing:
            raise ValueError(f"it has no column {', '.join(sorted(missing))}")
    except (OSError, ValueError, pa.ArrowException) as error:
        # Arrow raises OSError too; one of the system has its number.
        if isinstance(error, OSError) and error.errno:
            raise
        raise CacheError(f"{path}: damaged ({error}); delete it and run again") from error
    return table
