"""Which crash of a library ended a job, told from what its interpreter wrote into its log."""

import re
from pathlib import Path

# Of each thread a hundred calls at most.
_TAIL_BYTES = 256 << 10

# Python, "faulthandler": what it writes for SIGSEGV, SIGFPE, SIGABRT, SIGBUS and SIGILL. The calls
# follow by thread, the innermost first.
_FATAL = re.compile(r"^Fatal Python error: (.{1,80})$", re.MULTILINE)
_OURS = re.compile(r'^  File "[^"\n]*\b(rl_insight/[\w/]+\.py)", line (\d+)', re.MULTILINE)


def crash_in(log: Path) -> str | None:
    """What happened and where in this package, as a few words; None for any other end of the job.

    Not a crash is what the system or a person kills, which leaves no trace.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    fatal = _FATAL.search(text)
    if fatal is None:
        return None
    current = max(fatal.end(), text.find("\nCurrent thread ", fatal.end()))
    ours = _OURS.search(text, current)
    where = f" in {ours[1]}, line {ours[2]}" if ours is not None else ""
    return f"{fatal[1]}{where}"
