"""The merge: what all parse jobs left becomes one set of tables."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from rl_insight import presets, tables
from rl_insight.pipeline import layout
from rl_insight.pipeline.manifest import read_growing, read_skipped
from rl_insight.pipeline.merge_loads import merge_loads
from rl_insight.pipeline.merge_timeline import merge_timeline
from rl_insight.pipeline.parts import preset_of
from rl_insight.pipeline.settle import MergeOptions, Row
from rl_insight.pipeline.source_rows import marked, other_rows, presets_of, skipped_rows
from rl_insight.schema import SCHEMAS


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
    merged: dict[str, pa.Table] = {}
    rows: list[Row] = []
    if "timeline" in options.presets:
        own = [folder for folder in folders if preset_of(folder) == "timeline"]
        merged, rows = merge_timeline(own, options)
    if loads is not None:
        own = [folder for folder in folders if preset_of(folder) == "heatmap"]
        rows += merge_loads(own, loads, replace(options, filters=options.heatmap_filters))
    rows += skipped_rows(read_skipped(skipped), options)
    if growing is not None:
        rows = marked(rows, read_growing(growing))
    rows += other_rows(layout.table(output, "sources"), options.presets)
    rows.sort(key=lambda row: (str(row["path"]), str(row["parser"])))
    output.mkdir(parents=True, exist_ok=True)
    merged["sources"] = presets.attach(tables.from_rows(SCHEMAS["sources"], rows), presets_of(rows))
    for name, table in merged.items():
        tables.write(layout.table(output, name), table)
