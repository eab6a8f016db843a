"""Reading one export of nsys in any of its forms: from rows to tables."""

from collections.abc import Mapping

from rl_insight.data import identity
from rl_insight.data.names import facts
from rl_insight.errors import ReadError
from rl_insight.parsers import nvtx_environment as environment
from rl_insight.parsers.base import Parsed, Source
from rl_insight.parsers.garbage import without_collection
from rl_insight.parsers.losses import is_cut_short, is_in_part, lost
from rl_insight.parsers.nvtx_capture import NvtxCapture
from rl_insight.parsers.nvtx_kinds import export_command
from rl_insight.parsers.nvtx_ranks import Named
from rl_insight.parsers.nvtx_rows import ACTIVITY
from rl_insight.parsers.nvtx_schema import RANGES, STRINGS
from rl_insight.parsers.nvtx_sources import open_rows, what_instead
from rl_insight.parsers.nvtx_tables import Wanted, build
from rl_insight.parsers.options import range_depth
from rl_insight.problems import Problems

# What the device's time is read from; names tell communication from computing.
_OF_DEVICE = frozenset({*ACTIVITY, STRINGS})


def read(source: Source, options: Mapping[str, object]) -> Parsed:
    """What the export `source` holds; memory does not grow with its size.

    Raises ReadError when it cannot be read, or is none.
    """
    problems = Problems()
    rows = open_rows(source, problems)
    capture = NvtxCapture()
    with without_collection():
        for batch in rows:
            capture.add(batch)
    if rows.rows_seen and not rows.tabled:
        raise ReadError(
            f"JSON lines of another kind: no row names a table ({export_command(source.path)})"
        )
    capture.finish()
    name = facts(source.path)
    tables = build(
        capture,
        Wanted(
            source_id=source.source_id,
            path_role=identity.path_role(source.path, source.root.name),
            name=Named(name.pid if name.grammar == "nsys" else None, name.rank),
            range_depth=range_depth(options),
            cut_short=is_cut_short(problems),
            in_part=is_in_part(problems, rows.rows_seen) or not _OF_DEVICE.isdisjoint(rows.damaged),
        ),
    )
    if not capture.strings and _names_missing(capture.problems):
        example = "StringIds, the table of the names, is missing or empty"
        problems.add("table_missing", "warning", example=example)
    untold = RANGES not in rows.damaged
    if untold and all(process.ranges is None for process in capture.processes()):
        example = "recorded without --trace=nvtx, or the table NVTX_EVENTS is missing"
        capture.problems.add("no_ranges", "info", example=example)
    damage = lost(problems, rows.rows_seen, "row", _writer(capture))
    problems.extend(capture.problems)
    if not tables["spans"].num_rows:
        detail = _why_empty(problems, rows.rows_seen)
        if damage is not None:
            instead = what_instead(source) or damage
            detail = f"{detail}; {damage}" if rows.rows_seen else instead
        # What damage left nothing of was not empty, it was lost.
        status = "empty" if damage is None else "failed"
        return Parsed(status, detail, rows.rows_seen, problems, tables)
    status = "ok" if damage is None else "salvaged"
    return Parsed(status, damage, rows.rows_seen, problems, tables)


def _why_empty(problems: Problems, rows: int) -> str:
    if "empty_file" in problems:
        return "the file is empty"
    if not rows:
        return "the export holds no rows"
    return (
        f"no NVTX ranges and no device activity in its {rows:,} rows: "
        "was it recorded with --trace=cuda,nvtx?"
    )


def _names_missing(problems: Problems) -> bool:
    return "unnamed_range" in problems or "unnamed_kernel" in problems


def _writer(capture: NvtxCapture) -> str | None:
    """Which version of the exporter's schema it is, where that is told."""
    told = (fact.value for fact in capture.facts if fact.name == environment.SCHEMA)
    version = next(told, None)
    return None if version is None else f"schema version {version}"
