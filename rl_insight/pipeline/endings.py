"""What ends a process from outside, a closed terminal or a scheduler's limit, taken as Ctrl-C."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType

_ENDINGS = (signal.SIGTERM, signal.SIGHUP)

_Handler = Callable[[int, FrameType | None], object] | int | None


@contextlib.contextmanager
def endings_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt; afterwards they do what they did before.

    What our caller has us ignore (`nohup` the closed terminal) stays ignored.
    """
    # Only the main thread may set handlers; elsewhere the caller has its own way to end.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _set(dict.fromkeys(_heeded(_ENDINGS), _interrupt))
    try:
        yield
    finally:
        _set(before)


class Endings:
    """The endings that came since a block of `noted_endings` began; Ctrl-C is one."""

    def __init__(self, pipe: int) -> None:
        self.count = 0
        self._pipe = pipe

    def wait(self) -> None:
        """Sleep until an ending or the end of a child comes, or has come since the last call."""
        os.read(self._pipe, 4096)

    def note(self, number: int, frame: FrameType | None) -> None:
        """Count one: the handler of a signal."""
        self.count += 1


@contextlib.contextmanager
def noted_endings() -> Iterator[Endings]:
    """Have endings, and the end of any child, noted instead of raised; for the main thread only.

    An exception may come anywhere, also where a child was started and nobody knows of it yet. And a
    handler of Python runs between two instructions: a signal just before a system call that blocks
    is seen after it. So the system's own handler leaves a byte in a pipe, at which `Endings.wait`
    wakes however late it begins.

    Raises KeyboardInterrupt at the end of the block when there was an ending.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    endings = Endings(reader)
    handlers: dict[int, _Handler] = {signal.SIGCHLD: _do_nothing}
    handlers.update(dict.fromkeys(_heeded((signal.SIGINT, *_ENDINGS)), endings.note))
    # That a full pipe takes no more is well: there is enough in it to wake.
    waker = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = _set(handlers)
    try:
        yield endings
    finally:
        signal.set_wakeup_fd(waker)
        _set(before)
        os.close(reader)
        os.close(writer)
    if endings.count:
        raise KeyboardInterrupt


def _heeded(numbers: tuple[int, ...]) -> list[int]:
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def _set(handlers: Mapping[int, _Handler]) -> dict[int, _Handler]:
    """Set handlers, all or none as a signal sees it; gives those from before."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, handlers)
    try:
        return {number: signal.signal(number, handler) for number, handler in handlers.items()}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """A signal that nobody handles leaves no byte in the pipe."""
