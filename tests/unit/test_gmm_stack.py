"""Which pass a call belongs to, by its Python frames: those of torch itself, and written ones."""

import json
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rl_insight.parsers.gmm_names import Call
from rl_insight.parsers.gmm_stack import phase, read
from rl_insight.problems import Problems
from tests.gmm_dumps import read_one
from tests.group_lists import API, write_dump, write_stack_json

SITE = "/usr/lib/python3.11/site-packages"


def frame(path: str, function: str, line: int = 1) -> str:
    return f"File {path}, line {line}, in {function}, \n x = y"


OP = frame("/app/npu_patch.py", "forward")
LOOP = frame("/app/train.py", "<module>")
MODULE = frame(f"{SITE}/torch/nn/modules/module.py", "_call_impl")
APPLY = frame(f"{SITE}/torch/autograd/function.py", "apply")
ENGINE = frame(f"{SITE}/torch/autograd/graph.py", "_engine_run_backward")
BACKWARD = frame("/app/npu_patch.py", "backward")
TENSOR = frame(f"{SITE}/torch/_tensor.py", "backward")
CHECKPOINT = f"{SITE}/torch/utils/checkpoint.py"
MEGATRON = "/app/megatron/core/tensor_parallel/random.py"


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([OP, MODULE, LOOP], "forward"),
        # the first forward pass under a checkpoint is a forward pass
        ([OP, MODULE, frame(CHECKPOINT, "checkpoint"), MODULE, LOOP], "forward"),
        ([OP, MODULE, frame(CHECKPOINT, "forward"), APPLY, LOOP], "forward"),
        # somebody's own function of that name starts no backward pass
        ([OP, MODULE, frame("/app/loss.py", "backward"), LOOP], "forward"),
        ([BACKWARD, APPLY, ENGINE, TENSOR, LOOP], "backward"),
        # on a device autograd has a thread of its own, whose stack begins there
        ([BACKWARD, APPLY], "backward"),
        ([BACKWARD, frame("/t/torch/amp/autocast_mode.py", "decorate_bwd"), APPLY], "backward"),
        ([OP, MODULE, frame(CHECKPOINT, "recompute_fn"), frame(CHECKPOINT, "unpack_hook"),
          BACKWARD, APPLY, ENGINE, TENSOR, LOOP], "recompute"),
        ([OP, MODULE, frame(CHECKPOINT, "backward"), APPLY, ENGINE], "recompute"),
        # the backward pass of what was recomputed runs inside the checkpoint's own backward
        ([BACKWARD, APPLY, ENGINE, frame(CHECKPOINT, "backward"), APPLY, TENSOR], "backward"),
        ([OP, MODULE, frame(MEGATRON, "backward"), APPLY], "recompute"),
        ([BACKWARD, APPLY, ENGINE, frame(MEGATRON, "backward"), APPLY], "backward"),
        ([OP, frame(MEGATRON, "_recompute"), TENSOR], "recompute"),
        ([OP, frame("/app/mindspeed/x.py", "checkpoint_function_backward"), APPLY], "recompute"),
        # a checkpoint that nobody knows: a module is called from within a backward
        ([OP, MODULE, frame("/app/own.py", "backward"), APPLY], "recompute"),
        # msprobe may call the API itself as a module
        ([MODULE, frame("/s/msprobe/core/dump/api_registry.py", "f"), BACKWARD, APPLY], "backward"),
        ([frame("C:\\torch\\utils\\checkpoint.py", "unpack_hook")], "recompute"),
    ],
)  # fmt: skip
def test_the_frames_tell_the_pass(frames: list[str], expected: str) -> None:
    assert phase(frames) == expected


