"""Very many small files: what each part of a run costs, against a bare Snakemake of as many jobs.

    python benchmarks/scale.py [--files 1000 10000] [--ranks-per-job auto] [--lists 0] [--cores 2]

Traces are of about 1 kB, all in one folder, eight ranks to a step. Each size is run from nothing,
again without a change, and again with one step of eight ranks more. The yardstick is a Snakefile of
as many trivial jobs as our run had, and the same three runs of it. `--lists 300000` does the same
with so many group lists of experts (torch writes them).
"""

import argparse
import functools
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import expert_load

ROOT = Path(__file__).resolve().parents[1]
RANKS = 8
TIME = "20260814122731089"

DISCOVER = """\
import sys, time
from pathlib import Path
from rl_insight import config
from rl_insight.pipeline.workflow import look
values = dict(word.split("=", 1) for word in sys.argv[1:])
chosen = config.resolve(list(values.items()))
begin = time.perf_counter()
found, _ = look(chosen, Path(chosen.output.path))
print(time.perf_counter() - begin, len(found.units))
"""

# Bare Snakemake with the settings of the default profile, and jobs that do as good as nothing.
TRIVIAL = """\
rule all:
    input: expand("made/{n}.txt", n=range(config["jobs"]))
    localrule: True
rule one:
    output: "made/{n}.txt"
    shell: "touch {output}"
"""


@dataclass(frozen=True)
class Took:
    """Seconds from start to end, seconds of a processor, and the largest process in MB."""

    wall: float
    cpu: float
    peak: float


def trace(folder: Path, step: int, rank: int) -> None:
    """One capture of the flat layout of current verl, with a stage and a few operators."""
    begin = 4_541_015_316_353_000 + step * 20_000_000 + rank * 1_000
    events = [
        {"ph": "X", "cat": "user_annotation", "name": "actor_update", "pid": 9, "tid": 1,
         "ts": begin / 1000, "dur": 9_000.5},
        *({"ph": "X", "cat": "kernel", "name": f"gemm_{n % 5}", "pid": 0, "tid": 7,
           "ts": begin / 1000 + n * 400, "dur": 320.25} for n in range(20)),
    ]  # fmt: skip
    content = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": RANKS},
        "traceEvents": events,
        "baseTimeNanoseconds": 1_767_189_312_000_000_000,
    }
    name = f"actor-rollout-ref_actor-update_step{step}_rank{rank}-of-{RANKS}_pid{rank}_{TIME}"
    (folder / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(content).encode(), 1))


def traces(folder: Path, first: int, files: int) -> None:
    """`files` captures from the step `first` on."""
    folder.mkdir(exist_ok=True)
    for number in range(files):
        step, rank = divmod(number, RANKS)
        trace(folder, first + step, rank)


def run(words: list[str | Path], folder: Path) -> Took:
    """Run a command in `folder` and measure it, with all processes that it starts."""
    program = (
        "import resource, subprocess, sys;"
        "code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=sys.stderr);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss); sys.exit(code)"
    )
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(f"{words}: {done.stderr[-2_000:]}")
    cpu, peak = done.stdout.split()
    return Took(wall, float(cpu), int(peak) / 1024)


