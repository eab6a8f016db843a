"""The work of one job of the workflow, in a process that ends with it."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn

import rl_insight.without_pandas  # noqa: F401 - before the first table is made


def work(step: Callable[..., object], *words: object) -> NoReturn:
    """Call `step` with `words`, and end the process at once when it has come to its end.

    All is written then. Now and then a thread of Arrow was still at work while the interpreter went
    down, which aborted the process: the job counted as failed, and was done again.
    """
    step(*words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
