"""What a run shows while Snakemake works: a logger plugin, `--logger rl-insight`.

On a terminal one line that is refreshed in place, otherwise a line now and then. Jobs that fail
are named with the end of their log; errors of Snakemake itself pass through. Everything else that
Snakemake says stands in its own log below `.snakemake/log`.
"""

import logging
import os
import re
import shutil
import sys
import threading
import time
import traceback
from logging import WARNING, LogRecord
from typing import TextIO

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from rl_insight.pipeline import layout
from rl_insight.pipeline.failure import describe, killed_by, shorten
from rl_insight.pipeline.tally import Tally
from rl_insight.pipeline.terminal import duration, printable
from rl_insight.pipeline.unit_file import works_on
from rl_insight.plain_text import count

# Seconds between two refreshes of the line on a terminal, and between two lines elsewhere.
_REFRESH = 0.5
_INTERVAL = 10.0

# A failed job is tried again at once if at all; only then is it known whether that was the end.
_RETRY_GRACE = 2.0
_RETRY = re.compile(r"Trying to restart job (\d+)\.")

# A failed job: its own line follows and says it in better words, but not by what it was killed.
_JOB_DIED = re.compile(r"(RuleException:\s+)?CalledProcessError in ")

# What Snakemake says about failed jobs again, after each was shown.
_REPEATS = ("Exiting because a job execution failed.", "WorkflowError:\nAt least one job did not")

# A merge that failed has no earlier tables to put back on a first run; that is nothing to act on.
_NOISE = re.compile(r"Cannot restore .*: no backup found")

# Said for every job of a cluster without accounting; once is enough.
_ONCE = "Both 'sacctmgr' and 'sshare' returned empty results"

# Informative texts that a person asked for and would miss.
_WANTED = ("Nothing to be done", "Unlocked working directory", "Congratulations")

_BAR = 24
_SHOWN_PER_RULE = 20


