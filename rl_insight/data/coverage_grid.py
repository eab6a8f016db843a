"""The captures of one role of one replica, and the steps in which they are to be expected."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Recorded:
    """One capture: whose it is; None is unknown. `gave` is False when nothing of it can be used."""

    role: str | None
    replica: int | None
    rank_id: int | None
    step: int | None
    world_size: int | None = None
    gave: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """One step of a role: the ranks that are `present`, and how many more may be (`unsure`)."""

    step: int | None
    capture: int | None
    present: set[int]
    lost: set[int]
    unsure: int


@dataclass(slots=True)
class Group:
    """The captures of one role and replica."""

    ranks: set[int] = field(default_factory=set)
    worlds: set[int] = field(default_factory=set)
    steps: dict[int, set[int]] = field(default_factory=dict)
    """The ranks that gave something, by step."""
    lost: dict[int, set[int]] = field(default_factory=dict)
    unranked: dict[int, int] = field(default_factory=dict)
    """By step, how many captures there are whose rank is unknown, of those that gave something."""
    stepless: dict[int, int] = field(default_factory=dict)
    """By rank, how many captures there are whose step is unknown, of those that gave something."""
    unknown: int = 0
    """Captures of which neither is known."""

    def add(self, one: Recorded) -> None:
        """Take one more capture of the role and replica."""
        if one.world_size is not None:
            self.worlds.add(one.world_size)
        rank, step = one.rank_id, one.step
        if rank is not None:
            self.ranks.add(rank)
        if step is None:
            if rank is None:
                self.unknown += one.gave
            else:
                self.stepless[rank] = self.stepless.get(rank, 0) + one.gave
            return
        present = self.steps.setdefault(step, set())
        if rank is None:
            self.unranked[step] = self.unranked.get(step, 0) + one.gave
        elif one.gave:
            present.add(rank)
        else:
            self.lost.setdefault(step, set()).add(rank)

    @property
    def world(self) -> int | None:
        """How many ranks there are, where the captures agree about it."""
        if len(self.worlds) != 1:
            return None
        (world,) = self.worlds
        return world if world > max(self.ranks, default=world) else None

    def by_step(self, everything: Sequence[int], wanted: Collection[int] | None) -> Iterator[Line]:
        """The steps in which the role is expected, of `everything` (all steps of all roles, in
        order) those that are `wanted`; None for all."""
        first = min(self.steps)
        behind = [step for step in everything if step >= first]
        mostly = 2 * len(self.steps) > len(behind) and not self._may_be_elsewhere()
        for step in behind if mostly else sorted(self.steps):
            if wanted is None or step in wanted:
                present = self.steps.get(step, set())
                lost = self.lost.get(step, set()) - present
                unsure = self.unranked.get(step, 0) + self.unknown
                yield Line(step, None, present, lost, unsure)

    def _may_be_elsewhere(self) -> bool:
        return self.unknown > 0 or any(self.stepless.values())

    def by_capture(self, ranks: int) -> Iterator[Line]:
        """The first, second, … capture of each rank, as long as most of `ranks` ranks have it."""
        counts = self.stepless
        captures = max(counts.values(), default=0)
        if captures == 0 and counts:
            yield Line(None, None, set(), set(counts), self.unknown)
        for capture in range(captures):
            present = {rank for rank, number in counts.items() if number > capture}
            if capture and 2 * len(present) <= ranks:
                return
            lost = {rank for rank, number in counts.items() if number == 0}
            yield Line(None, capture if captures > 1 else None, present, lost, self.unknown)
