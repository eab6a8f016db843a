"""Run Snakemake as a child that an interrupt reaches in good order.

In a terminal Ctrl-C goes to every process of the group: jobs that were just importing would print
their tracebacks. So the child gets a group of its own and is told by us: once to end its jobs, and
on a second interrupt it is killed with all of them. What ends us (a closed terminal, a scheduler's
limit) ends the child too.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from rl_insight.pipeline.endings import endings_interrupt


def wait_for(
    words: Sequence[str], keep: Sequence[int] = (), env: Mapping[str, str] | None = None
) -> int:
    """Run a command to its end and give its exit code; it inherits the descriptors `keep`.

    `env` is its environment, ours unless it is given.

    Raises KeyboardInterrupt after the child has ended, when we were interrupted or told to end.
    """
    with (
        endings_interrupt(),
        subprocess.Popen(
            words, process_group=0, pass_fds=keep, env=env, preexec_fn=_heed_interrupts
        ) as child,
    ):
        try:
            return child.wait()
        except KeyboardInterrupt:
            _end(child)
            raise


def _heed_interrupts() -> None:
    # A shell script that starts us with `&` has us ignore interrupts, and so would the child: told
    # to end, it would go on for hours.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end(child: "subprocess.Popen[bytes]") -> None:
    child.send_signal(signal.SIGINT)
    try:
        child.wait()
    except KeyboardInterrupt:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
