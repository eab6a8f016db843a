"""The command line: what is understood, what is refused and how, and how a run ends."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rl_insight import commandline, tables
from rl_insight.commandline import parse
from rl_insight.config import KEYS
from rl_insight.config_values import shown
from rl_insight.errors import InputError, UsageError
from rl_insight.help import help_text
from rl_insight.main import COMMANDS, main
from rl_insight.pipeline import run as pipeline_run
from rl_insight.pipeline.run import Outcome, RunRequest
from rl_insight.schema import BREAKDOWN, LANES, SOURCES, SPANS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """Requests that reach the pipeline; `runs.answer` is what happens there."""

    class Runs(list):
        code = 0
        report_code = 0
        sources = ("ok",)
        error = None
        output = tmp_path / "out"

        def answer(self, request):
            self.append(request)
            if self.error is not None:
                raise self.error
            if self.sources is not None:
                self.leave()
            pages = (self.output / "rl_timeline.html",)
            return Outcome(self.code, self.output, 2.0, pages, report_code=self.report_code)

        def leave(self):
            folder = self.output / "tables"
            folder.mkdir(parents=True, exist_ok=True)
            (self.output / "rl_timeline.html").touch()
            rows = [
                {"source_id": str(n), "path": f"r{n}", "parser": "torch", "status": status}
                for n, status in enumerate(self.sources)
            ]
            drawn = [{}] * self.sources.count("ok")
            for name, schema, content in (
                ("sources", SOURCES, rows),
                ("breakdown", BREAKDOWN, []),
                ("spans", SPANS, drawn),
                ("lanes", LANES, []),
            ):
                tables.write(folder / f"{name}.parquet", tables.from_rows(schema, content))

    result = Runs()
    monkeypatch.setattr(pipeline_run, "run", result.answer)
    monkeypatch.setattr("rl_insight.main._parsers", lambda config: ["torch"])
    return result


def words(runs, *more):
    return ["--input-path", "x", "--profiler-type", "torch", f"output.path={runs.output}", *more]


def refused(capsys, *argv):
    """What is said about a command line that cannot be used."""
    assert main(argv) == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.removeprefix("error: ").removesuffix("\n")


def test_both_spellings_mean_the_same_and_may_be_mixed():
    expected = [("input.path", "x"), ("timeline.parser.type", "torch"), ("input.rank_list", "0-3")]
    for argv in (
        ["--input-path", "x", "--profiler-type", "torch", "--rank-list", "0-3"],
        ["--input-path=x", "--profiler-type=torch", "--rank-list=0-3"],
        ["input.path=x", "timeline.parser.type=torch", "input.rank_list=0-3"],
        ["--input-path", "x", "timeline.parser.type=torch", "--rank-list=0-3"],
    ):
        assert parse(argv).settings == expected


def test_a_value_may_hold_an_equals_sign_or_begin_with_a_dash():
    assert parse(["--input-path=a=b", "output.path=c=d", "--rank-list", "-1"]).settings == [
        ("input.path", "a=b"),
        ("output.path", "c=d"),
        ("input.rank_list", "-1"),
    ]


def test_preset_and_file_are_understood_in_both_spellings():
    for argv in (
        ["preset=all", "config_path=my.yaml"],
        ["--preset", "all", "--config-path", "my.yaml"],
        ["--preset=all", "--config-path=my.yaml"],
    ):
        taken = parse(argv)
        assert (taken.preset, taken.config_path, taken.settings) == ("all", "my.yaml", [])


def test_switches_of_a_run():
    taken = parse(["-n", "--unlock", "--strict", "--cores", "4", "--profile", "slurm"])
    assert (taken.dry_run, taken.unlock, taken.cores, taken.profile) == (True, True, 4, "slurm")
    assert taken.settings == [("run.strict", "true")]
    assert parse(["--dry-run"]).dry_run
    assert parse(["--cores=all"]).cores is None
    assert parse(["--strict=false"]).settings == [("run.strict", "false")]


def test_what_follows_two_dashes_goes_to_snakemake_untouched():
    taken = parse(["input.path=x", "--", "--until", "merge", "-h", "--", "a=b"])
    assert taken.snakemake_args == ("--until", "merge", "-h", "--", "a=b")
    assert taken.action == "run"


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (
            ["--proflier-type", "x"],
            "there is no flag --proflier-type; did you mean --profiler-type?",
        ),
        (["--input_path=x"], "there is no flag --input_path; did you mean --input-path?"),
        (["-j", "4"], "there is no flag -j; did you mean --cores?"),
        (["-o", "x"], "there is no flag -o; did you mean --output-path?"),
        (
            ["--timeline.parser.type=torch"],
            "there is no flag --timeline.parser.type; did you mean timeline.parser.type=torch?",
        ),
        (["--dpi", "90"], "there is no flag --dpi; did you mean heatmap.visualizer.dpi=…?"),
        (
            ["--frobnicate"],
            "there is no flag --frobnicate;"
            " options for Snakemake stand after --, see --help for all others",
        ),
        (["--input-path"], "--input-path needs a value"),
        (["--input-path", "--strict"], "--input-path needs a value"),
        (["--output-path", "--", "x"], "--output-path needs a value"),
        (["--dry-run=yes"], "--dry-run takes no value"),
        (["--cores", "0"], "--cores: '0' is neither a whole number from 1 nor all"),
        (["--cores", "many"], "--cores: 'many' is neither a whole number from 1 nor all"),
        (["--cores", "１２"], "--cores: '１２' is neither a whole number from 1 nor all"),
        (
            ["--cores", "9" * 5_000],
            f"--cores: '{'9' * 58}… is neither a whole number from 1 nor all",
        ),
        (["x" * 300], f"unexpected word '{'x' * 58}…; see --help"),
        (["cores"], "unexpected word 'cores'; did you mean --cores?"),
        (
            ["visualizer.type"],
            "unexpected word 'visualizer.type'; did you mean timeline.visualizer.type=…?",
        ),
        (["frobnicate"], "unexpected word 'frobnicate'; see --help"),
        (["-"], "unexpected word '-'; see --help"),
    ],
)
def test_a_flag_or_word_without_meaning_is_refused_with_the_nearest(argv, text):
    with pytest.raises(UsageError) as caught:
        parse(argv)
    assert str(caught.value) == text


def test_a_path_without_its_flag_is_recognised(tmp_path):
    file = tmp_path / "my.yaml"
    file.touch()
    for path, flag in ((tmp_path, "--input-path"), (file, "--config-path")):
        with pytest.raises(UsageError) as caught:
            parse([str(path)])
        assert str(caught.value) == f"unexpected word '{path}'; did you mean {flag} {path}?"


def test_the_request_carries_what_was_asked_for(runs, tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text("input: {rank_list: 0-3}\n")
    code = main(
        words(runs, f"config_path={file}", "--cores", "2", "--profile", "slurm", "--", "-p")
    )
    assert code == 0
    (request,) = runs
    assert isinstance(request, RunRequest)
    assert (request.cores, request.profile, request.snakemake_args) == (2, "slurm", ("-p",))
    assert (request.dry_run, request.unlock) == (False, False)
    assert (request.config.input.path, request.config.input.rank_list) == ("x", "0-3")


def test_a_good_run_ends_with_its_summary(runs, capsys):
    assert main(words(runs)) == 0
    assert capsys.readouterr() == (
        "Read 1 input.\nDrew 1 lane, 0 ranks: 1 span.\n"
        f"Open {runs.output}/rl_timeline.html\nTook 2.0 s.\n",
        "",
    )


@pytest.mark.parametrize(
    ("sources", "strict", "code"),
    [(("ok", "failed"), False, 0), (("ok", "failed"), True, 3), (("failed",), True, 1)],
)
def test_the_exit_code_follows_from_the_sources(runs, sources, strict, code):
    runs.sources = sources
    assert main(words(runs, *["--strict"] * strict)) == code


@pytest.mark.parametrize("snakemakes", [1, -9])
@pytest.mark.parametrize("flag", [[], ["-n"]])
def test_a_failed_run_points_to_the_log(runs, capsys, snakemakes, flag):
    runs.code = snakemakes
    assert main(words(runs, *flag)) == 1
    assert capsys.readouterr() == (
        "",
        f"error: the run failed; Snakemake's own log is below {runs.output}/.snakemake/log\n",
    )


@pytest.mark.parametrize("sources", [("ok",), None])
def test_a_report_that_could_not_be_made_takes_nothing_from_the_run(runs, capsys, sources):
    runs.report_code, runs.sources = 1, sources
    assert main(words(runs, "--", "--report", "report.zip")) == 1
    said = capsys.readouterr()
    assert "Took 2.0 s." in said.out
    assert "Snakemake could not make its report" in said.err
    assert "the run failed" not in said.err


def test_an_option_that_snakemake_does_not_know_is_a_usage_error(runs, capsys):
    runs.code = 2
    assert main(words(runs, "--", "--bogus", "1")) == 2
    assert capsys.readouterr() == ("", "error: Snakemake does not understand '--bogus 1'\n")


@pytest.mark.parametrize("flag", ["-n", "--unlock"])
def test_looking_and_unlocking_have_no_summary(runs, capsys, flag):
    runs.sources = None
    assert main(words(runs, flag)) == 0
    assert capsys.readouterr() == ("", "")


def test_a_run_for_something_else_than_pictures_ends_well_without_tables(runs, capsys):
    runs.sources = None
    assert main(words(runs, "--", "--until", "parse")) == 0
    assert capsys.readouterr().out == "Took 2.0 s.\n"


@pytest.mark.parametrize("name", ["sources", "spans", "lanes", "breakdown"])
def test_a_run_for_pictures_does_not_end_well_without_tables(runs, capsys, name):
    runs.leave()
    runs.sources = None
    path = runs.output / "tables" / f"{name}.parquet"
    path.unlink()
    assert main(words(runs)) == 1
    assert capsys.readouterr() == (
        "",
        f"error: the run ended well, but {path} is missing: run it again\n",
    )


def test_a_damaged_table_is_named_with_what_to_do(runs, capsys):
    runs.leave()
    runs.sources = None
    path = runs.output / "tables" / "sources.parquet"
    path.write_bytes(b"no table")
    assert main(words(runs)) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {path}: damaged (")
    assert said.endswith("); delete it and run again\n")


@pytest.mark.parametrize("name", ["nope", "", "x" * 300, "../profiles/default"])
def test_a_profile_that_does_not_exist_is_refused_with_those_that_do(
    runs, capsys, tmp_path, monkeypatch, name
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", f"{tmp_path / 'site'}:/etc/xdg")
    (tmp_path / "mine" / "snakemake").mkdir(parents=True)
    said = refused(capsys, *words(runs, "--profile", name))
    assert said.startswith(f"--profile: there is no profile {shown(name)} (RL-Insight's own are ")
    assert "cluster-generic, default, slurm; others are a folder, or stand in" in said
    assert runs == []


def test_a_profile_may_be_ours_a_path_or_one_of_the_user_or_the_machine(
    runs, capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", f"{tmp_path / 'site'}:/etc/xdg")
    for place in ("mine", "site"):
        (tmp_path / place / "snakemake" / f"of-{place}").mkdir(parents=True)
    for name in ("slurm", "default", str(tmp_path), "of-mine", "of-site"):
        assert main(words(runs, "--profile", name)) == 0
    assert [request.profile for request in runs][-2:] == ["of-mine", "of-site"]
    capsys.readouterr()
    said = refused(capsys, *words(runs, "--profile", "slrum"))
    assert said.startswith("--profile: there is no profile 'slrum'; did you mean slurm?")


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (
            ["--profiler-type", "torch"],
            "input.path is required: name the folder to read with --input-path FOLDER"
            " (or input.path=FOLDER)",
        ),
        (
            ["input.path=x", "timeline.visualiser.type=html"],
            "timeline.visualiser.type: there is no such key;"
            " did you mean timeline.visualizer.type?",
        ),
        (
            ["input.path=x", "timeline.visualizer.width=wide"],
            "timeline.visualizer.width: 'wide' is not a whole number from 200 to 20000",
        ),
        (["preset=x"], "Unknown preset: x. Supported presets: all, heatmap, timeline"),
        (["config_path=no.yaml"], "Config file not found: no.yaml"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(capsys, argv, text):
    assert refused(capsys, *argv) == text


@pytest.mark.parametrize("preset", ["heatmap", "all"])
def test_an_unknown_colour_map_is_refused_before_any_work(tmp_path, capsys, preset):
    words = (f"preset={preset}", f"input.path={tmp_path}", f"output.path={tmp_path / 'out'}")
    assert main([*words, "heatmap.visualizer.cmap=virids"]) == 2
    assert capsys.readouterr().err == (
        "error: heatmap.visualizer.cmap: matplotlib has no colour map 'virids'; did you mean "
        "viridis?\n"
    )
    assert not (tmp_path / "out").exists()


def test_a_colour_map_that_is_turned_round_is_known(runs):
    assert main([*words(runs), "preset=all", "heatmap.visualizer.cmap=magma_r"]) == 0


def test_misspelt_names_are_refused_with_what_is_registered(capsys):
    said = refused(capsys, "input.path=x", "--profiler-type", "tocrh")
    assert said.startswith(
        "timeline.parser.type: 'tocrh' is not known; did you mean torch? (available are auto, "
    )
    said = refused(capsys, "input.path=x", "--profiler-type", "auto", "--vis-type", "pgn")
    assert said.startswith(
        "timeline.visualizer.type: 'pgn' is not known; did you mean png? (available are html, png"
    )
    said = refused(capsys, "input.path=x", "--profiler-type", "auto", "--vis-type", "gmm_heatmap")
    assert said.startswith(
        "timeline.visualizer.type: 'gmm_heatmap' is not known; heatmap.visualizer.type takes it: "
        "--preset heatmap (available are html, png"
    )
    said = refused(capsys, "input.path=x", "--profiler-type", "gmm")
    assert said.startswith(
        "timeline.parser.type: 'gmm' is not known; heatmap.parser.type takes it: --preset heatmap"
    )


def test_an_error_of_the_run_keeps_its_own_exit_code(runs, capsys):
    runs.error = InputError("input.path: '/nope': there is no \x1b[31msuch\x1b[0m folder")
    assert main(words(runs)) == 2
    assert capsys.readouterr().err == "error: input.path: '/nope': there is no such folder\n"


def test_an_interrupt_is_said_and_ends_with_130(runs, capsys):
    runs.error = KeyboardInterrupt()
    assert main(words(runs)) == 130
    assert capsys.readouterr().err == (
        "error: interrupted; what was read so far is kept, the same command goes on from there\n"
    )


def test_the_unexpected_is_one_sentence_and_its_traceback_goes_to_a_log(runs, capsys):
    runs.error = ZeroDivisionError("division by zero")
    assert main(words(runs)) == 1
    log = runs.output / "logs" / "rl-insight.log"
    assert capsys.readouterr().err == (
        f"error: unexpected ZeroDivisionError: division by zero (details: {log})\n"
    )
    assert "Traceback (most recent call last)" in log.read_text()
    assert re.match(r"\d{4}-\d\d-\d\dT\S+ rl-insight \d", log.read_text())


def test_the_unexpected_is_told_in_a_watch_and_does_not_end_it(runs, capsys, tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rank0").touch()
    runs.error = ZeroDivisionError("division by zero")

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("rl_insight.pipeline.watch_command.time.sleep", interrupt)
    assert main(["watch", str(tmp_path / "in"), f"output.path={runs.output}", "--settle", "0"]) == 0
    said = capsys.readouterr().err
    assert "error: unexpected ZeroDivisionError: division by zero (details: " in said
    assert said.endswith("No longer watching; the same command goes on from here.\n")


def test_the_unexpected_shows_its_traceback_when_asked_to(runs, capsys, monkeypatch):
    monkeypatch.setenv("RL_INSIGHT_DEBUG", "1")
    runs.error = ZeroDivisionError("division by zero")
    assert main(words(runs)) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_full_disk_is_said_in_the_systems_words(runs, capsys):
    runs.output.parent.joinpath("out").write_text("a file where the folder should be")
    runs.error = OSError(28, "No space left on device", "/data/x")
    assert main(words(runs)) == 1
    assert capsys.readouterr().err == (
        "error: it cannot go on: No space left on device: /data/x"
        " (details: run it again with RL_INSIGHT_DEBUG=1)\n"
    )


def test_help_names_every_key_flag_choice_and_exit_code(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert text == help_text()
    for key in KEYS.values():
        assert re.search(rf"^  (--[\w-]+, )?{re.escape(key.name)}$", text, re.MULTILINE), key.name
        assert f"{key.flag}, {key.name}\n" in text or key.flag is None
        flat = " ".join(text.split())
        for choice in key.choices:
            assert choice in flat
    for flag in (*commandline.RUN_FLAGS, "-n, --dry-run", "--unlock", "--version", "-- OPTIONS"):
        assert flag in text
    for code in (0, 1, 2, 3, 130):
        assert re.search(rf"^  {code:<5}\w", text, re.MULTILINE)
    assert max(len(line) for line in text.splitlines()) <= 95


def test_the_documentation_has_the_flags_and_exit_codes_of_the_help():
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    codes = re.findall(r"^  (\d+)  ", help_text(), re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "130"]
    assert re.findall(r"^\| (\d+) \| ", page, re.MULTILINE) == codes
    for flag in (*commandline.RUN_FLAGS, "--dry-run", "--unlock"):
        assert f"`{flag}" in page


def test_asking_for_help_wins_over_the_rest(capsys):
    assert main(["input.path=x", "-h"]) == 0
    assert capsys.readouterr().out.startswith("usage: rl-insight ")


def test_the_examples_in_the_help_are_understood(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^  rl-insight (.+)$", help_text(), re.MULTILINE)
    assert len(examples) == 6
    for example in examples:
        parse(example.split())


def test_the_version_is_told(capsys):
    assert main(["--version"]) == 0
    assert re.fullmatch(r"rl-insight \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_a_sub_command_gets_the_words_that_follow_it(monkeypatch):
    given = []
    monkeypatch.setitem(COMMANDS, "look", lambda rest: given.append(rest) or 7)
    assert main(["look", "a", "--b"]) == 7
    assert given == [["a", "--b"]]


def test_names_that_the_terminal_cannot_show_do_not_end_the_run(runs, monkeypatch):
    runs.output = runs.output.parent / "训练"
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    assert main(words(runs)) == 0
    narrow.seek(0)
    assert "\\u8bad\\u7ec3" in narrow.read()


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from rl_insight.main import main; main(['--help']);"
        "heavy = {'pyarrow', 'numpy', 'pandas', 'yaml', 'snakemake'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_gone_away_is_no_error():
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m rl_insight.main --help | head -1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("usage: ")
    assert done.stderr == ""


@pytest.mark.parametrize(("word", "code"), [("--version", 0), ("--no-such-flag", 2)])
def test_whatever_happens_while_the_process_goes_down_its_exit_code_stays(word, code):
    program = (
        "import atexit, os, sys; atexit.register(os.abort);"
        f"sys.argv[1:] = [{word!r}]; from rl_insight.main import command; command()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == code, ended.stderr
    assert (ended.stdout or ended.stderr).endswith("\n")


def test_a_command_whose_last_words_are_lost_does_not_end_well():
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "rl_insight.main", "--version"]
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
