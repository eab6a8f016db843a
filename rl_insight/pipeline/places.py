"""The places below `output.path` that a run writes to, looked at before it does.

A link there would have files written elsewhere, and a folder in the place of a file would end the
run only when its work is done.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from rl_insight.errors import ConfigError
from rl_insight.pipeline import layout
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


def check_places(output: Path, pages: tuple[str, ...]) -> None:
    """Check whatever stands already where a run writes; `pages` are the files that it draws.

    Raises ConfigError that names a link which leads out of `output` or to nothing, a folder in the
    place of a file, or the reverse. `output` itself may be a link.
    """
    for path in (*_FILES, *map(Path, pages)):
        _check(output, path, is_folder=False)
    for path in _FOLDERS:
        _check(output, path, is_folder=True)
    for name in _TABLES:
        _check(output, layout.table(layout.TABLES, name), is_folder=False)
    # What is in a unit's folder is made beside it and moved there as a whole.
    for name in _names(output, layout.PARSED):
        if name in _IN_PARSED:
            _check(output, layout.PARSED / name, is_folder=False)
        elif layout.is_name(name):
            _check(output, layout.PARSED / name, is_folder=True)
            for unit in _names(output, layout.PARSED / name):
                if layout.is_name(unit.removesuffix(".json")):
                    is_folder = layout.is_name(unit)
                    _check(output, layout.PARSED / name / unit, is_folder=is_folder)
    for folder, suffix in _OF_JOBS:
        _check_jobs(output, folder, suffix, below=2)


def _check_jobs(output: Path, folder: Path, suffix: str, below: int) -> None:
    """As `check_places`, of the files that jobs leave in `folder` and so many levels below it."""
    for name in _names(output, folder):
        if name.endswith(suffix):
            _check(output, folder / name, is_folder=False)
        elif below and layout.is_name(name):
            _check(output, folder / name, is_folder=True)
            _check_jobs(output, folder / name, suffix, below - 1)


def leads_out(output: Path, path: Path) -> bool:
    """Whether what is written to `path` would not come to lie below `output`."""
    # Not by pathlib: it raises where links lead in a circle.
    real = os.path.realpath(output)
    return os.path.commonpath((real, os.path.realpath(path))) != real


def _names(output: Path, folder: Path) -> Iterator[str]:
    try:
        yield from sorted(entry.name for entry in os.scandir(output / folder))
    except (FileNotFoundError, NotADirectoryError):
        return


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
