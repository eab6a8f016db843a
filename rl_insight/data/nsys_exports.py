"""What is in an export of Nsight Systems that a check looks at, counted table by table.

Table and column names are those of NVIDIA's exporter. An export holds the whole environment of the
launched process: of it only whether there is a rank is ever looked at, and nothing is kept.
"""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from rl_insight.data.tree import File, Tree
from rl_insight.errors import ReadError
from rl_insight.problems import Problems
from rl_insight.readers import sqlite
from rl_insight.readers.gzip_head import HEAD_BYTES, unpacked
from rl_insight.readers.json_lines import JsonLines

REPORTS: Final = (".nsys-rep", ".qdrep")
"""How a report ends that was not exported."""

# Ranges that are pushed and popped or started and ended, recorded or imported.
_KINDS: Final = (59, 60, 70, 71)
_RANGES: Final = "NVTX_EVENTS"
_STRINGS: Final = "StringIds"
_CAPTURE: Final = "META_DATA_CAPTURE"
_CLOCKS: Final = {"ANALYSIS_DETAILS": "startTime", "TARGET_INFO_SESSION_START_TIME": "utcEpochNs"}
_RANK: Final = re.compile(
    r'(?:RANK|OMPI_COMM_WORLD_RANK|PMI_RANK|PMIX_RANK|SLURM_PROCID|LOCAL_RANK)="?[0-9]{1,10}"?',
    re.IGNORECASE,
)
_ENVIRONMENT: Final = "PROCESS_%:ENVIRONMENT_VARIABLE"
_LINES: Final = re.compile(r".*\.(?:jsonl|jsonlines|ndjson|json)(?:\.gz)?")
_DATABASES: Final = (".sqlite", ".sqlite3", ".db", ".db3")
# Near the beginning of every export as JSON lines: a row that names a table of nsys.
_SIGN: Final = re.compile(
    rb'"table"\s*:\s*"(?:StringIds|NVTX|ANALYSIS_|META_DATA_|TARGET_INFO|CUPTI_|ENUM_|PROCESSES'
    rb"|ThreadNames|OSRT_|DIAGNOSTIC_|PROFILER_)"
)
_NAMED: Final = re.compile(r"(?:.+_)?worker_process_[0-9]+(?:\.[0-9]+)?\..+")


@dataclass(slots=True)
class ExportCheck:
    """What was counted: ranges, those that were never ended, those without any name, those whose
    name is the number of a string, strings; and whether clock and rank are told. `damage` is
    that of a database as a whole.
    """

    ranges: int = 0
    open: int = 0
    nameless: int = 0
    numbered: int = 0
    strings: int = 0
    without_start: int = 0
    has_clock: bool = False
    has_rank: bool = False
    problems: Problems = field(default_factory=Problems)
    damage: str | None = None


class _Row(msgspec.Struct, gc=False):
    table: str | None = None
    event_type: int | float | str | None = msgspec.field(name="eventType", default=None)
    start: int | float | str | None = None
    end: int | float | str | None = None
    text: str | int | float | None = None
    text_id: int | float | str | None = msgspec.field(name="textId", default=None)
    start_time: int | float | str | None = msgspec.field(name="startTime", default=None)
    epoch: int | float | str | None = msgspec.field(name="utcEpochNs", default=None)
    name: str | int | float | None = None
    value: str | int | float | None = None


def exports(tree: Tree) -> Iterator[File]:
    """The files in `tree` that are exports as JSON lines or SQLite, by their first bytes; and those
    that are only called so."""
    for file in tree.files:
        if any(part.endswith("ascend_pt") for part in file.parts[:-1]):
            continue
        if is_database(file):
            if _NAMED.fullmatch(file.name) or _is_of_nsys(tree.absolute(file.path)):
                yield file
        elif _LINES.fullmatch(file.name):
            text, _ = unpacked(tree.head(file.path, HEAD_BYTES), file.size_bytes)
            if _SIGN.search(text) or _NAMED.fullmatch(file.name):
                yield file


def is_database(file: File) -> bool:
    """Whether a file is an SQLite database by its name."""
    return file.name.endswith(_DATABASES)


def check_lines(path: Path) -> ExportCheck:
    """Count what is in the JSON lines at `path`, read once, block by block.

    Raises ReadError when it cannot be opened.
    """
    found = ExportCheck()
    for rows in JsonLines(path, _Row, found.problems, flat=True):
        for row in rows:
            if row.table == _RANGES:
                _count(found, row)
            elif row.table == _STRINGS:
                found.strings += 1
            elif row.table == _CAPTURE:
                found.has_rank = found.has_rank or _is_rank(row.name, row.value)
            elif row.table in _CLOCKS:
                told = row.start_time if row.epoch is None else row.epoch
                found.has_clock = found.has_clock or told is not None
    return found


def check_database(path: Path) -> ExportCheck:
    """Count what is in the database at `path` by queries.

    Raises ReadError when it is none, is damaged, or has no table of ranges.
    """
    found = ExportCheck()
    with sqlite.database(path, found.problems) as connection:
        columns = sqlite.columns(connection, _RANGES)
        if not columns:
            raise ReadError(f"it has no table {_RANGES}: was NVTX traced?")
        missing = [name for name in ("start", "eventType") if name not in columns]
        if missing:
            raise ReadError(f"its table {_RANGES} has no column {', '.join(missing)}")
        no_end, no_text, no_id = (
            f'"{name}" IS NULL' if name in columns else "1" for name in ("end", "text", "textId")
        )
        counts = connection.execute(
            f"SELECT count(*), total({no_end}), total({no_text} AND {no_id}),"
            f" total({no_text} AND NOT {no_id}), total(start IS NULL)"
            f" FROM {_RANGES} WHERE eventType IN {_KINDS}"
        ).fetchone()
        found.ranges, found.open, found.nameless, found.numbered, found.without_start = map(
            int, counts
        )
        if sqlite.columns(connection, _STRINGS):
            (found.strings,) = connection.execute(f"SELECT count(*) FROM {_STRINGS}").fetchone()
        for table, column in _CLOCKS.items():
            if column in sqlite.columns(connection, table):
                query = f"SELECT 1 FROM {table} WHERE {column} IS NOT NULL LIMIT 1"
                found.has_clock |= connection.execute(query).fetchone() is not None
        if {"name", "value"} <= set(sqlite.columns(connection, _CAPTURE)):
            query = f"SELECT name, value FROM {_CAPTURE} WHERE name LIKE ? AND value LIKE '%RANK%'"
            query += " OR value LIKE 'SLURM_PROCID%'"
            rows = sqlite.chunks(connection, query, (_ENVIRONMENT,))
            found.has_rank = any(_is_rank(*row) for chunk in rows for row in chunk)
        found.damage = sqlite.page_damage(connection)
    return found


def _count(found: ExportCheck, row: _Row) -> None:
    if row.event_type not in _KINDS:
        return
    found.ranges += 1
    found.open += row.end is None
    found.without_start += row.start is None
    if row.text is None:
        found.numbered += row.text_id is not None
        found.nameless += row.text_id is None


def _is_rank(name: object, value: object) -> bool:
    of_process = isinstance(name, str) and name.endswith(":ENVIRONMENT_VARIABLE")
    return of_process and isinstance(value, str) and _RANK.fullmatch(value) is not None


def _is_of_nsys(path: Path) -> bool:
    """Whether a database is one of nsys: it names a table that all exports have."""
    try:
        with sqlite.database(path) as connection:
            return bool(_has_table(connection, _RANGES) or _has_table(connection, _STRINGS))
    except ReadError:
        return False


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return connection.execute(query, (name,)).fetchone() is not None
