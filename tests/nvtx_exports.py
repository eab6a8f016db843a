"""Makes exports of nsys from scratch, in every form: rows are dictionaries with their `table`."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, object]

# Of a real export (nsys 2026.2): the uptime of the host when the capture began, and its Unix time.
UPTIME = 35_255_823_190
EPOCH = 1_779_630_014_975_716_426
SECOND = 1_000_000_000

PUSH_POP, START_END, MARK, DOMAIN = 59, 60, 34, 75


def thread(pid: int, tid: int | None = None) -> int:
    """A global thread id, `vm << 48 | pid << 24 | tid`; a global process id for `tid` 0."""
    return 1 << 48 | pid << 24 | (pid if tid is None else tid)


def text_range(
    start: int, end: int | None, text: str, pid: int = 111, kind: int = START_END, **more: object
) -> Row:
    """A range with its name inline."""
    return _range(start, end, kind, pid, text=text, **more)


def string_range(
    start: int, end: int | None, text_id: int, pid: int = 111, kind: int = START_END, **more: object
) -> Row:
    """A range that is called by a string's id."""
    return _range(start, end, kind, pid, textId=text_id, **more)


def _range(start: int, end: int | None, kind: int, pid: int, **more: object) -> Row:
    own = {"table": "NVTX_EVENTS", "start": start, "end": end, "eventType": kind}
    row = {**own, "globalTid": thread(pid), "domainId": 0, **more}
    return {name: value for name, value in row.items() if value is not None}


def string(number: int, value: str) -> Row:
    return {"table": "StringIds", "id": number, "value": value}


def details(start: int = UPTIME, duration: int = 100 * SECOND) -> Row:
    """What the capture says of its own time."""
    times = {"startTime": start, "stopTime": start + duration, "duration": duration}
    return {"table": "ANALYSIS_DETAILS", "globalVid": 1 << 48, **times}


def session(epoch: int = EPOCH, system: int | None = UPTIME) -> Row:
    """The Unix time; older versions of nsys do not write what the system clock showed then."""
    row: Row = {"table": "TARGET_INFO_SESSION_START_TIME", "utcEpochNs": epoch}
    return row if system is None else {**row, "systemClockNs": system}


def variable(name: str, value: str, process: int = 0) -> Row:
    """One variable of the environment of the process that nsys launched."""
    return {
        "table": "META_DATA_CAPTURE",
        "name": f"PROCESS_{process}:ENVIRONMENT_VARIABLE",
        "value": f"{name}={value}",
    }


def capture_fact(name: str, value: str) -> Row:
    return {"table": "META_DATA_CAPTURE", "name": name, "value": value}


def system_fact(name: str, value: str) -> Row:
    return {"table": "TARGET_INFO_SYSTEM_ENV", "name": name, "value": value}


def kernel(start: int, end: int, name: int, pid: int = 111, device: int = 0) -> Row:
    return {
        "table": "CUPTI_ACTIVITY_KIND_KERNEL",
        "start": start,
        "end": end,
        "deviceId": device,
        "globalPid": thread(pid, 0),
        "demangledName": name,
        "shortName": name,
    }


def activity(table: str, start: int, end: int, pid: int = 111, **more: object) -> Row:
    """A row of MEMCPY, MEMSET or GRAPH_TRACE."""
    own = {"table": f"CUPTI_ACTIVITY_KIND_{table}", "start": start, "end": end}
    return {**own, "deviceId": 0, "globalPid": thread(pid, 0), **more}


def write_lines(path: Path, rows: Iterable[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row, sort_keys=True)}\n" for row in rows))
    return path


def write_database(path: Path, rows: Iterable[Row], extra: str = "") -> Path:
    """`extra` is SQL that is run at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        for table, own in _tables(rows).items():
            names = list(dict.fromkeys(name for row in own for name in row))
            quoted = ", ".join(f'"{name}"' for name in names)
            marks = ", ".join("?" * len(names))
            connection.execute(f'CREATE TABLE "{table}" ({quoted})')
            connection.executemany(
                f'INSERT INTO "{table}" VALUES ({marks})',
                [[row.get(name) for name in names] for row in own],
            )
        connection.executescript(extra)
    connection.close()
    return path


def write_folder(folder: Path, rows: Iterable[Row], form: str = "parquet") -> Path:
    """`form` is `parquet`, `arrow` (an IPC file) or `stream` (an IPC stream)."""
    folder.mkdir(parents=True, exist_ok=True)
    for table, own in _tables(rows).items():
        names = list(dict.fromkeys(name for row in own for name in row))
        content = pa.table({name: [row.get(name) for row in own] for name in names})
        if form == "parquet":
            pq.write_table(content, folder / f"{table}.parquet")
            continue
        make = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
        path = folder / f"{table}.arrow"
        with pa.OSFile(str(path), "wb") as file, make(file, content.schema) as writer:
            writer.write_table(content)
    return folder


def _tables(rows: Iterable[Row]) -> Mapping[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[str(row["table"])].append({name: row[name] for name in row if name != "table"})
    return found
