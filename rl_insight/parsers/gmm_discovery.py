"""Which folders of an input hold the group lists of a rank: by names alone, nothing is opened.

msprobe writes `<dump>/rank<r>/{dump_tensor_data/*.pt, dump.json, stack.json, construct.json}`,
`proc<pid>/` where it does not know the rank; verl puts `step_<n>/<stage>/step0/` before that. A
copy from Windows may have the whole path as the name of one file, with backslashes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rl_insight.data import packings
from rl_insight.data.names import DUMP_FOLDER
from rl_insight.data.tree import Tree
from rl_insight.parsers.base import Found
from rl_insight.parsers.gmm_names import GROUP_LIST, is_packed_list
from rl_insight.parsers.gmm_packed import is_process, packed_ranks

DUMP, STACK, METADATA = "dump.json", "stack.json", "profiler_metadata.json"

LEFTOVERS = (".tmp", ".part")
"""How a file ends that its writer or copier did not complete."""

_OURS = (*GROUP_LIST, *(name + left for name in GROUP_LIST for left in LEFTOVERS))
_BESIDE = (DUMP, STACK, METADATA)
# Written together with dump.json, and by nobody else under that name.
_CONSTRUCT = "construct.json"
_NOTED = frozenset({*_BESIDE, _CONSTRUCT})
_STEP = re.compile(r"step_?(?:[0-9]+|unknown)")
_TENSORS = (".pt", ".npy")
_OF_A_PROCESS = re.compile(r"rank[0-9]*|proc[0-9]+")


@dataclass(slots=True)
class _Listing:
    """What lies where, by folder; each value is a path as the tree has it.

    `tensors` are folders of tensors that were packed, by the folder of their rank; `ranks` are
    whole ranks that were, by the folder that they were packed from.
    """

    group_lists: dict[str, list[str]] = field(default_factory=dict)
    noted: dict[str, dict[str, str]] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    ranks: dict[str, str] = field(default_factory=dict)


def claims(tree: Tree) -> Iterator[Found]:
    """One source for each folder with group lists, and for each dump that has none.

    It is named by its folder ("." for the input itself), a dump without group lists by the one that
    they would lie in. All other tensors of a dump are passed over. What is packed is claimed where
    a dump would lie, since it is lost: its row says how to get it back.
    """
    listing = _listed(tree)
    served: set[str] = set()
    for folder, group_lists in sorted(listing.group_lists.items()):
        rank = _rank_folder(folder)
        served.add(rank)
        files = (*group_lists, *_beside(listing, rank), *_metadata(listing, rank))
        yield Found(folder or ".", files, pack=_pack(rank))
    for rank, path in sorted(listing.tensors.items()):
        if rank in served:
            yield Found(path, (path,), packings.there_too(DUMP_FOLDER))
    for rank in sorted({*listing.noted, *listing.tensors} - served):
        noted, packed = listing.noted.get(rank, {}), listing.tensors.get(rank)
        if packed is not None or (DUMP in noted and _is_dump(rank, noted)):
            served.add(rank)
            own = (packed,) if packed is not None else ()
            files = (*own, *_beside(listing, rank), *_metadata(listing, rank))
            yield Found(f"{rank}/{DUMP_FOLDER}".lstrip("/"), files, pack=_pack(rank))
    for rank, path in packed_ranks(tree, listing.ranks, served, _NOTED):
        there = packings.there_too(rank.rpartition("/")[2]) if rank in served else None
        yield Found(path, (path,), there, pack=_pack(rank))


def _listed(tree: Tree) -> _Listing:
    found = _Listing()
    for file in tree.files:
        path = file.path
        group_list = path.endswith(_OURS) or is_packed_list(path)
        if not group_list and path.endswith(_TENSORS):
            continue  # the other tensors of a dump are many
        folder, _, name = path.replace("\\", "/").rpartition("/")
        if group_list:
            found.group_lists.setdefault(folder, []).append(path)
        elif name in _NOTED:
            found.noted.setdefault(folder, {})[name] = path
        elif packings.split(name)[1]:
            bare = packings.split(name)[0]
            if bare == DUMP_FOLDER:
                found.tensors.setdefault(folder, path)
            elif is_process(bare):
                found.ranks.setdefault(f"{folder}/{bare}".lstrip("/"), path)
    return found


def _rank_folder(folder: str) -> str:
    """The folder of the process whose tensors lie in `folder`: there dump.json stands."""
    above, _, name = folder.rpartition("/")
    return above if name == DUMP_FOLDER else folder


def _pack(rank: str) -> str:
    """The folder whose ranks one job may read, given that of one: the step's, with all its roles.

    A rank's lists take about as long to read as a job takes to start.
    """
    parts = rank.split("/")
    steps = [at for at, name in enumerate(parts) if _STEP.fullmatch(name)]
    if steps:
        return "/".join(parts[: steps[0] + 1])
    above, _, name = rank.rpartition("/")
    return above if _OF_A_PROCESS.fullmatch(name) else rank


def _beside(listing: _Listing, rank: str) -> Iterator[str]:
    noted = listing.noted.get(rank, {})
    return (noted[name] for name in (DUMP, STACK) if name in noted)


def _metadata(listing: _Listing, rank: str) -> Iterator[str]:
    """The nearest profiler_metadata.json, beside the dump or above it."""
    folder = rank
    while True:
        path = listing.noted.get(folder, {}).get(METADATA)
        if path is not None:
            yield path
        if path is not None or not folder:
            return
        folder = folder.rpartition("/")[0]


def _is_dump(folder: str, noted: dict[str, str]) -> bool:
    """Whether a dump.json is msprobe's: nothing else writes such a folder."""
    return bool(
        STACK in noted or _CONSTRUCT in noted or _OF_A_PROCESS.fullmatch(folder.rpartition("/")[2])
    )
