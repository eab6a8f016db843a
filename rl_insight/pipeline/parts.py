"""Reading the cache: what parse jobs left, one folder of Parquet tables per unit."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from rl_insight.parsers import PARSERS
from rl_insight.pipeline.unit_tables import Unit, read_filled

_S = TypeVar("_S")
_T = TypeVar("_T")

# Opening a small file costs more than what is in it, and much of that without Python's lock.
_THREADS = 2
# So much is read while something else is worked on: one large unit after the other must not add up.
_AHEAD = 2


def preset_of(folder: Path) -> str:
    """What the unit in the cache `folder` feeds: `timeline` or `heatmap`."""
    # parsed/<parser>/<unit>
    return PARSERS.get(folder.parent.name).preset


def in_order(folders: Iterable[Path]) -> list[Path]:
    """The units' cache `folders` by the names of their parser and unit, however they came."""
    return sorted(folders, key=lambda folder: (folder.parent.name, folder.name))


def filled_by(folder: Path) -> frozenset[str]:
    """The tables that the parser of the unit in the cache `folder` fills; `sources` is with all."""
    return frozenset((*PARSERS.get(folder.parent.name).tables, "sources"))


def read_each(items: Iterable[_S], read: Callable[[_S], _T]) -> Iterator[_T]:
    """What `read` gives of each of `items`, in their order, a few read ahead side by side."""
    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[_T]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(read, item))
                if len(waiting) > _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def read_unit_table(folder: Path, name: str, columns: Collection[str] | None = None) -> pa.Table:
    """The part of a table that one unit left, or only `columns` of it, for `tables.concat`.

    Raises CacheError that names the folder to delete when it is incomplete.
    """
    return read_filled(Unit(folder, filled_by(folder)), name, columns)
