"""What an Ascend capture says of itself: role, rank, place among the ranks, from when to when.

Sources: torch_npu writes `profiler_info[_<rank>].json` (profiler_interface.py; `rank_id` is text
when it comes from the environment, a number from torch.distributed) and `profiler_metadata.json`
(`parallel_group_info`, and whatever the user adds, such as `role`). The database repeats the latter
in META_DATA. Both also hold the job's environment: it may have secrets in it, and is never kept.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rl_insight.data.name_facts import INT32, INT64, whole
from rl_insight.data.tree import Tree
from rl_insight.problems import Problems
from rl_insight.readers.json_members import decode_loosely
from rl_insight.readers.pseudo_files import holds_bytes

Row = Mapping[str, object]

WANTED = ("role", "step", "parallel_group_info")
"""The keys of the metadata that are looked at; all others stay unread."""

RANK_SOURCES = ("info", "device map", "name", "group")
"""What tells a rank, the most trusted first."""

_LARGEST_FILE = 16 << 20
_MOST_GROUPS = 10_000
_LONGEST_TEXT = 200
_RANK_IN_NAME = re.compile(r"(?:profiler_info|ascend_pytorch_profiler)_([0-9]{1,10})\.(?:json|db)")
# verl and Megatron name the groups; one over all ranks is torch.distributed's own.
_EVERYONE = "default_group"
_PLACES = {"tp": ("tp",), "pp": ("pp",), "dp": ("dp", "dp_cp"), "ep": ("ep", "exp")}


@dataclass(slots=True)
class Told:
    """What is told about one capture; None is unknown.

    `ranks` are all ranks that are told, each with its place, by what tells them. `devices` maps a
    device to its rank, `groups` a communication group to what it is for. `level` is the profiler's
    level, `started_ns` and `ended_ns` are Unix time.
    """

    role: str | None = None
    step: int | None = None
    host: str | None = None
    level: str | None = None
    world_size: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    ranks: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    devices: dict[int, int] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)

    def tell_rank(self, source: str, rank: int, where: str) -> None:
        """Note a rank; `source` is one of RANK_SOURCES."""
        self.ranks.setdefault(source, []).append((rank, where))

    def rank(self, problems: Problems) -> int | None:
        """The rank to use; ranks that differ from it are a problem."""
        known = [one for source in RANK_SOURCES for one in self.ranks.get(source, ())]
        if not known:
            return None
        rank, where = known[0]
        others = [f"{other} in {place}" for other, place in known if other != rank]
        if others:
            example = f"rank {rank} in {where}, {', '.join(others)}; the first is used"
            problems.add("rank_conflict", "warning", len(others), example=example)
        return rank

    def group(self, name: str | None) -> str | None:
        """What a communication group is called: what it is for, and its own name."""
        # Discovery reads metadata too, and must not wait for numpy.
        from rl_insight.parsers.collectives import group_label

        return None if name is None else group_label(name, self.groups.get(name))


def read(root: Path, files: Iterable[str], problems: Problems) -> Told:
    """What the small JSON files of a capture tell; `files` are relative to `root`.

    A file that is damaged or odd is a problem, never an error.
    """
    told = Told()
    for path in files:
        name = path.rpartition("/")[2]
        if name.startswith("profiler_info"):
            _take_info(told, metadata_object(root / path, problems), name, problems)
        elif name.startswith("profiler_metadata"):
            take_metadata(told, metadata_object(root / path, problems), problems)
        match = _RANK_IN_NAME.fullmatch(name)
        rank = whole(match[1], INT32) if match else None
        if rank is not None:
            told.tell_rank("name", rank, f"the name {name}")
    return told


def take_device_map(told: Told, rows: Iterable[tuple[object, object]], problems: Problems) -> None:
    """Take the rows (rank, device) of the database's RANK_DEVICE_MAP.

    -1 stands for an unknown one (msprof, SaveNpuData; torch_npu, save_rank_info_to_db).
    """
    where = "the database's RANK_DEVICE_MAP"
    ranks: set[int] = set()
    for value, device_value in rows:
        rank = _rank(value, where, problems)
        device = whole(device_value, INT32)
        if rank is not None:
            ranks.add(rank)
            if device is not None:
                told.devices.setdefault(device, rank)
    # Several are those of several devices: none of them is the capture's.
    if len(ranks) == 1:
        told.tell_rank("device map", ranks.pop(), where)


def take_metadata(told: Told, content: Row, problems: Problems) -> None:
    """Take what `profiler_metadata.json` or META_DATA holds; what is known already stays."""
    role = content.get("role")
    if told.role is None and isinstance(role, str) and role.strip():
        told.role = role.strip()[:_LONGEST_TEXT]
    if told.step is None:
        told.step = whole(content.get("step"), INT64)
    groups = content.get("parallel_group_info")
    if isinstance(groups, dict):
        for name, group in list(groups.items())[:_MOST_GROUPS]:
            if isinstance(group, dict):
                _take_group(told, name, group)
    elif groups is not None:
        _odd(problems, "parallel_group_info", groups)


def peek_rank(tree: Tree, files: Sequence[str]) -> Callable[[], Row] | None:
    """The rank that `profiler_info*.json` tells, without reading the capture; None without one."""
    found = [path for path in files if path.rpartition("/")[2].startswith("profiler_info")]
    if not found:
        return None

    def peek() -> Row:
        problems = Problems()
        for path in found:
            content = metadata_object(tree.absolute(path), problems)
            rank = _rank(content.get("rank_id"), path, problems)
            if rank is not None:
                return {"rank_id": rank}
        return {}

    return peek


def _take_info(told: Told, content: Row, name: str, problems: Problems) -> None:
    rank = _rank(content.get("rank_id"), f"rank_id of {name}", problems)
    if rank is not None:
        told.tell_rank("info", rank, name)
    told.level = told.level or _level(content)
    end, start = _part(content, "end_info"), _part(content, "start_info")
    ended = whole(end.get("collectionTimeEnd"))
    monotonic = whole(end.get("MonotonicTimeEnd"))
    began = whole(start.get("start_monotonic"))
    told.ended_ns = ended or told.ended_ns
    if ended and monotonic is not None and began is not None and began <= monotonic < ended:
        # Both clocks were read at the end: the monotonic one tells how long ago the beginning was.
        told.started_ns = ended - (monotonic - began)


def _level(content: Row) -> str | None:
    level = _part(_part(content, "config"), "experimental_config").get("_profiler_level")
    return level[:_LONGEST_TEXT] if isinstance(level, str) else None


def _take_group(told: Told, name: str, group: Row) -> None:
    purpose, index = group.get("group_name"), whole(group.get("group_rank"), INT32)
    members = group.get("global_ranks")
    if not isinstance(purpose, str):
        return
    told.groups.setdefault(name[:_LONGEST_TEXT], purpose[:_LONGEST_TEXT])
    if purpose == _EVERYONE:
        if told.world_size is None and isinstance(members, list) and 0 < len(members) <= INT32:
            told.world_size = len(members)
        if index is not None:
            told.tell_rank("group", index, "parallel_group_info")
    for place, purposes in _PLACES.items():
        if purpose in purposes and getattr(told, place) is None:
            setattr(told, place, index)


def _rank(value: object, where: str, problems: Problems) -> int | None:
    # torch_npu itself writes -1 where it does not know.
    if value is None or value in (-1, "-1"):
        return None
    rank = whole(value, INT32)
    if rank is None:
        _odd(problems, where, value)
    return rank


def _odd(problems: Problems, where: str, value: object) -> None:
    problems.add("odd_metadata", "warning", example=f"{where} is {value!r:.100}")


def _part(content: Row, key: str) -> Row:
    part = content.get(key)
    return part if isinstance(part, dict) else {}


def metadata_object(path: Path, problems: Problems) -> Row:
    """The JSON object in a file; an empty one, and a problem, where there is none."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_FILE + 1) if holds_bytes(file) else b""
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    else:
        try:
            content = decode_loosely(text) if len(text) <= _LARGEST_FILE else None
        except ValueError:
            # Not quoted: there may be secrets in it.
            why = "it is no JSON"
        else:
            if isinstance(content, dict):
                return content
            why = "it holds no JSON object" if len(text) <= _LARGEST_FILE else "it is too large"
    problems.add("metadata_damaged", "warning", example=f"{path.name}: {why}")
    return {}
