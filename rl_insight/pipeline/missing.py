"""Which captures a run's tables lack, in a few lines."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from rl_insight.data import roles
from rl_insight.data.coverage import coverage, recorded_by
from rl_insight.data.coverage_words import sentences
from rl_insight.parsers import PARSERS
from rl_insight.pipeline import layout
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.summary_tables import read

_LANES = ["lane_id", "source_id", "role", "replica", "rank_id", "step", "world_size"]
_SOURCES = ["source_id", "path", "parser", "role", "rank_id", "step", "status"]


def missing(output: Path, filters: Mapping[str, Filters]) -> list[str]:
    """What is missing in the tables below `output`; `filters` has the presets of the run.

    Raises FileNotFoundError when a table is missing, CacheError when one is damaged.
    """
    folder = output / layout.TABLES
    sources = read(layout.table(folder, "sources"), _SOURCES).to_pylist()
    own = {name: PARSERS.get(name).preset for name in PARSERS.names()}
    lines = []
    for preset, chosen in filters.items():
        lanes, stages = [], {}
        if preset == "timeline":
            lanes = read(layout.table(folder, "lanes"), _LANES).to_pylist()
            stages = _stages(read(layout.table(folder, "spans"), ["lane_id", "role"]), lanes)
        rows = [row for row in sources if own.get(row["parser"]) == preset]
        found = coverage(recorded_by(lanes, rows, stages), chosen.ranks, chosen.steps, chosen.roles)
        what = "expert load of " if preset == "heatmap" and len(filters) > 1 else ""
        lines += [f"{what}{sentence}" for sentence in sentences(found)]
    return lines


def _stages(spans: pa.Table, lanes: list[dict[str, object]]) -> dict[str, list[str]]:
    """The roles that are drawn of each capture of a whole step."""
    whole = {row["lane_id"] for row in lanes if row["role"] in roles.WHOLE_STEP}
    found: dict[str, list[str]] = defaultdict(list)
    if whole:
        plain = spans.set_column(1, "role", spans["role"].cast(pa.string()))
        for row in plain.group_by(["lane_id", "role"]).aggregate([]).to_pylist():
            if row["lane_id"] in whole and row["role"] is not None:
                found[row["lane_id"]].append(row["role"])
    return found
