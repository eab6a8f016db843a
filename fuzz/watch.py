"""The bounds within which a target must stay: time of this process, and memory."""

import resource
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from fuzz.targets import Target, survives

SECONDS = 1.0
"""CPU time for one input, and once more for every MB of it."""

MOST_MB = 256
"""What one input may add to the peak of the process's memory."""

_MB = 1 << 20
# Beyond this the process itself is in danger, and not only a rule broken.
_ADDRESS_SPACE = 8 << 30


class HangError(Exception):
    """An input took too long."""


class MemoryLimitError(Exception):
    """An input took too much memory."""


def _expire(number: int, frame: FrameType | None) -> None:
    raise HangError("it takes longer than it may")


@contextmanager
def time_limit(size: int) -> Iterator[None]:
    """Raises HangError in the block after `SECONDS` of CPU time, and as much for each of its MB.

    Time of the process and not of the clock: a busy machine makes no finding.
    """
    before = signal.signal(signal.SIGPROF, _expire)
    signal.setitimer(signal.ITIMER_PROF, SECONDS * (1 + size / _MB))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def bound_address_space() -> None:
    """Keep an input that asks for everything from taking the machine with it."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, hard))


def peak_mb() -> float:
    """The most memory that this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MB


def check(target: Target, data: bytes, limited: bool = True) -> None:
    """Run `target` on `data` within its bounds.

    Raises whatever a target may not raise; with `limited` also HangError and MemoryLimitError.
    """
    with tempfile.TemporaryDirectory() as folder:
        if not limited:
            survives(target, data, Path(folder))
            return
        before = peak_mb()
        with time_limit(len(data)):
            survives(target, data, Path(folder))
        more = peak_mb() - before
        if more > MOST_MB:
            raise MemoryLimitError(f"it adds {more:.0f} MB to the peak, and may add {MOST_MB}")
