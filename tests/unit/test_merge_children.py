"""Merges whose units other processes read give the same files, and end in good order."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from rl_insight import table_writer
from rl_insight.errors import CacheError, RLInsightError
from rl_insight.pipeline import merge_batch, merge_children, merge_timeline
from rl_insight.pipeline.merge_batch import Batch
from rl_insight.pipeline.merge_children import children
from rl_insight.pipeline.parts import filled_by
from rl_insight.pipeline.unit_tables import Unit
from rl_insight.schema import SCHEMAS
from rl_insight.table_names import TIMELINE_TABLES
from tests.made_up_parser import NoteParser
from tests.unit.test_merge_batches import joined, parsed


@pytest.fixture(autouse=True)
def _registered(notes: NoteParser) -> None:
    pass


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every merge starts children from now on, which are noted here; a batch has two units."""
    found = []
    start = merge_children._start

    def noted() -> subprocess.Popen[bytes]:
        found.append(start())
        return found[-1]

    monkeypatch.setattr(merge_timeline, "_MANY_UNITS", 0)
    monkeypatch.setattr(merge_children, "_start", noted)
    monkeypatch.setattr(merge_batch, "BATCH_UNITS", 2)
    return found


def units(folders: list[Path]) -> list[Unit]:
    return [Unit(folder, filled_by(folder)) for folder in folders]


@pytest.mark.parametrize(
    "chosen", [{}, {"ranks": frozenset({0, 2})}, {"roles": frozenset({"reward"})}]
)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_files_do_not_depend_on_who_reads_the_units(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    chosen: dict[str, frozenset[object]],
) -> None:
    monkeypatch.setattr(merge_batch, "BATCH_UNITS", 2)
    monkeypatch.setattr(table_writer, "ROW_GROUP", 4)
    folders = parsed(tmp_path / "in", per_job=1)
    alone = joined(folders, tmp_path / "alone", **chosen)
    assert set(alone) == {"sources", *TIMELINE_TABLES}
    monkeypatch.setattr(merge_timeline, "_MANY_UNITS", len(folders))
    monkeypatch.setattr(merge_timeline, "_PROCESSES", number)
    # This process reads nothing any more.
    monkeypatch.setattr(merge_timeline, "answer", None)
    assert joined(folders, tmp_path / "together", **chosen) == alone


def test_few_units_are_read_without_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    folders = parsed(tmp_path / "in", per_job=1)
    monkeypatch.setattr(merge_timeline, "_MANY_UNITS", len(folders) + 1)
    joined(folders, tmp_path / "out")
    assert started == []
    monkeypatch.setattr(merge_timeline, "_MANY_UNITS", len(folders))
    joined(folders, tmp_path / "out")
    assert len(started) == 2


