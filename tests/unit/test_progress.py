"""What a run shows while it works: on a terminal, in a log file, and when a job fails."""

import io
import json
import logging
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.tests import MockOutputSettings, TestLogHandlerBase

import snakemake_logger_plugin_rl_insight as plugin
from rl_insight.pipeline import progress
from rl_insight.pipeline.failure import describe, killed_by, shorten
from rl_insight.pipeline.progress import LogHandler
from rl_insight.pipeline.tally import Job, Tally

ROOT = Path(__file__).parents[2]


class TestAsSnakemakeTestsItsPlugins(TestLogHandlerBase):
    __test__ = True

    def get_log_handler_cls(self):
        return plugin.LogHandler

    def get_log_handler_settings(self):
        return None


class Watched:
    """A handler that writes to memory, and the events that a run sends it."""

    def __init__(self, monkeypatch, terminal=False, dryrun=False):
        self.stream = io.StringIO()
        self.stream.isatty = lambda: terminal
        monkeypatch.setattr(sys, "stdout" if dryrun else "stderr", self.stream)
        settings = MockOutputSettings()
        settings.dryrun = dryrun
        self.handler = LogHandler(settings, None)

    def say(self, message="", event=None, level=logging.INFO, **extra):
        record = logging.LogRecord("snakemake", level, __file__, 1, message, (), None)
        record.event = event
        record.__dict__.update(extra)
        self.handler.handle(record)

    def plan(self, **rules):
        self.say("Job stats", LogEvent.RUN_INFO, stats={**rules, "all": 1, "total": 99})

    def begin(self, job_id, rule, reason="Missing output files: x", **wildcards):
        self.say(
            event=LogEvent.JOB_INFO,
            jobid=job_id,
            rule_name=rule,
            wildcards=wildcards,
            reason=reason,
        )

    def finish(self, job_id):
        self.say(event=LogEvent.JOB_FINISHED, job_id=job_id)

    def fail(self, job_id, rule, log=()):
        self.say(
            "Error in rule",
            LogEvent.JOB_ERROR,
            logging.ERROR,
            jobid=job_id,
            rule_name=rule,
            rule_msg=None,
            log=list(log),
        )

    def text(self):
        return self.stream.getvalue()


def test_the_plugin_is_what_snakemake_looks_for():
    assert plugin.LogHandler is LogHandler


def test_the_tally_says_what_is_going_on():
    tally = Tally()
    assert tally.words() == "looking at the input"
    tally.plan(
        {"parse": 2, "merge": 1, "timeline_html": 1, "timeline_png": 1, "all": 1, "total": 6}
    )
    assert (tally.total, tally.words()) == (5, "parsing 0/2")
    tally.begin(1, "parse", {"parser": "torch", "unit": "a-1"})
    tally.begin(2, "parse", {"parser": "torch", "unit": "b-2"})
    assert str(tally.jobs[1]) == "parse torch/a-1"
    tally.end(1, ok=True)
    assert tally.words() == "parsing 1/2"
    tally.end(2, ok=False)
    assert tally.words() == "merging, 1 failed"
    for job_id, rule in ((3, "merge"), (4, "timeline_html")):
        tally.begin(job_id, rule, {})
        tally.end(job_id, ok=True)
    assert tally.words() == "drawing 1/2, 1 failed"
    tally.begin(5, "timeline_png", {})
    tally.end(5, ok=True)
    assert (tally.words(), tally.ended) == ("finishing, 1 failed", 5)


def test_the_tally_of_a_heatmap_speaks_no_names_of_rules():
    tally = Tally()
    tally.plan({"parse": 1, "merge": 1, "structure": 1, "heatmap_gmm_heatmap": 1, "all": 1})
    said = [tally.words()]
    for job_id, rule in enumerate(("parse", "merge", "structure", "heatmap_gmm_heatmap")):
        tally.begin(job_id, rule, {})
        tally.end(job_id, ok=True)
        said.append(tally.words())
    assert said == ["parsing", "merging", "finding layers", "drawing", "finishing"]


def test_a_rule_of_another_package_is_called_by_its_name():
    tally = Tally()
    tally.plan({"export": 3})
    assert tally.words() == "export 0/3"
    assert str(Job("export", "")) == "export"


