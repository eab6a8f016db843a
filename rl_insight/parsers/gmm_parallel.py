"""The place of a rank in its expert-parallel group, from the `profiler_metadata.json` of torch_npu.

`parallel_group_info` maps a communication group to `{group_name, group_rank, global_ranks}`. The
file has the job's environment too, which is never kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rl_insight.data.name_facts import INT32, whole
from rl_insight.parsers.mstx_metadata import metadata_object
from rl_insight.problems import Problems

_EXPERT_GROUPS = frozenset({"ep", "exp"})


@dataclass(frozen=True, slots=True)
class Place:
    """A rank's place among the `size` ranks that share the experts of a layer."""

    rank: int
    size: int

    def offset(self, experts: int) -> int:
        """The global id of the first expert of a rank that has so many."""
        return self.rank * experts


def place(path: Path, rank: int | None, own: bool, problems: Problems) -> Place | None:
    """The place of `rank` by the file at `path`; `own` says that this rank wrote it.

    None where the file does not tell it; damage is a problem.
    """
    groups = metadata_object(path, problems).get("parallel_group_info")
    found = [
        one
        for group in (groups.values() if isinstance(groups, Mapping) else ())
        if isinstance(group, Mapping) and group.get("group_name") in _EXPERT_GROUPS
        if (one := _place(group, rank, own)) is not None
    ]
    return found[0] if found else None


def _place(group: Mapping[str, object], rank: int | None, own: bool) -> Place | None:
    members = group.get("global_ranks")
    if not isinstance(members, list) or not 0 < len(members) <= INT32:
        return None
    if rank is not None:
        return Place(members.index(rank), len(members)) if rank in members else None
    index = whole(group.get("group_rank"), INT32) if own else None
    return None if index is None or index >= len(members) else Place(index, len(members))
