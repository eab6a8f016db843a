"""Hosts whose clocks seem to differ: the same stages, begun and ended later by the same time.

The ranks of a training run compute a stage together. Where all of one host come as much later as
the other's, call for call and stage for stage, it is the clock of the host that is late and not its
ranks (google/perfetto#568): work that is slow ends late, but does not begin late by the same.
Nothing is shifted: only the reader can know.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from rl_insight.intervals import Intervals, overlap, union

Window = tuple[str | None, int, int]
"""A stage: its role, and from when to when it went, in ns."""

Lane = tuple[str | None, int | None, Sequence[Window]]
"""The host of a capture, its step where it has one, and its stages."""

_Key = tuple[str, int | None]
_Calls = Mapping[_Key, Intervals]

# Calls of one stage begin within this share of the difference of the clocks.
_SPREAD = 0.1
# They end within more: ranks do not work equally long.
_SPREAD_OF_ENDS = 0.25
# Clocks are off by milliseconds to minutes; what is further apart is another part of the run.
_MOST_NS = 3600 * 1_000_000_000
# Of calls that overlap: less than this is how late a scheduler may start a host.
_LEAST_NS = 100_000_000
_FEW = 2


def suspects(lanes: Sequence[Lane]) -> dict[str, tuple[str, int]]:
    """The hosts that seem to be off, by how many ns (later is positive), and from which host.

    The times of `lanes` are on the common clock. Where hosts disagree, the clock that most lanes
    share is right, and of equally many the one of the host that is named first.
    """
    calls, counts = _calls(lanes)
    found: dict[str, tuple[str, int]] = {}
    pending = sorted(calls, key=lambda host: (-counts[host], host))
    # Trainers and rollout engines have no stage in common: each of them are compared on their own.
    while len(pending) >= _FEW:
        first = pending[0]
        related = [host for host in pending[1:] if calls[first].keys() & calls[host].keys()]
        right = _right(first, related, calls, counts)
        for host in (first, *related):
            late = None if host == right else _late(calls[right], calls[host])
            if late is not None:
                found[host] = (right, late)
        pending = [host for host in pending if host != first and host not in related]
    return found


def _calls(lanes: Sequence[Lane]) -> tuple[dict[str, _Calls], dict[str, int]]:
    """When each host was in each role of each step, and how many lanes it has."""
    hosts: dict[str, dict[_Key, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    counts: dict[str, int] = defaultdict(int)
    for host, step, windows in lanes:
        if host is None:
            continue
        counts[host] += 1
        for role, start, end in windows:
            if role is not None:
                hosts[host][role, step].append((start, end))
    return (
        {host: {key: _united(own) for key, own in by.items()} for host, by in hosts.items()},
        counts,
    )


def _right(
    first: str, related: Sequence[str], calls: Mapping[str, _Calls], counts: Mapping[str, int]
) -> str:
    """The first host of those that share their clock with the most lanes.

    `related` have stages in common with the `first` host, and come in the order of preference.
    """
    groups: list[tuple[int, list[str]]] = [(0, [first])]
    for host in related:
        late = _late(calls[first], calls[host]) or 0
        for offset, members in groups:
            if abs(offset - late) <= max(_SPREAD * abs(late), _LEAST_NS):
                members.append(host)
                break
        else:
            groups.append((late, [host]))
    _, largest = max(groups, key=lambda group: sum(counts[host] for host in group[1]))
    return largest[0]


def _united(windows: Sequence[tuple[int, int]]) -> Intervals:
    times = np.array(windows, dtype=np.int64)
    return union(times[:, 0], times[:, 1])


def _late(one: _Calls, other: _Calls) -> int | None:
    """By how many ns all calls of the `other` host come later; None where they do not.

    Calls that do not overlap need only begin so; of those that do, several must begin and end so.
    """
    starts: list[int] = []
    ends: list[int] = []
    apart = True
    for key in one.keys() & other.keys():
        mine, theirs = one[key], other[key]
        if len(mine) != len(theirs):
            # Where the step is known, a call that one host lacks says nothing about the others.
            if key[1] is not None:
                continue
            return None
        starts += (theirs.starts - mine.starts).tolist()
        ends += (theirs.ends - mine.ends).tolist()
        apart = apart and not overlap(mine, theirs)
    if not starts:
        return None
    middle = sorted(starts)[len(starts) // 2]
    if abs(middle) > _MOST_NS or not _alike(starts, middle, _SPREAD):
        return None
    if apart:
        return middle
    if len(starts) < _FEW or abs(middle) < _LEAST_NS:
        return None
    return middle if _alike(ends, middle, _SPREAD_OF_ENDS) else None


def _alike(differences: Sequence[int], middle: int, spread: float) -> bool:
    return max(abs(one - middle) for one in differences) <= spread * abs(middle)
