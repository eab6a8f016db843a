"""Rules for captures of the Ascend profiler: what has to lie there, and what has to stand in it.

Sources: torch_npu, profiler_interface.py (`profiler_info*.json`, `profiler_metadata.json`) and
analysis/ (the results). Since VeRL 0.7 the result is a database only; both forms are good.
"""

import sqlite3
from collections.abc import Iterator
from typing import ClassVar

from rl_insight.data.ascend_captures import (
    METADATA,
    AscendCapture,
    captures,
    is_database,
    packed_words,
)
from rl_insight.data.data_kinds import DataEnum
from rl_insight.data.findings import Finding
from rl_insight.data.name_facts import INT32, whole
from rl_insight.data.trace_check import check_trace, in_words
from rl_insight.data.tree import Tree
from rl_insight.data.validation_rule import TreeRule
from rl_insight.errors import ReadError
from rl_insight.problems import Problems, Severity
from rl_insight.readers import sqlite
from rl_insight.readers.small_json import json_object

NO_CAPTURE = "there is no Ascend capture (*_ascend_pt) in this folder"

_TRAINING = (DataEnum.MULTI_JSON_MSTX,)

# What a newer torch_npu writes into profiler_info; older ones leave some of it out.
_INFO_KEYS = ("config", "start_info", "end_info", "torch_npu_version", "cann_version")
# The tables of a database of which each is drawn.
_TIMED_TABLES = ("TASK", "COMMUNICATION_OP", "MSTX_EVENTS", "PYTORCH_API", "CANN_API")
_OVERLAP = "Overlap Analysis"
_ANALYSE = "run `rl-insight preprocess` on the folder where torch_npu is installed"


class MstxJsonFileExistsRule(TreeRule):
    """There is a capture, and every capture has a result: a trace_view.json, or a database."""

    kinds = _TRAINING

    def look(self, tree: Tree) -> Iterator[Finding]:
        """An error for each capture that was never analysed."""
        known, strays = captures(tree)
        if not known and not strays:
            yield self.found("error", NO_CAPTURE)
        for one in known:
            if not one.traces and not one.databases:
                why = "it holds raw data only" if one.raw else "it holds no result"
                text = f"{why}, neither trace_view.json nor ascend_pytorch_profiler*.db"
                text = packed_words(one.files) or (f"{text}; {_ANALYSE}" if one.raw else text)
                yield self.found("error", text, one.path)
            elif not one.traces:
                yield self.found("info", "its result is a database only, which is read", one.path)
            if not infos(one):
                text = "it has no profiler_info*.json: its rank may stay unknown"
                yield self.found("warning", text, one.path)
        for path in strays:
            yield self.found("info", "a result outside of its capture is read all the same", path)


class CaptureRule(TreeRule):
    """A rule about one capture at a time. A subclass has `of_capture`."""

    def of_capture(self, tree: Tree, capture: AscendCapture) -> Iterator[Finding]:
        """What there is to say about one capture in `tree`."""
        raise NotImplementedError

    def look(self, tree: Tree) -> Iterator[Finding]:
        """What there is to say about every capture, and every result outside of one."""
        for capture in every_capture(tree):
            yield from self.of_capture(tree, capture)


class ProfilerInfoRule(CaptureRule):
    """Every profiler_info*.json is JSON and tells the rank, as a number or as text."""

    def __init__(self, without_rank: Severity = "warning") -> None:
        self.without_rank: Severity = without_rank

    def of_capture(self, tree: Tree, capture: AscendCapture) -> Iterator[Finding]:
        """Errors for files that cannot be read; keys that older versions left out are told."""
        for path in infos(capture):
            try:
                content = json_object(tree.absolute(path))
            except ReadError as error:
                yield self.unreadable(tree, path, error)
                continue
            rank = content.get("rank_id")
            if rank is None:
                text = "it has no rank_id: the rank has to come from elsewhere"
                yield self.found(self.without_rank, text, path)
            elif whole(rank, INT32) is None:
                yield self.found("error", "its rank_id is no rank", path)
            missing = [key for key in _INFO_KEYS if key not in content]
            if missing:
                yield self.found("info", f"it does not have {', '.join(missing)}", path)


class ProfilerMetadataRule(CaptureRule):
    """Every profiler_metadata.json is JSON; a capture need not have one."""

    def of_capture(self, tree: Tree, capture: AscendCapture) -> Iterator[Finding]:
        """Errors for files that cannot be read. Nothing of them is quoted: they hold secrets."""
        for path in capture.metadata:
            if path.endswith(METADATA):
                try:
                    json_object(tree.absolute(path))
                except ReadError as error:
                    yield self.unreadable(tree, path, error)


