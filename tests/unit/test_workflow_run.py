"""A run as the Snakefile and the command line see it, up to the start of Snakemake."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from rl_insight import config as configuration
from rl_insight.config import Config
from rl_insight.errors import ConfigError, InputError, PluginError, UsageError
from rl_insight.pipeline import bundled, layout, manifest, tombstone, workflow
from rl_insight.pipeline import run as run_module
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.merge_options import merge_options
from rl_insight.pipeline.report import Parted, part
from rl_insight.pipeline.run import RunRequest, command, run
from rl_insight.pipeline.workflow import Run, look
from rl_insight.schema import SCHEMAS
from rl_insight.table_names import TIMELINE_TABLES
from rl_insight.visualizers import VISUALIZERS
from tests.made_up_parser import NoteParser, capture, write_note


@pytest.fixture(autouse=True)
def _registered(notes: NoteParser) -> None:
    pass


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An input folder with two captures, in an empty working directory."""
    for rank in (0, 1):
        write_note(tmp_path / "profiles" / f"rank{rank}.note", **capture())
    return tmp_path / "profiles"


def settings(
    root: Path | str | None, output: Path | str | None = None, **more: Any
) -> dict[str, Any]:
    # What a test writes is complete at once.
    values: dict[str, Any] = {"timeline.parser.type": "notes", "input.settle": 0, **more}
    if root is not None:
        values["input.path"] = str(root)
        values["output.path"] = str(output or Path(root).absolute().parent / "out")
    return values


def config(root: Path, output: Path | None = None, **more: Any) -> Config:
    return configuration.from_mapping(settings(root, output, **more))


def prepared(root: Path, **more: Any) -> Run:
    return Run.prepare(settings(root, **more), main_process=True)


