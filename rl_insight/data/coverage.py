"""Which captures are missing: the cells of role x replica x step x rank that should be there.

What is expected follows from what was recorded, and in doubt nothing is. A false alarm in every
healthy run would teach people to overlook the one that is true.

- Ranks: those on which the role (of one replica) was ever seen. Where the captures tell a
  `world_size` w, the ranks 0 to w-1, but only when at least half of them were seen, and more than
  rank 0 alone: who profiles `ranks: [0, 8]` is not missing the others.
- Steps: each step in which the role was seen on any rank. The steps of other roles count only
  behind the role's first one, and only when it has most of them: a critic's warm-up or a test every
  tenth step is no gap, a step that was killed before the last stage is.
- Where no capture of a role tells its step, its captures are counted per rank instead, and the
  n-th is expected of all ranks when most of them have it.
- A rank that has captures of unknown step may have the missing one among them, and so may captures
  of unknown rank when there are enough of them: then nothing is missing.
- A role of which most cells are missing (each rank profiles another step) has no grid to fill.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rl_insight.data import identity, roles
from rl_insight.data.coverage_grid import Group, Line, Recorded

__all__ = ["Cell", "Column", "Coverage", "Recorded", "coverage", "recorded_by"]

# Below this share of filled cells the ranks and steps of a role make no grid. It also bounds the
# work: a grid has at most so many times as many cells as there are captures.
_LEAST_FILLED = 0.25

_NONE: Mapping[str, Collection[str]] = {}


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """What one rank of a role records in one step.

    Of a role whose steps are unknown, `step` is None and `capture` counts the rank's captures from
    0. `lost` is True when there is such a capture, of which nothing could be used.
    """

    role: str
    replica: int | None
    step: int | None
    rank_id: int
    capture: int | None = None
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One step of a role in which cells are missing, and how many are `expected` in it."""

    role: str
    replica: int | None
    step: int | None
    capture: int | None
    expected: int
    missing: tuple[int, ...]
    """Ranks of which there is nothing, ascending."""
    lost: tuple[int, ...] = ()
    """Ranks of whose captures nothing could be used."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what was to be expected is there.

    `expected` and `present` count cells. `ranks_expected` are the processes, one for each replica
    and rank, of which any cell is expected; of `ranks_present` any is there. `scattered` are roles
    (labels of lanes) of which nothing can be said, since they fill no grid.
    """

    expected: int = 0
    present: int = 0
    columns: tuple[Column, ...] = ()
    ranks_expected: int = 0
    ranks_present: int = 0
    scattered: tuple[str, ...] = ()

    @property
    def missing(self) -> list[Cell]:
        """The cells that are not there, in order of role, replica, step and rank."""
        return [
            Cell(one.role, one.replica, one.step, rank, one.capture, rank in lost)
            for one in self.columns
            for lost in (frozenset(one.lost),)
            for rank in sorted((*one.missing, *one.lost))
        ]


def coverage(
    recorded: Iterable[Recorded],
    ranks: Collection[int] | None = None,
    steps: Collection[int] | None = None,
    wanted: Collection[str] | None = None,
) -> Coverage:
    """What is there and what is missing; `ranks`, `steps` and `wanted` roles are all that is
    expected, None for any.

    A capture of unknown role is no part of it. Memory and time grow with the captures, not with
    the numbers in them.
    """
    groups: dict[tuple[str, int | None], Group] = defaultdict(Group)
    for one in recorded:
        if one.role is not None and roles.matches(one.role, one.replica, wanted or ()):
            groups[one.role, one.replica].add(one)
    believed = _believed(groups)
    everything = sorted({step for group in groups.values() for step in group.steps})
    tally = _Tally()
    for (role, replica), group in sorted(groups.items(), key=lambda item: _order(*item[0])):
        world = group.world if role in believed else None
        expected = group.ranks if world is None else range(world)
        chosen = sorted(rank for rank in expected if ranks is None or rank in ranks)
        columns = group.by_step(everything, steps) if group.steps else group.by_capture(len(chosen))
        tally.add(role, replica, group, chosen, list(columns))
    return tally.result()


