"""Hosts whose clocks seem to differ: the same stages, one after the other, never at one time.

The ranks of a training run compute a stage together. Where all of one host come as much later as
the other's, call for call and stage for stage, and never overlap, it is the clock of the host that
is late and not its ranks (google/perfetto#568). Nothing is shifted: only the reader can know.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from rl_insight.intervals import Intervals, overlap, union

Window = tuple[str | None, int, int]
"""A stage: its role, and from when to when it went, in ns."""

# Calls of one stage differ by less than this share of the difference of the clocks.
_SPREAD = 0.1
# Clocks are off by milliseconds to minutes; what is further apart is another part of the run.
_MOST_NS = 3600 * 1_000_000_000
_FEW = 2


def suspects(lanes: Sequence[tuple[str | None, Sequence[Window]]]) -> dict[str, tuple[str, int]]:
    """The hosts that seem to be off, by how many ns (later is positive), and from which host.

    `lanes` are the host and the stages of each lane, on the common clock.
    """
    hosts: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    counts: dict[str, int] = defaultdict(int)
    for host, windows in lanes:
        if host is None:
            continue
        counts[host] += 1
        for role, start, end in windows:
            if role is not None:
                hosts[host][role].append((start, end))
    if len(hosts) < _FEW:
        return {}
    calls = {host: {role: _united(own) for role, own in by.items()} for host, by in hosts.items()}
    # Most lanes are believed; of equally many the host that is named first.
    ranked = sorted(calls, key=lambda host: (-counts[host], host))
    found: dict[str, tuple[str, int]] = {}
    right = ranked[0]
    for host in ranked[1:]:
        late = _late(calls[right], calls[host])
        if late is not None:
            found[host] = (right, late)
    return found


def _united(windows: Sequence[tuple[int, int]]) -> Intervals:
    times = np.array(windows, dtype=np.int64)
    return union(times[:, 0], times[:, 1])


def _late(one: Mapping[str, Intervals], other: Mapping[str, Intervals]) -> int | None:
    """By how many ns all calls of the `other` host come later; None where they do not."""
    common = one.keys() & other.keys()
    differences: list[int] = []
    for role in common:
        if len(one[role]) != len(other[role]) or overlap(one[role], other[role]):
            return None
        differences += (other[role].starts - one[role].starts).tolist()
    if not differences:
        return None
    middle = sorted(differences)[len(differences) // 2]
    spread = max(abs(difference - middle) for difference in differences)
    return middle if spread <= _SPREAD * abs(middle) <= _SPREAD * _MOST_NS else None
