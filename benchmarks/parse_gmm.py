"""One parse job of group lists against a loop of `torch.load`, as whole processes.

    python benchmarks/parse_gmm.py [--pairs 3] [--files 100000] [--experts 128]

First a rank of 4,608 group lists as verl and msprobe leave them (48 layers, 3 grouped matmuls in
each, forward, recomputation and backward of 8 micro-batches), with its dump.json; then one of
`--files`, without. The loop only loads: `torch.load(file, weights_only=True)` for each; the time
that torch takes to be imported is told apart. The two run in turn.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from parse_torch import COMPILED, Run, compare, median, run

LAYERS = 48
RANK_FILES = 4_608
NAME = "NPU.npu_grouped_matmul.{}.forward.kwargs.group_list.pt"

JOB = """
import sys
from pathlib import Path
from rl_insight.pipeline.parse import parse_unit
unit, root, output = map(Path, sys.argv[1:])
parse_unit(unit, root, output, {})
"""
PLAIN = """
import os, sys
import torch
folder = sys.argv[1]
loads = [torch.load(os.path.join(folder, name), weights_only=True) for name in os.listdir(folder)]
"""
START = "import torch"


def make(folder: Path, files: int, experts: int) -> None:
    """Write so many group lists as msprobe does, by torch itself."""
    import torch

    folder.mkdir(parents=True)
    choose = random.Random(0)
    for number in range(files):
        load = torch.tensor([choose.randrange(2_000) for _ in range(experts)])
        torch.save(load, folder / NAME.format(number))


def describe(folder: Path, files: int, experts: int) -> Path:
    """Write the dump.json of that many calls beside `folder`."""

    def tensor(shape: list[int], **more: object) -> dict[str, object]:
        numbers = {"Max": 1.25, "Min": -1.25, "Mean": 0.001, "Norm": 321.5}
        return {
            "type": "torch.Tensor",
            "dtype": "torch.bfloat16",
            "shape": shape,
            **numbers,
            **more,
        }

    data = {
        f"NPU.npu_grouped_matmul.{number}.forward": {
            "input_args": [[tensor([65536, 2048])], [tensor([experts, 2048, 768])]],
            "input_kwargs": {
                "bias": None,
                "group_list": tensor([experts], data_name=NAME.format(number)),
                "split_item": {"type": "int", "value": 2},
                "group_type": {"type": "int", "value": 0},
                "group_list_type": {"type": "int", "value": 1},
            },
            "output": [tensor([65536, 768])],
        }
        for number in range(files)
    }
    path = folder.parent / "dump.json"
    path.write_text(json.dumps({"task": "tensor", "level": "L1", "data": data}, indent=1))
    return path


def unit_of(root: Path, folder: Path, beside: list[Path]) -> Path:
    """The unit file of a parse job for the group lists in `folder`."""
    paths = [str(path.relative_to(root)) for path in (*sorted(folder.iterdir()), *beside)]
    files = [{"path": path, "fingerprint": "0" * 40} for path in paths]
    source = {"source_id": "benchmark", "path": str(folder.relative_to(root)), "files": files}
    unit = root / f"{folder.parent.name}.unit.json"
    unit.write_text(json.dumps({"parser": "gmm", "sources": [source]}))
    return unit


def measure(root: Path, rank: int, files: int, experts: int, described: bool, pairs: int) -> None:
    """Make one rank's dump, and run both on it in turn."""
    folder = root / f"step_1/actor_update/step0/rank{rank}/dump_tensor_data"
    making = [sys.executable, __file__, "--make", folder, "--files", files, "--experts", experts]
    subprocess.run([str(part) for part in making], check=True)
    beside = [describe(folder, files, experts)] if described else []
    unit = unit_of(root, folder, beside)
    json_size = sum(path.stat().st_size for path in beside) / 1e6
    told = f" and {json_size:.0f} MB of dump.json" if beside else ""
    print(f"{files:,} group lists of {experts} experts{told}", flush=True)

    def job() -> Run:
        return run(JOB, unit, root, root / "tables")

    loops: list[Run] = []

    def plain() -> Run:
        loops.append(run(PLAIN, folder))
        return loops[-1]

    job()
    start = median([run(START) for _ in range(pairs)]).cpu
    ours = compare(job, plain, pairs, "torch.load").cpu
    loading = median(loops).cpu - start
    rates = f"{files / ours:,.0f} files per second of CPU, torch.load {files / loading:,.0f}"
    print(
        f"{rates} without the {start:.1f} s of its import: ratio {loading / ours:.1f}", flush=True
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    options.add_argument("--files", type=int, default=100_000, help="group lists of the large dump")
    options.add_argument("--experts", type=int, default=128, help="numbers in a group list")
    options.add_argument("--make", type=Path, default=None, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.make is not None:
        make(given.make, given.files, given.experts)
        return
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        COMPILED["PYTHONPYCACHEPREFIX"] = str(root / "compiled")
        measure(root, 0, RANK_FILES, given.experts, True, given.pairs)
        measure(root, 1, given.files, given.experts, False, given.pairs)


if __name__ == "__main__":
    main()
