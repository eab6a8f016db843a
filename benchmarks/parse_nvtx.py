"""One parse job of an nsys export against `json.loads` of its every line, as whole processes.

    python benchmarks/parse_nvtx.py [--pairs 3] [--size 4] [--source EXPORT]

The JSON lines are made here: the ranges and kernels of a real export, a second and a half of two
processes, repeated with shifted times until there are some 300 MB. Everything else is as in
`parse_torch.py`.
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
SEED = ROOT.parent / "shared/corpus/nvtx/derived/h100_2gpu_1s.jsonl"

TARGET_BYTES = 300_000_000
GAP_NS = 1_000_000

PLAIN = """
import json, sys
with open(sys.argv[1]) as file:
    for line in file:
        json.loads(line)
"""

_TIMED = ("CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS")
_TIME = re.compile(rb'("(?:start|end)":)(\d+)')
_END = re.compile(rb'("(?:duration|stopTime)":)(\d+)')


def repeat(source: bytes, target: Path, size: int) -> int:
    """Write the rows of `source` table by table, those with times again and again."""
    rows: dict[str, list[bytes]] = {}
    for line in source.splitlines():
        rows.setdefault(json.loads(line)["table"], []).append(line)
    timed = {table: b"".join(b"%b\n" % row for row in rows.pop(table)) for table in _TIMED}
    times = [int(found[2]) for text in timed.values() for found in _TIME.finditer(text)]
    period = max(times) - min(times) + GAP_NS
    copies = max(1, -(-size // sum(map(len, timed.values()))))
    # The capture lasts as much longer.
    rows["ANALYSIS_DETAILS"] = [
        _END.sub(lambda end: b"%b%d" % (end[1], int(end[2]) + copies * period), row)
        for row in rows["ANALYSIS_DETAILS"]
    ]
    written = 0
    with target.open("wb") as file:
        for own in rows.values():
            written += file.write(b"".join(b"%b\n" % row for row in own))
        for text in timed.values():
            for number in range(copies):
                shift = number * period
                written += file.write(
                    _TIME.sub(lambda at: b"%b%d" % (at[1], int(at[2]) + shift), text)  # noqa: B023
                )
    return written


def made(source: Path, target: Path, size: int) -> Path:
    """`repeat` in a process of its own."""
    make = [sys.executable, __file__, "--source", source, "--make", target, "--bytes", str(size)]
    subprocess.run(make, check=True)
    return target


def job(export: Path) -> Run:
    """A parse job of the export."""
    files = [{"path": export.name, "fingerprint": ""}]
    sources = [{"source_id": "benchmark", "path": export.name, "files": files}]
    unit = export.with_suffix(".unit.json")
    unit.write_text(json.dumps({"parser": "nvtx", "sources": sources}))
    return run(JOB, unit, export.parent, export.with_suffix(".tables"))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=3, help="runs of each, in turn")
    options.add_argument("--size", type=int, default=1, help="also a file so many times as large")
    options.add_argument("--source", type=Path, default=SEED, help="the export to repeat")
    options.add_argument("--make", type=Path, default=None, help=argparse.SUPPRESS)
    options.add_argument("--bytes", type=int, default=TARGET_BYTES, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.make is not None:
        size = repeat(given.source.read_bytes(), given.make, given.bytes)
        print(f"{size / 1e6:.0f} MB of JSON lines", flush=True)
        return
    if not given.source.is_file():
        raise SystemExit(f"there is no {given.source}: name an export as JSON lines by --source")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        COMPILED["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        job(made(given.source, folder / "first.jsonl", 1))
        export = made(given.source, folder / "export.jsonl", TARGET_BYTES)
        one = compare(lambda: job(export), lambda: run(PLAIN, export), given.pairs, "json.loads")
        if given.size > 1:
            large = made(given.source, folder / "large.jsonl", given.size * TARGET_BYTES)
            grow(one, [job(large) for _ in range(given.pairs)], given.size)


if __name__ == "__main__":
    main()
