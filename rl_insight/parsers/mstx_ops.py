"""What the tasks of an Ascend device do, and what its collectives are called.

Sources: msprof's analysis/csrc/domain/data_process/ai_task (overlap_analysis_processor.cpp decides
what is computing), its MEMCPY, PCIE_DMA and SDMA task types, HCCL's data types (db_constant.h).
"""

import re

from rl_insight.parsers.collectives import Collective, count_of
from rl_insight.parsers.kernel_names import COMMUNICATION, COMPUTING, MEMORY
from rl_insight.parsers.op_names import LEFT_OUT, OpNames

# Sub-tasks of a collective (SDMA, Write Value, Notify Wait, …) are none of these: the collective
# itself is an event of its own.
_COMPUTING = re.compile(
    r"KERNEL.*|(AI_?(CORE|CPU|VEC(TOR)?(_CORE)?)|AI[CV]|MIX_AI[CV]|DSA|SIMT)(_SQE|_TASK)?",
    re.IGNORECASE,
)
_COPY = re.compile(r"MEM_?(CPY|SET).*|(PCIE_DMA|SDMA)_SQE", re.IGNORECASE)
# Kernels that only drive a collective (overlap_analysis_processor.cpp leaves them out).
_DRIVERS = ("AicpuKernel", "AivKernel")

_COLLECTIVE = re.compile(r"hcom_|hccl", re.IGNORECASE)
# What a device row is called that does no work.
_NO_WORK = re.compile(
    r"(EVENT|NOTIFY|PROFILING|PLACE_?HOLDER|STREAM|MODEL|LABEL)[_ ]|Write[_ ]Value", re.IGNORECASE
)

# hcom_allReduce__586_0_1: the operation, the end of its group's hash, its number in the group, and
# the step.
_NAMED_CALL = re.compile(r"(?P<op>.+?)__(?P<group>[0-9]+)_(?P<seq>[0-9]{1,18})_[0-9]+")

# HCCL's data types in the order of their numbers (ENUM_HCCL_DATA_TYPE), and their bytes.
_TYPES = (
    ("INT8", 1),
    ("INT16", 2),
    ("INT32", 4),
    ("FP16", 2),
    ("FP32", 4),
    ("INT64", 8),
    ("UINT64", 8),
    ("UINT8", 1),
    ("UINT16", 2),
    ("UINT32", 4),
    ("FP64", 8),
    ("BFP16", 2),
    ("INT128", 16),
)
_SIZES = {
    **dict(_TYPES),
    "BF16": 2,
    **dict.fromkeys(("HIF8", "FP8E4M3", "FP8E5M2", "FP8E8M0"), 1),
}
DATA_TYPES: dict[object, str] = {number: name for number, (name, _) in enumerate(_TYPES)}
"""HCCL's data types by number, for a database that does not name them."""

_MOST_CODES = 100_000


class TaskCodes(dict[tuple[object, object], int]):
    """From a task's type and name to the code of its operation, or LEFT_OUT: for a hot loop."""

    def __init__(self, names: OpNames) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, task: tuple[object, object]) -> int:
        kind = task[0] if isinstance(task[0], str) else None
        name = str(task[1]) if isinstance(task[1], str | int) else ""
        category = task_class(kind, name)
        code = LEFT_OUT if category is None else self._names.code(category, name)
        if len(self) < _MOST_CODES:
            self[task] = code
        return code


def task_class(kind: str | None, name: str) -> int | None:
    """COMPUTING, COMMUNICATION or MEMORY; None for a task that counts for nothing.

    `kind` is the task's type; without one the name decides.
    """
    if kind is None:
        if _COLLECTIVE.match(name):
            return COMMUNICATION
        if _COPY.fullmatch(name):
            return MEMORY
        return None if _NO_WORK.match(name) else COMPUTING
    if _COMPUTING.fullmatch(kind):
        return None if is_driver(name) else COMPUTING
    return MEMORY if _COPY.fullmatch(kind) or _COPY.fullmatch(name) else None


def is_collective(name: object) -> bool:
    """Whether a row of that name is a collective operation of HCCL."""
    return isinstance(name, str) and _COLLECTIVE.match(name) is not None


def is_driver(name: str) -> bool:
    """Whether a kernel only drives a collective, and so counts for nothing itself."""
    return name.endswith(_DRIVERS)


def copies(kind: str) -> bool:
    """Whether tasks of that type copy."""
    return _COPY.fullmatch(kind) is not None


def call(
    name: object, group: str | None, elements: object, data_type: object, op: str | None = None
) -> Collective:
    """One call of a collective; `name` is the profiler's name for it, `op` the operation's own.

    Without a `group` the end of the hash in the name tells groups apart. All ranks have it alike.
    """
    text = name if isinstance(name, str) else ""
    match = _NAMED_CALL.fullmatch(text)
    count, size = count_of(elements), _SIZES.get(str(data_type).upper())
    total = None if count is None or size is None else count * size
    if match is not None:
        text = match["op"]
        group = match["group"] if group is None else group
    return Collective(
        op=(op or "").rstrip("_") or text[:200],
        group=group,
        seq=int(match["seq"]) if match else None,
        size=total if total is not None and total < 2**63 else None,
    )
