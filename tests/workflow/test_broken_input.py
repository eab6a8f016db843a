"""One bad file never costs the others, and a mistake is refused before work starts."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.conftest import CHECKOUT, Ended, rows, run

pytestmark = pytest.mark.workflow

Captures = Callable[[str], Path]


def test_seven_of_eight_ranks_are_drawn_and_the_eighth_is_named(
    captures: Captures, tmp_path: Path
) -> None:
    source, output = captures("*actor-update_step*"), tmp_path / "out"
    broken = sorted(source.iterdir())[3]
    broken.write_bytes(b"\x7fELF this is no trace")

    ended = run(output, "--input-path", str(source), "--profiler-type", "torch")

    assert ended.code == 0, ended.text
    assert broken.name in ended.text
    assert len({row["lane_id"] for row in rows(output, "spans")}) == 7
    (row,) = [row for row in rows(output, "sources") if row["path"] == broken.name]
    assert row["status"] == "failed"
    assert row["detail"]
    assert broken.name in (output / "rl_timeline.html").read_text("utf-8")

    strict = run(output, "--input-path", str(source), "--profiler-type", "torch", "--strict")
    assert strict.code == 3


def test_a_folder_of_broken_files_gives_a_page_that_says_so(
    captures: Captures, tmp_path: Path
) -> None:
    source, output = captures("*actor-update_step1_*"), tmp_path / "out"
    for path in source.iterdir():
        path.write_bytes(b"\x1f\x8b broken")

    ended = run(output, "--input-path", str(source), "--profiler-type", "torch")

    assert ended.code == 1, ended.text
    assert "Traceback" not in ended.text
    assert {row["status"] for row in rows(output, "sources")} == {"failed"}
    assert (output / "rl_timeline.html").is_file()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--input-path", "{tmp}/no-such-folder"], "there is no folder"),
        (["--input-path", "{tmp}/empty"], "is empty"),
        (["--input-path", "{tmp}/texts"], "holds no torch profile among its 1 file"),
        (["--input-path", "{tmp}/texts", "timeline.visualiser.type=png"], "timeline.visualizer"),
        (["--input-path", "{tmp}/texts", "timeline.visualizer.width=wide"], "width"),
        (["--input-path", "{tmp}/texts", "--rank-list", "7-4"], "rank_list"),
        (["--input-path", "{tmp}/texts", "input.identity=rank(\\d+"], "input.identity"),
        (["--input-path", "{tmp}/texts", "--frobnicate"], "--frobnicate"),
        (["--input-path", "{tmp}/texts", "--profiler-type", "torhc"], "torch"),
    ],
)
def test_a_mistake_is_refused_before_work_starts(
    words: list[str], sentence: str, tmp_path: Path
) -> None:
    # [79]
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "notes.txt").write_text("hello")
    said = [word.format(tmp=tmp_path) for word in words]
    if "--profiler-type" not in said:
        said += ["--profiler-type", "torch"]

    ended = run(tmp_path / "out", *said)

    assert ended.code == 2, ended.text
    assert sentence in ended.text
    assert "Traceback" not in ended.text
    assert not (tmp_path / "out" / "rl_timeline.html").exists()


@pytest.fixture
def beside(captures: Captures, tmp_path: Path) -> Callable[[str], Ended]:
    """Read four captures, and beside them a text: what becomes of the job that reads it."""
    source, package = captures("*actor-update_step1_*"), tmp_path / "site"
    _write_outside_package(package)
    env = {"PYTHONPATH": f"{package}{os.pathsep}{CHECKOUT}"}
    words = ("--input-path", str(source), "--profiler-type", "auto", "--", "--retries", "0")

    def read(text: str) -> Ended:
        (source / "poison.txt").write_text(text)
        return run(tmp_path / "out", *words, env=env)

    return read


def test_a_killed_parse_job_costs_only_its_own_unit(
    beside: Callable[[str], Ended], tmp_path: Path
) -> None:
    output = tmp_path / "out"

    ended = beside("kills the job that reads it")

    assert ended.code == 0, ended.text
    assert "poison.txt" in ended.text
    status = {row["path"]: row["status"] for row in rows(output, "sources")}
    assert status.pop("poison.txt") == "failed"
    assert set(status.values()) == {"ok"}
    assert "poison.txt" in (output / "rl_timeline.html").read_text("utf-8")

    healed = beside("harmless")
    assert healed.code == 0, healed.text
    assert healed.jobs["parse"] == 1
    assert {row["status"] for row in rows(output, "sources")} == {"ok", "empty"}


def test_a_parse_job_that_crashes_says_so(beside: Callable[[str], Ended], tmp_path: Path) -> None:
    output = tmp_path / "out"
    # WHEN all is read, and a library ends the process at one file
    ended = beside("aborts the job that reads it")
    # THEN the others are drawn, and it is not said that memory would help
    assert ended.code == 0, ended.text
    found = {row["path"]: (row["status"], row["detail"]) for row in rows(output, "sources")}
    status, detail = found.pop("poison.txt")
    assert status == "failed"
    assert "its parse job crashed (Aborted in rl_insight/pipeline/parse.py, line " in str(detail)
    assert {status for status, _ in found.values()} == {"ok"}


def test_the_repositorys_own_configuration_runs_with_bare_snakemake(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", "--cores", "2"),
            *("--config", f"output={{path: '{tmp_path / 'out'}'}}"),
        ],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "rl_timeline.html").is_file()
    assert (tmp_path / "out" / "rl_timeline.png").is_file()
    assert len({row["lane_id"] for row in rows(tmp_path / "out", "lanes")}) == 32
    assert not (CHECKOUT / "output").exists() or not (CHECKOUT / ".snakemake" / "metadata").exists()


def _write_outside_package(folder: Path) -> None:
    """A package that adds a parser for *.txt which kills its own process, as the system may."""
    folder.mkdir()
    (folder / "outside.py").write_text(
        "import os, signal\n"
        "from rl_insight.parsers import Found, Parsed\n"
        "class Texts:\n"
        "    name, preset, cache_version, tables, options = 'texts', 'timeline', 1, (), ()\n"
        "    def discover(self, tree):\n"
        "        for file in tree.files:\n"
        "            if file.name.endswith('.txt'):\n"
        "                yield Found(file.path, (file.path,))\n"
        "    def parse(self, source, options):\n"
        "        if 'kills' in source.absolute.read_text():\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        if 'aborts' in source.absolute.read_text():\n"
        "            os.abort()\n"
        "        return Parsed('empty', 'a text holds no spans')\n"
        "PARSER = Texts()\n"
    )
    info = folder / "outside-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[rl_insight.parsers]\ntexts = outside:PARSER\n")
