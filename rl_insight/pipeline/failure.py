"""What is said about a job that failed: its name, its log and how that ends."""

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from rl_insight import errors
from rl_insight.pipeline.terminal import printable

_TAIL_BYTES = 8_192
_TAIL_LINES = 5
_SENTENCE = 2_000

_DIED = re.compile(r"died with <Signals\.(SIG\w+)|exit status (1[2-9]\d)\b")
# How Python ends a traceback of one of our own errors, and the text of a disk that is full or a
# limit that is reached.
_OWN = re.compile(r"rl_insight\.errors\.(\w+): ")
_FULL = re.compile(
    r"(?:\w+: )?(?:\[Errno \d+\] )?"
    r"(.*(?:No space left on device|Disk quota exceeded|File too large).*)",
    re.IGNORECASE,
)
# What may stand below such a text and is no part of it.
_OTHER_TEXT = re.compile(r"Traceback|During|The above|RuleException|WorkflowError|Error in rule|\[")

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
    return [line for line in lines if not _of_traceback(line)]


def killed_by(text: str) -> str | None:
    """The signal that Snakemake's message about a failed command names, or None."""
    match = _DIED.search(text)
    if match is None:
        return None
    return match[1] or _SIGNALS.get(int(match[2]))


def _tail(log: Path) -> list[str] | None:
    """The last lines that are not empty, or the sentence that they lead to.

    None when the log cannot be read.
    """
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    sentence = _sentence(lines)
    if sentence is not None:
        return [printable(sentence, _SENTENCE)]
    return [printable(line, 200) for line in lines[-_TAIL_LINES:]]


def _sentence(lines: Sequence[str]) -> str | None:
    """What one of our own errors, or a full disk, says in the last lines; None for others."""
    ends = [at for at, line in enumerate(lines) if not _of_traceback(line)]
    for at in reversed(ends[-_TAIL_LINES:]):
        own = _OWN.match(lines[at])
        if own is not None and hasattr(errors, own[1]):
            # It may quote an error of several lines, and the remedy stands at its end.
            rest = takewhile(lambda line: not _OTHER_TEXT.match(line), lines[at + 1 :])
            return " ".join([lines[at][own.end() :], *(line.strip() for line in rest)])
        full = _FULL.fullmatch(lines[at])
        if full is not None:
            return full[1]
    return None


def _of_traceback(line: str) -> bool:
    """Whether it stands in a traceback before the exception itself."""
    return line.startswith((" ", "Traceback", "During", "The above"))
