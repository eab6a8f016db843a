"""Which calls of a dump belong to a forward pass, its recomputation or the backward pass.

stack.json has the Python frames of each call, innermost first, as
`File <path>, line <n>, in <function>, \\n <source line>`. Older releases write an object of frames
by call, newer ones of [calls, frames] by a number.

What the frames mean: `backward` of an autograd function is called by torch/autograd/function.py.
Checkpointing calls the forward pass anew from there: in torch/utils/checkpoint.py by the function
`backward` (reentrant) or from `unpack_hook`, in Megatron by core/tensor_parallel/random.py, in
MindSpeed by `checkpoint_function_backward`. So of a recomputed call the frames go through a module
or a checkpoint before they come to a `backward`.

Sources: msprobe, core/dump/data_dump/json_writer.py, core/common/utils.py; torch.utils.checkpoint.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from rl_insight.errors import ReadError
from rl_insight.parsers.gmm_calls import CallNumbers
from rl_insight.parsers.gmm_names import Call, call, may_have_group_list
from rl_insight.problems import Problems
from rl_insight.readers.json_entries import entries
from rl_insight.readers.json_members import decode_loosely
from rl_insight.schema import PHASES

# The calls that share a stack, 40 bytes each, and the stack.
_LONGEST_ENTRY = 8 << 20

FORWARD, RECOMPUTE, BACKWARD = PHASES

_FRAME = re.compile(r"\s*File (?P<path>.*?), line [0-9]+, in (?P<function>[^,\s]+)")
# Called anew from here, whatever else a frame's file does.
_CHECKPOINT_FUNCTIONS = frozenset(
    {"unpack_hook", "recompute_fn", "checkpoint_function_backward", "_recompute"}
)
_CHECKPOINT_FILES = ("torch/utils/checkpoint.py", "core/tensor_parallel/random.py")
# They start the backward pass: what is inside it comes before them.
_ENGINE = ("torch/_tensor.py", "torch/autograd/__init__.py", "torch/autograd/graph.py")
_MODULE = "torch/nn/modules/module.py"
_APPLY = "torch/autograd/function.py"


class Phases:
    """The phase of each call that a stack.json speaks of."""

    def __init__(self) -> None:
        self._codes = CallNumbers()

    def put(self, one: Call, phase: str) -> None:
        """Note the phase of a call."""
        self._codes.put(one, 1 + PHASES.index(phase))

    def get(self, one: Call) -> str | None:
        """The phase of a call; None where stack.json does not speak of it."""
        code = self._codes.get(one)
        return PHASES[code - 1] if code else None


def read(path: Path, problems: Problems, apis: Iterable[str] = ()) -> Phases:
    """The phases that the stack.json at `path` tells; damage is a problem, never an error.

    Looked at are the calls of `apis`, and of others whose names say that they multiply by groups.
    """
    names = [api.encode("utf-8", "surrogateescape") for api in apis]

    def wanted(text: bytes) -> bool:
        return may_have_group_list(text) or any(name in text for name in names)

    phases = Phases()
    own = Problems()
    try:
        for key, text in entries(path, own, _LONGEST_ENTRY):
            if text is None:
                example = f"the entry {key:.50} has more than {_LONGEST_ENTRY} bytes"
                problems.add("stack_damaged", "warning", example=example)
            elif wanted(key.encode("utf-8", "replace")) or wanted(text):
                _take(key, text, phases, problems)
    except ReadError as error:
        problems.add("stack_damaged", "warning", example=str(error))
    for one in own:
        if one.severity != "info":
            example = f"{path.name}: {one.example}"
            problems.add("stack_damaged", one.severity, one.count, one.offset, example)
    return phases


def phase(frames: Sequence[object]) -> str:
    """The phase of a call with these frames, innermost first."""
    # msprobe itself may call an API as a module: that says nothing.
    caller_seen = through_module = False
    for at, frame in enumerate(frames):
        match = _FRAME.match(frame) if isinstance(frame, str) else None
        if match is None:
            continue
        path, function = match["path"].replace("\\", "/"), match["function"].rpartition(".")[2]
        if path.endswith(_MODULE):
            through_module = caller_seen
            continue
        caller_seen = caller_seen or "msprobe/" not in path
        if function in _CHECKPOINT_FUNCTIONS:
            return RECOMPUTE
        if function == "backward" and not path.endswith(_ENGINE):
            if path.endswith(_CHECKPOINT_FILES):
                return RECOMPUTE
            if any(_is_apply(outer) for outer in frames[at + 1 :]):
                return RECOMPUTE if through_module else BACKWARD
    return FORWARD


def _is_apply(frame: object) -> bool:
    match = _FRAME.match(frame) if isinstance(frame, str) else None
    return match is not None and match["path"].replace("\\", "/").endswith(_APPLY)


def _take(key: str, text: bytes, phases: Phases, problems: Problems) -> None:
    try:
        value = decode_loosely(text)
    except ValueError as error:
        problems.add("stack_damaged", "warning", example=f"the entry {key:.50}: {error}")
        return
    if not isinstance(value, list):
        return
    shared = len(value) == 2 and all(isinstance(part, list) for part in value)
    names, frames = value if shared else ([key], value)
    if not any(isinstance(frame, str) and _FRAME.match(frame) for frame in frames):
        return  # msprobe says so where it could not get a stack
    found = phase(frames)
    for name in names:
        one = call(name) if isinstance(name, str) else None
        if one is not None:
            phases.put(one, found)