class Snakemake:
    """Stands in for Snakemake: remembers how it was started and ends as it is told."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.started: list[list[str]] = []

    def __call__(self, words: list[str], keep: Sequence[int], env: Mapping[str, str]) -> int:
        self.started.append(list(words))
        return self.codes.pop(0)


@pytest.fixture
def snakemake(monkeypatch: pytest.MonkeyPatch) -> Snakemake:
    stand_in = Snakemake(0)
    monkeypatch.setattr(run_module, "wait_for", stand_in)
    return stand_in


def test_a_prepared_run_knows_its_units_pictures_and_tables(root: Path) -> None:
    found = prepared(root)
    assert found.output == str(root.parent / "out")
    assert found.pictures() == ["rl_timeline.html"]
    assert all(folder.startswith("parsed/notes/rank") for folder in found.unit_folders())
    assert len(found.unit_folders()) == 2
    assert found.merged_tables() == [
        f"tables/{name}.parquet" for name in ("sources", *TIMELINE_TABLES)
    ]
    assert found.loads() == found.load_tables() == []
    for visualizer in found.visualizers("timeline"):
        assert set(found.tables_of(visualizer)) <= set(found.merged_tables())


def test_pictures_are_made_in_the_order_they_are_asked_for(root: Path) -> None:
    both = prepared(root, **{"timeline.visualizer.type": "png,html"})
    assert both.pictures() == ["rl_timeline.png", "rl_timeline.html"]
    with pytest.raises(PluginError, match="Unsupported cluster visualizer: gif"):
        prepared(root, **{"timeline.visualizer.type": "gif"}).pictures()


def test_a_job_reads_the_manifest_of_the_main_process_and_never_looks_itself(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN relative paths, which mean something else where a job starts
    monkeypatch.chdir(root.parent)
    values = settings(root.name, "out")
    main = Run.prepare(values, main_process=True)
    # WHEN a job starts in the output folder, on a node that does not see the input
    monkeypatch.chdir(root.parent / "out")
    root.rename(root.parent / "gone")
    job = Run.prepare(values, main_process=False)
    # THEN it has the same units and parameters
    assert job.manifest == main.manifest
    assert job.output == main.output
    assert job.merge_options() == main.merge_options()
    assert job.parse_options("notes") == main.parse_options("notes")


@pytest.mark.parametrize("given", [".", "./", "../actor_update", "rank0.note"])
def test_the_name_of_the_input_folder_is_the_same_however_it_is_given(
    tmp_path: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "actor_update"
    write_note(folder / "rank0.note", **capture())
    monkeypatch.chdir(folder)
    found = Run.prepare(settings(given, tmp_path / "out"), main_process=True)
    assert merge_options(found.merge_options()).root_name == "actor_update"
    monkeypatch.chdir(tmp_path / "out")
    job = Run.prepare(settings(given, tmp_path / "out"), main_process=False)
    assert job.merge_options() == found.merge_options()


def test_a_child_of_the_command_line_does_not_look_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(root)
    write_note(root / "rank2.note", **capture())
    with monkeypatch.context() as child:
        child.setattr(os, "getppid", os.getpid)
        assert len(prepared(root).manifest.units) == 2
    assert len(prepared(root).manifest.units) == 3


def test_the_merge_gets_exactly_what_it_depends_on(root: Path) -> None:
    found = prepared(
        root,
        **{
            "input.rank_list": "0,4-6",
            "input.identity": [r"rank(?P<rank>\d+)"],
            "timeline.parser.step": "2",
            "timeline.parser.role": "actor_update, reward",
            "timeline.visualizer.width": 3000,
        },
    )
    text = found.merge_options()
    assert set(json.loads(text)) == {
        "input.identity",
        "input.rank_list",
        "timeline.parser.step",
        "timeline.parser.role",
        "presets",
        "root_name",
    }
    options = merge_options(text)
    assert options.filters == Filters(
        frozenset({0, 4, 5, 6}), frozenset({2}), frozenset({"actor_update", "reward"})
    )
    assert options.rules.read("rank7.json")[0].rank == 7
    assert options.root_name == "", "its name says nothing of its captures, so it may change"


def test_without_filters_the_merge_filters_nothing(root: Path) -> None:
    assert merge_options(prepared(root).merge_options()).filters == Filters()


def test_a_parse_job_depends_on_its_parsers_options_and_cache_version_only(root: Path) -> None:
    def options(**more: Any) -> str:
        return prepared(root, **more).parse_options("notes")

    assert json.loads(options()) == {
        "cache_version": 1,
        "options": {"timeline.parser.range_depth": 2},
    }
    assert options(**{"input.rank_list": "0", "timeline.visualizer.width": 900}) == options()
    assert options(**{"timeline.parser.range_depth": 3}) != options()


def test_a_picture_depends_on_its_own_options_only(root: Path) -> None:
    def options(**more: Any) -> str:
        found = prepared(root, **{"timeline.visualizer.type": "png", **more})
        return found.visualizer_options(*found.visualizers("timeline"))

    assert options(**{"timeline.parser.range_depth": 3}) == options()
    assert options(**{"timeline.visualizer.width": 900}) != options()


def test_rank_files_are_shown_to_snakemake_where_they_are_few_and_plainly_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = ["a {b}.note", "sp ace.note", "new\nline.note", "ünicode.note", os.fsdecode(b"\xff.note")]
    for name in [*odd, "-dash.note", "a+b=c@1,2.note"]:
        write_note(root / name, **capture())
    found = prepared(root)
    monkeypatch.chdir(found.output)
    shown = {
        unit.sources[0]: found.rank_files(unit.parser, unit.name) for unit in found.manifest.units
    }
    assert shown.pop("rank0.note") == ["parsed/.input/rank0.note"]
    assert shown.pop("-dash.note") == ["parsed/.input/-dash.note"]
    assert shown.pop("a+b=c@1,2.note") == ["parsed/.input/a+b=c@1,2.note"]
    shown.pop("rank1.note")
    assert shown == {name: [] for name in odd}


def test_a_file_that_vanished_since_does_not_end_the_run(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = prepared(root)
    (root / "rank0.note").unlink()
    monkeypatch.chdir(found.output)
    assert sorted(len(found.rank_files(u.parser, u.name)) for u in found.manifest.units) == [0, 1]


def test_a_file_from_a_clock_that_is_ahead_is_not_shown(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = time.time() + 3_600
    os.utime(root / "rank0.note", (ahead, ahead))
    found = prepared(root)
    monkeypatch.chdir(found.output)
    shown = [found.rank_files(u.parser, u.name) for u in found.manifest.units]
    assert sorted(shown) == [[], ["parsed/.input/rank1.note"]]


def test_a_path_of_four_thousand_characters_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    while len(str(folder)) < 3_700:
        folder = folder / ("d" * 200)
    write_note(folder / "a.note", **capture())
    found = prepared(tmp_path / "in")
    monkeypatch.chdir(found.output)
    (unit,) = found.manifest.units
    assert found.rank_files(unit.parser, unit.name) == []


def test_many_files_of_one_job_are_not_shown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(2, 6):
        write_note(root / f"rank{rank}.note", **capture())
    found = prepared(root, **{"parse.ranks_per_job": 5})
    monkeypatch.chdir(found.output)
    shown = {len(u.sources): found.rank_files(u.parser, u.name) for u in found.manifest.units}
    assert shown == {5: [], 1: ["parsed/.input/rank5.note"]}


def test_the_input_may_be_a_single_file(root: Path) -> None:
    found = prepared(root / "rank1.note", **{"output.path": str(root.parent / "out")})
    assert [unit.sources for unit in found.manifest.units] == [("rank1.note",)]
    assert (Path(found.output) / layout.INPUT_LINK).readlink() == root


def test_the_output_may_lie_inside_the_input(root: Path) -> None:
    for _ in range(2):
        found = Run.prepare(settings(root, root / "out"), main_process=True)
        assert len(found.manifest.units) == 2


def test_the_input_may_lie_inside_the_output(root: Path) -> None:
    assert len(Run.prepare(settings(root, root.parent), main_process=True).manifest.units) == 2


def test_the_input_folder_itself_is_refused_as_output(root: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        look(config(root, root), root)
    assert str(refused.value) == (
        f"output.path: '{root}' is the input folder itself; "
        f"choose another one, such as '{root}/output'"
    )
    assert sorted(path.name for path in root.iterdir()) == ["rank0.note", "rank1.note"]


def test_no_input_is_refused_and_never_means_the_working_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    with pytest.raises(ConfigError, match=r"^input\.path is required"):
        Run.prepare(settings(None), main_process=True)
    with pytest.raises(ConfigError, match=r"^input\.path is required"):
        run(RunRequest(configuration.from_mapping(settings(None))))
    assert sorted(path.name for path in root.iterdir()) == ["rank0.note", "rank1.note"]


def test_a_missing_input_is_refused_before_anything_is_written(root: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder.*the nearest is '.*profiles'"):
        prepared(root.parent / "profile")
    assert not (root.parent / "out").exists()


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_an_output_that_is_a_file_is_refused(root: Path, below: str) -> None:
    (root.parent / "out").write_text("a file")
    output = Path(f"{root.parent / 'out'}{below}")
    with pytest.raises(ConfigError, match=r"^output\.path: '.*' is a file|cannot write to"):
        look(config(root, output), output)
    assert (root.parent / "out").read_text() == "a file"


def test_an_output_that_may_not_be_written_is_refused(ordinary_folder: Path) -> None:
    write_note(ordinary_folder / "in" / "a.note", **capture())
    closed = ordinary_folder / "closed"
    closed.mkdir(mode=0o500)
    for output in (closed, closed / "deeper"):
        with pytest.raises(ConfigError, match=r"output\.path: cannot write to .*Permission denied"):
            look(config(ordinary_folder / "in", output), output)


def test_a_run_writes_its_configuration_and_starts_snakemake_on_it(
    root: Path, snakemake: Snakemake, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN paths relative to where the user stands
    monkeypatch.chdir(root.parent)
    request = RunRequest(configuration.from_mapping(settings("profiles", "out")), cores=3)
    # WHEN the run is started
    outcome = run(request)
    # THEN Snakemake is called once, with a configuration that means the same everywhere
    output = root.parent / "out"
    (words,) = snakemake.started
    assert words[1:3] == ["-m", "snakemake"]
    assert words[words.index("--directory") + 1] == str(output)
    assert words[words.index("--cores") + 1] == "3"
    file = Path(words[words.index("--configfile") + 1])
    written = yaml.safe_load(file.read_text())
    assert file == output / "config.yaml"
    assert written["input"]["path"] == str(root)
    assert written["output"]["path"] == str(output)
    assert configuration.from_mapping(written).timeline.parser.type == "notes"
    assert outcome.exit_code == 0
    assert outcome.output == output
    assert outcome.pages == (output / "rl_timeline.html",)


def test_a_second_run_rewrites_no_configuration(root: Path, snakemake: Snakemake) -> None:
    snakemake.codes = [0, 0]
    run(RunRequest(config(root)))
    before = (root.parent / "out" / "config.yaml").stat().st_ino
    run(RunRequest(config(root)))
    assert (root.parent / "out" / "config.yaml").stat().st_ino == before


def test_an_input_of_any_name_reaches_snakemake_unchanged(
    tmp_path: Path, snakemake: Snakemake
) -> None:
    root = tmp_path / os.fsdecode("-ä {b} 'q' #\xff: \\".encode("latin-1"))
    write_note(root / "a.note", **capture())
    run(RunRequest(config(root, tmp_path / "out")))
    written = yaml.safe_load((tmp_path / "out" / "config.yaml").read_text("ascii"))
    assert written["input"]["path"] == str(root)
    assert Run.prepare(written, main_process=True).manifest.units


def test_a_report_is_made_of_what_the_run_has_drawn(root: Path, snakemake: Snakemake) -> None:
    output = root.parent / "out"
    snakemake.codes = [0, 0]
    asked = RunRequest(config(root), snakemake_args=("--report", "all.zip", "--quiet"))
    outcome = run(asked)
    first, second = snakemake.started
    assert "--report" not in " ".join(first)
    assert second == [*first[:-1], "--report=all.zip", "--quiet"]
    assert outcome.pages == (output / "rl_timeline.html", output / "all.zip")
    assert (outcome.exit_code, outcome.report_code) == (0, 0)

    # What fails has no report, and a plan none either.
    snakemake.started.clear()
    snakemake.codes = [1]
    assert run(asked).exit_code == 1
    snakemake.codes = [0]
    run(replace(asked, dry_run=True))
    assert "--report" not in " ".join(word for words in snakemake.started for word in words)

    # A report that fails takes nothing from the run.
    snakemake.codes = [0, 1]
    outcome = run(asked)
    assert outcome.pages == (output / "rl_timeline.html",)
    assert (outcome.exit_code, outcome.report_code) == (0, 1)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), Parted(())),
        (("-p", "a"), Parted(("-p", "a"))),
        (("--report",), Parted((), ("--report=report.html",), Path("report.html"))),
        (("--report", "-p"), Parted(("-p",), ("--report=report.html", "-p"), Path("report.html"))),
        (
            ("-p", "--report=/a/b.zip"),
            Parted(("-p",), ("--report=/a/b.zip", "-p"), Path("/a/b.zip")),
        ),
        (
            ("--report", "x.zip", "--report-after-run"),
            Parted((), ("--report=x.zip",), Path("x.zip")),
        ),
        (("--report-stylesheet", "s.css"), Parted(("--report-stylesheet", "s.css"))),
        (("--", "--report"), Parted(("--", "--report"))),
    ],
)
def test_the_words_of_a_report_are_told_from_those_of_the_run(
    words: tuple[str, ...], expected: Parted
) -> None:
    assert part(words) == expected


@pytest.mark.parametrize("words", [("--report", "report.pdf"), ("--report=",)])
def test_a_report_of_another_kind_is_refused_before_any_work(
    root: Path, snakemake: Snakemake, words: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError, match=r"--report: '.*' ends neither in \.html nor in \.zip"):
        run(RunRequest(config(root), snakemake_args=words))
    assert snakemake.started == []
    assert not (root.parent / "out").exists()


def test_a_killed_job_is_buried_and_the_run_is_finished_without_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = root.parent / "out"
    calls = 0

    def kills(words: list[str], keep: Sequence[int], env: Mapping[str, str]) -> int:
        nonlocal calls
        calls += 1
        (killed, _) = manifest.load(output).units
        log = output / "logs" / "parse" / "notes" / f"{killed.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("began")
        folder = output / layout.unit_folder("notes", killed.name)
        if calls == 1:
            return 1
        assert (folder / layout.TOMBSTONE).exists()
        return 0

    monkeypatch.setattr(run_module, "wait_for", kills)
    assert run(RunRequest(config(root))).exit_code == 0
    assert calls == 2

    # The next run tries it again: its tombstone is gone before Snakemake starts.
    def looks(words: list[str], keep: Sequence[int], env: Mapping[str, str]) -> int:
        assert not list(output.rglob(layout.TOMBSTONE))
        return 0

    monkeypatch.setattr(run_module, "wait_for", looks)
    run(RunRequest(config(root)))


def test_a_run_that_failed_without_a_killed_job_is_not_started_again(
    root: Path, snakemake: Snakemake
) -> None:
    snakemake.codes = [1]
    assert run(RunRequest(config(root))).exit_code == 1
    assert len(snakemake.started) == 1


@pytest.mark.parametrize("only", ["dry_run", "unlock"])
def test_a_dry_run_buries_and_clears_nothing(
    root: Path, snakemake: Snakemake, monkeypatch: pytest.MonkeyPatch, only: str
) -> None:
    def never(*_: object) -> int:
        raise AssertionError("a dry run must not touch the cache")

    monkeypatch.setattr(tombstone, "clear", never)
    monkeypatch.setattr(tombstone, "lay", never)
    snakemake.codes = [1]
    assert run(RunRequest(config(root), **{only: True})).exit_code == 1  # type: ignore[arg-type]
    assert f"--{only.replace('_', '-')}" in snakemake.started[0]


def test_a_dry_run_leaves_no_folder_behind_that_was_not_there(
    root: Path, snakemake: Snakemake
) -> None:
    above = root.parent / "new"
    plan = RunRequest(config(root, above / "out"), dry_run=True)
    assert run(plan).exit_code == 0
    assert str(above / "out") in snakemake.started[0]
    assert not above.exists()
    # What was there stays, with what is in it.
    (above / "out").mkdir(parents=True)
    (above / "out" / "notes.txt").write_text("mine")
    snakemake.codes = [0]
    assert run(plan).exit_code == 0
    assert (above / "out" / "notes.txt").read_text() == "mine"


def test_a_dry_run_leaves_alone_what_another_run_makes_beside_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN two runs that start together, into folders below one that is not there yet
    above = root.parent / "new"

    def meanwhile(words: list[str], keep: Sequence[int], env: Mapping[str, str]) -> int:
        (above / "other").mkdir()
        return 0

    monkeypatch.setattr(run_module, "wait_for", meanwhile)
    assert run(RunRequest(config(root, above / "mine" / "out"), dry_run=True)).exit_code == 0
    assert list(above.iterdir()) == [above / "other"]


def test_a_dry_run_that_failed_keeps_its_log(root: Path, snakemake: Snakemake) -> None:
    snakemake.codes = [1]
    assert run(RunRequest(config(root), dry_run=True)).exit_code == 1
    assert (root.parent / "out").is_dir()


def test_what_follows_the_dashes_goes_to_snakemake_untouched_and_last(root: Path) -> None:
    extra = ("--retries", "0", "a {b}", "--quiet")
    words = command(RunRequest(config(root), snakemake_args=extra), root.parent)
    assert tuple(words[-4:]) == extra
    assert words[words.index("--cores") + 1] == "all"


def test_a_profile_is_ours_a_folder_or_the_users_own(root: Path, tmp_path: Path) -> None:
    def given(name: str) -> list[str]:
        words = command(RunRequest(config(root), profile=name), root.parent)
        at = next(i for i, word in enumerate(words) if word.endswith("profile"))
        return words[at : at + 2]

    slurm = bundled.profile("slurm")
    assert given("slurm") == ["--workflow-profile", str(slurm)]
    assert given(str(tmp_path)) == ["--workflow-profile", str(tmp_path)]
    assert given("my-cluster") == ["--profile", "my-cluster"]


def test_the_workflow_is_found_and_a_broken_installation_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bundled.snakefile().is_file()
    assert bundled.profile("default") is not None
    assert bundled.profile("no-such-profile") is None
    assert bundled.profile("../profiles/default") is None
    monkeypatch.setattr(bundled, "_PACKAGE", tmp_path / "rl_insight")
    with pytest.raises(Exception, match="install rl-insight again"):
        bundled.snakefile()


def test_every_picture_of_ours_reads_tables_that_the_merge_writes(root: Path) -> None:
    for name in ("html", "png"):
        visualizer = VISUALIZERS.get(name)
        assert set(visualizer.tables) <= set(SCHEMAS)
        assert not Path(visualizer.output).is_absolute()
    assert workflow.Run.prepare(settings(root), main_process=True).pictures()
