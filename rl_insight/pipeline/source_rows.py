"""The rows of `sources`: what became of every input, also of those that gave nothing."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from rl_insight import tables
from rl_insight.data import identity
from rl_insight.data.identity import Identity
from rl_insight.errors import PluginError
from rl_insight.parsers import PARSERS
from rl_insight.pipeline.discovery import Filters, Skipped
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.same_identity import simultaneous
from rl_insight.pipeline.settle import Row, Settled, excluded
from rl_insight.pipeline.units import source_id
from rl_insight.problems import Problems

_UNTOLD: Row = {}

_GROWING = "it was still being written, and is read again by a run after that"


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
    """One row per input that discovery left out or could not look at."""
    rows = []
    for one in skipped:
        # What is empty is a folder, whose own name counts among the folders.
        path = f"{one.path}/" if one.status == "empty" else one.path
        filters = options.filters
        if _preset(one.parser) == "heatmap":
            filters = options.heatmap_filters
        chosen = replace(options, filters=filters)
        rows.append(_without_lanes(_row(one), _whose(path, options), chosen))
    return rows


def load_rows(
    parsed: Sequence[Row],
    settled: Mapping[str, Identity],
    filtered: Mapping[str, str],
    options: MergeOptions,
) -> list[Row]:
    """Complete the rows of dumps of expert load, which have no lanes.

    `settled` tells whose each is and `filtered` why some are left out, both by `source_id`.
    """
    rows = []
    for row in parsed:
        source = str(row["source_id"])
        who = settled[source]
        whose: Row = {"role": who.role, "rank_id": who.rank_id, "step": who.step}
        given = row["status"] in ("ok", "salvaged")
        if given and source in filtered:
            rows.append({**row, **whose, "status": "skipped", "detail": filtered[source]})
        elif given:
            found = Problems()
            if who.conflicts:
                found.add(
                    "identity_conflict", "warning", len(who.conflicts), example=who.conflicts[0]
                )
            before = row["problems"]
            own = before if isinstance(before, list) else []
            rows.append({**row, **whose, "problems": [*own, *found]})
        else:
            rows.append(_without_lanes(row, {**whose, "replica": who.replica}, options))
    return rows


def other_rows(table: Path, presets: Collection[str]) -> list[Row]:
    """The rows in `table` that runs of other `presets` wrote; none where it cannot be read."""
    try:
        rows: list[Row] = tables.read(table).to_pylist()
    except (OSError, pa.ArrowException):
        return []
    return [row for row in rows if _preset(row.get("parser")) not in (*presets, None)]


def marked(rows: Iterable[Row], growing: Collection[str]) -> list[Row]:
    """`rows`; those whose `source_id` is among the `growing` say that they are not complete."""
    result = []
    for row in rows:
        if row["source_id"] in growing:
            found = Problems()
            found.add("still_growing", "warning", example=_GROWING)
            before = row["problems"]
            row = {**row, "problems": [*(before if isinstance(before, list) else []), *found]}
            if row["detail"]:
                # What is wrong with it may only be that it is not complete.
                row["detail"] = f"{_GROWING}; as it is, {row['detail']}"
        result.append(row)
    return result


def presets_of(rows: Iterable[Row]) -> dict[str, str]:
    """Which preset the parsers of `rows` feed, as far as they are installed."""
    names = {str(row["parser"]) for row in rows}
    return {name: preset for name in names if (preset := _preset(name)) is not None}


def _preset(parser: object) -> str | None:
    try:
        return PARSERS.get(str(parser)).preset
    except PluginError:
        return None


def _row(skipped: Skipped) -> Row:
    return {
        "source_id": source_id(skipped.path),
        "path": skipped.path,
        "parser": skipped.parser,
        "status": skipped.status,
        "detail": skipped.reason,
        "problems": [],
        "events": 0,
    }


def _complete(
    row: Row, lanes: Sequence[Row], reasons: Sequence[str], together: int, options: MergeOptions
) -> Row:
    if lanes:
        result = {**row, "problems": _problems(row, lanes, together)}
        for name in ("role", "rank_id", "step"):
            values = {lane[name] for lane in lanes}
            result[name] = values.pop() if len(values) == 1 else None
        return result
    whose = _whose(str(row["path"]), options, row)
    if reasons:
        return {**row, **whose, "status": "skipped", "detail": reasons[0]}
    return _without_lanes(row, whose, options)


def _without_lanes(row: Row, whose: Row, options: MergeOptions) -> Row:
    """A row of what gave no lane to filter: what its path tells is the best there is.

    What is not known excludes nothing here, or a filter would hide every failure.
    """
    result = {**row, **whose}
    if row["status"] in ("ok", "skipped"):
        return result
    ranks, steps, wanted = options.filters.ranks, options.filters.steps, options.filters.roles
    known = Filters(
        None if whose["rank_id"] is None else ranks,
        None if whose["step"] is None else steps,
        None if whose["role"] is None else wanted,
    )
    reason = excluded(whose, frozenset(), known)
    if reason is not None:
        told = f"; {row['detail']}" if row["detail"] else ""
        result.update(status="skipped", detail=f"{reason} (by its name{told})")
    return result


def _whose(path: str, options: MergeOptions, told: Mapping[str, object] = _UNTOLD) -> Row:
    """Whose a source without lanes is: by its path, and by what its parse job found beside it."""
    known = {name: told.get(name) for name in ("role", "rank_id", "step")}
    who = identity.resolve(path, known, options.rules, options.root_name)
    return {"role": who.role, "replica": who.replica, "rank_id": who.rank_id, "step": who.step}


def _problems(row: Mapping[str, object], lanes: Sequence[Row], together: int) -> list[object]:
    found = Problems()
    for lane in lanes:
        conflicts = lane["identity_conflicts"]
        if isinstance(conflicts, list) and conflicts:
            found.add("identity_conflict", "warning", len(conflicts), example=str(conflicts[0]))
        if lane["clock"] == "relative":
            shifted = ": shifted to begin with the first capture" if lane["clock_offset_ns"] else ""
            found.add(
                "clock_unknown", "warning", example=f"its clock does not tell the date{shifted}"
            )
        doubts = lane["doubts"]
        for code, severity, text in doubts if isinstance(doubts, list) else ():
            found.add(code, severity, example=text)
    if together:
        found.add(
            "same_identity",
            "warning",
            together,
            example="another file has the same role and rank at the same time; both are drawn",
        )
    before = row["problems"]
    return [*(before if isinstance(before, list) else []), *found]
