"""Make the demo dumps: group lists of a small MoE model's log-prob stage, as msprobe leaves them.

The router is an imitation: each layer has a preference for its experts, each token adds noise to
it and goes to the TOP_K best. The files are what `torch.save` writes; names and folders are verl's
with msprobe's precision debugger; dump.json says that the lists hold tokens per expert.

Two things are planted, to be found again by an analysis:

* in layer HOT_LAYER one expert gets far more than its share, in step 2 still more than in step 1;
* expert DEAD_EXPERT of layer DEAD_LAYER gets nothing.

    python examples/demo/make_demo_loads.py [--output DIR]
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch

SEED = 20261130
STEPS = (1, 2)
RANKS = 4
LAYERS = 6
EXPERTS = 16
TOP_K = 2
TOKENS = 2_048  # per rank and step
GMM_PER_LAYER = 3  # up, gate, down

STAGE = "actor_compute_log_prob"
API = "NPU.npu_grouped_matmul"

HOT_LAYER, HOT_EXPERT = 3, 5
HOT_PREFERENCE = {1: 1.5, 2: 3.0}
DEAD_LAYER, DEAD_EXPERT = 1, 11


def loads(step: int, generator: torch.Generator, preference: torch.Tensor) -> list[torch.Tensor]:
    """Tokens per expert of each layer (int64, one for each expert) on one rank."""
    found = []
    for layer in range(LAYERS):
        bias = preference[layer].clone()
        if layer == HOT_LAYER:
            bias[HOT_EXPERT] = HOT_PREFERENCE[step]
        if layer == DEAD_LAYER:
            bias[DEAD_EXPERT] = -torch.inf
        logits = torch.randn(TOKENS, EXPERTS, generator=generator) + bias
        chosen = logits.topk(TOP_K).indices.flatten()
        found.append(torch.bincount(chosen, minlength=EXPERTS))
    return found


def write_rank(folder: Path, layers: list[torch.Tensor]) -> None:
    """Write the dump of one rank: a group list for each grouped matmul, and dump.json."""
    data = folder / "dump_tensor_data"
    data.mkdir(parents=True)
    calls = {}
    for call in range(LAYERS * GMM_PER_LAYER):
        load = layers[call // GMM_PER_LAYER]
        name = f"{API}.{call}.forward"
        file = f"{name}.kwargs.group_list.pt"
        torch.save(load, data / file)
        calls[name] = {
            "input_args": [],
            "input_kwargs": {
                "group_list": {
                    "type": "torch.Tensor",
                    "dtype": str(load.dtype),
                    "shape": list(load.shape),
                    "Max": load.max().item(),
                    "Min": load.min().item(),
                    "data_name": file,
                },
                "group_list_type": {"type": "int", "value": 1},
            },
            "output": [],
        }
    content = {"task": "tensor", "level": "L1", "framework": "pytorch", "data": calls}
    (folder / "dump.json").write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    """Write the dumps of all steps and ranks."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "data" / "dump")
    output = options.parse_args().output
    shutil.rmtree(output, ignore_errors=True)
    generator = torch.Generator().manual_seed(SEED)
    preference = 0.25 * torch.randn(LAYERS, EXPERTS, generator=generator)
    for step in STEPS:
        for rank in range(RANKS):
            folder = output / f"step_{step}" / STAGE / "step0" / f"rank{rank}"
            write_rank(folder, loads(step, generator, preference))


if __name__ == "__main__":
    main()
