"""One parse job of an Ascend capture against `json.load(open(f))`, as whole processes.

    python benchmarks/parse_mstx.py [--pairs 3] [--size 4] [--source TRACE_VIEW]

The `trace_view.json` is made here: a real one, with stacks, tasks and counters, repeated with
shifted times until it has some 300 MB. Everything else is as in `parse_torch.py`.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from parse_torch import COMPILED, JOB, Run, compare, grow, run

ROOT = Path(__file__).resolve().parents[1]
SEED = (
    ROOT.parent / "shared/corpus/mstx/level1-text/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT"
    "/trace_view.json"
)

TARGET_BYTES = 300_000_000
GAP_US = 1_000

PLAIN = """
import json, sys
with open(sys.argv[1]) as file:
    json.load(file)
"""

_TS = re.compile(rb'("ts":\s*")(\d+)(\.\d+")')


def repeat(source: bytes, target: Path, size: int) -> int:
    """Write the events of `source` again and again, one after the other in time."""
    text = source.strip()
    assert text.startswith(b"[") and text.endswith(b"]")
    body = text[1:-1]
    times = [int(match[2]) for match in _TS.finditer(body)]
    period = max(times) - min(times) + GAP_US
    written = number = 0
    with target.open("wb") as file:
        written += file.write(b"[")
        while not number or written < size:
            shift = number * period
            copy = _TS.sub(
                lambda ts: b"%b%d%b" % (ts[1], int(ts[2]) + shift, ts[3]),  # noqa: B023
                body,
            )
            written += file.write(b", " + copy if number else copy)
            number += 1
        written += file.write(b"]")
    return written


def made(source: Path, folder: Path, size: int) -> Path:
    """A capture in `folder` whose trace has some `size` bytes, made by a process of its own."""
    trace = folder / "rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json"
    trace.parent.mkdir(parents=True)
    make = [sys.executable, __file__, "--source", source, "--make", trace, "--bytes", str(size)]
    subprocess.run(make, check=True)
    return trace


def job(trace: Path) -> Run:
    """A parse job of the capture that `trace` belongs to."""
    folder = trace.parents[2]
    path = trace.relative_to(folder).as_posix()
    files = [{"path": path, "fingerprint": ""}]
    sources = [{"source_id": "benchmark", "path": trace.parents[1].name, "files": files}]
    unit = folder / "unit.json"
    unit.write_text(json.dumps({"parser": "mstx", "sources": sources}))
    return run(JOB, unit, folder, folder / "tables")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    options.add_argument("--size", type=int, default=1, help="also a file so many times as large")
    options.add_argument("--source", type=Path, default=SEED, help="the trace to repeat")
    options.add_argument("--make", type=Path, default=None, help=argparse.SUPPRESS)
    options.add_argument("--bytes", type=int, default=TARGET_BYTES, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.make is not None:
        size = repeat(given.source.read_bytes(), given.make, given.bytes)
        print(f"{size / 1e6:.0f} MB of JSON", flush=True)
        return
    if not given.source.is_file():
        raise SystemExit(f"there is no {given.source}: name a trace_view.json by --source")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        COMPILED["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        job(made(given.source, folder / "first", 1))
        trace = made(given.source, folder / "one", TARGET_BYTES)
        one = compare(lambda: job(trace), lambda: run(PLAIN, trace), given.pairs)
        if given.size > 1:
            large = made(given.source, folder / "large", given.size * TARGET_BYTES)
            grow(one, [job(large) for _ in range(given.pairs)], given.size)


if __name__ == "__main__":
    main()
