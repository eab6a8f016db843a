"""Makes msprobe dumps of grouped matmuls for tests, without torch.

`write_dump` lays out a tree as verl does with msprobe (precision_debugger_profile.py); `save`
writes one tensor as `torch.save` does: an uncompressed zip with a pickle that names the storage,
and the storage itself (torch/serialization.py, torch/_utils.py: `_rebuild_tensor_v2`).
"""

import json
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

API = "NPU.npu_grouped_matmul"

_STORAGES = {
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "uint8": "ByteStorage",
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bool": "BoolStorage",
}

Vector = Sequence[int] | Sequence[Sequence[int]] | np.ndarray


def write_dump(
    root: Path,
    step: int | str = 1,
    role: str = "actor_update",
    rank: int | str = 0,
    calls: Sequence[Vector] = (),
    *,
    inner_step: bool = True,
    api: str = API,
    group_list_type: int | str | None = None,
    stacks: Mapping[int, Sequence[str]] | None = None,
    first: int = 0,
) -> Path:
    """Write the group lists of one rank below `root`, the calls numbered from `first` on.

    Gives its `dump_tensor_data`. With `group_list_type` there is a dump.json too: a number stands
    in it for each call, "default" means that the calls did not give the argument. `stacks` maps a
    call's number to its frames, innermost first, for a stack.json as msprobe writes it today.
    """
    inner = "step0/" if inner_step else ""
    folder = root / f"step_{step}/{role}/{inner}rank{rank}"
    data = folder / "dump_tensor_data"
    data.mkdir(parents=True, exist_ok=True)
    numbered = list(enumerate(calls, first))
    for number, vector in numbered:
        save(data / name(number, api), vector)
    if group_list_type is not None:
        entries = {
            f"{api}.{number}.forward": entry(np.asarray(vector), group_list_type, number, api)
            for number, vector in numbered
        }
        write_dump_json(folder, entries)
    if stacks is not None:
        write_stack_json(folder, {f"{api}.{n}.forward": frames for n, frames in stacks.items()})
    return data


def name(number: int, api: str = API, suffix: str = "pt") -> str:
    """The name of the group list of one call."""
    return f"{api}.{number}.forward.kwargs.group_list.{suffix}"


def entry(
    vector: np.ndarray, group_list_type: int | str, number: int = 0, api: str = API
) -> dict[str, object]:
    """What dump.json says of one call; group_list_type "default" leaves that argument out."""
    kwargs: dict[str, object] = {
        "bias": None,
        "group_list": tensor(vector, name(number, api)),
        "split_item": {"type": "int", "value": 2},
        "group_type": {"type": "int", "value": 0},
    }
    if group_list_type != "default":
        kwargs["group_list_type"] = {"type": "int", "value": group_list_type}
    weight = np.zeros((len(vector), 4, 8), np.float32)
    return {
        "input_args": [[tensor(np.zeros((16, 4)), None)], [tensor(weight, None)]],
        "input_kwargs": kwargs,
        "output": [tensor(np.zeros((16, 8)), None)],
    }


def tensor(values: np.ndarray, data_name: str | None) -> dict[str, object]:
    """How msprobe describes a tensor."""
    empty = values.size == 0
    described: dict[str, object] = {
        "type": "torch.Tensor",
        "dtype": f"torch.{values.dtype}",
        "shape": list(values.shape),
        "Max": None if empty else float(values.max()),
        "Min": None if empty else float(values.min()),
        "Mean": None if empty else float(values.mean()),
        "Norm": None if empty else float(np.sqrt((values.astype(float) ** 2).sum())),
        "requires_grad": False,
    }
    return described if data_name is None else {**described, "data_name": data_name}


def write_dump_json(folder: Path, entries: Mapping[str, object], task: str = "tensor") -> Path:
    """Write a rank's dump.json with `entries` by the name of the call."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "dump.json"
    content = {
        "task": task,
        "level": "L1",
        "framework": "pytorch",
        "dump_data_dir": str(folder / "dump_tensor_data") if task == "tensor" else None,
        "data": entries,
    }
    path.write_text(json.dumps(content, indent=1))
    return path


def write_stack_json(folder: Path, frames: Mapping[str, Sequence[str]]) -> Path:
    """Write stack.json as msprobe does today: calls of one stack share an entry."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for call, stack in frames.items():
        shared.setdefault(tuple(stack), []).append(call)
    path = folder / "stack.json"
    content = {str(at): [calls, list(stack)] for at, (stack, calls) in enumerate(shared.items())}
    path.write_text(json.dumps(content, indent=1))
    return path


def save(path: Path, values: Vector, device: str = "cpu") -> Path:
    """Write `values` as `torch.save` writes a tensor of that type; a list becomes int64."""
    array = np.array(values, order="C")
    if array.dtype.kind == "i" and not isinstance(values, np.ndarray):
        array = array.astype(np.int64)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        stem = path.stem
        archive.writestr(f"{stem}/data.pkl", _pickled(array, device))
        archive.writestr(f"{stem}/byteorder", "little")
        archive.writestr(f"{stem}/data/0", array.tobytes())
        archive.writestr(f"{stem}/version", "3\n")
    return path


def _pickled(array: np.ndarray, device: str) -> bytes:
    """The pickle of a tensor, opcode by opcode (pickle protocol 2)."""
    strides = [stride // array.itemsize for stride in array.strides]
    storage = b"(" + _text("storage") + _global("torch", _STORAGES[array.dtype.name])
    storage += _text("0") + _text(device) + _int(array.size) + b"tQ"
    arguments = b"(" + storage + _int(0) + _tuple(array.shape) + _tuple(strides) + b"\x89"
    arguments += _global("collections", "OrderedDict") + b")R" + b"t"
    return b"\x80\x02" + _global("torch._utils", "_rebuild_tensor_v2") + arguments + b"R."


def _global(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text.encode())) + text.encode()


def _int(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def _tuple(values: Sequence[int]) -> bytes:
    return b"(" + b"".join(_int(value) for value in values) + b"t"
