"""A timeline as plain data: what ran where, when, and what could not be read.

Nothing here knows tables, rows on a screen, colours or pixels. Times are integer nanoseconds.
"""

from dataclasses import dataclass, field

import numpy as np

from rl_insight.visualizers.troubles import Trouble


@dataclass(frozen=True, slots=True)
class Lane:
    """What one row shows: the spans of one (role, replica, rank).

    Where the rank is unknown there is one per recorded lane, since two of those may be two ranks;
    `process` then tells lanes of one file apart. `sources` are paths relative to the input.
    `clock_note` says what is doubtful about the times, of some of its captures only where
    `clock_is_mixed`. `global_rank` is the trainer's number for
    a rank that its rollout engine numbers otherwise, None where captures do not agree about it.
    `recorded` is False for one that should be there and of which there is no span at all.
    """

    role: str
    replica: int | None
    rank_id: int | None
    hosts: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    process: str | None = None
    clock_note: str | None = None
    clock_is_mixed: bool = False
    global_rank: int | None = None
    recorded: bool = True


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Where the device's time went inside one stage span, in nanoseconds; unknown is None."""

    window_ns: int | None
    computing_ns: int | None
    communication_ns: int | None
    overlapped_ns: int | None
    memory_ns: int | None
    free_ns: int | None


@dataclass(frozen=True, slots=True)
class Spans:
    """Equally long columns, one entry per span, in the order of the table.

    `lane` indexes `Timeline.lanes`; `name` and `stage` index `Timeline.names`, `stage` being the
    name of the stage that the span lies in (its own, for a stage). `root` is the position of that
    stage's span; a range that lies in none is its own root. `depth` is 0 for roots. `start_ns`
    counts from the origin. `step_inferred` holds where the step follows from that of others.
    `capture` is the order of the capture among those of its role and rank. `undated` holds where
    nobody knows when it was, `unfinished` where it lasted longer than anything tells, and `remarks`
    are sentences about a span and not its whole lane.
    """

    lane: np.ndarray
    name: np.ndarray
    stage: np.ndarray
    root: np.ndarray
    depth: np.ndarray
    start_ns: np.ndarray
    duration_ns: np.ndarray
    truncated: np.ndarray
    unfinished: np.ndarray
    step: list[int | None]
    step_inferred: np.ndarray
    capture: list[int | None]
    mini_batch: list[int | None]
    micro_batch: list[int | None]
    undated: np.ndarray
    remarks: list[tuple[str, ...]]

    def __len__(self) -> int:
        return len(self.lane)


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch of a lane in which something was to be expected and is not there.

    It lasts from `start_ns` to `end_ns` after the origin: as long as other ranks ran the same role
    in the same step, or of a lane that was never recorded the whole timeline. `steps`, or where
    those are unknown `captures` counted from 0, are what is missing; neither is known when both are
    empty. `reasons` say why a capture that is there gave nothing.
    """

    lane: int
    start_ns: int
    end_ns: int
    steps: tuple[int, ...] = ()
    captures: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """What should be there and is not, in numbers and words.

    `cells` of `expected` cells (what one rank of a role records in one step) are missing, and of
    `ranks` ranks there is nothing at all. `gaps` are drawn; `more_gaps` have a place too but were
    too many, `unplaced` cells have none, since no other rank shows when it would have been.
    """

    cells: int = 0
    expected: int = 0
    ranks: int = 0
    gaps: tuple[Gap, ...] = ()
    more_gaps: int = 0
    unplaced: int = 0
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything that a timeline shows.

    `origin_ns` is the Unix time of the first dated span, None when no span has a wall clock.
    `breakdown` is keyed by the position of the span. `sources` counts all inputs, `troubles`
    lists those that are not simply there, worst first. Lanes that were never recorded come last.
    `misplaced` counts the sources that are drawn elsewhere than where their clock puts them,
    `clock_doubts` the others whose clock is doubtful.
    """

    origin_ns: int | None
    lanes: list[Lane]
    names: list[str]
    spans: Spans
    breakdown: dict[int, Breakdown]
    troubles: list[Trouble]
    sources: int
    missing: Missing = field(default_factory=Missing)
    misplaced: int = 0
    clock_doubts: int = 0

    @property
    def ranks(self) -> int:
        """How many different known ranks there are."""
        return len({lane.rank_id for lane in self._recorded() if lane.rank_id is not None})

    @property
    def recorded_lanes(self) -> int:
        """How many lanes have spans."""
        return len(self._recorded())

    @property
    def unknown_ranks(self) -> int:
        """How many lanes have no known rank."""
        return sum(lane.rank_id is None for lane in self.lanes)

    @property
    def steps(self) -> list[int]:
        """The known steps, ascending."""
        return sorted({step for step in self.spans.step if step is not None})

    @property
    def extent_ns(self) -> int:
        """From the origin to the end of the last span; 0 without spans."""
        return int((self.spans.start_ns + self.spans.duration_ns).max()) if len(self.spans) else 0

    def _recorded(self) -> list[Lane]:
        return [lane for lane in self.lanes if lane.recorded]

    def troubled(self, status: str) -> int:
        """How many sources have that status."""
        return sum(trouble.status == status for trouble in self.troubles)
