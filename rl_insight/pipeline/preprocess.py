"""Exports raw captures, several at a time, each in a process of its own."""

import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from rl_insight.data.tree import Tree, scan
from rl_insight.errors import InputError, UsageError
from rl_insight.pipeline.preprocess_kinds import RawCapture, RawKind
from rl_insight.pipeline.terminal import duration, printable
from rl_insight.plain_text import count

# What a command printed is kept to tell why it failed; the end of it is enough.
_KEPT_OUTPUT = 20_000


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for: how many `jobs` at a time, and the interpreter that has torch_npu."""

    folder: Path
    jobs: int
    python: str
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A capture that cannot be read, and why."""

    path: str
    why: str


def preprocess(order: Order, kinds: Iterable[RawKind], say: Callable[[str], None]) -> int:
    """Export what needs it below `order.folder`, and `say` what came of it; gives the exit code.

    Raises InputError when there is nothing of these `kinds`, UsageError when a program is missing
    (after the captures of the other kinds were exported).
    """
    tree = scan(order.folder)
    failures: list[Failure] = []
    missing: list[str] = []
    found = [(kind, list(kind.look(tree))) for kind in kinds]
    if not any(captures for _, captures in found):
        names = " or ".join(kind.name for kind, _ in found)
        raise InputError(f"there is no {names} below {str(order.folder)!r}")
    for kind, captures in found:
        raw = [one for one in captures if one.state == "raw"]
        _say_others(kind, captures, say)
        failures += [
            Failure(one.path, one.why) for one in captures if one.state in ("packed", "hopeless")
        ]
        if order.dry_run:
            for one in raw:
                say(f"would export {printable(one.path)}: {one.why}")
            continue
        lacking = kind.missing(order.python) if raw else None
        if lacking is not None:
            missing.append(f"{lacking} ({count(len(raw), kind.name)} to do)")
        elif raw:
            failures += _export(kind, raw, tree, order, say)
    for failure in failures:
        say(f"failed: {printable(failure.path)}: {printable(failure.why)}")
    if missing:
        raise UsageError("; ".join(missing))
    return 1 if failures else 0


def _say_others(kind: RawKind, captures: Sequence[RawCapture], say: Callable[[str], None]) -> None:
    reasons = Counter(one.why for one in captures if one.state == "ready")
    for why, number in reasons.most_common():
        say(f"skipped {count(number, kind.name)}: {why}")


def _export(
    kind: RawKind,
    raw: Sequence[RawCapture],
    tree: Tree,
    order: Order,
    say: Callable[[str], None],
) -> list[Failure]:
    """Export `raw`, `order.jobs` at a time; gives those that failed, in order of their path."""
    began = time.monotonic()
    jobs = min(order.jobs, len(raw))
    say(f"exporting {count(len(raw), kind.name)}, {jobs} at a time")
    failures: list[Failure] = []
    with ThreadPoolExecutor(jobs) as pool:
        running = {
            pool.submit(_run, kind, tree.absolute(one.path), order.python): one for one in raw
        }
        try:
            for done, future in enumerate(as_completed(running), 1):
                one, (why, seconds) = running[future], future.result()
                state = "exported" if why is None else "failed"
                say(f"{done}/{len(raw)} {state} {printable(one.path)} ({duration(seconds)})")
                if why is not None:
                    failures.append(Failure(one.path, why))
        except BaseException:
            # What runs gets the interrupt itself; what waits must not begin any more.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    good = len(raw) - len(failures)
    took = duration(time.monotonic() - began)
    say(f"exported {good} of {count(len(raw), kind.name)} in {took}")
    return sorted(failures, key=lambda failure: failure.path)


def _run(kind: RawKind, capture: Path, python: str) -> tuple[str | None, float]:
    """Export one capture: why it failed, or None, and how long it took in seconds."""
    began = time.monotonic()
    try:
        # To disk: some print for hours.
        with tempfile.TemporaryFile() as printed:
            ended = subprocess.run(
                kind.command(capture, python),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                check=False,
            )
            printed.seek(max(0, printed.seek(0, os.SEEK_END) - _KEPT_OUTPUT))
            output = printed.read().decode("utf-8", "replace")
    except OSError as error:
        return f"cannot be run: {error.strerror or error}", time.monotonic() - began
    why = kind.failure(capture, output)
    if ended.returncode and why is not None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        why = f"{_ending(ended.returncode)}{f': {lines[-1]}' if lines else ''}"
    return why, time.monotonic() - began


def _ending(code: int) -> str:
    """How a command ended."""
    return f"it was killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"
