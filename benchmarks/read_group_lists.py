"""Reading group lists against a bare loop of `torch.load`: files a second, without the imports.

    python benchmarks/read_group_lists.py [--pairs 3] [--files 4608] [--experts 128]

The files are made here by torch, named and laid out as msprobe does: one vector of int64 in each.
Both read the same files in processes of their own, in turn, so that whatever else the machine does
meets both; both sum up what they read, and the sums must agree. The bar is 3 times as many files.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RANKS = 8
BAR = 3.0

MAKE = """
import sys
from pathlib import Path
import torch
root, files, experts, ranks = Path(sys.argv[1]), *map(int, sys.argv[2:])
torch.manual_seed(0)
for number in range(files):
    call, rank = divmod(number, ranks)
    folder = root / f"step_1/actor_update/step0/rank{rank}/dump_tensor_data"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"NPU.npu_grouped_matmul.{call}.forward.kwargs.group_list.pt"
    torch.save(torch.randint(0, 4096, (experts,)), folder / name)
"""
# How long the import and the loop took (s of wall and of CPU time), and the sum of all numbers.
READ = """
import json, sys, time
from pathlib import Path
def clocks():
    return time.perf_counter(), time.process_time()
paths = sorted(Path(sys.argv[1]).rglob("*group_list.pt"))
times = [clocks()]
{imports}
times.append(clocks())
total = 0
for path in paths:
    total += int({read}.sum())
times.append(clocks())
(i, _), (a, b), (c, d) = times
print(json.dumps([a - i, c - a, d - b, total, len(paths)]))
"""
OURS = READ.format(imports="from rl_insight.readers.torch_file import load", read="load(path)")
TORCH = READ.format(imports="import torch", read="torch.load(path, weights_only=True)")


def run(program: str, root: Path) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", program, str(root)], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    figures: list[float] = json.loads(done.stdout)
    return figures


def show(what: str, figures: list[float]) -> None:
    imports, wall, cpu, _, files = figures
    print(
        f"{what:<12} {files / wall:8.0f} files/s  {1e6 * wall / files:6.0f} us a file "
        f"({1e6 * cpu / files:.0f} us CPU), import {imports:.2f} s",
        flush=True,
    )


def median(runs: list[list[float]]) -> list[float]:
    return [statistics.median(column) for column in zip(*runs, strict=True)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    options.add_argument("--files", type=int, default=4608)
    options.add_argument("--experts", type=int, default=128, help="numbers in each file")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        sizes = map(str, (given.files, given.experts, RANKS))
        subprocess.run([sys.executable, "-c", MAKE, name, *sizes], check=True)
        runs: list[tuple[list[float], list[float]]] = []
        for _ in range(given.pairs):
            runs.append((run(OURS, Path(name)), run(TORCH, Path(name))))
            show("  rl_insight", runs[-1][0])
            show("  torch.load", runs[-1][1])
            if runs[-1][0][3:] != runs[-1][1][3:]:
                raise SystemExit("the two did not read the same numbers")
    ours, theirs = (median(list(column)) for column in zip(*runs, strict=True))
    print(f"median of {given.pairs}")
    show("  rl_insight", ours)
    show("  torch.load", theirs)
    print(
        f"{theirs[1] / ours[1]:.1f} times as many files a second "
        f"({theirs[2] / ours[2]:.1f} by CPU time); the bar is {BAR:.0f}"
    )


if __name__ == "__main__":
    main()
