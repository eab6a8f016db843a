"""What ends a process from outside, a closed terminal or a scheduler's limit, taken as Ctrl-C."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def endings_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt; afterwards they do what they did before."""
    # Only the main thread may set handlers; elsewhere the caller has its own way to end.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in _ENDINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
