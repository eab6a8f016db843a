"""A job that was killed costs its own captures only, and is tried again by the next run."""

import os
import shutil
from pathlib import Path

import pytest

from rl_insight import tables
from rl_insight.pipeline import layout, tombstone
from rl_insight.pipeline.parse import write_folder
from rl_insight.pipeline.units import Unit, source_id
from rl_insight.schema import LANES, SCHEMAS
from rl_insight.table_names import TIMELINE_TABLES
from rl_insight.table_parts import read_part
from tests.made_up_parser import NoteParser

KILLED = Unit("notes", "killed-1", ("a.note", "b.note"))
BEGUN_NS = 10_000_000_000


@pytest.fixture(autouse=True)
def _registered(notes: NoteParser) -> None:
    pass


def log(output: Path, unit: Unit, at_ns: int) -> None:
    """The log of a parse job that last wrote at this time."""
    path = output / "logs" / "parse" / unit.parser / f"{unit.name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, ns=(at_ns, at_ns))


def folder_of(output: Path, unit: Unit) -> Path:
    return output / layout.unit_folder(unit.parser, unit.name)


def part(folder: Path, name: str) -> list[dict[str, object]]:
    schema = SCHEMAS[name]
    read = read_part(folder / f"{name}.parquet", schema)
    rows: list[dict[str, object]] = tables.concat(schema, [read]).to_pylist()
    return rows


def test_a_killed_job_leaves_a_failed_row_for_each_of_its_captures(tmp_path: Path) -> None:
    # GIVEN a job that began in this run and left nothing
    log(tmp_path, KILLED, BEGUN_NS + 1)
    # WHEN its tombstone is laid
    assert tombstone.lay(tmp_path, [KILLED], BEGUN_NS) == 1
    # THEN the merge finds a complete folder that says so
    folder = folder_of(tmp_path, KILLED)
    assert [(row["path"], row["status"], row["source_id"]) for row in part(folder, "sources")] == [
        ("a.note", "failed", source_id("a.note")),
        ("b.note", "failed", source_id("b.note")),
    ]
    assert "did not finish" in str(part(folder, "sources")[0]["detail"])
    assert "logs/parse/notes/killed-1.log" in str(part(folder, "sources")[0]["detail"])
    assert all(part(folder, name) == [] for name in TIMELINE_TABLES)


@pytest.mark.parametrize(
    ("sources", "whose"),
    [(("a.note",), "it cannot"), (("a.note", "b.note"), "one of the 2 captures of its parse job")],
)
def test_of_a_job_that_crashed_nobody_is_told_to_give_it_memory(
    tmp_path: Path, sources: tuple[str, ...], whose: str
) -> None:
    unit = Unit("notes", "crashed-1", sources)
    log(tmp_path, unit, BEGUN_NS + 1)
    path = tmp_path / "logs" / "parse" / "notes" / "crashed-1.log"
    path.write_text("Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n")
    tombstone.lay(tmp_path, [unit], BEGUN_NS)
    details = {str(row["detail"]) for row in part(folder_of(tmp_path, unit), "sources")}
    (detail,) = details
    assert detail.startswith(f"its parse job crashed (Aborted): {whose}")
    assert "memory" not in detail
    assert detail.endswith("please report it, with logs/parse/notes/crashed-1.log and the file")


def test_the_next_run_tries_it_again(tmp_path: Path) -> None:
    log(tmp_path, KILLED, BEGUN_NS + 1)
    tombstone.lay(tmp_path, [KILLED], BEGUN_NS)
    tombstone.clear(tmp_path, [KILLED])
    assert not folder_of(tmp_path, KILLED).exists()
    # A second time there is nothing to remove.
    tombstone.clear(tmp_path, [KILLED])


def test_a_good_cache_is_never_removed_nor_replaced(tmp_path: Path) -> None:
    # GIVEN a cache that a job of this run wrote, although the run failed for another reason
    folder = folder_of(tmp_path, KILLED)
    write_folder(folder, {"lanes": tables.from_rows(LANES, [{"lane_id": "good"}])})
    log(tmp_path, KILLED, BEGUN_NS + 1)
    assert tombstone.lay(tmp_path, [KILLED], BEGUN_NS) == 0
    tombstone.clear(tmp_path, [KILLED])
    assert part(folder, "lanes")[0]["lane_id"] == "good"


@pytest.mark.parametrize("began_ns", [None, BEGUN_NS - 1])
def test_a_job_that_did_not_begin_in_this_run_is_no_reason_to_draw_without_it(
    tmp_path: Path, began_ns: int | None
) -> None:
    if began_ns is not None:
        log(tmp_path, KILLED, began_ns)
    assert tombstone.lay(tmp_path, [KILLED], BEGUN_NS) == 0
    assert not folder_of(tmp_path, KILLED).exists()


def test_a_job_that_began_in_the_very_moment_counts(tmp_path: Path) -> None:
    log(tmp_path, KILLED, BEGUN_NS)
    assert tombstone.lay(tmp_path, [KILLED], BEGUN_NS) == 1


def test_of_many_units_only_the_killed_ones_get_one(tmp_path: Path) -> None:
    good, waiting = Unit("notes", "good-1", ("c.note",)), Unit("notes", "waiting-1", ("d.note",))
    write_folder(folder_of(tmp_path, good), {})
    log(tmp_path, KILLED, BEGUN_NS + 1)
    assert tombstone.lay(tmp_path, [good, KILLED, waiting], BEGUN_NS) == 1
    tombstone.clear(tmp_path, [good, KILLED, waiting])
    assert folder_of(tmp_path, good).exists()


def test_a_tombstone_never_stands_without_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN that we are killed in the moment when the folder gets its name
    real = Path.replace

    def last_act(self: Path, target: Path) -> Path:
        done = real(self, target)
        if Path(target).name == KILLED.name:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(Path, "replace", last_act)
    log(tmp_path, KILLED, BEGUN_NS + 1)
    with pytest.raises(KeyboardInterrupt):
        tombstone.lay(tmp_path, [KILLED], BEGUN_NS)
    # WHEN the next run begins THEN it knows what that folder is
    tombstone.clear(tmp_path, [KILLED])
    assert not folder_of(tmp_path, KILLED).exists()


def test_no_units_need_none(tmp_path: Path) -> None:
    tombstone.clear(tmp_path, [])
    assert tombstone.lay(tmp_path, [], BEGUN_NS) == 0


def test_a_tombstone_that_is_half_removed_never_passes_for_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a process that is killed when it has removed nothing but the marker
    log(tmp_path, KILLED, BEGUN_NS + 1)
    tombstone.lay(tmp_path, [KILLED], BEGUN_NS)

    def killed(folder: Path, **_: object) -> None:
        (folder / layout.TOMBSTONE).unlink(missing_ok=True)
        if folder.exists():
            raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        tombstone.clear(tmp_path, [KILLED])
    # THEN nothing stands under its name, and the next run parses it
    assert not folder_of(tmp_path, KILLED).exists()
