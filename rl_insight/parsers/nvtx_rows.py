"""The rows of an nsys export that matter, in the one form into which every reader brings them.

Tables and columns are called the same in all exports (the exporter's schema, seen at versions 3.24
and 3.25): JSON lines name the table in each row, SQLite has tables, Parquet and Arrow folders one
file per table. Times are ns since the capture began (ANALYSIS_DETAILS.startTime).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, overload

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.kernel_names import COMPUTING, MEMORY
from rl_insight.parsers.nvtx_schema import (
    CAPTURE,
    DETAILS,
    EXPORT,
    GRAPH,
    KERNEL,
    MEMCPY,
    MEMSET,
    RANGES,
    SESSION,
    STRINGS,
    SYSTEM,
)
from rl_insight.readers.line_columns import LineTexts

# Tables of device activity, with the class of what has no name of its own. A graph launch is one
# row (verl sets cuda-graph-trace=graph): what runs inside cannot be told apart, and is computing.
ACTIVITY: Final = {KERNEL: COMPUTING, MEMCPY: MEMORY, MEMSET: MEMORY, GRAPH: COMPUTING}

MISSING: Final = -(2**63)
"""Stands for null in columns of numbers; no real value is that small."""

UNREADABLE: Final = MISSING + 1
"""Stands for an end that is there and no number: unlike a missing one it tells of no open range."""

LONGEST_NAME: Final = 2_000
"""Of a name no more characters are kept."""

MOST_PROCESSES: Final = 512
"""Of a capture with more processes some are left out: none has that many."""

_FEW: Final = 8


class EncodedTexts(Sequence[str | None]):
    """Texts as their UTF-8; each is decoded when it is asked for. What is no text is None."""

    def __init__(self, texts: Sequence[object]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, at: int) -> str | None: ...
    @overload
    def __getitem__(self, at: slice) -> list[str | None]: ...
    def __getitem__(self, at: int | slice) -> str | list[str | None] | None:
        if isinstance(at, slice):
            return [_decoded(text) for text in self._texts[at]]
        return _decoded(self._texts[at])

    def take(self, places: IntArray) -> list[str | None]:
        """Those at `places`."""
        texts = self._texts
        return [_decoded(texts[index]) for index in places.tolist()]


def _decoded(text: object) -> str | None:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else None


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Rows of NVTX_EVENTS: columns of one length.

    `threads` are global thread ids. A range is called by `texts`, or where that is None by the
    string with the id in `text_ids`. An open range has no end.
    """

    starts: IntArray
    ends: IntArray
    kinds: IntArray
    threads: IntArray
    domains: IntArray
    texts: Sequence[str | None]
    text_ids: IntArray
    operators: npt.NDArray[np.bool_] | None = None
    """Which of them are torch's operators (`nvtx_names`), where a reader has looked already."""

    def __len__(self) -> int:
        return len(self.starts)

    def select(self, chosen: np.ndarray) -> "Ranges":
        """The rows where `chosen` is True, or at the positions in it."""
        at = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        texts = self.texts
        chosen_texts: Sequence[str | None]
        if isinstance(texts, LineTexts | EncodedTexts):
            chosen_texts = texts.take(at)
        else:
            chosen_texts = [texts[index] for index in at.tolist()]
        return Ranges(
            self.starts[at],
            self.ends[at],
            self.kinds[at],
            self.threads[at],
            self.domains[at],
            chosen_texts,
            self.text_ids[at],
            None if self.operators is None else self.operators[at],
        )

    def select_if(self, chosen: npt.NDArray[np.bool_]) -> "Ranges":
        """The rows where `chosen` is True: these themselves, where that is all."""
        return self if chosen.all() else self.select(chosen)


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Rows of a table of device activity: columns of one length.

    `processes` are global process ids. `names` are string ids for kernels and the kind of copy for
    copies, else missing.
    """

    table: str
    starts: IntArray
    ends: IntArray
    devices: IntArray
    processes: IntArray
    names: IntArray

    def __len__(self) -> int:
        return len(self.starts)

    def select_if(self, chosen: npt.NDArray[np.bool_]) -> "Work":
        """The rows where `chosen` is True: these themselves, where that is all."""
        if chosen.all():
            return self
        return Work(
            self.table,
            self.starts[chosen],
            self.ends[chosen],
            self.devices[chosen],
            self.processes[chosen],
            self.names[chosen],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """Rows of StringIds."""

    ids: Sequence[int]
    values: Sequence[str]


@dataclass(frozen=True, slots=True)
class Fact:
    """One value that the capture says of itself: a column of DETAILS or SESSION, or what
    `nvtx_environment` lets pass.
    """

    name: str
    value: int | str
    process: int | None = None


Batch = Ranges | Work | Strings | Fact

# The columns that are read of each table; `name` and `value` of others only where
# `nvtx_environment` lets them pass.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    STRINGS: ("id", "value"),
    RANGES: ("start", "end", "eventType", "globalTid", "domainId", "text", "textId"),
    DETAILS: ("startTime", "stopTime", "duration"),
    SESSION: ("utcEpochNs", "systemClockNs"),
    CAPTURE: ("name", "value"),
    SYSTEM: ("name", "value"),
    EXPORT: ("name", "value"),
    KERNEL: ("start", "end", "deviceId", "globalPid", "demangledName", "shortName"),
    MEMCPY: ("start", "end", "deviceId", "globalPid", "copyKind"),
    MEMSET: ("start", "end", "deviceId", "globalPid"),
    GRAPH: ("start", "end", "deviceId", "globalPid"),
}

# Without these a row means nothing.
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    STRINGS: ("id", "value"),
    RANGES: ("start", "eventType"),
    **dict.fromkeys(ACTIVITY, ("start", "end")),
    CAPTURE: ("name", "value"),
    SYSTEM: ("name", "value"),
    EXPORT: ("name", "value"),
}


def distinct(values: IntArray) -> list[int]:
    """The values that occur, rising; quick where they are few."""
    found: list[int] = []
    left = values
    while len(left) and len(found) < _FEW:
        found.append(int(left[0]))
        left = left[left != left[0]]
    return sorted({*found, *np.unique(left).tolist()} if len(left) else found)


def process_of(global_id: IntArray) -> IntArray:
    """The process ids in global ids: `vm << 48 | pid << 24 | tid` (NVIDIA's exporter schema)."""
    return global_id >> 24 & 0xFFFFFF


def thread_of(global_id: int) -> int:
    """The thread id in a global thread id."""
    return global_id & 0xFFFFFF
