"""What the path of a capture says about who wrote it: its own name, and the folders above it.

Names are hints: they collide, they are copied and renamed. `rl_insight.data.identity` weighs them
against what the file itself says.

Layouts and their sources: `<save>/<role>/<file>` (verl up to v0.9), `<save>/<step>/<role>/` (verl's
NPU tool up to v0.7.0), `<save>/agent_loop_rollout_replica_<n>/` (verl, rollout_trace_dir), and the
msprobe dumps `<save>/step_<n>/<stage>/step0/rank<r>/dump_tensor_data/` (verl,
precision_debugger_profile.py; the inner step counts nothing there) or `<dump>/step<n>/rank<r>/…`
(msprobe alone, `proc<pid>` where the rank is not known).
"""

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from rl_insight.data import packings, roles
from rl_insight.data.name_facts import INT32, NOTHING, NameFacts, digits, number
from rl_insight.data.name_grammars import TORCH_GRAMMARS, read

__all__ = [
    "DUMP_FOLDER",
    "NOTHING",
    "TORCH_GRAMMARS",
    "NameFacts",
    "dump_facts",
    "facts",
    "folder_facts",
    "root_label",
]

_ASCEND_FILE = re.compile(r"(?:ascend_pytorch_profiler|profiler_info)_([0-9]++)\.(?:db|json)\Z")

_STEP = re.compile(r"(?:global_?)?step[_-]?(?:([0-9]++)|unknown|none)", re.IGNORECASE)
_RANK = re.compile(r"rank[_-]?([0-9]++)?")
_PROCESS = re.compile(r"proc([0-9]++)")
_INNER_STEP = re.compile(r"step[0-9]++")
# Folders that belong to a capture: they lie below its role.
DUMP_FOLDER = "dump_tensor_data"
"""The folder in which msprobe keeps the tensors of one process."""
# verl's msprobe dump: the stage directly below the step, and nothing but msprobe's own below it.
_VERL_DUMP = re.compile(
    rf"(?:.*/)?step_(?:([0-9]++)|unknown)/([^/]++)/(?:step[0-9]++/)?+"
    rf"(?:rank([0-9]*+)|proc([0-9]++))(?:/{DUMP_FOLDER}(?:/[^/]*+)?+)?+"
)
_INSIDE = re.compile(rf"{DUMP_FOLDER}|ASCEND_PROFILER_OUTPUT|PROF_[0-9_A-Z]*+")
_DATE = re.compile(r"20[0-9]{2}[-_.]?[01][0-9][-_.]?[0-3][0-9][-_.:T0-9]*+")
# Words of folders that people make for profiles in general. A folder of only such words is a
# save_path, no role; every word more would hide a role that somebody called so.
_TOOLS = frozenset({"torch", "mstx", "nvtx", "npu", "nsys", "nsight", "gmm"})
_GENERIC = _TOOLS | {
    *("profile", "profiles", "profiler", "profiling", "trace", "traces", "data"),
    *("output", "outputs", "result", "results", "dump", "dumps", "log", "logs"),
}
# What people call the machines that they gather captures from: `gpu-node0.cluster`, `10.0.0.3`.
_HOST = re.compile(
    r"(?:(?:gpu|npu|dgx|ray|k8s|compute|cluster|training|train)[-_]?)?"
    r"(?:node|host|worker|server|machine|pod)[-_]?[0-9]++(?:\.[0-9a-z.-]++)?"
    r"|ip(?:-[0-9]{1,3}){4}(?:\.[0-9a-z.-]++)?|[0-9]{1,3}(?:\.[0-9]{1,3}){3}",
    re.IGNORECASE,
)
_LONGEST_STEP = 7  # digits; a longer number is a date or a time


def facts(path: str) -> NameFacts:
    """What the last name of `path` says, or for a path into an Ascend capture that folder's name.

    Accepts the path of a file or of a folder, with `/`. Never raises; takes linear time.
    """
    *folders, name = path.split("/")
    if DUMP_FOLDER in folders:
        return NOTHING  # msprobe calls its files after the API that it recorded
    capture = next((one for one in (name, *reversed(folders)) if one.endswith("_ascend_pt")), name)
    found = read(capture)
    ascend = _ASCEND_FILE.match(packings.split(name)[0])
    if ascend is not None and found.rank is None:
        return replace(found, grammar="npu", rank=number(ascend[1], INT32))
    return found


def folder_facts(path: str, root_name: str = "") -> NameFacts:
    """What the folders of `path` (relative to the input root) say: role, replica, step, rank, pid.

    `root_name` is the name of the input root itself, which may be the folder of one role, replica,
    step or rank (`root_label`). The role is the nearest folder that is a known stage or a
    replica's; else the folder directly above the capture, unless that is the root or a folder that
    means a step, a date, a host or just profiles. What stands between the root or step and a
    replica's folder is kept before the role, since two such folders may have the same number.
    """
    return _folder_facts(tuple(_folders(path)), root_name)


