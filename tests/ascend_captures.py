"""Makes captures of the Ascend profiler for tests, and reads them without Snakemake."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rl_insight.data.tree import scan
from rl_insight.parsers import Parsed, Source
from rl_insight.parsers.mstx import PARSER
from tests import merged_runs

Event = dict[str, Any]

# A capture of 2026-03-12, in µs as msprof writes them.
BASE_US = 1_773_285_904_000_000
BASE_NS = BASE_US * 1_000
OVERLAP_PID = 3_550_586_784  # os pid 3467369, layer 29, device 0
HARDWARE_PID = 3_550_586_272  # layer 13
COMMUNICATION_PID = 3_550_586_336  # layer 15


def at(us: float) -> str:
    """A time after BASE_US as msprof writes it: text with three decimals."""
    whole, ns = divmod(round(us * 1_000), 1_000)
    return f"{BASE_US + whole}.{ns:03}"


def process(
    pid: int, name: str, label: str = "NPU 0", sort_index: int | None = None
) -> list[Event]:
    """The rows that name a process."""
    rows: list[Event] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}},
        {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}},
    ]
    if sort_index is not None:
        args = {"sort_index": sort_index}
        rows.append({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": args})
    return rows


def event(name: str, pid: int, start: float, duration: float, **more: Any) -> Event:
    """Anything with a duration (µs)."""
    return {"name": name, "pid": pid, "tid": 0, "ts": at(start), "dur": duration, "ph": "X", **more}


def overlap(name: str, start: float, duration: float, pid: int = OVERLAP_PID) -> Event:
    """A row of the overlap analysis, without `args` as real ones are."""
    return event(name, pid, start, duration)


def task(name: str, kind: str, start: float, duration: float, pid: int = HARDWARE_PID) -> Event:
    """A task of a device."""
    args = {"Model Id": 4294967295, "Task Type": kind, "Physic Stream Id": 2, "Task Id": 7}
    return event(name, pid, start, duration, tid=2, args=args)


def collective(name: str, start: float, duration: float, count: int, tid: int = 0) -> Event:
    """A call of a collective of float32."""
    args = {"connection_id": 1, "data_type": "FP32", "alg_type": "MESH-RING", "count": count}
    return event(name, COMMUNICATION_PID, start, duration, tid=tid, args=args)


def mstx(message: str, start: float, duration: float, tid: int = 9, **args: Any) -> Event:
    """A range that the host recorded by mstx."""
    args = {"event_type": "start/end", "domain": "default", **args}
    return event(message, 77, start, duration, tid=tid, args=args)


ANALYSIS = process(OVERLAP_PID, "Overlap Analysis", sort_index=29)

# 100 µs from the first to the last activity, 30 of them computing, 50 communication, 10 both.
BUSY = [
    *ANALYSIS,
    overlap("Computing", 100, 30),
    overlap("Communication", 120, 50),
    overlap("Communication(Not Overlapped)", 130, 40),
    overlap("Free", 170, 30),
]


def info(rank: object = 0, level: str = "Level1", **more: Any) -> Event:
    """The content of a `profiler_info.json`."""
    config = {"common_config": {}, "experimental_config": {"_profiler_level": level}}
    told: Event = {"config": config, "start_info": {}, "end_info": {}, **more}
    return told if rank is None else {**told, "rank_id": rank}


def write_text(
    folder: Path,
    events: Sequence[Event] | str | bytes | None = None,
    *,
    told: Event | str | bytes | None = None,
    told_as: str = "profiler_info_0.json",
    metadata: Event | str | bytes | None = None,
) -> Path:
    """A capture as text; `events` and the small files may be given as they shall stand there."""
    output = folder / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    _write(output / "trace_view.json", BUSY if events is None else events)
    _write(folder / told_as, info() if told is None else told)
    if metadata is not None:
        _write(folder / "profiler_metadata.json", metadata)
    return folder


def _write(path: Path, content: Any) -> None:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))


def write_database(path: Path, content: Mapping[str, tuple[str, Iterable[Sequence[Any]]]]) -> Path:
    """A database of tables, each with its columns and rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    for name, (columns, rows) in content.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
        marks = ", ".join("?" * len(columns.split(",")))
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    connection.commit()
    connection.close()
    return path


