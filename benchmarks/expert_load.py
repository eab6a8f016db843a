"""Dumps of expert load, from the command line to the picture, against `torch.load` of every file.

    python benchmarks/expert_load.py [--pairs 3] [--steps 2 40]

One step is 2 roles × 8 ranks × 48 layers × 3 grouped matmuls = 2,304 files of 128 experts. The
plain process imports torch and loads every file with `weights_only=True`, nothing more. Each run of
ours starts with an empty output folder and `--cores 2`; with --grow one step more is dumped after
the first run, and a second run reads only that.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command_line import CORES, start_to

ROOT = Path(__file__).resolve().parents[1]
ROLES = ("actor_update", "actor_compute_log_prob")
RANKS, LAYERS, CALLS, EXPERTS, TOKENS = 8, 48, 3, 128, 32_768

MAKE = """
import sys
from pathlib import Path
import torch
steps, folder = [int(word) for word in sys.argv[1].split(",")], Path(sys.argv[2])
roles, ranks, layers, calls, experts, tokens = ROLES, RANKS, LAYERS, CALLS, EXPERTS, TOKENS
for step in steps:
    generator = torch.Generator().manual_seed(step)
    for role in roles:
        for rank in range(ranks):
            data = folder / f"step_{step}/{role}/step0/rank{rank}/dump_tensor_data"
            data.mkdir(parents=True)
            for layer in range(layers):
                chosen = torch.randint(experts, (tokens,), generator=generator)
                load = torch.bincount(chosen, minlength=experts)
                for call in range(layer * calls, layer * calls + calls):
                    name = f"NPU.npu_grouped_matmul.{call}.forward.kwargs.group_list.pt"
                    torch.save(load, data / name)
"""

PLAIN = """
import sys
from pathlib import Path
import torch
loads = [torch.load(path, weights_only=True) for path in Path(sys.argv[1]).rglob("*group_list.pt")]
print(len(loads))
"""


def made(steps: list[int], folder: Path) -> None:
    """Dump `steps` below `folder`."""
    text = MAKE
    for name in ("ROLES", "RANKS", "LAYERS", "CALLS", "EXPERTS", "TOKENS"):
        text = text.replace(name, repr(globals()[name]))
    words = [sys.executable, "-c", text, ",".join(map(str, steps)), str(folder)]
    subprocess.run(words, check=True)


def ours(dump: Path, output: Path) -> float:
    """Seconds from start to picture."""
    return start_to(output / "gmm_heatmap.png", "preset=heatmap", f"input.path={dump}")


def plain(dump: Path) -> float:
    """Seconds to import torch and load every file, in one process."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", PLAIN, str(dump)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    options.add_argument("--steps", type=int, nargs="+", default=[2], help="sizes, in steps")
    options.add_argument("--grow", action="store_true", help="also time one step more")
    given = options.parse_args()
    per_step = len(ROLES) * RANKS * LAYERS * CALLS
    with tempfile.TemporaryDirectory() as folder:
        dump, output = Path(folder) / "dump", Path(folder) / "output"
        done = 0
        for steps in sorted(given.steps):
            made(list(range(done + 1, steps + 1)), dump)
            done = steps
            print(f"{steps} steps, {steps * per_step:,} files, {CORES} cores", flush=True)
            pairs = []
            for _ in range(given.pairs):
                shutil.rmtree(output, ignore_errors=True)
                pairs.append((ours(dump, output), plain(dump)))
                own, other = pairs[-1]
                print(f"  command line {own:6.1f} s   torch.load {other:6.1f} s", flush=True)
            ratio = statistics.median(own / other for own, other in pairs)
            print(f"  {ratio:.2f} times as long as torch.load alone (median of pairs)", flush=True)
        if given.grow:
            made([done + 1], dump)
            begun = {path.name for path in (output / "parsed/gmm").iterdir()}
            seconds = ours(dump, output)
            new = {path.name for path in (output / "parsed/gmm").iterdir()} - begun
            jobs = sum(name.endswith(".json") for name in new)
            print(f"one step more: {seconds:.1f} s, {jobs} parse jobs")


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
