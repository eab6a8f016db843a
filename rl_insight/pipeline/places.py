"""The places below `output.path` that a run writes to, looked at before it does.

A link there would have files written elsewhere, and a folder in the place of a file would end the
run only when its work is done.
"""

import os
import re
from pathlib import Path

from rl_insight.errors import ConfigError
from rl_insight.parsers import PARSERS
from rl_insight.pipeline import layout
from rl_insight.pipeline.units import is_unit_name
from rl_insight.table_names import HEATMAP_TABLES, TIMELINE_TABLES

_FILES = (layout.MANIFEST, layout.RUN_CONFIG, layout.LIVE, layout.LOCK)
# Not .snakemake: it is Snakemake's, and some link it to a faster disk, for it holds many small
# files. And not the link to the input, which is there to lead out.
_FOLDERS = (layout.TABLES, layout.PARSED, layout.LOGS, layout.BENCHMARKS)
_TABLES = ("sources", *TIMELINE_TABLES, *HEATMAP_TABLES)
_IN_PARSED = frozenset(
    path.name
    for path in (layout.SKIPPED, layout.GROWING, layout.ATTEMPT, layout.UNFINISHED, layout.LOADS)
)
# What a job leaves beside its outputs, and what it is called.
_OF_JOBS = ((layout.LOGS, ".log"), (layout.BENCHMARKS, ".tsv"))
_OF_A_RULE = re.compile(
    r"(?:merge|structure|(?:heatmap|timeline)_[A-Za-z0-9_-]+|rl-insight)\.[a-z]+\Z"
)
_PARSE = "parse"


def check_places(output: Path, pages: tuple[str, ...]) -> None:
    """Check whatever stands already where a run writes; `pages` are the files that it draws.

    Raises ConfigError that names a link which leads out of `output` or to nothing, a folder in the
    place of a file, or the reverse. `output` itself may be a link.
    """
    for path in (*_FILES, *map(Path, pages)):
        _check(output, path, is_folder=False)
    for path in _FOLDERS:
        _check(output, path, is_folder=True)
    if os.path.lexists(snakemake := output / ".snakemake") and not snakemake.is_dir():
        raise ConfigError(
            f"output.path: {str(snakemake)!r} is no folder, and Snakemake keeps its notes there: "
            "remove it, or choose another folder"
        )
    for name in _TABLES:
        _check(output, layout.table(layout.TABLES, name), is_folder=False)
    # What is in a unit's folder is made beside it and moved there as a whole.
    for entry in _entries(output, layout.PARSED):
        if entry.name in _IN_PARSED:
            _check_entry(output, layout.PARSED, entry, is_folder=False)
    for name in PARSERS.names():
        parser = layout.PARSED / name
        _check(output, parser, is_folder=True)
        for unit in _entries(output, parser):
            # What a person keeps beside the units is none of ours.
            if is_unit_name(unit.name.removesuffix(".json")):
                _check_entry(output, parser, unit, is_folder=not unit.name.endswith(".json"))
    for folder, suffix in _OF_JOBS:
        for entry in _entries(output, folder):
            if entry.name.endswith(suffix) and _OF_A_RULE.match(entry.name):
                _check_entry(output, folder, entry, is_folder=False)
        _check(output, folder / _PARSE, is_folder=True)
        for name in PARSERS.names():
            parser = folder / _PARSE / name
            _check(output, parser, is_folder=True)
            for entry in _entries(output, parser):
                if entry.name.endswith(suffix):
                    _check_entry(output, parser, entry, is_folder=False)


def leads_out(output: Path, path: Path) -> bool:
    """Whether what is written to `path` would not come to lie below `output`."""
    # Not by pathlib: it raises where links lead in a circle.
    real = os.path.realpath(output)
    return os.path.commonpath((real, os.path.realpath(path))) != real


def _entries(output: Path, folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(output / folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _check_entry(output: Path, folder: Path, entry: os.DirEntry[str], *, is_folder: bool) -> None:
    # The listing tells what an entry is: of thousands none is asked for, on a shared disk.
    is_right = entry.is_dir if is_folder else entry.is_file
    if not is_right(follow_symlinks=False):
        _check(output, folder / entry.name, is_folder=is_folder)


def _check(output: Path, place: Path, *, is_folder: bool) -> None:
    path = output / place
    if path.is_symlink():
        target = str(path.readlink())
        remedy = "remove the link, or choose another folder"
        if leads_out(output, path):
            raise ConfigError(
                f"output.path: {str(path)!r} is a link to {target!r}, and nothing is written "
                f"outside of {str(output)!r}: {remedy}"
            )
        if not path.exists():
            raise ConfigError(f"output.path: {str(path)!r} is a link to nothing: {remedy}")
    if path.exists() and not (path.is_dir() if is_folder else path.is_file()):
        wanted = "folder" if is_folder else "file"
        found = "a folder" if path.is_dir() else "a file" if path.is_file() else "no regular file"
        raise ConfigError(
            f"output.path: {str(path)!r} is {found} where a {wanted} is to be written: "
            "move it away, or choose another folder"
        )