# The same activity as BUSY, and a copy in the time that is free, in the tables of SCHEMA 1.0.
STRINGS = {
    1: "update_actor",
    2: "default",
    3: "MatMul",
    4: "KERNEL_AICORE",
    5: "hcom_allReduce__586_0_1",
    6: "hcom_allReduce_",
    7: "tp_group",
    8: "MEMCPY_ASYNC",
    9: "Notify Wait",
}
TASK_COLUMNS = "startNs, endNs, deviceId, connectionId, globalTaskId, globalPid, taskType"
DATABASE: dict[str, tuple[str, Iterable[Sequence[Any]]]] = {
    "STRING_IDS": ("id, value", list(STRINGS.items())),
    "TASK": (
        TASK_COLUMNS,
        [
            (BASE_NS + 100_000, BASE_NS + 130_000, 0, 1, 11, 4711, 4),
            (BASE_NS + 120_000, BASE_NS + 170_000, 0, 2, 12, 4711, 9),
            (BASE_NS + 180_000, BASE_NS + 190_000, 0, 3, 13, 4711, 8),
        ],
    ),
    "COMPUTE_TASK_INFO": ("name, globalTaskId", [(3, 11)]),
    "COMMUNICATION_OP": (
        "opName, startNs, endNs, connectionId, groupName, opId, dataType, count, opType",
        [(5, BASE_NS + 120_000, BASE_NS + 170_000, 2, 7, 1, 4, 1000, 6)],
    ),
    "MSTX_EVENTS": (
        "startNs, endNs, eventType, message, domainId, globalTid",
        [(BASE_NS + 50_000, BASE_NS + 250_000, 2, 1, 2, (4711 << 32) | 4712)],
    ),
    "RANK_DEVICE_MAP": ("rankId, deviceId", [(-1, 0), (3, 0)]),
    "HOST_INFO": ("hostUid, hostName", [("1", "node-a")]),
}


def database_in(folder: Path, rank: int | None = 3, **changed: Any) -> Path:
    """A capture as a database; `changed` replaces tables, or drops them when None."""
    name = "ascend_pytorch_profiler.db" if rank is None else f"ascend_pytorch_profiler_{rank}.db"
    content = {**DATABASE, **changed}
    return write_database(
        folder / "ASCEND_PROFILER_OUTPUT" / name,
        {table: rows for table, rows in content.items() if rows is not None},
    )


def parsed(capture: Path, root: Path | None = None, depth: int = 2) -> Parsed:
    """What the parser makes of one capture, or of one file."""
    tree = scan(root or capture.parent)
    path = capture.relative_to(tree.root).as_posix()
    (found,) = [one for one in PARSER.discover(tree) if one.path == path]
    source = Source("s", found.path, tree.root, found.files)
    return PARSER.parse(source, {"timeline.parser.range_depth": depth})


def rows(parsed: Parsed, table: str) -> list[Event]:
    """Rows of one of its tables, without what is unknown."""
    content = parsed.tables[table].to_pylist() if table in parsed.tables else []
    return [{name: value for name, value in row.items() if value is not None} for row in content]


def one(parsed: Parsed, table: str) -> Event:
    """The only row of one of its tables."""
    (row,) = rows(parsed, table)
    return row


def stages(found: Parsed) -> list[tuple[str | None, int, int]]:
    """Name, start after BASE_NS and duration (ns) of the stages."""
    return [
        (row.get("name"), row["start_ns"] - BASE_NS, row["duration_ns"])
        for row in rows(found, "spans")
        if row["kind"] == "stage"
    ]


def times(row: Event) -> tuple[int, int, int, int, int, int]:
    """Window, computing, communication, overlapped, memory and free of a breakdown."""
    names = ("window", "computing", "communication", "overlapped", "memory", "free")
    a, b, c, d, e, f = (row[f"{name}_ns"] for name in names)
    return a, b, c, d, e, f


def problem(parsed: Parsed, code: str) -> str:
    """The example of a problem that must be there."""
    (found,) = [one for one in parsed.problems if one.code == code]
    return found.example or ""


def drawn(root: Path, output: Path) -> dict[str, list[Event]]:
    """The merged tables of a run over `root`, without Snakemake."""
    return merged_runs.drawn(root, output, "mstx")
