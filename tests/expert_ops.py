"""Sequences of grouped matmuls made up for tests, each call with what it truly belonged to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rl_insight import tables
from rl_insight.schema import EXPERT_LOAD

API = "NPU.npu_grouped_matmul"

Vector = tuple[int, ...]


@dataclass(frozen=True)
class Op:
    """One recorded call: its number, tokens per expert, and the truth about it."""

    at: int
    load: Vector
    micro_batch: int
    layer: int
    phase: str
    sweep: int


def training(
    loads: Sequence[Sequence[Vector]],
    per_layer: int = 3,
    recompute: bool = False,
    gradients: int = 2,
) -> list[Op]:
    """The calls of training with `loads[micro_batch][layer]`."""
    ops: list[Op] = []

    def add(micro_batch: int, layer: int, phase: str, sweep: int, times: int) -> None:
        for _ in range(times):
            load = loads[micro_batch][layer]
            ops.append(Op(len(ops), load, micro_batch, layer, phase, sweep))

    for micro_batch, layers in enumerate(loads):
        for layer in range(len(layers)):
            add(micro_batch, layer, "forward", 2 * micro_batch, per_layer)
        for layer in reversed(range(len(layers))):
            if recompute:
                add(micro_batch, layer, "recompute", 2 * micro_batch + 1, per_layer)
            add(micro_batch, layer, "backward", 2 * micro_batch + 1, gradients * per_layer)
    return ops


def inference(loads: Sequence[Sequence[Vector]], per_layer: int = 3) -> list[Op]:
    """The calls of forward passes alone."""
    ops: list[Op] = []
    for micro_batch, layers in enumerate(loads):
        for layer, load in enumerate(layers):
            for _ in range(per_layer):
                ops.append(Op(len(ops), load, micro_batch, layer, "forward", micro_batch))
    return ops


def cumsum(load: Vector) -> Vector:
    """The sums over the experts so far."""
    return tuple(sum(load[: at + 1]) for at in range(len(load)))


def pairs(load: Vector) -> Vector:
    """(expert, tokens) of the experts that have any, one after the other, last expert first."""
    return tuple(
        number
        for expert in reversed(range(len(load)))
        if load[expert]
        for number in (expert, load[expert])
    )


def cached(
    ops: Sequence[Op], role: str = "actor_update", rank: int | None = 0, **more: object
) -> list[Mapping[str, object]]:
    """Rows of EXPERT_LOAD as the merge leaves them: nothing decided yet."""
    row = {
        "source_id": f"{role}-{rank}",
        "step": 1,
        "role": role,
        "rank_id": rank,
        "api": API,
        **more,
    }
    return [{**row, "op_index": op.at, "load": list(op.load)} for op in ops]


def table(*rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """One table of all `rows`."""
    return tables.from_rows(EXPERT_LOAD, [row for part in rows for row in part])


def truth(ops: Sequence[Op]) -> list[tuple[int, int, str, int]]:
    """What `labels` must give for these calls."""
    return [(op.micro_batch, op.layer, op.phase, op.sweep) for op in ops]


def labels(load: pa.Table) -> list[tuple[object, ...]]:
    """Micro-batch, layer, phase and sweep of each row."""
    names = ("micro_batch", "layer", "phase", "pass_index")
    return list(zip(*(load[name].to_pylist() for name in names), strict=True))
