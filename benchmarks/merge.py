"""The merge of many units' parts against pyarrow that only joins them: time and peak memory.

    python benchmarks/merge.py [--pairs 3] [--units 2000] [--sources 1] [--spans 1000]
    python benchmarks/merge.py --units 313 --sources 32 --spans 200
    python benchmarks/merge.py --loads 300000

The parts are made here as parse jobs leave them: each source is the capture of one rank in one
training step, with one stage and the ranges below it, a breakdown for one span in four, two ops for
one in eight, activity of three categories, and collectives. The plain process reads the same files,
concatenates them and writes one file a table; it settles nothing and has all of it in memory. The
two run in turn, as whole processes, so that whatever else the machine does meets both; the bar is
8 s and 500 MB for two million spans in 2,000 folders.

With --loads so many rows of expert load are merged instead: units of 20 dumps of one rank in one
step each, 144 vectors of 128 experts a dump; with 16 ranks some units hold rows of two steps.
"""

import argparse
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from made_units import make_captures, make_loads

from rl_insight.table_names import TIMELINE_TABLES

ROOT = Path(__file__).resolve().parents[1]

JOB = """
import sys
from pathlib import Path
from rl_insight import without_pandas
without_pandas.keep_out()
from rl_insight.data.identity import compile_rules
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.merge import merge
from rl_insight.pipeline.merge_options import MergeOptions
root, loads = Path(sys.argv[1]), sys.argv[2] == "loads"
options = MergeOptions(
    compile_rules(None), Filters(), "in", presets=("heatmap" if loads else "timeline",)
)
folders = [path for path in sorted(root.glob("parsed/*/*")) if path.is_dir()]
target = root / "tables/.loads.parquet" if loads else None
merge(folders, root / "skipped.json", root / "tables", options, loads=target)
"""
PLAIN = """
import sys
from pathlib import Path
from rl_insight import without_pandas
without_pandas.keep_out()
import pyarrow as pa
import pyarrow.parquet as pq
root, names = Path(sys.argv[1]), sys.argv[2].split(",")
folders = [path for path in sorted(root.glob("parsed/*/*")) if path.is_dir()]
(root / "plain").mkdir(exist_ok=True)
for name in names:
    parts = []
    for folder in folders:
        with pq.ParquetFile(folder / f"{name}.parquet") as file:
            parts.append(file.read(use_threads=False))
    joined = pa.concat_tables(parts, promote_options="default").combine_chunks()
    pq.write_table(joined, root / "plain" / f"{name}.parquet", compression="zstd")
"""


@dataclass(frozen=True)
class Run:
    """One process and its children: wall and CPU time in seconds, peak memory in MB.

    The memory is what all of them together take at one moment, pages that they share (those of
    libraries) counted once.
    """

    wall: float
    cpu: float
    peak: float


def run(program: str, *words: str) -> Run:
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", program, *words], cwd=ROOT)
    over = threading.Event()
    together = [0]

    def look() -> None:
        while not over.wait(0.1):
            together[0] = max(together[0], sum(map(resident, family(process.pid))))

    watching = threading.Thread(target=look)
    watching.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    over.set()
    watching.join()
    if status:
        raise SystemExit(f"a run ended with status {os.waitstatus_to_exitcode(status)}")
    # What one process needed at most is known exactly; the looks may have missed it.
    peak = max(together[0], usage.ru_maxrss * 1024) / 2**20
    return Run(wall, usage.ru_utime + usage.ru_stime, peak)


def family(process: int) -> list[int]:
    """The process and its children."""
    try:
        return [
            process,
            *map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()),
        ]
    except OSError:
        return [process]


def resident(process: int) -> int:
    """Bytes in memory of a process, of shared ones its share; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def contents(folder: Path) -> dict[str, bytes]:
    """What stands in each file of `folder`, in short."""
    found = sorted(path for path in folder.iterdir() if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).digest() for path in found}


def median(runs: list[Run]) -> Run:
    columns = ([getattr(one, name) for one in runs] for name in ("wall", "cpu", "peak"))
    return Run(*(statistics.median(column) for column in columns))


def show(what: str, one: Run) -> None:
    print(f"{what:<12} {one.wall:7.2f} s  {one.cpu:7.2f} s CPU  {one.peak:6.0f} MB", flush=True)


def compare(root: Path, pairs: int, what: str, names: tuple[str, ...]) -> None:
    """Run both in turn, print the medians and the ratios."""
    runs: list[tuple[Run, Run]] = []
    before = None
    for _ in range(pairs):
        shutil.rmtree(root / "tables", ignore_errors=True)
        runs.append((run(JOB, str(root), what), run(PLAIN, str(root), ",".join(names))))
        show("  merge", runs[-1][0])
        show("  pyarrow", runs[-1][1])
        after = contents(root / "tables")
        if before not in (None, after):
            raise SystemExit("two runs over the same parts did not write the same bytes")
        before = after
    ours, theirs = (median(list(column)) for column in zip(*runs, strict=True))
    print(f"median of {pairs}")
    show("  merge", ours)
    show("  pyarrow", theirs)
    sizes = [
        sum(path.stat().st_size for path in (root / folder).iterdir()) / 1e6
        for folder in ("tables", "plain")
    ]
    print(
        f"{ours.wall / theirs.wall:.1f} times as long ({ours.cpu / theirs.cpu:.1f} in CPU), "
        f"peak {ours.peak / theirs.peak:.2f} times as large; "
        f"{sizes[0]:.0f} MB written against {sizes[1]:.0f} MB"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    options.add_argument("--units", type=int, default=2000, help="cache folders")
    options.add_argument("--sources", type=int, default=1, help="captures in each")
    options.add_argument("--spans", type=int, default=1000, help="spans of each capture")
    options.add_argument("--loads", type=int, default=0, help="rows of expert load, instead")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        if given.loads:
            make_loads(root, given.loads)
            print(f"{given.loads:,} rows of expert load", flush=True)
            compare(root, given.pairs, "loads", ("sources", "expert_load"))
        else:
            make_captures(root, given.units, given.sources, given.spans)
            spans = given.units * given.sources * given.spans
            sources = given.units * given.sources
            print(f"{spans:,} spans of {sources:,} captures in {given.units:,} folders", flush=True)
            compare(root, given.pairs, "timeline", ("sources", *TIMELINE_TABLES))


if __name__ == "__main__":
    main()
