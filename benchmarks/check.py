"""`rl-insight check` on 10,000 small files, against walking over them and reading 64 kB of each.

    python benchmarks/check.py [--pairs 5] [--files 10000]

Three quarters of the files are gzipped traces, the rest group lists; all stand in the cache of the
system. Both are processes of their own, from start to end.
"""

import argparse
import gzip
import io
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
RANKS = 250
TIME = "20260814122731089"

PLAIN = """\
import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            file.read(65_536)
"""


def make(root: Path, files: int) -> int:
    """Write them; gives their size in bytes."""
    size = 0
    for number in range(files * 3 // 4):
        step, rank = divmod(number, RANKS)
        events = [
            {"ph": "X", "name": f"aten::op{n % 17}", "pid": 1, "tid": 1, "ts": 9.5 * n, "dur": 3.25}
            for n in range(150)
        ]
        content = {
            "schemaVersion": 1,
            "distributedInfo": {"rank": rank, "world_size": RANKS, "backend": "nccl"},
            "traceEvents": events,
        }
        path = (
            root / f"actor_actor-update_step{step}_rank{rank}-of-{RANKS}_pid{number}_{TIME}.json.gz"
        )
        path.write_bytes(gzip.compress(json.dumps(content).encode(), 6))
        size += path.stat().st_size
    held = io.BytesIO()
    torch.save(torch.arange(128), held)
    for number in range(files - files * 3 // 4):
        rank, call = divmod(number, 50)
        dump = root / "step_1" / "actor_update" / "step0" / f"rank{rank}" / "dump_tensor_data"
        dump.mkdir(parents=True, exist_ok=True)
        path = dump / f"NPU.npu_grouped_matmul.{call}.forward.kwargs.group_list.pt"
        path.write_bytes(held.getvalue())
        size += path.stat().st_size
    return size


def seconds(words: list[str]) -> tuple[float, float]:
    """From start to end, and of a processor."""
    begin, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    took, now = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=5, help="runs of each, in turn")
    options.add_argument("--files", type=int, default=10_000, help="how many files")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        size = make(Path(folder), given.files)
        print(f"{given.files:,} files, {size / 1e6:.0f} MB", flush=True)
        pairs = []
        for _ in range(given.pairs):
            ours = seconds([sys.executable, "-m", "rl_insight.main", "check", folder])
            plain = seconds([sys.executable, "-c", PLAIN, folder])
            pairs.append((ours, plain))
            print(
                f"  check {ours[0]:5.2f} s ({ours[1]:.2f} s of a processor)"
                f"   walk, open, read {plain[0]:5.2f} s ({plain[1]:.2f} s)",
                flush=True,
            )
        took = statistics.median(own[0] for own, _ in pairs)
        ratio = statistics.median(own[1] / other[1] for own, other in pairs)
        print(f"check {took:.2f} s, {ratio:.1f} times the plain reader's processor time (medians)")


if __name__ == "__main__":
    main()