def phases(output: Path, begin: float) -> dict[str, float]:
    """Seconds until the first job, and of each kind of job from its first start to its last end.

    Snakemake writes how long a job took when it ends.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for file in (output / "benchmarks").rglob("*.tsv"):
        ended = file.stat().st_mtime
        if ended < begin:
            continue
        head, row = file.read_text().splitlines()[:2]
        took = float(row.split("\t")[head.split("\t").index("s")])
        kind = file.relative_to(output / "benchmarks").parts[0].removesuffix(".tsv")
        kind = "draw" if kind.startswith(("timeline", "heatmap")) else kind
        found.setdefault(kind, []).append((ended - took, ended))
    if not found:
        return {}
    first = min(start for times in found.values() for start, _ in times)
    lasted = {
        kind: max(end for _, end in times) - min(start for start, _ in times)
        for kind, times in found.items()
    }
    return {"until the first job": first - begin, **lasted}


def ours(settings: dict[str, str], output: Path, cores: int) -> tuple[Took, dict[str, float]]:
    words = [sys.executable, "-m", "rl_insight.main", "--cores", str(cores)]
    words += [f"{key}={value}" for key, value in settings.items()]
    begin = time.time()
    took = run(words, ROOT)
    return took, phases(output, begin)


def bare(folder: Path, jobs: int, cores: int) -> Took:
    """A bare Snakemake of so many trivial jobs."""
    folder.mkdir(exist_ok=True)
    (folder / "Snakefile").write_text(TRIVIAL)
    words = [sys.executable, "-m", "snakemake", "--cores", str(cores), "--scheduler", "greedy"]
    words += ["--rerun-triggers", "mtime", "params", "input", "software-env"]
    return run([*words, "--quiet", "all", "--config", f"jobs={jobs}"], folder)


def told(name: str, took: Took, files: int, more: str = "") -> None:
    per_file = f"{took.wall / files * 1e3:7.2f} ms a file"
    figures = f"{took.wall:7.1f} s {took.cpu:7.1f} s CPU {per_file} {took.peak:6.0f} MB"
    print(f"  {name:<28}{figures}{more}", flush=True)


def measure(
    files: int,
    settings: dict[str, str],
    work: Path,
    cores: int,
    grow: Callable[[], None],
    new_jobs: int,
) -> None:
    """The three runs of ours and of the yardstick, for the input that `settings` name."""
    output = work / "out"
    settings = {**settings, "output.path": str(output), "input.settle": "0"}
    words = [f"{key}={value}" for key, value in settings.items()]
    # In an output folder of its own, so that the run that follows does not find it done.
    aside = [
        f"output.path={work / 'aside'}" if word.startswith("output.") else word for word in words
    ]
    done = subprocess.run(
        [sys.executable, "-c", DISCOVER, *aside],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    seconds, units = done.stdout.split()
    print(f"  discovery {float(seconds):.2f} s, {int(units):,} parse jobs", flush=True)
    first, parts = ours(settings, output, cores)
    told("first run", first, files, "".join(f"; {kind} {s:.1f}" for kind, s in parts.items()))
    again, _ = ours(settings, output, cores)
    told("nothing changed", again, files)
    grow()
    more, parts = ours(settings, output, cores)
    told("one step more", more, files, "".join(f"; {kind} {s:.1f}" for kind, s in parts.items()))

    jobs = int(units) + 2
    plain = [bare(work / "bare", n, cores) for n in (jobs, jobs, jobs + new_jobs)]
    for name, one in zip(("first run", "nothing changed", "grown"), plain, strict=True):
        told(f"bare Snakemake, {name}", one, files)
    print(
        f"  nothing changed: {again.wall:.1f} s against {plain[1].wall:.1f} s, "
        f"{again.wall / plain[1].wall:.2f} times; one step more: {more.wall - again.wall:.1f} s "
        f"above that",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--files", type=int, nargs="*", default=[1_000, 10_000])
    options.add_argument("--ranks-per-job", default="auto", help="as parse.ranks_per_job")
    options.add_argument("--lists", type=int, default=0, help="how many group lists")
    options.add_argument("--cores", type=int, default=2)
    given = options.parse_args()
    for files in given.files:
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            source = work / "profiles"
            traces(source, 1, files)
            print(f"{files:,} traces, ranks_per_job={given.ranks_per_job}", flush=True)
            settings = {
                "input.path": str(source),
                "timeline.parser.type": "torch",
                "parse.ranks_per_job": given.ranks_per_job,
            }
            grow = functools.partial(traces, source, files // RANKS + 1, RANKS)
            measure(files, settings, work, given.cores, grow, RANKS)
    if given.lists:
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            dump = work / "dump"
            per_step = (
                len(expert_load.ROLES) * expert_load.RANKS * expert_load.LAYERS * expert_load.CALLS
            )
            steps = -(-given.lists // per_step)
            expert_load.made(list(range(1, steps + 1)), dump)
            print(f"{steps * per_step:,} group lists", flush=True)
            settings = {"input.path": str(dump), "preset": "heatmap"}
            grow = functools.partial(expert_load.made, [steps + 1], dump)
            measure(steps * per_step, settings, work, given.cores, grow, 1)


if __name__ == "__main__":
    main()