class LogHandler(LogHandlerBase):
    """The handler that Snakemake starts; all methods run in its one logging thread."""

    stream: TextIO

    def __post_init__(self) -> None:
        # On a full disk Snakemake's log file would put a traceback on the terminal for every line
        # that it cannot take.
        logging.raiseExceptions = False
        self.stream = sys.stdout if self.common_settings.dryrun else sys.stderr
        self._tally = Tally()
        self._begun = time.monotonic()
        self._printed = -_INTERVAL
        self._shown = ""
        self._verb = ""
        self._pending: dict[int, tuple[float, str]] = {}
        self._killed: str | None = None
        self._interrupted = False
        self._listed: dict[str, int] = {}
        self._said_once = False
        obeys = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self._live = obeys and not self.common_settings.dryrun
        self._stop = threading.Event()
        if self._live:
            threading.Thread(target=self._tick, daemon=True).start()

    @property
    def writes_to_stream(self) -> bool:
        """It takes the place of Snakemake's own output."""
        return True

    @property
    def writes_to_file(self) -> bool:
        """Snakemake's own log file stays as it is."""
        return False

    @property
    def has_filter(self) -> bool:
        """Snakemake's filter, so that its `--quiet` works here too."""
        return False

    @property
    def has_formatter(self) -> bool:
        """Snakemake's formatter, for what passes through."""
        return False

    @property
    def needs_rulegraph(self) -> bool:
        """The counts are enough."""
        return False

    def emit(self, record: LogRecord) -> None:
        """Take one thing that Snakemake says."""
        try:
            self._take(record)
            self._show_failed(_RETRY_GRACE)
            self._progress()
        except (BrokenPipeError, OSError):
            # Whoever watched has gone away; the run itself goes on.
            self._stop.set()
        except Exception:
            traceback.print_exc()

    def close(self) -> None:
        """The run is over: the line goes away, what was held back is shown."""
        self._stop.set()
        self.acquire()
        try:
            self._show_failed(0)
            self._clear()
            for rule, number in self._listed.items():
                if number > _SHOWN_PER_RULE:
                    self._line(f"would run {rule}: {number - _SHOWN_PER_RULE} more")
            self._listed.clear()
        except (OSError, ValueError):
            pass
        finally:
            self.release()
        super().close()

    def _take(self, record: LogRecord) -> None:
        event = getattr(record, "event", None)
        text = record.getMessage() if record.msg else ""
        if event == LogEvent.RUN_INFO:
            known = bool(self._tally.planned)
            self._tally.plan(record.stats)  # type: ignore[attr-defined]
            # Snakemake says it at the end of a dry run once more.
            if self.common_settings.dryrun and self._tally.planned and not known:
                jobs = ", ".join(f"{n:,} {rule}" for rule, n in self._tally.planned.items())
                self._line(f"would run {count(self._tally.total, 'job')}: {jobs}")
        elif event == LogEvent.JOB_INFO:
            self._job_begins(record)
        elif event == LogEvent.JOB_FINISHED:
            self._tally.end(record.job_id, ok=True)  # type: ignore[attr-defined]
        elif event == LogEvent.JOB_ERROR:
            self._job_failed(record)
        elif retry := _RETRY.match(text):
            self._pending.pop(int(retry[1]), None)
        elif record.levelno >= WARNING:
            self._trouble(record, text)
        elif self.common_settings.verbose or text.startswith(_WANTED):
            self._line(self.format(record))

    def _job_begins(self, record: LogRecord) -> None:
        rule: str = record.rule_name  # type: ignore[attr-defined]
        wildcards = record.wildcards or {}  # type: ignore[attr-defined]
        job = self._tally.begin(record.jobid, rule, wildcards)  # type: ignore[attr-defined]
        if self.common_settings.dryrun and rule in self._tally.planned:
            self._listed[rule] = self._listed.get(rule, 0) + 1
            if self._listed[rule] <= _SHOWN_PER_RULE:
                reason = printable(_in_short(record.reason))  # type: ignore[attr-defined]
                self._line(f"would run {printable(job.of(works_on(wildcards)))}: {reason}")

    def _job_failed(self, record: LogRecord) -> None:
        job_id: int = record.jobid  # type: ignore[attr-defined]
        name = self._tally.jobs.get(job_id) or record.rule_name  # type: ignore[attr-defined]
        logs = list(record.log or ())  # type: ignore[attr-defined]
        # What a cluster says about the job; none for a job on this machine.
        said: str | None = record.rule_msg  # type: ignore[attr-defined]
        text = describe(str(name), logs, self._killed, said)
        # Ctrl-C in a terminal reaches the jobs too: that they end is what was asked for.
        self._interrupted = self._interrupted or self._killed == "SIGINT"
        self._killed = None
        self._pending[job_id] = (time.monotonic(), text)

    def _trouble(self, record: LogRecord, text: str) -> None:
        if _JOB_DIED.match(text):
            self._killed = killed_by(text)
        elif self.common_settings.verbose or not self._needless(text):
            lines = text.strip().splitlines() if self.common_settings.verbose else shorten(text)
            self._line("\n".join(printable(line, 2_000) for line in lines))

    def _needless(self, text: str) -> bool:
        if text.startswith(_ONCE):
            said, self._said_once = self._said_once, True
            return said
        return text.startswith(_REPEATS) or _NOISE.match(text) is not None

    def _show_failed(self, grace: float) -> None:
        now = time.monotonic()
        for job_id, (since, text) in list(self._pending.items()):
            if now - since >= grace:
                del self._pending[job_id]
                self._tally.end(job_id, ok=False)
                if not self._interrupted:
                    self._line(text)

    def _line(self, text: str) -> None:
        """A line that stays."""
        self._clear()
        self.stream.write(f"{text}\n")
        self.stream.flush()

    def _clear(self) -> None:
        if self._shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self._shown = ""

    def _progress(self) -> None:
        """Show how far the run is, in the way that fits the stream."""
        if self.common_settings.dryrun or self._stop.is_set():
            return
        elapsed = time.monotonic() - self._begun
        words = self._tally.words()
        if self._live:
            self._draw(words, elapsed)
            return
        verb = self._tally.phase()[0]
        if self._tally.planned and (verb != self._verb or elapsed - self._printed >= _INTERVAL):
            if verb != "finishing":
                self._line(f"{words} ({duration(elapsed)})")
            self._verb, self._printed = verb, elapsed

    def _draw(self, words: str, elapsed: float) -> None:
        total = self._tally.total
        filled = _BAR * self._tally.ended // total if total else 0
        clock = f"{int(elapsed) // 60}:{int(elapsed) % 60:02}"
        line = f"[{'#' * filled}{'-' * (_BAR - filled)}] {words} · {clock}"
        line = line[: max(20, shutil.get_terminal_size().columns - 1)]
        if line != self._shown:
            self.stream.write(f"\r{line}\x1b[K")
            self.stream.flush()
            self._shown = line

    def _tick(self) -> None:
        """Move the clock while no job says anything."""
        while not self._stop.wait(_REFRESH):
            self.acquire()
            try:
                self._progress()
            except (OSError, ValueError):
                return
            finally:
                self.release()


def _in_short(reason: str) -> str:
    """Snakemake's reason for a job, without what says nothing to who asks what a run would do.

    That are the files of the cache by name, more than one of the others, the parameters
    themselves, and what it calls to go on after a kill.
    """
    parts = []
    for part in reason.split("; "):
        what, colon, rest = part.partition(": ")
        files = rest.split(", ")
        if what.startswith("Params have changed"):
            parts.append("its options or its parser have changed")
        elif part == "Forced execution":
            parts.append("it was begun and did not end")
        elif not colon or all(file.startswith(f"{layout.PARSED}/") for file in files):
            parts.append(what)
        else:
            more = f" and {len(files) - 1} more" if len(files) > 1 else ""
            parts.append(f"{what}: {files[0]}{more}")
    return "; ".join(dict.fromkeys(parts))
