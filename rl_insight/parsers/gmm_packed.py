"""Whole ranks of a dump that a person packed: which archives of an input folder are that.

Anybody may call an archive `rank0.zip`. One counts beside other ranks of a dump, and below the
folder of a step where nothing lies beside it that another profiler wrote.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from rl_insight.data import packings
from rl_insight.data.tree import Tree

_PROCESS: Final = re.compile(r"(?:rank|proc)[0-9]+")
_BELOW_STEP: Final = re.compile(
    rf"(?:.*/)?step_?(?:[0-9]+|unknown)/(?:[^/]+/){{0,2}}{_PROCESS.pattern}"
)
# Of whom they may be, in the folder of the archives or below it.
_PROFILES: Final = (
    *(".json", ".json.gz", ".jsonl", ".jsonl.gz", ".sqlite", ".db", ".nsys-rep"),
    *(".parquet", ".arrow"),
)


def is_process(name: str) -> bool:
    """Whether a folder, by its name, is that of one process whose number is known."""
    return _PROCESS.fullmatch(name) is not None


def packed_ranks(
    tree: Tree, archives: Mapping[str, str], dumps: Collection[str], noted: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Those of `archives` that hold a rank of a dump; by the folder that each was packed from.

    `dumps` are the folders of the ranks that are there, `noted` the names of the files that lie
    beside their tensors.
    """
    if not archives:
        return
    of_dumps = {_above(rank) for rank in dumps if is_process(rank.rpartition("/")[2])}
    of_others = _with_profiles(tree, {_above(rank) for rank in archives} - of_dumps, noted)
    # Else a checkpoint in parts may be called so, or logs may.
    is_dump = bool(dumps) or all(packings.split(file.name)[1] for file in tree.files)
    label = "/".join(tree.root.parts[-3:])
    for rank, path in sorted(archives.items()):
        above = _above(rank)
        below_step = _BELOW_STEP.fullmatch(f"{label}/{rank}") is not None
        if above in of_dumps or (below_step and above not in of_others and is_dump):
            yield rank, path


def _above(rank: str) -> str:
    return rank.rpartition("/")[0]


def _with_profiles(tree: Tree, folders: Collection[str], noted: Collection[str]) -> set[str]:
    """Those of `folders` in which, or below which, lies what another profiler may have written."""
    found = set()
    for file in tree.files if folders else ():
        if file.name in noted or not packings.split(file.name)[0].endswith(_PROFILES):
            continue
        above = file.folder
        while True:
            if above in folders:
                found.add(above)
            if not above:
                break
            above = _above(above)
    return found
