"""Hosts whose clocks seem to differ: the same stages, begun and ended later by the same time.

The ranks of a training run compute a stage together. Where those of one host come as much later as
the other's, call for call and stage for stage, it is the clock of the host that is late and not its
ranks (google/perfetto#568): work that is slow ends late, but does not begin late by the same.
Each role tells this on its own, and one that tells nothing silences no other. Rollouts are not
asked: their replicas are driven apart, and each ends when its longest answer does.
Nothing is shifted: only the reader can know.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rl_insight.data import roles
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
# Where not all calls agree: a few of those that jitter do by chance, but not by so much.
_LEAST_OF_MOST_NS = 1_000_000_000
_FEW_OF_MOST = 4
_FEW = 2


@dataclass(slots=True)
class _Compared:
    """By how many ns the calls of one role begin and end later on another host.

    `apart` tells that no call overlaps its counterpart.
    """

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    apart: bool = True

    def agreeing(self, late: int, *, apart: bool) -> int:
        """How many of its calls come `late`; where no stages overlap, they need only begin so."""
        most, most_of_ends = _SPREAD * abs(late), _SPREAD_OF_ENDS * abs(late)
        return sum(
            abs(start - late) <= most and (apart or abs(end - late) <= most_of_ends)
            for start, end in zip(self.starts, self.ends, strict=True)
        )

    def begins_together(self, late: int) -> bool:
        """Whether half of its calls begin at one time on both clocks, measured by `late`."""
        near = _near(self.starts, 0, _SPREAD_OF_ENDS * abs(late))
        return near * 2 >= len(self.starts)

    def disagrees(self, late: int) -> bool:
        """Whether its calls begin late by another time, all by the same, or end together."""
        most = _SPREAD_OF_ENDS * abs(late)
        own = _middle(self.starts)
        other = abs(own - late) > most and _most(_near(self.starts, own, most), self.starts)
        return other or _most(_near(self.ends, 0, most), self.ends)


def suspects(lanes: Sequence[Lane]) -> dict[str, tuple[str, int]]:
    """The hosts that seem to be off, by how many ns (later is positive), and from which host.

    The times of `lanes` are on the common clock. Where hosts disagree, the clock that most lanes
    share is right, and of equally many the one of the host that is named first.
    """
    calls, counts = _calls(lanes)
    found: dict[str, tuple[str, int]] = {}
    pending = sorted(calls, key=lambda host: (-counts[host], host))
    # Roles on hosts of their own have no stage in common: each of them are compared on their own.
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
    """When each host was in each role of each step but rollouts, and how many lanes it has."""
    hosts: dict[str, dict[_Key, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    counts: dict[str, int] = defaultdict(int)
    for host, step, windows in lanes:
        if host is None:
            continue
        counts[host] += 1
        for role, start, end in windows:
            if role is not None and not roles.is_rollout(role):
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
    """By how many ns the stages of the `other` host come later; None where no clock need differ.

    Said by more roles than say another time, and only where none begins together on both hosts.
    """
    compared = _compared(one, other)
    apart = all(role.apart for role in compared)
    best: list[_Compared] = []
    for late in sorted({_middle(role.starts) for role in compared}):
        if abs(late) > _MOST_NS or any(role.begins_together(late) for role in compared):
            continue
        calls = [role.agreeing(late, apart=apart) for role in compared]
        agreeing, alike, against = [], 0, 0
        for role, count in zip(compared, calls, strict=True):
            if _most(count, role.starts):
                agreeing.append(role)
                alike += count
            else:
                against += role.disagrees(late)
        if len(agreeing) <= max(against, len(best)):
            continue
        total = sum(len(role.starts) for role in compared)
        if sum(calls) == total:
            # One call alone may be late for any reason, unless it begins after the other's end.
            enough = apart or (total >= _FEW and abs(late) >= _LEAST_NS)
        else:
            enough = alike >= max(_FEW_OF_MOST, total / 2) and abs(late) >= _LEAST_OF_MOST_NS
        if enough:
            best = agreeing
    return _middle([start for role in best for start in role.starts]) if best else None


def _compared(one: _Calls, other: _Calls) -> list[_Compared]:
    """The roles that both hosts have, call by call.

    Where one of them lacks a call, nothing tells which; other steps and roles still count.
    """
    found: dict[str, _Compared] = defaultdict(_Compared)
    for key in sorted(one.keys() & other.keys(), key=str):
        mine, theirs = one[key], other[key]
        if len(mine) == len(theirs) > 0:
            role = found[key[0]]
            role.starts += (theirs.starts - mine.starts).tolist()
            role.ends += (theirs.ends - mine.ends).tolist()
            role.apart = role.apart and not overlap(mine, theirs)
    return list(found.values())


def _middle(differences: Sequence[int]) -> int:
    return sorted(differences)[len(differences) // 2]


def _near(differences: Sequence[int], middle: int, most: float) -> int:
    """How many of `differences` are at most that far from the `middle`."""
    return sum(abs(one - middle) <= most for one in differences)


def _most(count: int, calls: Sequence[int]) -> bool:
    """Whether `count` is three in four of `calls`: one that a straggler drew out tells nothing."""
    return count * 4 >= len(calls) * 3
