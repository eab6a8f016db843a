"""Rules for the allocations that the Ascend profiler records (`contents: [memory]`).

Source: torch_npu, analysis/prof_view/_memory_view_parser.py: `operator_memory.csv` has one row per
allocation; times stand in quotes with a tab behind them, and what was not released has no release.
"""

import csv
import math
from collections.abc import Iterator
from typing import Final

from rl_insight.data.ascend_captures import MEMORY, METADATA, AscendCapture, captures
from rl_insight.data.ascend_rules import (
    NO_CAPTURE,
    CaptureRule,
    CaptureRules,
    ProfilerInfoRule,
    ProfilerMetadataRule,
    infos,
)
from rl_insight.data.data_kinds import DataEnum
from rl_insight.data.findings import Finding
from rl_insight.data.trace_check import check_trace, in_words, loss_severity
from rl_insight.data.tree import Tree
from rl_insight.data.validation_rule import TreeRule
from rl_insight.errors import ReadError
from rl_insight.problems import Problems
from rl_insight.readers.text_lines import lines

_MEMORY = (DataEnum.ASCEND_MEMORY,)

NUMBERS: Final = ("Size(KB)", "Allocation Time(us)")
"""The columns of `operator_memory.csv` that hold a number in every row."""

NUMBERS_OR_NOTHING: Final = ("Duration(us)", "Allocation Total Allocated(MB)")
"""The columns that may be empty."""

_LONGEST_ROW: Final = 256 << 10

COLUMNS: Final = ("Name", *NUMBERS, *NUMBERS_OR_NOTHING)


class AscendMemoryFileExistsRule(TreeRule):
    """Every capture has profiler_info, operator_memory.csv, and trace_view.json for call stacks."""

    kinds = _MEMORY

    def look(self, tree: Tree) -> Iterator[Finding]:
        """An error for each file that is missing."""
        known, _ = captures(tree)
        if not known:
            yield self.found("error", NO_CAPTURE)
        for one in known:
            if not infos(one):
                yield self.found("error", "it has no profiler_info*.json", one.path)
            if not one.memory:
                text = f"it has no {MEMORY}: profile with `memory` among the contents"
                yield self.found("error", text, one.path)
            if not one.traces:
                text = "it has no trace_view.json, which holds the call stacks"
                yield self.found("error", text, one.path)
            if not any(path.endswith(METADATA) for path in one.metadata):
                yield self.found("info", f"it has no {METADATA}", one.path)


class OperatorMemoryRule(CaptureRule):
    """Every operator_memory.csv has its columns, at least one row, and numbers where they belong.

    The file is read once, line by line.
    """

    def of_capture(self, tree: Tree, capture: AscendCapture) -> Iterator[Finding]:
        """Errors for what is missing, damaged or no number."""
        for path in capture.memory:
            problems = Problems()
            try:
                for text in _wrong_rows(lines(tree.absolute(path), problems)):
                    yield self.found("error", f"{MEMORY}: {text}", path)
            except (ReadError, csv.Error) as error:
                yield self.found("error", f"{MEMORY} cannot be read: {error}", path)
            for problem in problems:
                yield self.found(loss_severity(problem), in_words(problem), path)


class CallStackTraceRule(CaptureRule):
    """Every trace_view.json holds events; which fields they have does not matter here."""

    def of_capture(self, tree: Tree, capture: AscendCapture) -> Iterator[Finding]:
        """Errors for traces that are empty, damaged or none."""
        for path in capture.traces[:1]:
            try:
                trace = check_trace(tree.absolute(path))
            except ReadError as error:
                yield self.unreadable(tree, path, error)
                continue
            if not trace.events:
                yield self.found("error", "trace_view.json holds no events", path)
            for problem in trace.problems:
                if problem.code != "empty_file":
                    yield self.found(loss_severity(problem), in_words(problem), path)


class AscendMemoryFieldValidRule(CaptureRules):
    """What the files of every capture hold: profiler_info, metadata, allocations, trace."""

    kinds = _MEMORY
    parts = (
        ProfilerInfoRule(without_rank="error"),
        ProfilerMetadataRule(),
        OperatorMemoryRule(),
        CallStackTraceRule(),
    )


class _OneRow:
    """Lines for a CSV reader. A quote that never ends would make one row of all that follow."""

    def __init__(self, text: Iterator[str]) -> None:
        self._text = text
        self.size = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._text:
            self.size += len(line)
            if self.size > _LONGEST_ROW:
                raise ReadError(f"a row has more than {_LONGEST_ROW:,} characters")
            yield line


def _wrong_rows(text: Iterator[str]) -> Iterator[str]:
    """What is wrong with a list of allocations. A field of more than 128 KiB raises csv.Error."""
    one_row = _OneRow(text)
    rows = csv.reader(one_row)
    header = [name.strip().removeprefix("\ufeff") for name in next(rows, [])]
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        yield f"Required column missing: {', '.join(missing)}"
        return
    may_be_empty = {header.index(name): name in NUMBERS_OR_NOTHING for name in COLUMNS[1:]}
    count = wrong = 0
    first = ""
    for row in rows:
        one_row.size = 0
        if not any(row):
            continue
        count += 1
        at = next((at for at, empty in may_be_empty.items() if not _fits(row, at, empty)), None)
        if at is not None:
            wrong += 1
            first = first or f"«{header[at]}» of row {count:,}"
    if not count:
        yield "it has no data rows"
    if wrong:
        yield f"{wrong:,} of its {count:,} rows hold no number where one belongs, first {first}"


def _fits(row: list[str], at: int, may_be_empty: bool) -> bool:
    """Whether the field of a row is a number, or empty where it may be."""
    text = row[at].strip() if at < len(row) else ""
    if not text:
        return may_be_empty
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
