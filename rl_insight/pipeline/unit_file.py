"""The small file that says what one parse job reads; it is rewritten only when that is stale.

A module of its own, because a job needs nothing else of what plans the jobs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rl_insight.data.fingerprint import UNREADABLE
from rl_insight.errors import CacheError
from rl_insight.parsers.base import Found
from rl_insight.pipeline import layout
from rl_insight.plain_text import count


@dataclass(frozen=True, slots=True)
class UnitInput:
    """A file that parsing reads, and what tells that it changed."""

    path: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class UnitSource:
    """A source, and the files that it is read from."""

    source_id: str
    path: str
    files: tuple[UnitInput, ...]


@dataclass(frozen=True, slots=True)
class UnitFile:
    """What stands in a unit file: all that decides whether its cache is stale."""

    parser: str
    sources: tuple[UnitSource, ...]


def read_unit(path: Path) -> tuple[str, list[Found]]:
    """The parser and the sources of a unit file.

    Raises CacheError when it is damaged.
    """
    raw = _read(path)
    return raw.parser, [
        Found(one.path, tuple(file.path for file in one.files)) for one in raw.sources
    ]


def readable(path: Path) -> set[str]:
    """The sources of a unit file, by path, whose files could all be read when it was written.

    Raises CacheError when it is damaged.
    """
    return {
        one.path
        for one in _read(path).sources
        if not any(file.fingerprint.startswith(UNREADABLE) for file in one.files)
    }


def _read(path: Path) -> UnitFile:
    try:
        return _decoded(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CacheError(f"{path}: damaged ({error}); delete it and run again") from error


def _decoded(text: bytes) -> UnitFile:
    """The content of a unit file. Raises ValueError and RecursionError."""
    try:
        # A third of the memory, which counts where a dump has 100,000 files.
        return msgspec.json.decode(text, type=UnitFile)
    except msgspec.MsgspecError:
        # It takes no path that is not UTF-8, and gives other words for what is wrong.
        return msgspec.convert(json.loads(text.decode("ascii")), UnitFile)


def works_on(wildcards: Mapping[str, object]) -> str | None:
    """What the parse job with these wildcards reads, in words; None for any other job.

    The working directory is the output folder, as in a run of the workflow.
    """
    names = [wildcards.get(name) for name in ("parser", "unit")]
    if not all(isinstance(name, str) for name in names):
        return None
    try:
        _, found = read_unit(layout.unit_file(*map(str, names)))
    except CacheError:
        return None
    if not found:
        return None
    more = f" and {count(len(found) - 1, 'more input')}" if len(found) > 1 else ""
    return f"{found[0].path}{more}"
