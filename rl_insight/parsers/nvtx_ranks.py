"""Whose rank each process of an nsys capture is.

The environment that a capture records is that of the process that nsys launched. Where that is the
only one, it is its rank. `nsys profile torchrun ...` launches a launcher, whose RANK is that of the
node or none at all, and whose processes count up from there: then they are numbered in the order of
their process ids, with a warning. Only where the capture says which process had which environment
(PROCESS_<i>:PID, or the process id in the file's name) is that believed instead.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rl_insight.data.name_facts import INT32
from rl_insight.parsers import nvtx_environment as environment
from rl_insight.parsers.nvtx_rows import Fact
from rl_insight.problems import Problems

_Environment = Mapping[str, int]


class Rank(NamedTuple):
    """What is known of one process."""

    rank_id: int | None = None
    world_size: int | None = None


class Named(NamedTuple):
    """What the file's name tells of its process."""

    pid: int | None = None
    rank: int | None = None


def ranks(
    facts: Sequence[Fact], pids: Sequence[int | None], name: Named, problems: Problems
) -> list[Rank]:
    """The rank of each of the processes `pids`, in their order."""
    recorded, owners = _environments(facts)
    if len(pids) == 1:
        own = owners.get(pids[0]) if pids[0] is not None else None
        whole = own if own is not None else _merged(recorded)
        return [_rank(whole, problems)]
    found = {pid: _rank(owners[pid], problems) for pid in pids if pid is not None and pid in owners}
    if not found and name.pid in pids and name.pid is not None:
        found = {name.pid: _rank(_merged(recorded), problems)}
    if any(one.rank_id is not None for one in found.values()):
        return [found.get(pid, Rank()) if pid is not None else Rank() for pid in pids]
    if name.rank is not None:
        return [Rank() for _ in pids]
    problems.add(
        "rank_by_pid_order",
        "warning",
        len(pids),
        example=_by_order(_rank(_merged(recorded), Problems()), len(pids)),
    )
    return [Rank(number) for number in range(len(pids))]


def _by_order(launcher: Rank, count: int) -> str:
    text = f"{count} processes and no rank for each: numbered in the order of their process ids"
    if launcher.rank_id is None:
        return text
    return f"{text}; rank {launcher.rank_id} in the environment is the launcher's own"


def _environments(facts: Sequence[Fact]) -> tuple[dict[int, _Environment], dict[int, _Environment]]:
    """What was recorded by number of the launched process, and by process id where that is told."""
    recorded: dict[int, dict[str, int]] = defaultdict(dict)
    pids: dict[int, int] = {}
    for fact in facts:
        if fact.process is None or not isinstance(fact.value, int):
            continue
        if fact.name == environment.PID:
            pids[fact.process] = fact.value
        else:
            recorded[fact.process][fact.name] = fact.value
    owners = {pid: recorded[number] for number, pid in pids.items() if number in recorded}
    return dict(recorded), dict(owners)


def _merged(recorded: Mapping[int, _Environment]) -> _Environment:
    """All that was recorded; of two values of one name the later process's."""
    return {name: value for number in sorted(recorded) for name, value in recorded[number].items()}


def _rank(own: _Environment, problems: Problems) -> Rank:
    name = next((name for name in environment.RANK_NAMES if name in own), None)
    rank = own[name] if name is not None else None
    size = own.get(environment.WORLD_SIZE)
    if name == "LOCAL_RANK":
        problems.add(
            "rank_from_local_rank",
            "warning",
            example=f"only LOCAL_RANK={rank} is recorded, which counts inside one node",
        )
    return Rank(
        rank if rank is not None and rank <= INT32 else None,
        size if size is not None and 0 < size <= INT32 else None,
    )
