"""The annotations of one capture: named stretches of a thread's time, in bounded memory.

Neutral to profilers: torch's `record_function`, mstx and NVTX ranges all are annotations.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from rl_insight.data import roles

_LONGEST_NAME = 500

# What says nothing about the work. Collectives have a table of their own.
_NOISE = re.compile(
    r"(nccl|gloo|mpi|ucc|xccl|hccl):"
    r"|ProfilerStep\#|PyTorch[ ]Profiler|Iteration[ ]Start"
    r"|Optimizer\.zero_grad\#|enumerate\(DataLoader\)\#",
    re.VERBOSE,
)
_BATCH = re.compile(r"(mini|micro)[_-]?batch[_-]?([0-9]{1,9})", re.IGNORECASE)


class Annotation(msgspec.Struct, gc=False, frozen=True):
    """A named stretch [start_ns, end_ns) of the thread `tid`."""

    start_ns: int
    end_ns: int
    name: str
    tid: str = ""
    domain: str = "default"

    @property
    def duration_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.start_ns


def is_noise(name: str) -> bool:
    """Whether an annotation of that name is no range that a person would look for."""
    return _NOISE.match(name) is not None


def batch_of(name: str) -> tuple[int | None, int | None]:
    """The number of the mini-batch or micro-batch that `name` names: `mini_batch<i>` (verl)."""
    match = _BATCH.fullmatch(name)
    if match is None:
        return None, None
    number = int(match[2])
    return (number, None) if match[1].lower() == "mini" else (None, number)


class Annotations:
    """Collects annotations, never more than twice `most`: stages, batches and the longest stay."""

    def __init__(self, most: int = 50_000) -> None:
        self._most: Final = most
        self._all: list[Annotation] = []
        # Name as it comes -> name to keep, None for noise.
        self._names: dict[str, str | None] = {}
        self.left_out = 0

    def add(self, start_ns: int, end_ns: int, name: str, tid: str, domain: str = "default") -> None:
        """Take one; what has no length or is noise is passed over."""
        if name not in self._names:
            self._names[name] = None if is_noise(name) else name[:_LONGEST_NAME]
        kept = self._names[name]
        if kept is None or end_ns <= start_ns:
            return
        self._all.append(Annotation(start_ns, end_ns, kept, tid, domain))
        if len(self._all) > 2 * self._most:
            self._thin()

    def __iter__(self) -> Iterator[Annotation]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def _thin(self) -> None:
        # A range is never longer than the one around it: so none loses what it lies in.
        self._all.sort(key=lambda one: (not _is_wanted(one.name), -one.duration_ns))
        self.left_out += len(self._all) - self._most
        del self._all[self._most :]
        self._names.clear()


def _is_wanted(name: str) -> bool:
    return batch_of(name) != (None, None) or roles.canonical(name) in roles.STAGES
