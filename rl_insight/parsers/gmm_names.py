"""The names that msprobe gives to what it dumps, read for grouped matmuls and their group lists.

A call is `{prefix}.{api}.{number}.{forward|backward}` (a module's
`Module.{name}.{class}.{forward|backward}.{number}`), and so is its key in dump.json and stack.json.
A tensor of it is `{call}.{kwargs|input|output}.{key or index}.{pt|npy}`. The prefix is msprobe's
name for where an API comes from: NPU, MindSpeed, Functional, Mint, …

Sources: msprobe, core/dump/data_dump/data_processor/base.py and common/const.py.
"""

import re
from dataclasses import dataclass
from typing import Final

from rl_insight.data import packings
from rl_insight.data.name_facts import number

GROUP_LIST: Final = ("group_list.pt", "group_list.npy")
"""How the file of a group list ends, whatever stands before it."""

CUMSUM: Final = "cumsum"

# By the argument group_list_type of torch_npu.npu_grouped_matmul; 0 is its default.
KINDS: Final = (CUMSUM, "counts", "pairs")

_CALL = re.compile(
    r"(?P<api>[^.].*)\.(?:(?P<number>[0-9]+)\.(?P<way>forward|backward)"
    r"|(?P<module_way>forward|backward)\.(?P<module_number>[0-9]+))"
)
_PLACES = (".kwargs.", ".input.", ".output.")
# MindSpeed, docs/zh/ops/gmm.md: the two differ in what the numbers mean, and in nothing else.
_BY_FORMAT = {"MindSpeed.npu_gmm": CUMSUM, "MindSpeed.npu_gmm_v2": "counts"}
_TAKES_TYPE = "npu_grouped_matmul"
_LONGEST_API = 200


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call: the API with its prefix, its number among that API's calls, and whether it
    was recorded as the backward of that API."""

    api: str
    number: int
    backward: bool = False


def call(text: str) -> Call | None:
    """The call that a key of dump.json or stack.json names; None when it is none."""
    match = _CALL.fullmatch(text)
    if match is None or len(match["api"]) > _LONGEST_API:
        return None
    index = number(match["number"] or match["module_number"])
    if index is None:
        return None
    return Call(match["api"], index, (match["way"] or match["module_way"]) == "backward")


def is_packed_list(path: str) -> bool:
    """Whether a file is named like a group list, but for a packing that is not read."""
    # Of a dump's many files hardly any is, so that is asked first which is quickest to see.
    if "group_list." not in path or path.endswith(GROUP_LIST):
        return False
    bare, packing = packings.split(path)
    return packing != "" and bare.endswith(GROUP_LIST)


def call_of(name: str) -> Call | None:
    """The call that the file `name` holds an argument of; None when it is not msprobe's."""
    for place in _PLACES:
        before, found, _ = name.rpartition(place)
        if found:
            return call(before)
    return None


def may_have_group_list(text: bytes) -> bool:
    """Whether JSON text may speak of a call that takes a group list."""
    return b"grouped_matmul" in text or b"gmm" in text


def takes_type(api: str) -> bool:
    """Whether the API takes `group_list_type`, so that a call without it means the default."""
    return api.rpartition(".")[2] == _TAKES_TYPE


def kind_by_format(api: str | None) -> str | None:
    """What a group list of `api` holds whatever was given; None when that depends on the call."""
    return None if api is None else _BY_FORMAT.get(api)
