"""Rules for the documented DataFrames. pandas is never imported here: who has a frame has it."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rl_insight.data.data_kinds import DataEnum
from rl_insight.data.findings import Finding
from rl_insight.data.validation_rule import ValidationRule

if TYPE_CHECKING:
    import pandas as pd

EVENT_COLUMNS: Final = ("role", "name", "rank_id", "start_time_ms", "end_time_ms")
GMM_COLUMNS: Final = ("role", "rank_id", "step", "stage", "expert_index", "load")
MEMORY_COLUMNS: Final = (
    "name",
    "size_kb",
    "start_time_ms",
    "duration_ms",
    "total_allocated_mb",
)


class ParserOutputValidatorRule(ValidationRule):
    """The data is a DataFrame, has all columns, and at least one row.

    `domains` are the names of the columns; a subclass sets them, `numbers` are those that hold
    numbers and no nulls.
    """

    domains: Sequence[str] = ()
    numbers: Sequence[str] = ()

    def __init__(self, domains: Sequence[str] | None = None) -> None:
        if domains is not None:
            self.domains = tuple(domains)

    def findings(self, data: object) -> Iterable[Finding]:
        """An error for each thing that it lacks."""
        frame = _frame(data)
        if frame is None:
            kind = type(data).__name__
            return [self.found("error", f"the data is not a pandas DataFrame, but a {kind}")]
        missing = [name for name in self.domains if name not in frame.columns]
        if missing:
            return [self.found("error", f"Required column missing: {', '.join(missing)}")]
        if frame.empty:
            return [self.found("error", "the DataFrame is empty: it has no data rows")]
        return list(self.in_rows(frame))

    def in_rows(self, frame: "pd.DataFrame") -> Iterator[Finding]:
        """What there is to say about the rows of a frame that has all columns."""
        for name in self.numbers:
            column = frame[name]
            if column.dtype.kind not in "iuf":
                yield self.found("error", f"the column {name} does not hold numbers")
            elif column.isna().any():
                nulls = int(column.isna().sum())
                yield self.found("error", f"the column {name} has no number in {nulls:,} rows")


class SummaryEventRule(ParserOutputValidatorRule):
    """The frame of stages."""

    kinds = (DataEnum.SUMMARY_EVENT,)
    domains = EVENT_COLUMNS
    numbers = ("start_time_ms", "end_time_ms")

    def in_rows(self, frame: "pd.DataFrame") -> Iterator[Finding]:
        """Stages that end before they start, beside columns that hold no numbers."""
        wrong = list(super().in_rows(frame))
        yield from wrong
        if not wrong and (backwards := int((frame.end_time_ms < frame.start_time_ms).sum())):
            yield self.found("error", f"{backwards:,} rows end before they start")


class GmmSummaryRule(ParserOutputValidatorRule):
    """The frame of expert load."""

    kinds = (DataEnum.GMM_SUMMARY,)
    domains = GMM_COLUMNS
    numbers = ("stage", "expert_index", "load")


class MemorySummaryRule(ParserOutputValidatorRule):
    """The frame of allocations."""

    kinds = (DataEnum.MEMORY_SUMMARY,)
    domains = MEMORY_COLUMNS
    numbers = ("size_kb", "start_time_ms", "duration_ms", "total_allocated_mb")

    def in_rows(self, frame: "pd.DataFrame") -> Iterator[Finding]:
        """Rows without a name, and a frame in which nothing is allocated."""
        wrong = list(super().in_rows(frame))
        yield from wrong
        names = frame["name"]
        nameless = int((names.isna() | (names.astype(str).str.strip() == "")).sum())
        if nameless:
            yield self.found("error", f"{nameless:,} rows have no name")
        if not wrong and not (frame["size_kb"] > 0).any():
            yield self.found("error", "no row allocates anything: no size is above 0")


def _frame(data: object) -> "pd.DataFrame | None":
    pandas = sys.modules.get("pandas")
    return data if pandas is not None and isinstance(data, pandas.DataFrame) else None
