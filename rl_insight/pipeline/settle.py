"""Who each lane is: identity, clock, order and filters, which need all files at once."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rl_insight.data import identity, roles
from rl_insight.pipeline import clock, clock_far, clock_skew
from rl_insight.pipeline.clock_skew import Window
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.siblings import infer_from_siblings
from rl_insight.pipeline.step_inference import infer_steps
from rl_insight.problems import CLOCK_FAR

Row = dict[str, object]

_NO_WINDOWS: Mapping[str, Sequence[Window]] = {}


@dataclass(slots=True)
class Settled:
    """The lanes that stay, complete, and why others were filtered away (by `source_id`)."""

    lanes: list[Row] = field(default_factory=list)
    filtered: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def settle_lanes(
    lanes: Sequence[Row],
    paths: Mapping[str, str],
    stage_roles: Mapping[str, frozenset[str]],
    options: MergeOptions,
    windows: Mapping[str, Sequence[Window]] = _NO_WINDOWS,
) -> Settled:
    """Complete `lanes` as parsed (rows of the `lanes` schema with only the file's own identity).

    A row also gets an `order`, which sorts the captures of one process by their names, `stages`,
    the roles that it is drawn under, and `doubts`, what is doubtful about its times and what was
    inferred (code, severity, words).
    `paths` maps a `source_id` to its relative path, `stage_roles` a `lane_id` to the roles that
    the capture's own stages name, `windows` a `lane_id` to when those were, in raw times.
    """
    complete = [
        _completed(
            row,
            paths[str(row["source_id"])],
            stage_roles.get(str(row["lane_id"]), frozenset()),
            options,
        )
        for row in lanes
    ]
    # First, since captures of one host are put on one clock.
    infer_from_siblings(complete, paths)
    infer_steps(complete, _shift(complete, windows))
    _count_captures(complete)
    for at, text in clock_far.far(complete).items():
        complete[at]["doubts"] = [*_doubts(complete[at]), (CLOCK_FAR, "warning", text)]
    result = Settled()
    for row in complete:
        stages = stage_roles.get(str(row["lane_id"]), frozenset())
        reason = excluded(row, stages, options.filters)
        if reason is None:
            result.lanes.append(row)
        else:
            result.filtered[str(row["source_id"])].append(reason)
    return result


def excluded(row: Mapping[str, object], stages: frozenset[str], filters: Filters) -> str | None:
    """Why the filters leave out what `row` (role, replica, rank_id, step) is; None if they do not.

    A capture of several `stages` stays when one of them is wanted.
    """
    rank, step, role = _number(row["rank_id"]), _number(row["step"]), _text(row["role"])
    if filters.ranks is not None and rank not in filters.ranks:
        return f"rank {'unknown' if rank is None else rank} is not in input.rank_list"
    if filters.steps is not None and step not in filters.steps:
        return f"step {'unknown' if step is None else step} is not among the chosen steps"
    if filters.roles is not None:
        names = {name for name in (role, *stages) if name is not None}
        if not any(roles.matches(name, _number(row["replica"]), filters.roles) for name in names):
            verb = "roles {} are" if len(names) > 1 else "role {} is"
            told = ", ".join(sorted(names)) or "unknown"
            return f"{verb.format(told)} not among the chosen roles"
    return None


def _completed(row: Row, path: str, stages: frozenset[str], options: MergeOptions) -> Row:
    who = identity.resolve(path, row, options.rules, options.root_name)
    role = who.role
    if len(stages) == 1:
        # A worker's name says less than the one stage in which it was captured.
        worker = role in roles.WORKERS and options.rules.read(path)[0].role is None
        if role is None or worker:
            (role,) = stages
    return {
        **row,
        "role": role,
        "stages": stages,
        "replica": who.replica,
        "rank_id": who.rank_id,
        "global_rank": who.global_rank,
        "world_size": who.world_size,
        "tp": who.tp,
        "pp": who.pp,
        "dp": who.dp,
        "ep": who.ep,
        "host": who.host,
        "pid": who.pid,
        "step": who.step,
        "step_source": who.step_source,
        "identity_conflicts": list(who.conflicts),
        "order": who.order,
        "doubts": [],
    }


def _shift(
    lanes: Sequence[Row], windows: Mapping[str, Sequence[Window]]
) -> Sequence[Sequence[Window]]:
    """Put all lanes on one clock, and note what is doubtful about it; gives their stages on it."""
    stages = [_stages(row, windows.get(str(row["lane_id"]), ())) for row in lanes]
    shifts = clock.shifts([_timed(row, own) for row, own in zip(lanes, stages, strict=True)])
    for row, own, shift in zip(lanes, stages, shifts, strict=True):
        row["clock_offset_ns"] = shift.offset_ns
        doubt = (shift.code, shift.severity, shift.text)
        if shift.code is not None:
            row["doubts"] = [*_doubts(row), doubt]
        for name in ("capture_start_ns", "capture_end_ns"):
            at = _number(row[name])
            row[name] = None if at is None else at + shift.offset_ns
        own[:] = [(r, start + shift.offset_ns, end + shift.offset_ns) for r, start, end in own]
    hosts = [_text(row["host"]) for row in lanes]
    steps = [_number(row["step"]) for row in lanes]
    # Replicas of an engine work on their own, whatever their stages are called.
    shared = [own if row["replica"] is None else () for row, own in zip(lanes, stages, strict=True)]
    suspects = clock_skew.suspects(list(zip(hosts, steps, shared, strict=True)))
    for row, host in zip(lanes, hosts, strict=True):
        if host in suspects:
            right, late = suspects[host]
            text = (
                f"the stages of {host} come {abs(late) / 1e9:.3f} s "
                f"{'after' if late > 0 else 'before'} those of {right}: their clocks may differ"
            )
            row["doubts"] = [*_doubts(row), ("clock_skew", "warning", text)]
    return stages


def _stages(row: Row, windows: Sequence[Window]) -> list[Window]:
    """The stages of a lane; one without a role of its own is what the capture is of."""
    return [(role or _text(row["role"]), start, end) for role, start, end in windows]


def _timed(row: Row, stages: Sequence[Window]) -> clock.Timed:
    first: dict[str, int] = {}
    for role, start, _ in stages:
        if role is not None:
            first[role] = min(first.get(role, start), start)
    return clock.Timed(
        clock=_text(row["clock"]),
        start_ns=_number(row["capture_start_ns"]),
        host=_text(row["host"]),
        zero_ns=_number(row["clock_offset_ns"]) or None,
        stages=first,
        first_ns=min((start for _, start, _ in stages), default=None),
    )


def _doubts(row: Row) -> list[object]:
    doubts = row["doubts"]
    return doubts if isinstance(doubts, list) else []


def _count_captures(lanes: Sequence[Row]) -> None:
    """Fill `step_index`: the order of a capture among those of its role, replica and rank."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in lanes:
        # Without a rank nothing says that two captures are of one process.
        own = row["source_id"] if row["rank_id"] is None else None
        groups[row["role"], row["replica"], row["rank_id"], own].append(row)
    for members in groups.values():
        for index, row in enumerate(sorted(members, key=_moment)):
            row["step_index"] = index


def _moment(row: Row) -> tuple[object, ...]:
    """What captures of one process are ordered by: time, and where no clock tells it, the name."""
    start, order = _number(row["capture_start_ns"]), row["order"]
    dated = start is not None and row["clock"] == "utc"
    return (() if dated else order, start or 0, order, str(row["lane_id"]))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
