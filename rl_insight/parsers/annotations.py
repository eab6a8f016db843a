"""The annotations of one capture: named stretches of a thread's time, in bounded memory.

Neutral to profilers: torch's `record_function`, mstx and NVTX ranges all are annotations.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from rl_insight.data import roles

_LONGEST_LABEL = 500

# What says nothing about the work. Collectives have a table of their own.
_NOISE = re.compile(
    r"(nccl|gloo|mpi|ucc|xccl|hccl):"
    r"|ProfilerStep\#|PyTorch[ ]Profiler|Iteration[ ]Start"
    r"|Optimizer\.zero_grad\#|enumerate\(DataLoader\)\#",
    re.VERBOSE,
)
_BATCH = re.compile(r"(mini|micro)[_-]?batch[_-]?([0-9]{1,9})", re.IGNORECASE)


class Annotation(NamedTuple):
    """A named stretch [start_ns, end_ns) of the thread `tid`."""

    start_ns: int
    end_ns: int
    name: str
    tid: str
    domain: str


def batch_of(name: str) -> tuple[int | None, int | None]:
    """The number of the mini-batch or micro-batch that `name` names: `mini_batch<i>` (verl)."""
    match = _BATCH.fullmatch(name)
    if match is None:
        return None, None
    number = int(match[2])
    return (number, None) if match[1].lower() == "mini" else (None, number)


class Annotations:
    """Collects annotations, never more than twice `most`: stages, batches and the longest stay.

    28 bytes are kept of each. Iterating gives them by start, of equal starts the longest first: an
    outer one before those inside.
    """

    def __init__(self, most: int = 50_000) -> None:
        self._most: Final = most
        self._starts = array("q")
        self._ends = array("q")
        self._names = array("i")
        self._tids = array("i")
        self._domains = array("i")
        self._labels: dict[str, int] = {}
        self.left_out = 0
        self.wanted_left_out = 0

    def add(self, start_ns: int, end_ns: int, name: str, tid: str, domain: str = "default") -> None:
        """Take one; what has no length or is noise is passed over."""
        if end_ns <= start_ns or _NOISE.match(name):
            return
        self._starts.append(start_ns)
        self._ends.append(end_ns)
        for codes, label in ((self._names, name), (self._tids, tid), (self._domains, domain)):
            codes.append(self._labels.setdefault(label[:_LONGEST_LABEL], len(self._labels)))
        if len(self._starts) > 2 * self._most:
            self._thin()

    def keep(self, first_ns: int, last_ns: int) -> None:
        """Forget those that begin outside of these times: they are no part of the capture."""
        starts = np.array(self._starts)
        inside = (starts >= first_ns) & (starts <= last_ns)
        if not inside.all():
            self._choose(np.flatnonzero(inside).tolist())

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Annotation]:
        starts, ends = np.array(self._starts), np.array(self._ends)
        labels = list(self._labels)
        for at in np.lexsort((-ends, starts)).tolist():
            yield Annotation(
                self._starts[at],
                self._ends[at],
                labels[self._names[at]],
                labels[self._tids[at]],
                labels[self._domains[at]],
            )

    def _thin(self) -> None:
        # A range is never longer than the one around it: so none loses what it lies in.
        wanted = np.array([_is_wanted(label) for label in self._labels])[np.array(self._names)]
        lengths = np.array(self._ends) - np.array(self._starts)
        kept = np.sort(np.lexsort((-lengths, ~wanted))[: self._most]).tolist()
        self.left_out += len(self) - len(kept)
        self.wanted_left_out += max(0, int(wanted.sum()) - len(kept))
        self._choose(kept)

    def _choose(self, kept: Sequence[int]) -> None:
        """Forget all but those at the places `kept`."""
        labels = list(self._labels)
        self._labels = {}
        for codes in (self._names, self._tids, self._domains):
            codes[:] = array(
                "i",
                [self._labels.setdefault(labels[codes[at]], len(self._labels)) for at in kept],
            )
        for times in (self._starts, self._ends):
            times[:] = array("q", [times[at] for at in kept])


def _is_wanted(name: str) -> bool:
    return batch_of(name) != (None, None) or roles.canonical(name) in roles.STAGES
