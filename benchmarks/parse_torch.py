"""One parse job against `json.load(gzip.open(f))`, as whole processes: time and peak memory.

    python benchmarks/parse_torch.py [--pairs 3] [--size 4] [--source TRACE]

The trace is made here: a real one, rich in kernels, repeated with shifted times until it has some
280 MB of JSON, gzipped. The two run in turn, so that whatever else the machine does meets both.
With `--size 4` the job also reads a file four times as large: its peak must hardly grow.

Modules are compiled before the first run, as in any installation. A process's peak counts from its
start, when it still is its parent's: so the large traces are made by processes of their own.
"""

import argparse
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "corpus" / "torch" / "dlrm-8-ranks"
DEMO = ROOT / "examples" / "demo" / "data"

TARGET_BYTES = 280_000_000
GAP_US = 1_000
COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}

JOB = """
import sys
from pathlib import Path
from rl_insight.pipeline.parse import parse_unit
unit, root, output = map(Path, sys.argv[1:])
parse_unit(unit, root, output, {"timeline.parser.range_depth": 2})
"""
PLAIN = """
import gzip, json, sys
with gzip.open(sys.argv[1]) as file:
    json.load(file)
"""

_TS = re.compile(rb'("ts":\s*)(\d+)')
_EVENTS = re.compile(rb'"traceEvents":\s*\[')


@dataclass(frozen=True)
class Run:
    """One process: wall time and CPU time in seconds, peak resident memory in MB."""

    wall: float
    cpu: float
    peak: float


def seed() -> Path:
    """A real trace with kernels, where the corpus is at hand; else one of the demo's."""
    found = sorted(CORPUS.glob("worker3*")) or sorted(DEMO.glob("*actor-update*"))
    if not found:
        raise SystemExit("there is neither the corpus nor the demo data: name a trace by --source")
    return found[0]


def unpacked(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw


def repeat(source: bytes, target: Path, size: int) -> int:
    """Write the events of `source` again and again, one after the other in time, gzipped."""
    begin = _EVENTS.search(source)
    if begin is None:
        raise SystemExit("the source is no trace")
    # One character for each byte, so that places in the text are places in the bytes.
    events, end = json.JSONDecoder(strict=False).raw_decode(
        source.decode("latin-1"), begin.end() - 1
    )
    head, body, tail = source[: begin.end()], source[begin.end() : end - 1], source[end - 1 :]
    timed = [event for event in events if event["ph"] == "X"]
    first = min(event["ts"] for event in timed)
    period = int(max(event["ts"] + event["dur"] for event in timed) - first) + GAP_US
    written = number = 0
    with gzip.open(target, "wb", compresslevel=6) as file:
        file.write(head)
        while written < size:
            shift = number * period
            copy = _TS.sub(lambda ts: b"%b%d" % (ts[1], int(ts[2]) + shift), body)  # noqa: B023
            written += file.write(b",\n" + copy if number else copy)
            number += 1
        file.write(tail)
    return written


def unit_of(trace: Path) -> Path:
    """The unit file of a parse job for `trace`."""
    files = [{"path": trace.name, "fingerprint": ""}]
    sources = [{"source_id": "benchmark", "path": trace.name, "files": files}]
    unit = trace.with_suffix(".unit.json")
    unit.write_text(json.dumps({"parser": "torch", "sources": sources}))
    return unit


def made(source: Path, target: Path, size: int) -> Path:
    """`repeat` in a process of its own."""
    make = [sys.executable, __file__, "--source", source, "--make", target, "--bytes", str(size)]
    subprocess.run(make, check=True)
    return target


def run(*command: str | Path) -> Run:
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", *map(str, command)], cwd=ROOT, env=os.environ | COMPILED
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    if status:
        raise SystemExit(f"a run ended with status {os.waitstatus_to_exitcode(status)}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def job(trace: Path) -> Run:
    return run(JOB, unit_of(trace), trace.parent, trace.with_suffix(".tables"))


def median(runs: list[Run]) -> Run:
    columns = ([getattr(one, name) for one in runs] for name in ("wall", "cpu", "peak"))
    return Run(*(statistics.median(column) for column in columns))


def show(what: str, one: Run) -> None:
    print(f"{what:<28} {one.wall:7.2f} s  {one.cpu:7.2f} s CPU  {one.peak:6.0f} MB", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    options.add_argument("--size", type=int, default=1, help="also a file so many times as large")
    options.add_argument("--source", type=Path, default=None, help="the trace to repeat")
    options.add_argument("--make", type=Path, default=None, help=argparse.SUPPRESS)
    options.add_argument("--bytes", type=int, default=TARGET_BYTES, help=argparse.SUPPRESS)
    given = options.parse_args()
    source = given.source or seed()
    if given.make is not None:
        size = repeat(unpacked(source), given.make, given.bytes)
        packed = given.make.stat().st_size
        print(f"{size / 1e6:.0f} MB of JSON, {packed / 1e6:.1f} MB gzipped", flush=True)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        COMPILED["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        trace = made(source, folder / "trace_rank0.json.gz", TARGET_BYTES)
        job(made(source, folder / "first_rank0.json.gz", 1))
        one = compare(lambda: job(trace), lambda: run(PLAIN, trace), given.pairs)
        if given.size > 1:
            large = made(source, folder / "large_rank0.json.gz", given.size * TARGET_BYTES)
            grow(one, [job(large) for _ in range(given.pairs)], given.size)


def compare(
    ours: Callable[[], Run], plain: Callable[[], Run], pairs: int, baseline: str = "json.load"
) -> Run:
    """Run both in turn, print the medians and the ratios; gives the median of ours."""
    runs: list[tuple[Run, Run]] = []
    for _ in range(pairs):
        runs.append((ours(), plain()))
        show("  parse job", runs[-1][0])
        show(f"  {baseline}", runs[-1][1])
    one, other = (median(list(column)) for column in zip(*runs, strict=True))
    print(f"median of {pairs}")
    show("  parse job", one)
    show(f"  {baseline}", other)
    print(
        f"time {other.wall / one.wall:.1f} times shorter ({other.cpu / one.cpu:.1f} in CPU), "
        f"peak {other.peak / one.peak:.0f} times smaller"
    )
    return one


def grow(one: Run, larger: list[Run], size: int) -> None:
    """Print how the peak grows from `one` file to one `size` times as large."""
    largest = median(larger)
    show("  parse job", largest)
    print(f"peak {100 * (largest.peak / one.peak - 1):+.0f} % for {size} times the size")


if __name__ == "__main__":
    main()
