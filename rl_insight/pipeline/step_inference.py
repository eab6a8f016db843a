"""Which step a rollout belongs to, where its engine did not say.

Engines name their files without a step, while the trainer's captures of the same run carry one.
Training needs the samples of its rollout: a rollout of step N ends before the training of N begins.
It begins after the training of N-1 ended or, where both go on at once (one step off), with it. In
either case step N is the first whose training begins after the rollout, however long other replicas
still take; what is less clear stays unknown, and says so.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rl_insight.data import roles
from rl_insight.pipeline.clock_skew import Window

Row = dict[str, object]

# Stages that need the samples of their step. Of an unknown one nobody knows what comes first.
_TRAINING = roles.STAGES - roles.ROLLOUTS

# The clocks of hosts differ by seconds, so a rollout may seem to reach into a training that it
# comes before, or to begin before one that it goes along with: by less than this share of it.
_SHARE = 3

_NOTHING_FOLLOWS = "no training that carries a step begins after it"
_UNCLEAR = "its time does not tell which training takes its samples"
_LATER = "a later one of its process comes before the same training"
_OVERLAP = "the captures of several steps overlap each other in time"


@dataclass(slots=True)
class _Step:
    """When the trainer's captures of one step were, in ns of Unix time.

    `training` is when the first stage began that needs the rollout. None where the captures name no
    such stage: they are of the whole step, and its rollout may be inside them.
    """

    number: int
    start: int
    end: int
    training: int | None = None

    def border(self, helper: bool) -> int:
        """When its rollouts are over; those of a `helper`, a reward model, run between stages."""
        return self.end if helper or self.training is None else self.training


@dataclass(slots=True)
class _Rollout:
    row: Row
    start: int
    end: int
    step: _Step
    near: bool


def infer_steps(lanes: Sequence[Row], stages: Sequence[Sequence[Window]] = ()) -> None:
    """Fill `step` and `step_source` ("inferred") of rollout lanes that have none.

    Needs final times and identity, and for each lane the `stages` inside its capture, on the same
    clock (none at all: each capture is of its role alone). Of several rollouts of one process
    before a step only the last is that step's. Where the step before was not captured, a rollout
    must also be near: no further from the step than the longer of the two lasts, or at the same
    time as a rollout that is. Says in `doubts` what was inferred, and why a step was not.
    """
    inside = stages or [()] * len(lanes)
    everywhere = _steps(zip(lanes, inside, strict=True))
    if not everywhere:
        return
    hosts: dict[object, list[tuple[Row, Sequence[Window]]]] = defaultdict(list)
    for row, own in zip(lanes, inside, strict=True):
        hosts[row["host"]].append((row, own))
    # Captures of one host have one clock: where a host tells of all steps, it alone is asked.
    of_host = {host: _steps(found) for host, found in hosts.items() if host is not None}
    local = {host: own for host, own in of_host.items() if len(own) == len(everywhere)}
    followed: dict[int, list[_Rollout]] = defaultdict(list)
    for row in lanes:
        window = _window(row)
        if row["step"] is not None or window is None or not _is_rollout(row):
            continue
        steps = local.get(row["host"], everywhere)
        found = _before(row, window, steps) if _apart(steps) else _OVERLAP
        if isinstance(found, str):
            _doubt(row, "step_unknown", "warning", found)
        else:
            followed[found.step.number].append(found)
    for number, rollouts in followed.items():
        _settle(number, rollouts)


def _steps(lanes: Iterable[tuple[Row, Sequence[Window]]]) -> list[_Step]:
    """The steps of which the trainer's captures tell, in order of time."""
    found: dict[int, _Step] = {}
    for row, stages in lanes:
        number, window = row["step"], _window(row)
        if not isinstance(number, int) or window is None or _is_rollout(row):
            continue
        step = found.setdefault(number, _Step(number, *window))
        step.start, step.end = min(step.start, window[0]), max(step.end, window[1])
        begun = [start for role, start, _ in stages if role is not None and _trains(role)]
        role = row["role"]
        if not begun and isinstance(role, str) and _trains(role):
            begun = [window[0]]
        if begun:
            known = () if step.training is None else (step.training,)
            step.training = min((*begun, *known))
    return sorted(found.values(), key=lambda step: step.start)


def _apart(steps: Sequence[_Step]) -> bool:
    """Whether the steps come one after the other, but for the clocks of their hosts."""
    return all(
        _SHARE * (a.end - b.start) <= min(a.end - a.start, b.end - b.start)
        for a, b in pairwise(steps)
    )


def _before(row: Row, window: tuple[int, int], steps: Sequence[_Step]) -> _Rollout | str:
    """The rollout with the step whose training it comes before, or why there is none."""
    start, end = window
    helper = roles.bare(str(row["role"])) != row["role"]
    tolerance = (end - start) // _SHARE
    at = bisect_left(steps, end - tolerance, key=lambda step: step.border(helper))
    if at == len(steps):
        return _NOTHING_FOLLOWS
    step = steps[at]
    if at > 0:
        last = steps[at - 1]
        # About half of it lies on either side: late for the one, or early for the other.
        if start + tolerance < last.border(helper):
            return _UNCLEAR
        if last.number + 1 == step.number:
            return _Rollout(row, start, end, step, near=True)
        # It went along with the last training, so it is of a step that was not captured.
        if start + tolerance < last.end:
            return _UNCLEAR
    longer = max(end - start, step.end - step.start)
    return _Rollout(row, start, end, step, near=step.start - end <= longer)


def _settle(number: int, rollouts: Sequence[_Rollout]) -> None:
    """Give the step to those of the `rollouts` before it that are its own."""
    processes: dict[tuple[object, ...], list[_Rollout]] = defaultdict(list)
    reach: int | None = None
    for one in sorted(rollouts, key=lambda one: one.end, reverse=True):
        # A replica that is done early waits for the last one: both are near if that one is.
        if not one.near and (reach is None or one.end <= reach):
            _doubt(one.row, "step_unknown", "warning", _UNCLEAR)
            continue
        reach = one.start if reach is None else min(reach, one.start)
        row = one.row
        own = row["source_id"] if row["rank_id"] is None else None
        processes[row["role"], row["replica"], row["rank_id"], own].append(one)
    for found in processes.values():
        last = max(found, key=lambda one: one.start).row
        last["step"], last["step_source"] = number, "inferred"
        _doubt(last, "step_inferred", "info", f"step {number}, from the training that follows it")
        for one in found:
            if one.row is not last:
                _doubt(one.row, "step_unknown", "warning", _LATER)


def _doubt(row: Row, code: str, severity: str, text: str) -> None:
    doubts = row.get("doubts")
    said = f"its step is unknown: {text}" if code == "step_unknown" else text
    row["doubts"] = [*(doubts if isinstance(doubts, list) else []), (code, severity, said)]


def _trains(role: str) -> bool:
    """Whether `role` is a stage that comes after its step's rollout."""
    return roles.bare(role) in _TRAINING


def _is_rollout(row: Mapping[str, object]) -> bool:
    role = row["role"]
    return isinstance(role, str) and roles.bare(role) in roles.ROLLOUTS


def _window(row: Row) -> tuple[int, int] | None:
    start, end = row["capture_start_ns"], row["capture_end_ns"]
    if row["clock"] != "utc" or not isinstance(start, int) or not isinstance(end, int):
        return None
    return start, end