def test_away_from_a_terminal_lines_come_when_something_else_begins(monkeypatch):
    watched = Watched(monkeypatch)
    monkeypatch.setattr(progress.time, "monotonic", lambda: watched.handler._begun + 1)
    watched.say("Building DAG of jobs...")
    watched.plan(parse=2, merge=1)
    for job_id, rule in ((1, "parse"), (2, "parse"), (3, "merge")):
        watched.begin(job_id, rule)
        watched.say("", LogEvent.PROGRESS, done=1, total=3)
        watched.finish(job_id)
    watched.handler.close()
    assert watched.text() == "parsing 0/2 (1.0 s)\nmerging (1.0 s)\n"


def test_away_from_a_terminal_a_long_phase_is_told_every_ten_seconds(monkeypatch):
    watched = Watched(monkeypatch)
    begun = watched.handler._begun
    monkeypatch.setattr(progress.time, "monotonic", lambda: begun)
    watched.plan(parse=100)
    for second in range(1, 26):
        monkeypatch.setattr(progress.time, "monotonic", lambda second=second: begun + second)
        watched.begin(second, "parse")
        watched.finish(second)
    times = re.findall(r"\((\S+) s\)", watched.text())
    assert [round(float(t)) for t in times] == [0, 10, 20]


def test_on_a_terminal_one_line_is_refreshed_in_place_and_goes_away(monkeypatch):
    watched = Watched(monkeypatch, terminal=True)
    watched.plan(parse=3, merge=1)
    watched.begin(1, "parse")
    watched.finish(1)
    watched.handler.close()
    shown = watched.text().split("\r")
    assert f"[{'#' * 6}{'-' * 18}] parsing 1/3 · 0:00\x1b[K" in shown
    assert shown[-1] == "\x1b[K"
    assert "\n" not in watched.text()


def test_the_clock_goes_on_while_no_job_says_anything(monkeypatch):
    monkeypatch.setattr(progress, "_REFRESH", 0.01)
    watched = Watched(monkeypatch, terminal=True)
    watched.plan(parse=3)
    watched.handler._begun -= 100
    end = time.monotonic() + 10
    while "1:4" not in watched.text() and time.monotonic() < end:
        time.sleep(0.01)
    watched.handler.close()
    assert "parsing 0/3 · 1:4" in watched.text()