def recorded_by(
    lanes: Iterable[Mapping[str, object]],
    sources: Iterable[Mapping[str, object]],
    stages: Mapping[str, Collection[str]] = _NONE,
) -> Iterator[Recorded]:
    """The captures in rows of the tables `lanes` and `sources`.

    `stages` maps the `lane_id` of a capture of a whole step to the roles that are drawn of it; they
    count in place of its own. What is of a source whose status is `failed` or `empty` gave nothing.
    A source without lanes counts too (dumps of expert load have none), unless it was left out.
    """
    rows = {row["source_id"]: row for row in sources}
    gave = {key for key, row in rows.items() if row["status"] in ("ok", "salvaged")}
    with_lanes = set()
    for row in lanes:
        source = row["source_id"]
        with_lanes.add(source)
        own = row["role"]
        told = stages.get(str(row["lane_id"]), ()) if own in roles.WHOLE_STEP else ()
        for role in told or (own,):
            yield _recorded(row, role, row["world_size"], source in gave)
    for source, row in rows.items():
        if row["status"] != "skipped" and source not in with_lanes:
            who = identity.resolve(str(row["path"]), {}, identity.UserRules())
            replica = who.replica if who.role == row["role"] else None
            yield _recorded({**row, "replica": replica}, row["role"], None, source in gave)


@dataclass(slots=True)
class _Tally:
    """Adds up the roles."""

    expected: int = 0
    present: int = 0
    columns: list[Column] = field(default_factory=list)
    processes: dict[tuple[int | None, int], bool] = field(default_factory=dict)
    scattered: list[str] = field(default_factory=list)

    def add(
        self,
        role: str,
        replica: int | None,
        group: Group,
        ranks: Sequence[int],
        lines: Sequence[Line],
    ) -> None:
        chosen = frozenset(ranks)
        cells = len(ranks) * len(lines)
        there = sum(len(line.present & chosen) + len(line.lost & chosen) for line in lines)
        is_grid = there >= _LEAST_FILLED * cells
        if not is_grid:
            self.scattered.append(roles.lane_role_label(role, replica))
        for line in lines:
            present, lost = line.present & chosen, line.lost & chosen
            missing: list[int] = []
            if is_grid:
                found = line.present | line.lost
                missing = [rank for rank in ranks if rank not in found]
                if line.step is not None:
                    missing = [rank for rank in missing if not group.stepless.get(rank)]
                missing = missing if len(missing) > line.unsure else []
            expected = len(present) + len(lost) + len(missing)
            self.expected += expected
            self.present += len(present)
            for rank in (*lost, *missing):
                self.processes.setdefault((replica, rank), False)
            for rank in present:
                self.processes[replica, rank] = True
            if missing or lost:
                self.columns.append(
                    Column(
                        *(role, replica, line.step, line.capture, expected),
                        missing=tuple(missing),
                        lost=tuple(sorted(lost)),
                    )
                )

    def result(self) -> Coverage:
        return Coverage(
            self.expected,
            self.present,
            tuple(self.columns),
            len(self.processes),
            sum(self.processes.values()),
            tuple(self.scattered),
        )


def _believed(groups: Mapping[tuple[str, int | None], Group]) -> set[str]:
    """The roles whose world size says which ranks were to be recorded."""
    seen: dict[str, int] = defaultdict(int)
    worlds: dict[str, int] = defaultdict(int)
    alone: dict[str, bool] = defaultdict(lambda: True)
    for (role, _), group in groups.items():
        if group.world is not None:
            seen[role] += len(group.ranks)
            worlds[role] += group.world
            alone[role] &= group.ranks <= {0}
    return {role for role in worlds if 2 * seen[role] >= worlds[role] and not alone[role]}


def _order(role: str, replica: int | None) -> tuple[str, int]:
    return role, -1 if replica is None else replica


def _recorded(row: Mapping[str, object], role: object, world_size: object, gave: bool) -> Recorded:
    return Recorded(
        role if isinstance(role, str) else None,
        _number(row.get("replica")),
        _number(row["rank_id"]),
        _number(row["step"]),
        _number(world_size),
        gave,
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
