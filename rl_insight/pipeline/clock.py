"""One wall clock for all lanes.

Captures that know Unix time stay as they are, with one exception. nsys counts from the boot of its
host and tells the Unix time beside it; where captures of one host and boot disagree by seconds
about when that was, it is the session's time and not the capture's, and the median
holds for all of them.

Captures that know only the time since boot are shifted, all of one host together: by what other
captures of that host tell; else so that the first stage that they share with the others begins with
theirs; else so that they begin with the first capture. One host alone keeps its own time. Captures
that know only a clock of their own are shifted together to begin with the first that knows the
time. Nothing else is ever shifted. To begin is to begin with the first span where there is one: a
capture may have waited for it, and what is shifted must not be drawn before everything else.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rl_insight.problems import Severity

SECOND = 1_000_000_000
# Clocks that were read one after the other differ by milliseconds.
_TOLERANCE_NS = SECOND
# Boot clocks of hosts without a name that are further apart are those of different hosts.
_SAME_BOOT_NS = 24 * 3600 * SECOND


@dataclass(frozen=True, slots=True)
class Timed:
    """What decides about one capture's shift; times in ns on its own clock.

    `zero_ns` is the Unix time of the boot of its host, as the capture tells it, else None.
    `stages` is when each role that it holds first begins, `first_ns` when anything that is drawn
    of it does, None where that is not known.
    """

    clock: str | None
    start_ns: int | None
    host: str | None = None
    zero_ns: int | None = None
    stages: Mapping[str, int] = field(default_factory=dict)
    first_ns: int | None = None

    @property
    def begin_ns(self) -> int | None:
        """When what is drawn of it begins, as far as that is known."""
        return self.start_ns if self.first_ns is None else self.first_ns


@dataclass(frozen=True, slots=True)
class Shift:
    """What to add to a capture's times, in ns, and what is doubtful about them for a person."""

    offset_ns: int = 0
    code: str | None = None
    severity: Severity = "info"
    text: str | None = None


_Members = list[int]
_Words = tuple[str, Severity, str]

_OF_SESSION: _Words = (
    "clock_of_session",
    "warning",
    "captures of one host disagree by seconds about the time of its boot: their median is used",
)
_TOLD_BY_HOST: _Words = (
    "clock_boot",
    "info",
    "its clock counts from boot: another capture of its host tells when that was",
)
_ALONE: _Words = (
    "clock_boot",
    "info",
    "its clock counts from boot: comparable with captures of the same host only",
)
_OTHERS_FOLLOW: _Words = (
    "clock_boot",
    "warning",
    "its clock counts from boot: those of other hosts were shifted to meet it",
)
_TO_THE_FIRST: _Words = (
    "clock_boot",
    "warning",
    "its clock counts from boot: its host was shifted to begin with the first capture",
)


def shifts(captures: Sequence[Timed]) -> list[Shift]:
    """The shift of each of `captures`, in their order."""
    result = [Shift() for _ in captures]
    zeros = _settle_sessions(captures, result)
    _shift_boot(captures, result, zeros)
    known = [
        begin + result[at].offset_ns
        for at, one in enumerate(captures)
        if one.clock == "utc" and (begin := one.begin_ns)
    ]
    relative = [at for at, one in enumerate(captures) if one.clock == "relative"]
    own = [begin for at in relative if (begin := captures[at].begin_ns) is not None]
    if known and own:
        for at in relative:
            result[at] = Shift(min(known) - min(own))
    return result


def _settle_sessions(captures: Sequence[Timed], result: list[Shift]) -> dict[str | None, list[int]]:
    """Give captures of one host and boot one Unix time of that boot; the boots found, by host."""
    groups: dict[tuple[str | None, int], _Members] = defaultdict(list)
    for at, one in enumerate(captures):
        if one.clock == "utc" and one.zero_ns and one.start_ns is not None:
            # Captures without a host are of one host for certain only when their sessions began
            # at the same nanosecond.
            groups[one.host, one.start_ns if one.host is None else 0].append(at)
    zeros: dict[str | None, list[int]] = defaultdict(list)
    for (host, _), members in groups.items():
        for boot in _boots(captures, members):
            told = [captures[at].zero_ns or 0 for at in boot]
            zero = _median(told)
            zeros[host].append(zero)
            if max(told) - min(told) >= _TOLERANCE_NS:
                for at in boot:
                    result[at] = Shift(zero - (captures[at].zero_ns or 0), *_OF_SESSION)
    return zeros


