"""What is said about a job that failed: its name, its log and how that ends."""

import re
from collections.abc import Sequence
from pathlib import Path

from rl_insight.pipeline.terminal import printable

_TAIL_BYTES = 8_192
_TAIL_LINES = 5

_DIED = re.compile(r"died with <Signals\.(SIG\w+)|exit status (1[2-9]\d)\b")
_SIGNALS = {137: "SIGKILL", 139: "SIGSEGV", 134: "SIGABRT", 143: "SIGTERM", 135: "SIGBUS"}


def describe(name: str, logs: Sequence[str], killed: str | None, said: str | None = None) -> str:
    """The line, and the end of the log below it, for a failed job called `name`.

    `killed` is the signal that ended it, where one did; `said` what a cluster says about it. Of
    several logs (the job's own, the cluster's) the first that holds something is shown.
    """
    what = f"error: {printable(name)} failed"
    if killed is not None:
        memory = " (often for want of memory)" if killed == "SIGKILL" else ""
        what = f"error: {printable(name)} was killed by {killed}{memory}"
    if said:
        what = f"{what}: {printable(said.strip())}"
    if not logs:
        return f"{what}; it has no log"
    tails = [_tail(Path(log)) for log in logs]
    for log, tail in zip(logs, tails, strict=True):
        if tail:
            lines = [f"{what}; its log {printable(log)} ends:", *(f"    {line}" for line in tail)]
            return "\n".join(lines)
    state = "cannot be read" if tails[0] is None else "is empty"
    return f"{what}; its log {printable(logs[0])} {state}"


def shorten(text: str) -> list[str]:
    """The lines of an error text; of tracebacks only which exceptions they end in."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not text.lstrip().startswith("Traceback"):
        return lines
    return [
        line for line in lines if not line.startswith((" ", "Traceback", "During", "The above"))
    ]


def killed_by(text: str) -> str | None:
    """The signal that Snakemake's message about a failed command names, or None."""
    match = _DIED.search(text)
    if match is None:
        return None
    return match[1] or _SIGNALS.get(int(match[2]))


def _tail(log: Path) -> list[str] | None:
    """The last lines that are not empty; None when the log cannot be read."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    return [printable(line.rstrip(), 200) for line in lines[-_TAIL_LINES:]]