def test_a_narrow_terminal_is_not_overrun(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    watched = Watched(monkeypatch, terminal=True)
    watched.plan(parse=3)
    watched.handler.close()
    assert max(len(line) for line in re.split(r"\r|\x1b\[K", watched.text())) == 29


def test_a_failed_job_is_one_line_with_the_end_of_its_log(monkeypatch, tmp_path):
    log = tmp_path / "a.log"
    log.write_text("1\n2\n\n3\n4\n5\n\x1b[31m6\x1b[0m\n")
    watched = Watched(monkeypatch)
    watched.plan(parse=1)
    watched.begin(7, "parse", parser="torch", unit="rank0-ab")
    watched.say(
        'RuleException:\nCalledProcessError in file "x.smk", line 3:\nCommand returned 1.',
        LogEvent.ERROR,
        logging.ERROR,
        exception="RuleException",
    )
    watched.fail(7, "parse", [str(log)])
    watched.say("Exiting because a job execution failed. Look above", level=logging.ERROR)
    watched.say("WorkflowError:\nAt least one job did not complete.", level=logging.ERROR)
    watched.handler.close()
    assert watched.text().partition("\n")[2] == (
        f"error: parse torch/rank0-ab failed; its log {log} ends:\n"
        "    2\n    3\n    4\n    5\n    6\n"
    )


def test_a_job_that_is_tried_again_has_not_failed_yet(monkeypatch):
    watched = Watched(monkeypatch)
    watched.plan(parse=1)
    watched.begin(7, "parse")
    watched.fail(7, "parse")
    watched.say("Trying to restart job 7.")
    watched.begin(7, "parse")
    watched.finish(7)
    watched.handler.close()
    assert watched.text().count("\n") == 1
    assert "failed" not in watched.text()


def test_a_job_that_was_not_tried_again_is_named_while_others_go_on(monkeypatch):
    watched = Watched(monkeypatch)
    watched.plan(parse=2)
    watched.begin(7, "parse", unit="x")
    watched.fail(7, "parse")
    assert "error" not in watched.text()
    later = time.monotonic() + 3
    monkeypatch.setattr(progress.time, "monotonic", lambda: later)
    watched.begin(8, "parse", unit="y")
    assert "error: parse x failed; it has no log\n" in watched.text()
    assert watched.handler._tally.words() == "parsing 1/2, 1 failed"


def test_after_an_interrupt_the_jobs_that_it_ended_are_not_named(monkeypatch):
    watched = Watched(monkeypatch)
    watched.plan(parse=2)
    for job_id, how in (
        (1, "returned non-zero exit status 1."),
        (2, "died with <Signals.SIGINT: 2>."),
    ):
        watched.begin(job_id, "parse")
        watched.say(f"CalledProcessError in file x:\nCommand 'y' {how}", level=logging.ERROR)
        watched.fail(job_id, "parse")
    watched.handler.close()
    assert "error" not in watched.text()


def test_errors_and_warnings_of_snakemake_itself_are_shown_and_its_chatter_is_not(monkeypatch):
    watched = Watched(monkeypatch)
    for chatter in ("Building DAG of jobs...", "Provided cores: 2", "Select jobs to execute..."):
        watched.say(chatter)
    watched.say("Shell command: x", LogEvent.SHELLCMD, shellcmd="x")
    watched.say("Nothing to be done (all requested files are present and up to date).")
    watched.say("LockException:\nDirectory cannot be locked.", LogEvent.ERROR, logging.ERROR)
    watched.say("Something \x1b[5mblinks", level=logging.WARNING)
    assert watched.text() == (
        "Nothing to be done (all requested files are present and up to date).\n"
        "LockException:\nDirectory cannot be locked.\n"
        "Something blinks\n"
    )


def test_what_snakemake_says_again_and_again_is_told_once_and_noise_not_at_all(monkeypatch):
    watched = Watched(monkeypatch)
    for name in ("sources", "spans"):
        watched.say(
            f"Cannot restore tables/{name}.parquet: no backup found.", level=logging.WARNING
        )
        watched.say(
            "Both 'sacctmgr' and 'sshare' returned empty results for account 'a'. Proceeding.",
            level=logging.WARNING,
        )
    assert watched.text() == (
        "Both 'sacctmgr' and 'sshare' returned empty results for account 'a'. Proceeding.\n"
    )


def test_a_dry_run_lists_what_would_be_done(monkeypatch):
    watched = Watched(monkeypatch, dryrun=True)
    watched.plan(parse=22, merge=1)
    for number in range(22):
        watched.begin(number, "parse", unit=f"u{number}")
    watched.begin(30, "merge")
    watched.begin(31, "all")
    watched.handler.close()
    said = watched.text().splitlines()
    assert said[:2] == [
        "would run 23 jobs: 22 parse, 1 merge",
        "would run parse u0: Missing output files: x",
    ]
    assert said[21:] == [
        "would run merge: Missing output files: x",
        "would run parse: 2 more",
    ]


def test_a_dry_run_says_what_is_read_and_not_what_the_cache_calls_it(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parsed/mstx").mkdir(parents=True)
    for name, paths in (("one-d28c", ["r0_ascend_pt"]), ("two-71ab", ["a/r1", "a/r2", "a/r3"])):
        sources = [{"source_id": path, "path": path, "files": []} for path in paths]
        unit = tmp_path / f"parsed/mstx/{name}.json"
        unit.write_text(json.dumps({"parser": "mstx", "sources": sources}))
    watched = Watched(monkeypatch, dryrun=True)
    watched.plan(parse=3, merge=1)
    for number, name in enumerate(("one-d28c", "two-71ab", "gone-0000")):
        reason = f"Missing output files: parsed/mstx/{name}"
        watched.begin(number, "parse", reason, parser="mstx", unit=name)
    reason = (
        "Missing output files: tables/spans.parquet; "
        "Input files updated by another job: parsed/mstx/one-d28c, parsed/mstx/two-71ab"
    )
    watched.begin(9, "merge", reason)
    watched.begin(10, "merge", 'Params have changed since last execution: before: {"a": 1}')
    watched.begin(11, "merge", "Forced execution; Missing output files: a.png, b.png, c.png")
    assert watched.text().splitlines() == [
        "would run 4 jobs: 3 parse, 1 merge",
        "would run parse r0_ascend_pt: Missing output files",
        "would run parse a/r1 and 2 more inputs: Missing output files",
        "would run parse mstx/gone-0000: Missing output files",
        "would run merge: Missing output files: tables/spans.parquet; "
        "Input files updated by another job",
        "would run merge: its options or its parser have changed",
        "would run merge: it was begun and did not end; Missing output files: a.png and 2 more",
    ]


def test_a_reader_that_has_gone_away_does_not_end_the_run(monkeypatch):
    watched = Watched(monkeypatch)

    def broken(text):
        raise BrokenPipeError

    watched.stream.write = broken
    watched.plan(parse=2)
    watched.handler.close()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Command 'x' died with <Signals.SIGKILL: 9>.", "SIGKILL"),
        ("Command 'x' returned non-zero exit status 137.", "SIGKILL"),
        ("Command 'x' returned non-zero exit status 143.", "SIGTERM"),
        ("Command 'x' returned non-zero exit status 1.", None),
        ("Command 'x' returned non-zero exit status 127.", None),
    ],
)
def test_the_signal_that_killed_a_job_is_recognised(text, name):
    assert killed_by(text) == name