def recorded(run: Callable[[Any, Callable[[], None]], None]) -> list[str]:
    """The phases of the calls of a small model, by the frames that they really had."""
    torch = pytest.importorskip("torch")
    found: list[str] = []

    def record() -> None:
        frames, at = [], sys._getframe(1)
        while at is not None:
            path, line = at.f_code.co_filename, at.f_lineno
            text = linecache.getline(path, line).strip()
            if text:
                frames.append(f"File {path}, line {line}, in {at.f_code.co_name}, \n {text}")
            at = at.f_back  # type: ignore[assignment]
        found.append(phase(frames))

    class Matmul(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            record()
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            ctx.saved_tensors  # noqa: B018  (a checkpoint recomputes here)
            record()
            return gradient * 2

    class Layer(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return Matmul.apply(x) + 1

    run(torch, Layer())
    return found


def test_the_real_frames_of_a_plain_training_step() -> None:
    def run(torch: Any, layer: Any) -> None:
        layer(torch.ones(2, requires_grad=True)).sum().backward()

    assert recorded(run) == ["forward", "backward"]


@pytest.mark.parametrize("reentrant", [True, False])
def test_the_real_frames_of_a_checkpointed_step(reentrant: bool) -> None:
    def run(torch: Any, layer: Any) -> None:
        from torch.utils.checkpoint import checkpoint

        x = torch.ones(2, requires_grad=True)
        checkpoint(layer, x, use_reentrant=reentrant).sum().backward()

    assert recorded(run) == ["forward", "recompute", "backward"]


def test_stack_json_gives_each_call_its_phase(tmp_path: Path) -> None:
    stacks = {
        0: [OP, MODULE, LOOP],
        1: [OP, MODULE, LOOP],
        2: [OP, MODULE, frame(CHECKPOINT, "unpack_hook"), BACKWARD, APPLY],
        3: [BACKWARD, APPLY],
    }
    write_dump(tmp_path, calls=[[1, 2]] * 5, stacks=stacks)
    dump = read_one(tmp_path)
    # stack.json does not speak of the last call.
    assert dump.column("phase") == ["forward", "forward", "recompute", "backward", None]
    assert dump.said == ("ok", None)


@pytest.mark.parametrize("shared", [True, False])
def test_calls_of_any_api_that_has_files_get_their_phase(tmp_path: Path, shared: bool) -> None:
    api = "VF.by_expert"
    data = write_dump(tmp_path, calls=[[1, 2]], api=api, stacks={0: [BACKWARD, APPLY]})
    if not shared:
        content = {f"{api}.0.forward": [BACKWARD, APPLY]}
        (data.parent / "stack.json").write_text(json.dumps(content))
    assert read_one(tmp_path).column("phase") == ["backward"]


def test_older_releases_write_the_frames_by_call(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2], [1, 2]])
    content = {
        "Tensor.add.0.forward": [OP],
        f"{API}.0.forward": [OP, LOOP],
        f"{API}.1.forward": [BACKWARD, APPLY],
    }
    (data.parent / "stack.json").write_text(json.dumps(content, indent=4))
    assert read_one(tmp_path).column("phase") == ["forward", "backward"]


def test_a_stack_of_another_dump_tells_nothing(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2]])
    write_stack_json(data.parent, {"Tensor.add.0.forward": [OP], f"{API}.7.forward": [OP]})
    dump = read_one(tmp_path)
    assert dump.column("phase") == [None]
    assert dump.said == ("ok", None)


def test_a_stack_that_msprobe_could_not_get_tells_nothing(tmp_path: Path) -> None:
    write_dump(tmp_path, calls=[[1, 2]], stacks={0: ["The call stack retrieval failed."]})
    assert read_one(tmp_path).column("phase") == [None]


def test_a_damaged_stack_costs_only_what_is_behind_the_damage(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2], [3, 4]], stacks={0: [OP], 1: [BACKWARD, APPLY]})
    path = data.parent / "stack.json"
    text = path.read_text()
    path.write_text(text[: text.index('"1"') + 20])
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2], [3, 4]]
    assert dump.column("phase") == ["forward", None]
    assert dump.said == ("salvaged", "its damaged stack.json may not tell their phase")


def test_a_call_recorded_as_backward_is_backward(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2]])
    (old,) = data.iterdir()
    old.rename(data / old.name.replace("forward", "backward"))
    assert read_one(tmp_path).column("phase") == ["backward"]


def test_very_many_calls_of_one_stack_are_read(tmp_path: Path) -> None:
    calls = {f"{API}.{number}.forward": [OP, LOOP] for number in range(50_000)}
    problems = Problems()
    phases = read(write_stack_json(tmp_path, calls), problems)
    assert phases.get(Call(API, 49_999)) == "forward"
    assert phases.get(Call(API, 50_000)) is None
    assert not list(problems)
