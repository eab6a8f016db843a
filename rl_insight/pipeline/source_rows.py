"""The rows of `sources`: what became of every input, also of those that gave nothing."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rl_insight import tables
from rl_insight.data import identity
from rl_insight.parsers import PARSERS
from rl_insight.pipeline.discovery import Skipped
from rl_insight.pipeline.settle import MergeOptions, Row, Settled, excluded, simultaneous
from rl_insight.pipeline.units import source_id
from rl_insight.problems import Problems


def source_rows(parsed: Sequence[Row], settled: Settled, options: MergeOptions) -> list[Row]:
    """Complete the rows that parse jobs wrote: whose they are, and what the merge noticed."""
    lanes: dict[str, list[Row]] = defaultdict(list)
    for lane in settled.lanes:
        lanes[str(lane["source_id"])].append(lane)
    together = simultaneous(settled.lanes)
    rows: list[Row] = []
    for row in parsed:
        own = lanes.get(str(row["source_id"]), [])
        reasons = settled.filtered.get(str(row["source_id"]), [])
        rows.append(_complete(row, own, reasons, together[str(row["source_id"])], options))
    return rows


def skipped_rows(skipped: Iterable[Skipped], options: MergeOptions) -> list[Row]:
    """One row per input that discovery left out."""
    return [
        {
            "source_id": source_id(one.path),
            "path": one.path,
            "parser": one.parser,
            **_whose(one.path, options),
            "status": "skipped",
            "detail": one.reason,
            "problems": [],
            "events": 0,
        }
        for one in skipped
    ]


def other_rows(table: Path, preset: str) -> list[Row]:
    """The rows in `table` that a run of another preset wrote; none where there is no table."""
    if not table.is_file():
        return []
    ours = {name for name in PARSERS.names() if PARSERS.get(name).preset == preset}
    return [row for row in tables.read(table).to_pylist() if row["parser"] not in ours]


def _complete(
    row: Row, lanes: Sequence[Row], reasons: Sequence[str], together: int, options: MergeOptions
) -> Row:
    result = {**row, "problems": _problems(row, lanes, together)}
    if lanes:
        for name in ("role", "rank_id", "step"):
            values = {lane[name] for lane in lanes}
            result[name] = values.pop() if len(values) == 1 else None
        return result
    whose = _whose(str(row["path"]), options)
    result.update(whose)
    if not reasons and row["status"] != "ok":
        # It has no lane to filter; what its name tells is the best there is.
        by_name = excluded(whose, frozenset(), options.filters)
        reasons = [f"{by_name} (by its name; {row['detail']})"] if by_name else []
    if reasons:
        result["status"], result["detail"] = "skipped", reasons[0]
    return result


def _whose(path: str, options: MergeOptions) -> Row:
    who = identity.resolve(path, {}, options.rules, options.root_name)
    return {"role": who.role, "replica": who.replica, "rank_id": who.rank_id, "step": who.step}


def _problems(row: Mapping[str, object], lanes: Sequence[Row], together: int) -> list[object]:
    found = Problems()
    for lane in lanes:
        conflicts = lane["identity_conflicts"]
        if isinstance(conflicts, list) and conflicts:
            found.add("identity_conflict", "warning", len(conflicts), example=str(conflicts[0]))
        if lane["clock"] == "relative" and lane["clock_offset_ns"]:
            found.add(
                "clock_unknown",
                "warning",
                example="its clock does not tell the date: shifted to begin with the first capture",
            )
    if together:
        found.add(
            "same_identity",
            "warning",
            together,
            example="another file has the same role and rank at the same time; both are drawn",
        )
    before = row["problems"]
    return [*(before if isinstance(before, list) else []), *found]
