"""Reads the database form of an Ascend capture: `ascend_pytorch_profiler[_<rank>].db` (SQLite).

Computing are the tasks with a row in COMPUTE_TASK_INFO, communication the rows of COMMUNICATION_OP,
as torch_npu's own breakdown has it (_trace_step_time_db_parser.py); OVERLAP_ANALYSIS, where msprof
or MindStudio Insight has made it, is the same, united already. Stages are rows of MSTX_EVENTS.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rl_insight.errors import ReadError
from rl_insight.intervals import IntArray
from rl_insight.parsers import mstx_db_device, mstx_db_told
from rl_insight.parsers.collectives import count_of
from rl_insight.parsers.losses import is_in_part
from rl_insight.parsers.mstx_capture import MstxCapture
from rl_insight.parsers.mstx_db_device import Take
from rl_insight.parsers.mstx_events import Wanted, is_library_domain
from rl_insight.parsers.mstx_metadata import Told
from rl_insight.parsers.mstx_queries import AscendDatabase
from rl_insight.parsers.sieve import Sieve
from rl_insight.problems import Problems
from rl_insight.readers.sqlite import database
from rl_insight.readers.table_rows import Rows, TableQuery
from rl_insight.readers.timestamps import NOT_A_TIME

_STAGE_TYPES = (1, 2)
"""Of MSTX_EVENTS: push/pop and start/end; the others are marks."""

_HOST_TABLES = ("PYTORCH_API", "CANN_API", "MSTX_EVENTS", "TASK")


@dataclass(frozen=True, slots=True)
class DatabaseRead:
    """A database: its capture, and in words what could not be read."""

    capture: MstxCapture
    damage: str | None


def read(path: Path, told: Told, path_role: str | None) -> DatabaseRead:
    """The capture in the database at `path`; what it says of itself is added to `told`.

    Raises ReadError when it is no database, or not one of an Ascend capture.
    """
    capture = MstxCapture(Problems())
    with database(path, capture.problems) as connection:
        asked = AscendDatabase(connection, capture.problems)
        mstx_db_told.take(told, asked, capture.problems)
        capture.session = mstx_db_told.session(asked)
        _Reading(asked, capture, told.role or path_role).run()
        if not capture.events and not any(map(asked.has, _HOST_TABLES)):
            raise ReadError(_why_not(asked))
        lost = asked.is_damaged(mstx_db_device.TABLES)
        capture.in_part = lost or is_in_part(capture.problems, capture.events)
    return DatabaseRead(capture, asked.damage)


def _why_not(asked: AscendDatabase) -> str:
    if asked.damage is not None:
        return f"the database cannot be read: {asked.damage}"
    return "a database of another kind: it has none of the tables of an Ascend capture"


class _Row(NamedTuple):
    """A row of a table, and who takes it."""

    table: str
    row: tuple[object, ...]
    take: Take


class _Answer(Sequence[_Row]):
    """Rows of one question; only those that are looked at are made to a _Row."""

    def __init__(self, table: str, rows: Rows, take: Take) -> None:
        self._table = table
        self._rows = rows
        self._take = take

    def __getitem__(self, at: Any) -> Any:
        return _Row(self._table, self._rows[at], self._take)

    def __len__(self) -> int:
        return len(self._rows)


class _Reading:
    """One pass over the tables of a database."""

    def __init__(self, asked: AscendDatabase, capture: MstxCapture, role: str | None) -> None:
        self._asked = asked
        self._capture = capture
        self._wanted = Wanted(role)
        self._sieve: Sieve[_Row] = Sieve(capture.problems, _quoted)

    def run(self) -> None:
        self._ranges()
        self._host_ranges()
        mstx_db_device.read(self._asked, self._capture, self._load)
        self._settle()
        if self._capture.first_ns is None:
            self._host_extent()
            self._settle()
        mstx_db_device.join_nameless(self._capture)
        self._capture.pid = self._pid()

    def _load(self, query: TableQuery, take: Take) -> None:
        """Ask a table a question whose rows begin with start and end; `take` those with a time.

        Which of the doubtful ones have one is known only when all tables were asked.
        """
        for rows in self._asked.chunks(query):
            self._capture.events += len(rows)
            starts, durations = _times(rows)
            good = self._sieve.certain(_Answer(query.table, rows, take), starts, durations)
            take(list(compress(rows, good.tolist())), starts[good], durations[good])

    def _settle(self) -> None:
        bounds, held = self._sieve.settle(self._capture.session)
        for at, one in enumerate(held.events):
            one.take([one.row], held.starts[at : at + 1], held.durations[at : at + 1])
        self._capture.settle(bounds)

    def _ranges(self) -> None:
        asked, table = self._asked, "MSTX_EVENTS"
        if not asked.needs(table, "startNs", "endNs", "message"):
            return
        messages, domains = asked.texts(table, "message"), asked.texts(table, "domainId")
        columns = [asked.optional(table, name) for name in ("message", "domainId", "globalTid")]
        condition = "TRUE"
        if asked.has(table, "eventType"):
            condition = f"CAST(eventType AS INTEGER) IN ({', '.join(map(str, _STAGE_TYPES))})"
        query = TableQuery(table, f"{asked.times(table)}, {', '.join(columns)}", condition)

        problems = self._capture.problems

        def take(rows: Rows, starts: IntArray, durations: IntArray) -> None:
            of_libraries = unnamed = 0
            for row, start, duration in zip(rows, starts.tolist(), durations.tolist(), strict=True):
                name, domain = messages.get(row[2]), domains.get(row[3], "default")
                if is_library_domain(domain):
                    of_libraries += 1
                elif name is None:
                    unnamed += 1
                else:
                    self._capture.annotations.add(
                        start, start + duration, name, _tid(row[4]), domain or "default"
                    )
            problems.add("library_ranges", "info", of_libraries, example="ranges of collectives")
            problems.add(
                "unnamed_range", "warning", unnamed, example="its message is not in STRING_IDS"
            )

        self._load(query, take)

    def _host_ranges(self) -> None:
        """Stages and batches among the operations of PyTorch: `record_function` is one of them."""
        asked, table = self._asked, "PYTORCH_API"
        if not asked.needs(table, "startNs", "endNs", "name"):
            return
        names = {
            number: text
            for number, text in asked.texts(table, "name").items()
            if self._wanted[text]
        }
        numbers = ", ".join(str(number) for number in names if isinstance(number, int))
        if not numbers:
            return
        columns = [asked.optional(table, name) for name in ("name", "globalTid")]
        asked_for = f"{asked.times(table)}, {', '.join(columns)}"
        query = TableQuery(table, asked_for, f"name IN ({numbers})")

        def take(rows: Rows, starts: IntArray, durations: IntArray) -> None:
            for row, start, duration in zip(rows, starts.tolist(), durations.tolist(), strict=True):
                self._capture.annotations.add(start, start + duration, names[row[2]], _tid(row[3]))

        self._load(query, take)

    def _host_extent(self) -> None:
        """From when to when anything happened, where no device and no range tells."""
        for table in _HOST_TABLES:
            if self._asked.has(table, "startNs", "endNs"):
                self._load(
                    TableQuery(table, self._asked.times(table)),
                    lambda rows, starts, durations: None,
                )

    def _pid(self) -> int | None:
        for table, column in (("TASK", "globalPid"), ("MSTX_EVENTS", "globalTid")):
            if self._asked.has(table, column):
                found = self._asked.first(table, f"CAST({column} AS INTEGER)")
                if found is not None:
                    pid = count_of(found[0])
                    return pid >> 32 if pid and column == "globalTid" else pid
        return None


def _times(rows: Rows) -> tuple[IntArray, IntArray]:
    """Starts and durations in ns; NOT_A_TIME where one of both is unknown."""
    starts = _integers([row[0] for row in rows])
    ends = _integers([row[1] for row in rows])
    known = (starts != NOT_A_TIME) & (ends != NOT_A_TIME)
    # Far apart as they may be, a difference of two such numbers must not wrap around.
    known &= (np.abs(starts // 2) < 2**61) & (np.abs(ends // 2) < 2**61)
    durations = np.where(known, np.where(known, ends, 0) - np.where(known, starts, 0), NOT_A_TIME)
    return np.where(known, starts, NOT_A_TIME), durations


def _integers(values: Sequence[object]) -> IntArray:
    return np.array(
        [value if isinstance(value, int) else NOT_A_TIME for value in values], dtype=np.int64
    )


def _tid(global_tid: object) -> str:
    """The thread of a `globalTid`, which is `<process> << 32 | <thread>`."""
    return str(global_tid & 0xFFFFFFFF) if isinstance(global_tid, int) else ""


def _quoted(one: _Row) -> str:
    return f"{one.table}: from {one.row[0]} to {one.row[1]}"
