"""Which step a rollout belongs to, where its engine did not say.

Engines name their files without a step, while the trainer's captures of the same run carry one. A
training step begins with its rollout, so a rollout that lies just before the trainer's work of a
step, or inside it, is taken for that step's; anything less clear stays unknown.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rl_insight.data import roles

Row = dict[str, object]

_ROLLOUTS = frozenset({"agent_loop_rollout", "rollout_generate"})


@dataclass(slots=True)
class _Step:
    """When the trainer's captures of one step were, in ns of Unix time."""

    number: int
    start: int
    end: int


def infer_steps(lanes: Sequence[Row]) -> None:
    """Fill `step` and `step_source` ("inferred") of rollout lanes that have none.

    Needs final times and identity. Of several rollouts of one process before a step only the last
    is that step's, and only when the two lie no further apart than the longer of them lasts.
    """
    steps = _steps(lanes)
    if not steps:
        return
    nearest: dict[tuple[object, int], list[tuple[int, Row]]] = defaultdict(list)
    for row in lanes:
        if row["step"] is not None or not _is_rollout(row):
            continue
        window = _window(row)
        step = _step_of(window, steps) if window is not None else None
        if step is not None and window is not None:
            own = row["source_id"] if row["rank_id"] is None else None
            process = (row["role"], row["replica"], row["rank_id"], own)
            nearest[process, step.number].append((window[0], row))
    for (_, number), found in nearest.items():
        _, last = max(found, key=lambda one: one[0])
        last["step"], last["step_source"] = number, "inferred"


def _steps(lanes: Iterable[Row]) -> list[_Step]:
    """The steps in order of time; none when the trainer's steps overlap each other."""
    found: dict[int, _Step] = {}
    for row in lanes:
        number, window = row["step"], _window(row)
        if not isinstance(number, int) or window is None or _is_rollout(row):
            continue
        step = found.setdefault(number, _Step(number, *window))
        step.start, step.end = min(step.start, window[0]), max(step.end, window[1])
    ordered = sorted(found.values(), key=lambda step: step.start)
    apart = all(a.end <= b.start for a, b in pairwise(ordered))
    return ordered if apart else []


def _step_of(window: tuple[int, int], steps: Sequence[_Step]) -> _Step | None:
    start, end = window
    step = next((step for step in steps if step.end >= end), None)
    if step is None:
        return None
    if start >= step.start:
        return step
    before = [other for other in steps if other.end <= step.start and other.end > start]
    # An asynchronous rollout reaches over steps: whose it is cannot be told from time.
    if before or end > step.start:
        return None
    longer = max(end - start, step.end - step.start)
    return step if step.start - end <= longer else None


def _is_rollout(row: Row) -> bool:
    role = row["role"]
    return isinstance(role, str) and roles.bare(role) in _ROLLOUTS


def _window(row: Row) -> tuple[int, int] | None:
    start, end = row["capture_start_ns"], row["capture_end_ns"]
    if row["clock"] != "utc" or not isinstance(start, int) or not isinstance(end, int):
        return None
    return start, end
