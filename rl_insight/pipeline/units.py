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
    return _digest(path, 6)


def assign(parser: str, paths: Iterable[str], per_job: int, known: Mapping[str, str]) -> list[Unit]:
    """Pack `paths` into units of at most `per_job` sources of one folder.

    `known` maps a path to the unit name that it had before; it keeps it. When there would be more
    than MAX_JOBS units, new ones hold more sources each.
    """
    members: dict[str, list[str]] = {}
    fresh: dict[str, list[str]] = {}
    for path in sorted(paths):
        if path in known:
            members.setdefault(known[path], []).append(path)
        else:
            fresh.setdefault(path.rpartition("/")[0], []).append(path)
    new = sum(len(found) for found in fresh.values())
    room = max(1, MAX_JOBS - len(members))
    per_job = max(per_job, -(-new // room))
    for found in fresh.values():
        for at in range(0, len(found), per_job):
            chunk = found[at : at + per_job]
            members[_unit_name(chunk)] = chunk
    return [Unit(parser, name, tuple(sorted(found))) for name, found in sorted(members.items())]


def _unit_name(paths: Sequence[str]) -> str:
    readable = _UNSAFE.sub("_", paths[0]).strip("_")[-_NAME_LENGTH:].strip("_")
    return f"{readable}-{_digest(chr(0).join(paths), 5)}"


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=size).hexdigest()
