"""Run Snakemake as a child that an interrupt reaches in good order.

In a terminal Ctrl-C goes to every process of the group: jobs that were just importing would print
their tracebacks. So the child gets a group of its own and is told by us: once to end its jobs, and
on a second interrupt it is killed with all of them. What ends us (a closed terminal, a scheduler's
limit) ends the child too, and where the system can, so does our being killed.
"""

import ctypes
import functools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence

from rl_insight.pipeline.endings import noted_endings

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of linux/prctl.h
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def wait_for(
    words: Sequence[str], keep: Sequence[int] = (), env: Mapping[str, str] | None = None
) -> int:
    """Run a command to its end and give its exit code; it inherits the descriptors `keep`.

    `env` is its environment, ours unless it is given.

    Raises KeyboardInterrupt after the child has ended, when we were interrupted or told to end.
    """
    start = functools.partial(
        subprocess.Popen, words, process_group=0, pass_fds=keep, env=env, preexec_fn=_prepare
    )
    if threading.current_thread() is not threading.main_thread():
        # No signal comes here.
        with start() as child:
            return child.wait()
    with noted_endings() as endings, start() as child:
        told = 0
        while (code := child.poll()) is None:
            if told == endings.count:
                endings.wait()
                continue
            if told == 0:
                child.send_signal(signal.SIGINT)
            elif told == 1:
                os.killpg(child.pid, signal.SIGKILL)
            told += 1
        return code


def _prepare() -> None:
    """What the child does before it becomes another program."""
    # A shell script that starts us with `&` has us ignore interrupts, and so would the child: told
    # to end, it would go on for hours.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _LIBC is not None:
        # prctl(2). Killed for good we cannot tell it to end, and it would go on for hours, holding
        # the output folder.
        _LIBC.prctl(_SET_DEATH_SIGNAL, signal.SIGINT)
