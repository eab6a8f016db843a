"""Small traces of the PyTorch profiler, and what the parser makes of them."""

import gzip
import json
from pathlib import Path

from rl_insight.parsers.base import Parsed, Source
from rl_insight.parsers.torch import PARSER
from rl_insight.schema import SCHEMAS

Event = dict[str, object]
Row = dict[str, object]

# 2026-02-22 in µs of Unix time; and the same instant after a base, as kineto writes it today.
NOW_US = 1_771_730_327_316_353
BASE_NS = 1_767_189_312_000_000_000
SINCE_BASE_US = NOW_US - BASE_NS // 1000
MS = 1_000_000  # ns

PATH = "actor_update/prof_rank-0_1.json"
DAY_US = 24 * 3600 * 1_000_000

# What kineto says of a collective.
ARGS: dict[str, object] = {
    "Collective name": "allreduce",
    "In msg nelems": 6_637_568,
    "dtype": "Float",
    "Process Group Name": "1",
    "Process Group Description": "mesh_dp",
    "Seq": 42,
}


def x(
    name: str,
    ts: float | str,
    dur: float | str,
    cat: str | None = "cpu_op",
    pid: object = 4711,
    tid: object = 4711,
    **args: object,
) -> Event:
    """A complete event, `ts` µs after `NOW_US` unless it is text or at most 0; times in µs."""
    at = NOW_US + ts if isinstance(ts, int | float) and ts > 0 else ts
    event: Event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": at, "dur": dur}
    if cat is not None:
        event["cat"] = cat
    if args:
        event["args"] = args
    return event


def annotation(name: str, ts: float, dur: float, tid: object = 4711) -> Event:
    return x(name, ts, dur, "user_annotation", tid=tid)


def kernel(
    name: str, ts: float, dur: float, cat: str = "kernel", pid: object = 0, **args: object
) -> Event:
    return x(name, ts, dur, cat, pid, 7, **args)


def profiler(ts: float, dur: float) -> Event:
    return x("PyTorch Profiler (0)", ts, dur, "Trace", "Spans", "PyTorch Profiler")


def write(root: Path, path: str, content: object) -> Path:
    """Write JSON, or bytes as they are; gzip if the name says so."""
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(raw) if path.endswith(".gz") else raw)
    return file


def parse_file(root: Path, path: str, depth: int = 2) -> Parsed:
    source = Source("abc", path, root, (path,))
    parsed = PARSER.parse(source, {"timeline.parser.range_depth": depth})
    for name, table in parsed.tables.items():
        assert table.schema == SCHEMAS[name]
    return parsed


def parse(
    tmp_path: Path, *events: Event, path: str = PATH, depth: int = 2, **top: object
) -> Parsed:
    write(tmp_path, path, {"schemaVersion": 1, **top, "traceEvents": list(events)})
    return parse_file(tmp_path, path, depth)


def rows(parsed: Parsed, table: str) -> list[Row]:
    found: list[Row] = parsed.tables[table].to_pylist() if table in parsed.tables else []
    return found


def lane(parsed: Parsed) -> Row:
    (row,) = rows(parsed, "lanes")
    return row


def stages(parsed: Parsed) -> list[Row]:
    return [row for row in rows(parsed, "spans") if row["kind"] == "stage"]


def stage(parsed: Parsed) -> Row:
    (row,) = stages(parsed)
    return row


def times(row: Row) -> tuple[int, int]:
    """Start and duration of a span in µs, the start counted from `NOW_US`."""
    start, duration = row["start_ns"], row["duration_ns"]
    assert isinstance(start, int) and isinstance(duration, int)
    return start // 1000 - NOW_US, duration // 1000
