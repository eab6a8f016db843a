"""What a parse job costs whatever it reads: one on a trace of 1 kB, as a whole process.

    python benchmarks/parse_job.py [--pairs 9]

It imports what Snakemake puts before every script, does the work of `scripts/parse.py` and ends as
that does. In turn with it runs a Python that imports the same libraries and does nothing: what no
job that reads and writes tables can do without.
"""

import argparse
import json
import tempfile
from pathlib import Path

from parse_torch import COMPILED, Run, median, run, show, unit_of

BAR_S = 0.4

# Snakemake 9, script/__init__.py, PythonScript.generate_preamble: what it imports.
_PREAMBLE = """
import sys
import pickle
from snakemake.logging import logger
from snakemake.iocontainers import Snakemake
"""
JOB = f"""{_PREAMBLE}
import json
from pathlib import Path
from rl_insight.pipeline import job, layout, parse
unit, root, output = map(Path, sys.argv[1:])
job.work(parse.parse_unit, unit, root, output, {{"timeline.parser.range_depth": 2}})
"""
LIBRARIES = f"""{_PREAMBLE}
import msgspec
import numpy
import pyarrow.parquet
"""


def trace(folder: Path) -> Path:
    """A capture of some 1 kB: a stage and eight kernels."""
    stage = {"ph": "X", "cat": "user_annotation", "name": "actor_update", "pid": 9, "tid": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "dur": 320.25}
    content = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
        "baseTimeNanoseconds": 1_767_189_312_000_000_000,
        "traceEvents": [
            {**stage, "ts": 1_000.0, "dur": 9_000.5},
            *({**kernel, "ts": 1_000.0 + n * 400} for n in range(8)),
        ],
    }
    path = folder / "rank0.pt.trace.json"
    path.write_text(json.dumps(content))
    return path


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=9, help="runs of each, in turn")
    pairs = options.parse_args().pairs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        COMPILED["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        # As the workflow sets it: workflow/rules/common.smk.
        COMPILED["OPENBLAS_NUM_THREADS"] = "1"
        path = trace(folder)
        unit = unit_of(path)

        def job() -> Run:
            return run(JOB, unit, folder, folder / "tables")

        job(), run(LIBRARIES)
        runs = [(job(), run(LIBRARIES)) for _ in range(pairs)]
        ours, theirs = (median(list(column)) for column in zip(*runs, strict=True))
        print(f"median of {pairs}, {path.stat().st_size:,} bytes")
        show("  parse job", ours)
        show("  its libraries alone", theirs)
        print(f"{ours.cpu / theirs.cpu:.2f} times their CPU; the bar is {BAR_S} s for the job")


if __name__ == "__main__":
    main()
