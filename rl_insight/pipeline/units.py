"""Parse jobs: which sources are read together, under a name that never changes.

A unit is keyed by relative paths, never by what only parsing can tell. Where sources are packed,
the assignment is remembered, so that new steps and ranks never move old ones and what is cached
stays valid.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# Beyond this a DAG takes longer to plan than small files take to read.
MAX_JOBS = 2_000
# Where there are that many units already, what is new still gets some jobs side by side.
_ROOM_FOR_NEW = MAX_JOBS // 100

_NO_FOLDERS: Mapping[str, str] = {}

_UNSAFE = re.compile(r"[^0-9A-Za-z]+")
_NAME_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Unit:
    """One parse job: `sources` are relative paths, sorted."""

    parser: str
    name: str
    sources: tuple[str, ...]


def source_id(path: str) -> str:
    """The stable id of a source, from its path relative to the input root."""
    return _digest(path, 8)


def assign(
    parser: str,
    paths: Iterable[str],
    per_job: int,
    known: Mapping[str, str],
    unwanted: Iterable[str] = (),
    folders: Mapping[str, str] = _NO_FOLDERS,
) -> list[Unit]:
    """Pack `paths` into units of at most `per_job` sources of one folder.

    The folder of a path is what `folders` says, else the one that holds it. `known` maps a path to
    the unit name that it had before; it keeps it. `unwanted` are paths that are there but filtered
    away: a unit that has them besides others keeps them, so that a filter never makes stale what is
    parsed. When there would be more than MAX_JOBS units, new ones hold more sources each, and of
    neighbouring folders too.
    """
    wanted = sorted(paths)
    members: dict[str, list[str]] = {}
    for path in (*wanted, *unwanted):
        if path in known:
            members.setdefault(known[path], []).append(path)
    fresh = [path for path in wanted if path not in known]
    placed: dict[str, list[str]] = {}
    for path in fresh:
        placed.setdefault(folders.get(path, path.rpartition("/")[0]), []).append(path)
    chunks = _chunks(placed, per_job, max(_ROOM_FOR_NEW, MAX_JOBS - len(members)))
    chosen = {known[path] for path in wanted if path in known}
    members = {name: found for name, found in members.items() if name in chosen}
    members |= {_unit_name(chunk): chunk for chunk in chunks}
    return [Unit(parser, name, tuple(sorted(found))) for name, found in sorted(members.items())]


def _chunks(folders: Mapping[str, list[str]], per_job: int, room: int) -> list[list[str]]:
    """The paths of all `folders` in at most `room` parts: of one folder each where possible."""
    paths = [path for found in folders.values() for path in found]
    per_job = max(per_job, -(-len(paths) // room))
    chunks = [chunk for found in folders.values() for chunk in _cut(found, per_job)]
    return chunks if len(chunks) <= room else _cut(paths, per_job)


def _cut(paths: list[str], size: int) -> list[list[str]]:
    return [paths[at : at + size] for at in range(0, len(paths), size)]


def _unit_name(paths: Sequence[str]) -> str:
    readable = _UNSAFE.sub("_", paths[0]).strip("_")[-_NAME_LENGTH:].strip("_")
    return f"{readable or 'unit'}-{_digest(chr(0).join(paths), 5)}"


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=size).hexdigest()