def test_a_failure_is_described_by_what_is_known(tmp_path):
    own, cluster = tmp_path / "own.log", tmp_path / "cluster.log"
    own.write_text("")
    assert describe("merge", [str(own)], "SIGKILL") == (
        f"error: merge was killed by SIGKILL (often for want of memory); its log {own} is empty"
    )
    assert describe("merge", [str(cluster)], "SIGTERM") == (
        f"error: merge was killed by SIGTERM; its log {cluster} cannot be read"
    )
    cluster.write_text("slurmstepd: out of memory\n")
    assert describe("merge", [str(own), str(cluster)], None, "SLURM status is: 'FAILED'.\n") == (
        f"error: merge failed: SLURM status is: 'FAILED'.; its log {cluster} ends:\n"
        "    slurmstepd: out of memory"
    )


REMEDY = f"delete the folder parsed/torch/{'x' * 200}-ab12 and run again"


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        (f"rl_insight.errors.CacheError: the cache is incomplete: {REMEDY}", None),
        (f"rl_insight.errors.CacheError: the cache is incomplete:\n  {REMEDY}", None),
        (
            f"rl_insight.errors.CacheError: the cache is incomplete: {REMEDY}\n"
            "RuleException:\nCalledProcessError in file x, line 2:\nexit status 1",
            None,
        ),
        (
            "OSError: [Errno 28] No space left on device: 'tables/spans.parquet'",
            "No space left on device: 'tables/spans.parquet'",
        ),
        (
            "OSError: [Errno 28] Error writing bytes to file. No space left on device",
            "Error writing bytes to file. No space left on device",
        ),
    ],
)
def test_of_our_own_errors_and_a_full_disk_the_whole_sentence_is_shown_alone(tmp_path, end, shown):
    log = tmp_path / "merge.log"
    frames = "".join(f'  File "x.py", line {n}, in f\n    f()\n    ^^^\n' for n in range(9))
    log.write_text(
        f"Traceback (most recent call last):\n{frames}pyarrow.lib.ArrowInvalid: no table\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        f"Traceback (most recent call last):\n{frames}{end}\n"
    )
    expected = shown or f"the cache is incomplete: {REMEDY}"
    assert describe("merge", [str(log)], None) == (
        f"error: merge failed; its log {log} ends:\n    {expected}"
    )


def test_other_errors_are_shown_with_where_they_came_from(tmp_path):
    log = tmp_path / "merge.log"
    log.write_text('Traceback (most recent call last):\n  File "x.py", line 1\nKeyError: 1\n')
    assert describe("merge", [str(log)], None).splitlines()[1:] == [
        "    Traceback (most recent call last):",
        '      File "x.py", line 1',
        "    KeyError: 1",
    ]


def test_a_huge_log_is_read_from_its_end(tmp_path):
    log = tmp_path / "huge.log"
    with log.open("wb") as file:
        file.truncate(2**31)
        file.seek(0, 2)
        file.write(b"\nthe last word\n")
    assert describe("parse", [str(log)], None).endswith("\n    the last word")


def test_of_a_traceback_only_its_end_is_shown():
    text = (
        "Traceback (most recent call last):\n\n  File 'x', line 1, in f\n    f()\n\n"
        "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n  File 'y'\nValueError: b\n"
    )
    assert shorten(text) == ["KeyError: 'a'", "ValueError: b"]
    assert shorten("WorkflowError:\n\nno  input\n") == ["WorkflowError:", "no  input"]


SNAKEFILE = """
rule all:
    input: "merged.txt", "broken.txt"

rule parse:
    output: "{unit}.parsed"
    wildcard_constraints: unit="[ab]"
    shell: "echo {wildcards.unit} > {output}"

rule parse_badly:
    output: "broken.txt"
    log: "logs/broken.log"
    retries: 1
    shell: "(echo no such trace; exit 1) > {log} 2>&1"

rule merge:
    input: "a.parsed", "b.parsed"
    output: "merged.txt"
    shell: "cat {input} > {output}"
"""


