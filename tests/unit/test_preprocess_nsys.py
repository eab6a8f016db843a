"""`rl-insight preprocess` for reports of nsys, with a stand-in that writes what nsys writes."""

import os
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from rl_insight.errors import InputError
from rl_insight.main import main
from tests.nvtx_exports import details, text_range, write_database

# nsys export --type sqlite --force-overwrite=true -o X.sqlite X.nsys-rep
STAND_IN = """\
#!/bin/sh
set -e
test "$1 $2 $3 $4 $5" = "export --type sqlite --force-overwrite=true -o"
echo "Processing events..."
case "$(cat "$7")" in
    good) cp "$(dirname "$0")/export.sqlite" "$6" ;;
    slow) sleep 0.3; cp "$(dirname "$0")/export.sqlite" "$6" ;;
    killed) printf 'SQLite' > "$6"; kill -9 $$ ;;
    silent) ;;
    *) echo "Importation failed: the report is damaged."; exit 3 ;;
esac
"""


@pytest.fixture
def nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program called nsys on the PATH."""
    program = tmp_path / "bin" / "nsys"
    program.parent.mkdir()
    program.write_text(dedent(STAND_IN))
    program.chmod(0o755)
    write_database(program.parent / "export.sqlite", [details(), text_range(1, 2, "update_actor")])
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def no_nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def report(path: Path, content: str = "good") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


Said = Callable[[], list[str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """The lines that were printed."""

    def lines() -> list[str]:
        shown = capsys.readouterr()
        return (shown.out + shown.err).splitlines()

    return lines


def test_reports_are_exported_beside_themselves_several_at_a_time(
    tmp_path: Path, nsys: None, said: Said
) -> None:
    # GIVEN four reports, one of which was exported before
    run = tmp_path / "run"
    for number in (1, 2, 3):
        report(run / "nsight" / f"worker_process_7.{number}.nsys-rep", "slow")
    report(run / "old name.qdrep")
    write_database(run / "nsight" / "worker_process_7.3.sqlite", [details()])
    # WHEN they are preprocessed
    assert main(["preprocess", str(run), "--jobs", "2"]) == 0
    # THEN each has its export
    assert (run / "old name.sqlite").is_file()
    assert (run / "nsight" / "worker_process_7.1.sqlite").is_file()
    assert (run / "nsight" / "worker_process_7.2.sqlite").is_file()
    lines = said()
    assert "skipped 1 nsys report: exported already" in lines
    assert "exporting 3 nsys reports, 2 at a time" in lines
    assert any(line.startswith("exported 3 of 3 nsys reports in ") for line in lines)
    # AND a second run has nothing to do
    assert main(["preprocess", str(run)]) == 0
    assert said() == ["skipped 4 nsys reports: exported already"]


def test_a_report_that_cannot_be_exported_costs_no_other_and_is_told(
    tmp_path: Path, nsys: None, said: Said
) -> None:
    run = tmp_path / "run"
    report(run / "a.nsys-rep", "damaged")
    report(run / "b.nsys-rep")
    report(run / "c.nsys-rep", "silent")
    report(run / "d.nsys-rep", "killed")
    assert main(["preprocess", str(run)]) == 1
    assert [line for line in said() if line.startswith("failed:")] == [
        "failed: a.nsys-rep: it ended with exit code 3: Importation failed: the report is damaged.",
        "failed: c.nsys-rep: nsys left no export: Processing events...",
        "failed: d.nsys-rep: it was killed by signal 9: Processing events...",
    ]
    assert (run / "b.sqlite").is_file()
    # An export that its writer left unfinished is made again.
    report(run / "d.nsys-rep")
    assert main(["preprocess", str(run)]) == 1
    assert "exporting 3 nsys reports, " in " ".join(said())


def test_without_nsys_the_exact_commands_are_said(
    tmp_path: Path, no_nsys: None, said: Said
) -> None:
    report(tmp_path / "run" / "my report.nsys-rep")
    assert main(["preprocess", str(tmp_path / "run")]) == 2
    assert said() == [
        "error: nsys reports are exported by nsys, which is not on the PATH: run this where it is "
        "installed, or the commands that --dry-run says (1 nsys report to do)"
    ]
    assert main(["preprocess", str(tmp_path / "run"), "-n"]) == 0
    assert said() == [
        "would export my report.nsys-rep: nsys export --type sqlite --force-overwrite=true "
        "-o 'my report.sqlite' 'my report.nsys-rep'"
    ]


def test_nothing_is_run_for_reports_that_can_be_read_already(
    tmp_path: Path, no_nsys: None, said: Said
) -> None:
    report(tmp_path / "run" / "a.nsys-rep")
    write_database(tmp_path / "run" / "a.sqlite", [details()])
    assert main(["preprocess", str(tmp_path / "run")]) == 0
    assert said() == ["skipped 1 nsys report: exported already"]


def test_a_recording_without_a_report_is_told(tmp_path: Path, nsys: None, said: Said) -> None:
    report(tmp_path / "run" / "a.qdstrm")
    assert main(["preprocess", str(tmp_path / "run")]) == 1
    assert said() == ["failed: a.qdstrm: nsys was ended before it made a report of this recording"]


def test_a_folder_without_reports_is_told(tmp_path: Path, said: Said) -> None:
    report(tmp_path / "run" / "notes.txt")
    assert main(["preprocess", str(tmp_path / "run")]) == InputError.exit_code
    assert "there is no Ascend capture or nsys report below" in " ".join(said())
