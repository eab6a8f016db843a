"""The work of one job of the workflow, in a process that ends with it and does without pandas."""

import faulthandler
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from rl_insight import without_pandas

# Both here, before a script imports its step. The job's log tells where a library crashed, also one
# that the processor cannot even load; and looking the step up may make the first table or let
# pandas in.
faulthandler.enable(sys.stderr)
without_pandas.keep_out()


def work(step: Callable[..., object], *words: object) -> NoReturn:
    """Call `step` with `words`, and end the process at once when it has come to its end.

    All is written then. To take the interpreter down costs a small job a tenth of its time, and now
    and then a thread of Arrow was still at work meanwhile, which aborted the process: the job
    counted as failed, and was done again.
    """
    step(*words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
