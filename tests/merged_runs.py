"""Runs over an input folder without Snakemake: discovery, a parse job per input, and the merge."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rl_insight import tables
from rl_insight.data.identity import compile_rules
from rl_insight.data.tree import scan
from rl_insight.pipeline import layout, manifest
from rl_insight.pipeline.discovery import Filters, discover
from rl_insight.pipeline.merge import merge
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.parse import parse_unit
from rl_insight.table_names import TIMELINE_TABLES

Row = dict[str, Any]
Tables = dict[str, list[Row]]

_OPTIONS = {"timeline.parser.range_depth": 2}


def parse_all(root: Path, output: Path, parsers: Iterable[str]) -> list[Path]:
    """Parse what is found below `root`, one input a job; gives the folders of the jobs."""
    tree = scan(root)
    found = discover(tree, list(parsers), compile_rules(None), Filters())
    output.mkdir(parents=True, exist_ok=True)
    units = manifest.update(output, tree, found, dict.fromkeys(parsers, 1)).units
    folders = []
    for unit in units:
        folder = output / layout.unit_folder(unit.parser, unit.name)
        parse_unit(output / layout.unit_file(unit.parser, unit.name), root, folder, _OPTIONS)
        folders.append(folder)
    return folders


def merge_all(folders: Iterable[Path], root: Path, output: Path) -> Tables:
    """Merge what jobs left; gives the rows of the tables, `sources` and those of the timeline."""
    options = MergeOptions(compile_rules(None), Filters(), root.name)
    merge(list(folders), output / layout.SKIPPED, output / layout.TABLES, options)
    return {
        name: tables.read(layout.table(output / layout.TABLES, name)).to_pylist()
        for name in ("sources", *TIMELINE_TABLES)
    }


def drawn(root: Path, output: Path, *parsers: str) -> Tables:
    """The merged tables of a run over `root`."""
    return merge_all(parse_all(root, output, parsers), root, output)


def states(found: Tables) -> Mapping[str, tuple[str, str | None]]:
    """Status and sentence of each input, by its path."""
    return {row["path"]: (row["status"], row["detail"]) for row in found["sources"]}


def problems(found: Tables, path: str) -> Mapping[str, tuple[int, int | None]]:
    """How often each problem of one input happened, and the offset of the first."""
    (row,) = [row for row in found["sources"] if row["path"] == path]
    return {one["code"]: (one["count"], one["offset"]) for one in row["problems"]}
