"""Four large traces, from the command line to the page, against plain `json.load` of the four.

    python benchmarks/command_line.py [--pairs 3] [--files 4]

Both may use two cores: the command line runs with `--cores 2`, the plain readers two at a time.
Each run of ours starts with an empty output folder, so nothing is cached.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from parse_torch import PLAIN, TARGET_BYTES, repeat, seed, unpacked

ROOT = Path(__file__).resolve().parents[1]
CORES = 2


def start_to(page: Path, *words: str | Path) -> float:
    """Seconds that the command line with `words` takes until it has left `page`."""
    begin = time.perf_counter()
    subprocess.run(
        [
            *(sys.executable, "-m", "rl_insight.main", *words),
            *("--output-path", page.parent, "--cores", str(CORES)),
        ],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - begin
    if not page.is_file():
        raise SystemExit(f"the run left no {page.name}")
    return seconds


def ours(traces: Path, output: Path) -> float:
    """Seconds from start to page."""
    shutil.rmtree(output, ignore_errors=True)
    words = ("--input-path", traces, "--profiler-type", "torch")
    return start_to(output / "rl_timeline.html", *words)


def plain(traces: list[Path]) -> float:
    """Seconds to `json.load` every trace, two processes at a time."""
    begin = time.perf_counter()
    with ThreadPoolExecutor(CORES) as pool:
        words = [[sys.executable, "-c", PLAIN, str(trace)] for trace in traces]
        for done in pool.map(lambda one: subprocess.run(one, check=True), words):
            assert done.returncode == 0
    return time.perf_counter() - begin


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    options.add_argument("--files", type=int, default=4, help="how many traces")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "actor_update"
        root.mkdir()
        first = root / "prof_rank-0.json.gz"
        size = repeat(unpacked(seed()), first, TARGET_BYTES)
        traces = [first]
        for rank in range(1, given.files):
            traces.append(first.with_name(f"prof_rank-{rank}.json.gz"))
            os.link(first, traces[-1])
        print(f"{given.files} traces of {size / 1e6:.0f} MB, {CORES} cores", flush=True)
        pairs = []
        for _ in range(given.pairs):
            pairs.append((ours(root, Path(folder) / "output"), plain(traces)))
            print(
                f"  command line {pairs[-1][0]:6.1f} s   json.load {pairs[-1][1]:6.1f} s",
                flush=True,
            )
        ratio = statistics.median(other / own for own, other in pairs)
        print(f"start to page {ratio:.1f} times shorter than json.load alone (median of pairs)")


if __name__ == "__main__":
    main()
