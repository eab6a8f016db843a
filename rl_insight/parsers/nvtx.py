"""The parser for NVTX ranges as NVIDIA Nsight Systems (`nsys export`) writes them.

It reads the export in any of its forms: JSON lines, SQLite, a folder of Parquet or Arrow files.
"""

from collections.abc import Iterator, Mapping

from rl_insight.data import identity
from rl_insight.data.names import facts
from rl_insight.data.tree import Tree
from rl_insight.errors import ReadError
from rl_insight.parsers import nvtx_environment as environment
from rl_insight.parsers.base import Found, Parsed, Source
from rl_insight.parsers.garbage import without_collection
from rl_insight.parsers.losses import is_cut_short
from rl_insight.parsers.nvtx_capture import NvtxCapture
from rl_insight.parsers.nvtx_kinds import export_command
from rl_insight.parsers.nvtx_ranks import Named
from rl_insight.parsers.nvtx_sources import open_rows
from rl_insight.parsers.nvtx_tables import Wanted, build
from rl_insight.parsers.options import RANGE_DEPTH, range_depth
from rl_insight.problems import Problems
from rl_insight.schema import TIMELINE_TABLES


class NvtxParser:
    """One export is one source, and has a lane for each of its processes."""

    name = "nvtx"
    preset = "timeline"
    cache_version = 1
    tables = TIMELINE_TABLES
    options = (RANGE_DEPTH,)

    def discover(self, tree: Tree) -> Iterator[Found]:
        """Every capture in `tree`, in the form that is read, and its other forms to be skipped."""
        # Not needed by a parse job, of which there are thousands.
        from rl_insight.parsers.nvtx_discovery import claims

        return claims(tree)

    def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
        """Read one export; memory does not grow with its size.

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
            ),
        )
        lost = _lost(problems, rows.rows_seen, capture)
        problems.extend(capture.problems)
        if not tables["spans"].num_rows:
            why = _why_empty(problems, rows.rows_seen)
            detail = why if lost is None else f"{why}; {lost}"
            # What damage left nothing of was not empty, it was lost.
            status = "empty" if lost is None else "failed"
            return Parsed(status, detail, rows.rows_seen, problems, tables)
        status = "ok" if lost is None else "salvaged"
        return Parsed(status, lost, rows.rows_seen, problems, tables)


PARSER = NvtxParser()


def _why_empty(problems: Problems, rows: int) -> str:
    if "empty_file" in problems:
        return "the file is empty"
    if not rows:
        return "the export holds no rows"
    return (
        f"no NVTX ranges and no device activity in its {rows:,} rows: "
        "was it recorded with --trace=cuda,nvtx?"
    )


def _lost(problems: Problems, rows: int, capture: NvtxCapture) -> str | None:
    """What the reader lost and how much is there, for a person; None when it lost nothing."""
    found = [one for one in problems if one.severity != "info" and one.code != "empty_file"]
    if not found:
        return None
    kept = f"the {rows:,} rows that could be read are kept"
    if is_cut_short(problems):
        cut = next((one for one in found if one.offset is not None), None)
        where = "" if cut is None else f" after {cut.offset:,} bytes of unpacked text"
        return f"the file breaks off{where}; {kept}"
    worst = max(found, key=lambda one: one.count)
    schema = next((str(f.value) for f in capture.facts if f.name == environment.SCHEMA), None)
    version = f" (schema version {schema})" if schema is not None else ""
    if worst.code in ("table_damaged", "column_missing"):
        return f"damaged: {worst.example}{version}; {kept}"
    where = "" if worst.offset is None else f", first at byte {worst.offset:,}"
    return f"damaged ({worst.code}, {worst.count} times{where}){version}; {kept}"
