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
# Where there are that many units already, what is new still gets some jobs side by side: of a run
# that brings a step each hour ever fewer, or the DAG would grow as fast as before.
_ROOM_FOR_NEW = MAX_JOBS // 100
_HALVED_AFTER = MAX_JOBS // 20

# That many sources or fewer are read one by one, so that a change costs nobody else.
_FEW = 64
# More than that are packed until a job has more to do than to start (0.4 s): 8 MB are 0.1 s of
# plain JSON, and a second where it is compressed.
_PACK_BYTES = 8_000_000
_PACK_COUNT = 64

_NO_FOLDERS: Mapping[str, str] = {}
_NO_SIZES: Mapping[str, int] = {}

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
    per_job: int | None,
    known: Mapping[str, str],
    unwanted: Iterable[str] = (),
    folders: Mapping[str, str] = _NO_FOLDERS,
    sizes: Mapping[str, int] = _NO_SIZES,
) -> list[Unit]:
    """Pack `paths` into units of at most `per_job` sources of one folder.

    Without `per_job` what is new is packed by count and by its `sizes` in bytes, which then has
    all `paths`, and small folders share a unit. The folder of a path is what `folders` says, else
    the one that holds it. `known` maps a path to the unit name that it had before; it keeps it.
    `unwanted` are paths that are there but filtered away: a unit that has them besides others keeps
    them, so that a filter never makes stale what is parsed. When there would be more than MAX_JOBS
    units, new ones hold more sources each, and of neighbouring folders too.
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
    room = _room(len(members))
    if per_job is not None:
        chunks = _by_count(placed, per_job, room)
    elif len(fresh) <= _FEW:
        chunks = _by_count(placed, 1, room)
    else:
        chunks = _by_size(placed, sizes)
        if len(chunks) > room:
            chunks = _cut(fresh, -(-len(fresh) // room))
    chosen = {known[path] for path in wanted if path in known}
    members = {name: found for name, found in members.items() if name in chosen}
    members |= {_unit_name(chunk): chunk for chunk in chunks}
    return [Unit(parser, name, tuple(sorted(found))) for name, found in sorted(members.items())]


def _room(units: int) -> int:
    """How many units what is new may have where there are `units` already."""
    beyond = max(0, units - MAX_JOBS)
    return max(MAX_JOBS - units, _ROOM_FOR_NEW >> (beyond // _HALVED_AFTER), 1)


def _by_count(folders: Mapping[str, list[str]], per_job: int, room: int) -> list[list[str]]:
    """The paths of all `folders` in at most `room` parts: of one folder each where possible."""
    paths = [path for found in folders.values() for path in found]
    per_job = max(per_job, -(-len(paths) // room))
    chunks = [chunk for found in folders.values() for chunk in _cut(found, per_job)]
    return chunks if len(chunks) <= room else _cut(paths, per_job)


def _by_size(folders: Mapping[str, list[str]], sizes: Mapping[str, int]) -> list[list[str]]:
    """The paths of all `folders`, packed; a folder is only cut where it is too much for one job."""
    chunks: list[list[str]] = []
    left = (0, 0)
    for found in folders.values():
        whole = sum(sizes[path] for path in found)
        if len(found) > left[0] or whole > left[1]:
            left = (0, 0)
        for path in found:
            count, size = left
            if not count or sizes[path] > size:
                chunks.append([])
                count, size = _PACK_COUNT, _PACK_BYTES
            chunks[-1].append(path)
            left = (count - 1, size - sizes[path])
    return chunks


def _cut(paths: list[str], size: int) -> list[list[str]]:
    return [paths[at : at + size] for at in range(0, len(paths), size)]


def _unit_name(paths: Sequence[str]) -> str:
    readable = _UNSAFE.sub("_", paths[0]).strip("_")[-_NAME_LENGTH:].strip("_")
    return f"{readable or 'unit'}-{_digest(chr(0).join(paths), 5)}"


def is_unit_name(text: str) -> bool:
    """Whether something may be called so because it belongs to a unit."""
    return re.fullmatch(r"[A-Za-z0-9_-]+-[0-9a-f]{10}", text) is not None


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=size).hexdigest()