@pytest.fixture
def workflow(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    return tmp_path


def command(*words):
    base = [sys.executable, "-m", "snakemake", "--logger", "rl-insight"]
    return [*base, "--scheduler", "greedy", "--cores", "2", *words]


def environment(folder):
    # The cache of source files belongs to the test, not to the person who runs it.
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "COLUMNS": "100",
    }


def snakemake(folder, *words):
    return subprocess.run(
        command(*words),
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def logged(folder):
    logs = sorted((folder / ".snakemake" / "log").glob("*.log"))
    return logs[-1].read_text()


@pytest.mark.workflow
def test_a_real_run_shows_its_phases_and_the_failed_job_and_logs_the_rest(workflow):
    ended = snakemake(workflow, "--keep-going")
    assert (ended.returncode, ended.stdout) == (1, "")
    said = re.sub(r"\d+\.\d s", "T", ended.stderr)
    # The failed job may be the last to end; then nothing is merging any more when it is over.
    assert said.replace("merging (T)\n", "") == (
        "parsing 0/3 (T)\n"
        "error: parse_badly failed; its log logs/broken.log ends:\n"
        "    no such trace\n"
    )
    log = logged(workflow)
    assert "rule merge:" in log
    assert "Error in rule parse_badly:" in log
    assert "Job stats:" in log


@pytest.mark.workflow
def test_a_second_real_run_has_nothing_to_do(workflow):
    assert snakemake(workflow, "merged.txt").returncode == 0
    again = snakemake(workflow, "merged.txt")
    assert (again.returncode, again.stderr) == (
        0,
        "Nothing to be done (all requested files are present and up to date).\n",
    )


@pytest.mark.workflow
def test_a_real_dry_run_lists_the_jobs_and_makes_nothing(workflow):
    ended = snakemake(workflow, "--dry-run", "merged.txt")
    assert (ended.returncode, ended.stderr) == (0, "")
    # Snakemake lists a reason's files in no particular order.
    said = ended.stdout.replace("job: b.parsed", "job: a.parsed")
    assert sorted(said.splitlines()) == [
        "would run 3 jobs: 2 parse, 1 merge",
        "would run merge: Missing output files: merged.txt;"
        " Input files updated by another job: a.parsed and 1 more",
        "would run parse a: Missing output files: a.parsed",
        "would run parse b: Missing output files: b.parsed",
    ]
    assert not (workflow / "a.parsed").exists()


@pytest.mark.workflow
def test_errors_of_snakemake_itself_are_shown(workflow):
    snakefile = workflow / "Snakefile"
    snakefile.write_text('rule x:\n    input: "nope"\n    output: "y"\n    shell: "touch y"\n')
    ended = snakemake(workflow)
    assert ended.returncode == 1
    assert "Missing input files for rule x:" in ended.stderr
    assert "nope" in ended.stderr
    snakefile.write_text('rule x:\n    output: "y\n')
    ended = snakemake(workflow)
    assert ended.returncode == 1
    assert "SyntaxError" in ended.stderr


@pytest.mark.workflow
def test_a_locked_folder_is_said_and_unlocking_too(workflow):
    (workflow / "Snakefile").write_text(
        'rule x:\n    output: "y"\n    shell: "touch started; sleep 60; touch y"\n'
    )
    first = subprocess.Popen(
        command("y"),
        cwd=workflow,
        env=environment(workflow),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 60
        while not (workflow / "started").exists() and time.monotonic() < end:
            time.sleep(0.05)
        second = snakemake(workflow, "--rerun-incomplete", "y")
        assert second.returncode == 1
        assert second.stderr.startswith("LockException:\n")
        assert "Directory cannot be locked" in second.stderr
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert snakemake(workflow, "--unlock").stderr == "Unlocked working directory.\n"


@pytest.mark.workflow
def test_on_a_real_terminal_the_line_is_refreshed_and_cleared(workflow):
    main, other = pty.openpty()
    child = subprocess.Popen(
        command("merged.txt"), cwd=workflow, env=environment(workflow), stderr=other, stdin=other
    )
    os.close(other)
    shown = b""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        ready, _, _ = select.select([main], [], [], 1)
        try:
            chunk = os.read(main, 65536) if ready else b""
        except OSError:
            break
        shown += chunk
        if not chunk and child.poll() is not None:
            break
    os.close(main)
    assert child.wait() == 0
    text = shown.decode()
    assert f"\r[{'-' * 24}] parsing 0/2 · 0:00\x1b[K" in text
    assert f"\r[{'#' * 16}{'-' * 8}] merging · 0:0" in text
    assert text.endswith("\r\x1b[K")
    assert "\n" not in text
