"""The merge: what all parse jobs left becomes one set of tables."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rl_insight import presets, tables
from rl_insight.pipeline import layout
from rl_insight.pipeline.manifest import read_growing, read_skipped
from rl_insight.pipeline.merge_loads import merge_loads
from rl_insight.pipeline.merge_options import MergeOptions, merge_options
from rl_insight.pipeline.merge_timeline import merge_timeline
from rl_insight.pipeline.parts import preset_of
from rl_insight.pipeline.settle import Row
from rl_insight.pipeline.source_rows import marked, other_rows, presets_of, skipped_rows
from rl_insight.schema import SCHEMAS
from rl_insight.table_names import TIMELINE_TABLES
from rl_insight.table_writer import writing

__all__ = ["merge", "merge_options"]


def merge(
    folders: Sequence[Path],
    skipped: Path,
    output: Path,
    options: MergeOptions,
    growing: Path | None = None,
    loads: Path | None = None,
) -> None:
    """Join the units' cache `folders` and the `skipped` inputs into Parquet tables in `output`.

    The expert loads, of which the structure step makes a table, go to the file `loads`; `growing`
    names the sources that were still being written. Rows of `sources` that a run of another preset
    left in `output` are kept.
    Raises CacheError that names the folder to delete when a unit is incomplete.
    """
    rows: list[Row] = []
    names = ["sources", *(TIMELINE_TABLES if "timeline" in options.presets else ())]
    with writing(output, names) as writers:
        if "timeline" in options.presets:
            own = [folder for folder in folders if preset_of(folder) == "timeline"]
            rows = merge_timeline(own, options, writers)
        if loads is not None:
            own = [folder for folder in folders if preset_of(folder) == "heatmap"]
            rows += merge_loads(own, loads, replace(options, filters=options.heatmap_filters))
        rows += skipped_rows(read_skipped(skipped), options)
        if growing is not None:
            rows = marked(rows, read_growing(growing))
        rows += other_rows(layout.table(output, "sources"), options.presets)
        rows.sort(key=lambda row: (str(row["path"]), str(row["parser"])))
        sources = tables.from_rows(SCHEMAS["sources"], rows)
        writers["sources"].add(presets.attach(sources, presets_of(rows)))