def _boots(captures: Sequence[Timed], members: _Members) -> list[_Members]:
    """The captures of one host, by its boots: who was captured before a boot is of another."""
    boots: list[_Members] = []
    earliest = 0
    for at in sorted(members, key=lambda at: captures[at].zero_ns or 0):
        start, zero = captures[at].start_ns or 0, captures[at].zero_ns or 0
        if not boots or zero >= earliest:
            boots.append([])
            earliest = start
        boots[-1].append(at)
        earliest = min(earliest, start)
    return boots


def _shift_boot(
    captures: Sequence[Timed], result: list[Shift], zeros: Mapping[str | None, Sequence[int]]
) -> None:
    """Shift the captures that only know the time since boot, all of one host together."""
    dated = [at for at, one in enumerate(captures) if one.clock == "utc"]
    hosts: list[_Members] = []
    for host, members in _boot_hosts(captures):
        told = zeros.get(host, ()) if host is not None else ()
        if len(told) == 1:
            for at in members:
                result[at] = Shift(told[0], *_TOLD_BY_HOST)
        else:
            hosts.append(members)
    if not dated and len(hosts) == 1:
        for at in hosts[0]:
            result[at] = Shift(0, *_ALONE)
        return
    reference = dated
    if not dated and hosts:
        # Most captures stay where they are; of equally many those that begin first.
        reference = max(hosts, key=lambda one: (len(one), -_begin(captures, one)))
        hosts.remove(reference)
        for at in reference:
            result[at] = Shift(0, *_OTHERS_FOLLOW)
    moved = [(at, result[at].offset_ns) for at in reference]
    for members in hosts:
        offset, words = _meet(captures, members, moved)
        for at in members:
            result[at] = Shift(offset, *words)


def _boot_hosts(captures: Sequence[Timed]) -> list[tuple[str | None, _Members]]:
    """The captures on boot clocks by host; those without a host by how far apart they are."""
    named: dict[str, _Members] = defaultdict(list)
    unnamed: list[int] = []
    for at, one in enumerate(captures):
        if one.clock == "boot":
            (named[one.host] if one.host is not None else unnamed).append(at)
    result: list[tuple[str | None, _Members]] = list(named.items())
    before: int | None = None
    for at in sorted(unnamed, key=lambda at: captures[at].start_ns or 0):
        start = captures[at].start_ns or 0
        if before is None or start - before > _SAME_BOOT_NS:
            result.append((None, []))
        result[-1][1].append(at)
        before = start
    return result


def _meet(
    captures: Sequence[Timed], members: _Members, reference: Sequence[tuple[int, int]]
) -> tuple[int, _Words]:
    """What makes `members` meet the `reference` (captures with their shifts), and why."""
    own = _first_stages([(at, 0) for at in members], captures)
    theirs = _first_stages(reference, captures)
    common = sorted(own.keys() & theirs.keys(), key=lambda role: (theirs[role], role))
    if common:
        role = common[0]
        text = f"its clock counts from boot: its first {role} was put where that of others begins"
        return theirs[role] - own[role], ("clock_boot", "warning", text)
    begun = [begin + offset for at, offset in reference if (begin := captures[at].begin_ns)]
    if not begun:
        return 0, _ALONE
    return min(begun) - _begin(captures, members), _TO_THE_FIRST


def _first_stages(shifted: Sequence[tuple[int, int]], captures: Sequence[Timed]) -> dict[str, int]:
    first: dict[str, int] = {}
    for at, offset in shifted:
        for role, start in captures[at].stages.items():
            first[role] = min(first.get(role, start + offset), start + offset)
    return first


def _begin(captures: Sequence[Timed], members: _Members) -> int:
    return min((captures[at].begin_ns or 0 for at in members), default=0)


def _median(values: Sequence[int]) -> int:
    """In whole numbers: a double holds today's Unix time to 256 ns only."""
    ordered, middle = sorted(values), len(values) // 2
    if len(values) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) // 2