def test_a_folder_may_be_called_anything(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    strange = tmp_path / os.fsdecode(b"caf\xe9 \xff\n")
    strange.mkdir()
    folders = parsed(strange / "in", per_job=4)
    found = joined(folders, tmp_path / "out")
    assert set(found) == {"sources", *TIMELINE_TABLES}
    assert len(started) == 2


@pytest.mark.parametrize("table", ["lanes", "spans", "ops"])
def test_an_incomplete_unit_is_named_and_leaves_what_was_there(
    tmp_path: Path, started: list[subprocess.Popen[bytes]], table: str
) -> None:
    folders = parsed(tmp_path / "in", per_job=1)
    before = joined(folders, tmp_path / "out")
    damaged = max(folder for folder in folders if "10_note" in folder.name)
    content = (damaged / f"{table}.parquet").read_bytes()
    (damaged / f"{table}.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(CacheError, match=rf"\({table}: .*delete the folder .*{damaged.name} and"):
        joined(folders, tmp_path / "out")
    assert {path.stem: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert [child.returncode is None for child in started] == [False] * 4


def test_a_child_that_was_killed_is_told_in_one_sentence(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    folders = units(parsed(tmp_path / "in", per_job=1))
    with children(1) as readers:
        assert readers.answer(Batch(folders[:2]))["sources"].num_rows == 2
        started[0].kill()
        started[0].wait()
        with pytest.raises(RLInsightError, match=r"was ended by SIGKILL, .*: run again"):
            readers.answer(Batch(folders[:2]))


def test_an_interrupt_is_the_merges_business(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    # Ctrl-C in a terminal reaches every process: a child would print what nobody can use.
    folders = units(parsed(tmp_path / "in", per_job=1))
    with children(1) as readers:
        readers.answer(Batch(folders[:2]))
        started[0].send_signal(signal.SIGINT)
        assert readers.answer(Batch(folders[:2]))["sources"].num_rows == 2


# A small question is read and the answer is waited for; a large one does not fit in a pipe.
@pytest.mark.parametrize("letters", [1, 1_000_000])
def test_a_child_that_is_killed_at_work_does_not_leave_the_merge_waiting(
    tmp_path: Path, started: list[subprocess.Popen[bytes]], letters: int
) -> None:
    folders = units(parsed(tmp_path / "in", per_job=1))
    with children(1) as readers:
        # Without this it would go on and might answer before it is killed.
        os.kill(started[0].pid, signal.SIGSTOP)
        killing = threading.Timer(0.5, started[0].kill)
        killing.start()
        with pytest.raises(RLInsightError, match=r"was ended by SIGKILL, .*: run again"):
            readers.answer(Batch(folders[:2], pa.table({"lane_id": ["x" * letters]})))
        killing.join()


def test_an_error_that_nobody_expected_is_told_with_its_place(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    folders = units(parsed(tmp_path / "in", per_job=1))
    with children(1) as readers:
        # No lanes, and not even the columns of any.
        with pytest.raises(RLInsightError, match=r"(?s)Traceback.*merge_batch\.py.*KeyError"):
            readers.answer(Batch(folders[:2], pa.table({"nothing": [1]})))
        # It goes on all the same.
        assert readers.answer(Batch(folders[:3]))["sources"].num_rows == 3


def test_a_column_of_another_type_is_an_incomplete_unit(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    folders = parsed(tmp_path / "in", per_job=1)
    (folders[0] / "spans.parquet").write_bytes((folders[0] / "sources.parquet").read_bytes())
    with pytest.raises(CacheError, match=r"spans: no column .* is known.*delete the folder"):
        joined(folders, tmp_path / "out")


def test_children_end_with_a_merge_that_is_killed(tmp_path: Path) -> None:
    program = """
from rl_insight.pipeline import merge_children
with merge_children.children(2) as readers:
    print(readers._idle.get().pid, readers._idle.get().pid, flush=True)
    input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as merge:
        assert merge.stdout is not None
        numbers = [int(word) for word in merge.stdout.readline().split()]
        assert len(numbers) == 2
        assert all(is_running(number) for number in numbers)
        merge.kill()
    end = time.monotonic() + 20
    while any(is_running(number) for number in numbers):
        assert time.monotonic() < end, "a child outlived the merge"
        time.sleep(0.05)


def is_running(number: int) -> bool:
    """Whether a process is there and has not ended, whether or not anybody waited for it."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(number)], capture_output=True, text=True)
    return told.stdout.strip()[:1] not in ("", "Z")


def test_children_keep_pandas_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    # They inherit the environment, and find this one first.
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "pandas.py").write_text(f"open({str(tmp_path / 'loaded')!r}, 'w')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    subprocess.run([sys.executable, "-c", "import pandas"], check=True)
    assert (tmp_path / "loaded").exists()
    (tmp_path / "loaded").unlink()
    joined(parsed(tmp_path / "in", per_job=1), tmp_path / "out")
    assert len(started) == 2
    assert not (tmp_path / "loaded").exists()


def test_what_is_told_without_stages_has_all_columns(tmp_path: Path) -> None:
    folders = units(parsed(tmp_path / "in", per_job=1))
    empty = [unit for unit in folders if "nothing" in unit.folder.name]
    assert len(empty) == 1
    found = merge_batch.answer(Batch(empty))
    assert {name: table.num_rows for name, table in found.items()} == {
        "sources": 1,
        "lanes": 0,
        "stages": 0,
        "counts": 1,
    }
    assert found["lanes"].schema.equals(SCHEMAS["lanes"])
    assert found["counts"]["lanes"].to_pylist() == [0]