class AscendResultRule(CaptureRule):
    """The result of every capture can be read to its end.

    Of a capture with both forms the database is read, and the text only where that is damaged:
    what is wrong with one form is a warning where the other is whole.
    """

    def of_capture(self, tree: Tree, capture: AscendCapture) -> Iterator[Finding]:
        """Errors for what is missing or lost."""
        databases, traces = capture.databases[:1], capture.traces[:1]
        first = [finding for path in databases for finding in self._database(tree, path)]
        if databases and not _has_error(first):
            yield from first
            return
        second = [finding for path in traces for finding in self._trace(tree, path)]
        if databases and traces and not _has_error(second):
            first = [self.found("warning", one.message, one.path) for one in first]
        yield from first
        yield from second

    def _database(self, tree: Tree, path: str) -> Iterator[Finding]:
        problems = Problems()
        try:
            with sqlite.database(tree.absolute(path), problems) as connection:
                names = [name for name in _TIMED_TABLES if sqlite.columns(connection, name)]
                if not any(_has_rows(connection, name) for name in names):
                    yield self.found("error", "the database holds no timed events", path)
                damage = sqlite.page_damage(connection)
        except ReadError as error:
            yield self.unreadable(tree, path, error)
            return
        for problem in problems:
            yield self.found("warning", problem.example or in_words(problem), path)
        missing = _missing_bytes(tree, path)
        if missing:
            text = f"the database breaks off: {missing:,} bytes are missing at its end"
            yield self.found("error", text, path)
        elif damage is not None:
            yield self.found("error", f"the database is damaged: {damage}", path)

    def _trace(self, tree: Tree, path: str) -> Iterator[Finding]:
        try:
            trace = check_trace(tree.absolute(path))
        except ReadError as error:
            yield self.unreadable(tree, path, error)
            return
        if not trace.is_trace:
            yield self.found("error", "it is JSON of another kind: it holds no trace events", path)
            return
        for severity, text in trace.complaints():
            yield self.found(severity, text, path)
        if trace.timed and _OVERLAP not in trace.processes:
            text = f"it has no {_OVERLAP}: was it collected at level_none?"
            yield self.found("warning", text, path)


class CaptureRules(CaptureRule):
    """Several small rules under one name; their findings carry their own."""

    parts: ClassVar[tuple[CaptureRule, ...]] = ()

    def look(self, tree: Tree) -> Iterator[Finding]:
        """What the parts have to say; an error where there is nothing to look at."""
        every = every_capture(tree)
        if not every:
            yield self.found("error", NO_CAPTURE)
        for capture in every:
            yield from self.of_capture(tree, capture)

    def of_capture(self, tree: Tree, capture: AscendCapture) -> Iterator[Finding]:
        """What the parts have to say about one capture."""
        for part in self.parts:
            yield from part.of_capture(tree, capture)


class MstxJsonFieldValidRule(CaptureRules):
    """What the files of every capture hold: profiler_info, profiler_metadata, and the result."""

    kinds = _TRAINING
    parts = (ProfilerInfoRule(), ProfilerMetadataRule(), AscendResultRule())


def every_capture(tree: Tree) -> list[AscendCapture]:
    """The captures in `tree`, and each result that lies outside of one as a capture of its own."""
    known, strays = captures(tree)
    for path in strays:
        alone = AscendCapture(path.rpartition("/")[0])
        (alone.databases if is_database(path) else alone.traces).append(path)
        known.append(alone)
    return known


def infos(capture: AscendCapture) -> list[str]:
    """The profiler_info*.json of a capture."""
    return [one for one in capture.metadata if one.rpartition("/")[2].startswith("profiler_info")]


def _has_rows(connection: sqlite3.Connection, table: str) -> bool:
    query = f"SELECT 1 FROM {sqlite.quoted(table)} LIMIT 1"
    return connection.execute(query).fetchone() is not None


def _missing_bytes(tree: Tree, path: str) -> int:
    """How many bytes a database lacks at its end; 0 where it is whole or does not tell.

    sqlite.org/fileformat.html, 1.3: page size at 16, pages at 28, which hold if 24 and 92 agree.
    """
    head = tree.head(path, 100)
    if len(head) < 100 or head[24:28] != head[92:96]:
        return 0
    size = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    try:
        there = tree.absolute(path).stat().st_size
        journal = tree.absolute(f"{path}-wal")
        if journal.is_file() and journal.stat().st_size:
            return 0  # the pages may stand in there
    except OSError:
        return 0
    return max(0, (1 << 16 if size == 1 else size) * pages - there)


def _has_error(findings: list[Finding]) -> bool:
    return any(one.severity == "error" for one in findings)