# A folder may hold thousands of captures.
@lru_cache(maxsize=4096)
def _folder_facts(own: tuple[str, ...], root_name: str) -> NameFacts:
    above = [part for part in root_name.split("/") if part] if _tells(root_name) else []
    folders = [*above, *own]
    dump = dump_facts("/".join(folders))
    steps = [match for part in folders if (match := _STEP.fullmatch(part))]
    ranks = [match[1] for part in folders if (match := _RANK.fullmatch(part))]
    processes = [match[1] for part in folders if (match := _PROCESS.fullmatch(part))]
    at = _role_at(folders) if dump.role is None else _last(folders, dump.role)
    role = folders[at] if at is not None else None
    step = number(steps[0][1]) if steps else _numbered_step(folders, at)
    if dump.role is not None or _is_inner_step(folders, at):
        step = dump.step
    replica = roles.split_replica(role)[1] if role is not None else None
    parent = folders[at - 1] if at is not None and at > len(above) else ""
    if replica is not None and parent and not _says_nothing(parent):
        role = f"{parent}/{role}"
    return NameFacts(
        role=role,
        replica=replica,
        step=step,
        rank=number(ranks[-1], INT32) if ranks else None,
        pid=number(processes[-1]) if processes else None,
    )


def dump_facts(path: str) -> NameFacts:
    """What a path into one of verl's msprobe dumps says: role, step, rank or pid.

    NOTHING for any other path. Such a path is verl's own from its step down, so all of it is
    certain.
    """
    match = _VERL_DUMP.fullmatch(path)
    if match is None or _is_of_msprobe(match[2]) or _says_nothing(match[2]):
        return NOTHING
    return NameFacts(
        role=match[2],
        step=number(match[1]),
        rank=number(match[3] or None, INT32),
        pid=number(match[4]),
    )


def root_label(root: Path) -> str:
    """The name of an input folder as `folder_facts` takes it, with the folders above it where it is
    a part of an msprobe dump: they say whose it is.

    It is empty where the name says nothing, so that a folder may be called otherwise at any time.
    """
    parts = root.parts
    at = len(parts) - 1
    while at > 0 and _is_of_msprobe(parts[at]):
        at -= 1
    inside = at < len(parts) - 1
    if at > 0 and _STEP.fullmatch(parts[at - 1]) and (inside or _is_known(parts[at])):
        return "/".join(parts[at - 1 :])
    if inside and not _STEP.fullmatch(parts[at]) and not _is_known(parts[at]):
        at += 1
    label = "/".join(parts[at:]) if inside else root.name
    return label if _tells(label) else ""


def _folders(path: str) -> list[str]:
    """The folders above a capture; a dump's own folder tells as much as those above it."""
    *folders, name = [part for part in path.split("/") if part not in ("", ".")] or [""]
    if _is_of_msprobe(name) or _is_known(name):
        folders.append(name)
    capture = next((i for i, part in enumerate(folders) if part.endswith("_ascend_pt")), None)
    return folders[:capture]


def _is_of_msprobe(part: str) -> bool:
    """Whether a folder is one that msprobe makes: below the stage, if there is one."""
    patterns = (_RANK, _PROCESS, _INNER_STEP)
    return part == DUMP_FOLDER or any(pattern.fullmatch(part) for pattern in patterns)


def _is_inner_step(folders: list[str], at: int | None) -> bool:
    """Whether the one step is that of msprobe inside a stage: verl never counts it up."""
    below = folders[at + 1 :] if at is not None and _is_known(folders[at]) else []
    steps = [part for part in folders if _STEP.fullmatch(part)]
    return steps == ["step0"] and below[:1] == steps and any(map(_is_process, below[1:2]))


def _is_process(part: str) -> bool:
    return bool(_RANK.fullmatch(part) or _PROCESS.fullmatch(part))


def _last(folders: list[str], part: str) -> int:
    return len(folders) - 1 - folders[::-1].index(part)


def _role_at(folders: list[str]) -> int | None:
    """Which of `folders` is the role."""
    for at in range(len(folders) - 1, -1, -1):
        if _is_known(folders[at]):
            return at
    last = len(folders) - 1
    while last >= 0 and _below_role(folders, last):
        last -= 1
    if last < 0 or _says_nothing(folders[last]) or _HOST.fullmatch(folders[last]):
        return None
    return last


def _below_role(folders: list[str], at: int) -> bool:
    """Whether a folder belongs to the capture itself: its rank, its process, msprobe's own step."""
    part = folders[at]
    if any(pattern.fullmatch(part) for pattern in (_RANK, _PROCESS, _INSIDE)):
        return True
    return _STEP.fullmatch(part) is not None and any(map(_STEP.fullmatch, folders[:at]))


def _numbered_step(folders: list[str], at: int | None) -> int | None:
    """The step of `<save>/<step>/<role>/`, a bare number above the role."""
    if not at or not digits(folders[at - 1]) or len(folders[at - 1]) > _LONGEST_STEP:
        return None
    # `2026/08/14/<role>` is a date.
    return None if at > 1 and digits(folders[at - 2]) else number(folders[at - 1])


def _tells(root_name: str) -> bool:
    """Whether the input root's own name says what lies in it."""
    if "/" in root_name:
        return True
    known = _is_known(root_name) or root_name in roles.WHOLE_STEP or _is_process(root_name)
    return known or _STEP.fullmatch(root_name) is not None


def _is_known(folder: str) -> bool:
    """Whether a folder is a stage's or a replica's."""
    return roles.is_stage(folder) or roles.split_replica(folder)[1] is not None


def _says_nothing(folder: str) -> bool:
    """Whether a folder cannot be a role: it means a step, a date, or profiles in general."""
    if digits(folder) or _STEP.fullmatch(folder) or _DATE.fullmatch(folder):
        return True
    return set(re.split(r"[-_. ]+", folder.lower())) <= _GENERIC
