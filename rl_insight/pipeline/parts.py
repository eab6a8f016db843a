"""Reading the cache: what parse jobs left, one folder of Parquet tables per unit."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from rl_insight import tables
from rl_insight.errors import CacheError
from rl_insight.parsers import PARSERS
from rl_insight.pipeline import layout
from rl_insight.schema import SCHEMAS
from rl_insight.table_parts import read_part

_T = TypeVar("_T")

# Opening a small file costs more than what is in it, and much of that without Python's lock.
_THREADS = 2
# Units that are read while another is worked on: one large unit after the other must not add up.
_AHEAD = 2


def preset_of(folder: Path) -> str:
    """What the unit in the cache `folder` feeds: `timeline` or `heatmap`."""
    # parsed/<parser>/<unit>
    return PARSERS.get(folder.parent.name).preset


def in_order(folders: Iterable[Path]) -> list[Path]:
    """The units' cache `folders` by the names of their parser and unit, however they came."""
    return sorted(folders, key=lambda folder: (folder.parent.name, folder.name))


def read_each(folders: Iterable[Path], read: Callable[[Path], _T]) -> Iterator[_T]:
    """What `read` gives of each of `folders`, in their order, a few read ahead side by side."""
    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[_T]] = deque()
        try:
            for folder in folders:
                waiting.append(pool.submit(read, folder))
                if len(waiting) > _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def read_joined(
    folders: Iterable[Path], names: Sequence[str], rows: int
) -> Iterator[dict[str, pa.Table]]:
    """The tables `names` of many units, in their order, some units at a time.

    So many are joined that one of their tables has at least `rows` rows.
    Raises CacheError as `read_unit_table` does.
    """

    def read(folder: Path) -> list[pa.Table]:
        return [read_unit_table(folder, name) for name in names]

    held: list[list[pa.Table]] = [[] for _ in names]
    counts = [0] * len(names)
    for parts in read_each(folders, read):
        for at, part in enumerate(parts):
            held[at].append(part)
            counts[at] += part.num_rows
        if max(counts) >= rows:
            yield _joined(names, held)
            held, counts = [[] for _ in names], [0] * len(names)
    if any(counts):
        yield _joined(names, held)


def _joined(names: Sequence[str], held: Sequence[list[pa.Table]]) -> dict[str, pa.Table]:
    return {
        name: tables.concat(SCHEMAS[name], parts) for name, parts in zip(names, held, strict=True)
    }


def read_unit_table(folder: Path, name: str, columns: Collection[str] | None = None) -> pa.Table:
    """The part of a table that one unit left, or only `columns` of it, for `tables.concat`.

    Raises CacheError that names the folder to delete when it is incomplete.
    """
    # A parser need not fill every table.
    if name != "sources" and name not in PARSERS.get(folder.parent.name).tables:
        return tables.empty(SCHEMAS[name])
    try:
        return read_part(layout.table(folder, name), SCHEMAS[name], columns)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CacheError(
            f"the cache of one parse job is incomplete ({name}: {error}): "
            f"delete the folder {folder} and run again"
        ) from error
