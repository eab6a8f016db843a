"""One parse job: whatever its sources hold, it leaves one complete folder of tables."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from rl_insight import tables
from rl_insight.errors import CacheError, PluginError, ReadError
from rl_insight.parsers import Parsed, Parser, Source
from rl_insight.pipeline import layout, tombstone
from rl_insight.pipeline.parse import parse_unit, write_folder
from rl_insight.pipeline.units import Unit, source_id
from rl_insight.problems import Problems
from rl_insight.schema import ACTIVITY, LANES, SCHEMAS, SPANS
from rl_insight.table_names import TIMELINE_TABLES
from rl_insight.table_parts import read_part, write_part
from tests.made_up_parser import NoteParser, capture, write_note

Register = Callable[[Parser], None]


def unit_file(
    tmp_path: Path, *paths: str, parser: str = "notes", fingerprint: str = "1:abc"
) -> Path:
    path = tmp_path / "unit.json"
    sources = [
        {
            "source_id": source_id(one),
            "path": one,
            "files": [{"path": one, "fingerprint": fingerprint}],
        }
        for one in paths
    ]
    path.write_text(json.dumps({"parser": parser, "sources": sources}))
    return path


def parsed(
    tmp_path: Path, *paths: str, parser: str = "notes"
) -> dict[str, list[dict[str, object]]]:
    """The rows of every table after a job for `paths` in the folder `in`."""
    output = tmp_path / "parsed" / "unit"
    parse_unit(unit_file(tmp_path, *paths, parser=parser), tmp_path / "in", output, {})
    assert sorted(entry.name for entry in output.parent.iterdir()) == ["unit"]
    return {path.stem: part(path).to_pylist() for path in output.glob("*.parquet")}


def part(path: Path) -> pa.Table:
    """One table of a cache folder, whole."""
    schema = SCHEMAS[path.stem]
    return tables.concat(schema, [read_part(path, schema)])


def the_row(tmp_path: Path, parser: str = "notes") -> dict[str, object]:
    (row,) = parsed(tmp_path, "a.note", parser=parser)["sources"]
    return row


@pytest.fixture(autouse=True)
def _registered(notes: NoteParser) -> None:
    pass


def test_the_tables_of_all_sources_of_a_job_are_joined_in_order(tmp_path: Path) -> None:
    for rank in (0, 1):
        write_note(tmp_path / "in" / f"rank{rank}.note", **capture(start_ns=rank), events=7 + rank)

    found = parsed(tmp_path, "rank0.note", "rank1.note")

    assert set(found) == {"sources", *TIMELINE_TABLES}
    assert [row["start_ns"] for row in found["spans"]] == [0, 1]
    assert [row["source_id"] for row in found["lanes"]] == [
        source_id("rank0.note"),
        source_id("rank1.note"),
    ]
    assert [(row["path"], row["status"], row["events"]) for row in found["sources"]] == [
        ("rank0.note", "ok", 7),
        ("rank1.note", "ok", 8),
    ]
    assert found["collectives"] == []


def test_a_source_row_tells_size_time_and_problems_and_leaves_identity_to_the_merge(
    tmp_path: Path,
) -> None:
    problem = {"code": "odd", "severity": "warning", "count": 3, "offset": 17, "example": "x"}
    path = write_note(
        tmp_path / "in" / "a.note", status="salvaged", detail="cut at byte 17", problems=[problem]
    )
    os.utime(path, ns=(5, 1_771_730_291_744_166_997))
    assert the_row(tmp_path) == {
        "source_id": source_id("a.note"),
        "path": "a.note",
        "parser": "notes",
        "role": None,
        "rank_id": None,
        "step": None,
        "status": "salvaged",
        "detail": "cut at byte 17",
        "problems": [problem],
        "size_bytes": path.stat().st_size,
        "mtime_ns": 1_771_730_291_744_166_997,
        "events": 0,
    }


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        ('{"unreadable": "cut in the middle of a string"}', "cut in the middle of a string"),
        ("no json", "the notes parser stumbled: JSONDecodeError: Expecting value"),
        (
            '{"spans": [{"unheard_of": 1, "start_ns": "x"}]}',
            "the notes parser stumbled: ValueError",
        ),
        ('{"lanes": [{"rank_id": 99999999999}]}', "column rank_id (int32): 99999999999"),
        ('{"status": "splendid"}', "'splendid' is no status"),
        ('{"events": "many"}', "column events (int64): many"),
        ('{"lanes": [{"source_id": "other"}]}', "the table 'lanes' has rows of another source"),
        ("[" * 100_000, "the notes parser stumbled: RecursionError"),
    ],
    ids=lambda value: value[:25],
)
def test_whatever_one_source_does_it_fails_alone(tmp_path: Path, content: str, detail: str) -> None:
    # GIVEN one bad source between two good ones in one job
    for name in ("a", "c"):
        write_note(tmp_path / "in" / f"{name}.note", **capture())
    (tmp_path / "in" / "b.note").write_text(content)
    # WHEN the job runs
    found = parsed(tmp_path, "a.note", "b.note", "c.note")
    # THEN the others are complete, and its row says what happened
    assert [row["status"] for row in found["sources"]] == ["ok", "failed", "ok"]
    assert detail in str(found["sources"][1]["detail"])
    assert len(found["lanes"]) == len(found["spans"]) == 2


def test_a_file_that_is_gone_by_now_has_failed_without_size(tmp_path: Path) -> None:
    row = the_row(tmp_path)
    assert row["status"] == "failed"
    assert row["detail"] == "cannot be read: No such file or directory"
    assert row["size_bytes"] is None
    assert row["mtime_ns"] is None


@pytest.mark.parametrize(
    ("there", "fingerprint", "marked"),
    [
        (["a.note", "b.note"], "1:abc", False),
        # Gone since the run looked: a share that comes back brings the very same file.
        (["a.note"], "1:abc", True),
        # Nobody could read it when the run looked: it is looked at by each run.
        (["a.note"], "unreadable:5", False),
    ],
)
def test_a_cache_that_lacks_what_was_there_to_be_read_is_made_anew_by_the_next_run(
    tmp_path: Path, there: list[str], fingerprint: str, marked: bool
) -> None:
    for name in there:
        write_note(tmp_path / "in" / name)
    unit = Unit("notes", "both-1", ("a.note", "b.note"))
    folder = tmp_path / layout.unit_folder(unit.parser, unit.name)
    parse_unit(
        unit_file(tmp_path, *unit.sources, fingerprint=fingerprint), tmp_path / "in", folder, {}
    )
    assert (folder / layout.UNREAD).exists() is marked
    tombstone.clear(tmp_path, [unit])
    assert folder.exists() is not marked


@pytest.mark.parametrize(
    ("error", "marked"),
    [
        (OSError(errno.EIO, "Input/output error"), True),
        # Arrow's words for a damaged file: it will not read better.
        (OSError("Corrupt snappy compressed data."), False),
        (ReadError("the database is damaged"), False),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_an_error_of_the_system_may_pass_and_damage_does_not(
    tmp_path: Path, register_parser: Register, error: Exception, marked: bool, wrapped: bool
) -> None:
    class Stopped(NoteParser):
        def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
            if wrapped:
                raise ReadError(f"{source.absolute} cannot be opened") from error
            raise error

    register_parser(Stopped(name="stopped"))
    write_note(tmp_path / "in" / "a.note")
    assert the_row(tmp_path, "stopped")["status"] == "failed"
    assert (tmp_path / "parsed" / "unit" / layout.UNREAD).exists() is marked


def test_a_file_that_was_read_in_part_for_the_system_is_read_again(
    tmp_path: Path, register_parser: Register
) -> None:
    class HalfRead(NoteParser):
        def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
            problems = Problems()
            problems.add("read_failed", "warning", 1, 7, "Stale file handle")
            return Parsed("salvaged", "half of it", problems=problems)

    register_parser(HalfRead(name="half"))
    write_note(tmp_path / "in" / "a.note")
    assert the_row(tmp_path, "half")["status"] == "salvaged"
    assert (tmp_path / "parsed" / "unit" / layout.UNREAD).exists()


def test_a_file_that_may_not_be_read_has_failed(ordinary_folder: Path) -> None:
    write_note(ordinary_folder / "in" / "a.note").chmod(0)
    assert the_row(ordinary_folder)["detail"] == "cannot be read: Permission denied"


def test_names_of_any_bytes_are_parsed_and_shown_as_far_as_text_can(tmp_path: Path) -> None:
    name = os.fsdecode(b"-a {b}\n*\xff.note")
    write_note(tmp_path / "in" / name, **capture())
    (row,) = parsed(tmp_path, name)["sources"]
    assert row["status"] == "ok"
    assert row["path"] == "-a {b}\n*?.note"
    assert row["source_id"] == source_id(name)


def test_an_endless_error_text_is_cut(tmp_path: Path) -> None:
    write_note(tmp_path / "in" / "a.note", unreadable="x" * 1_000_000)
    detail = str(the_row(tmp_path)["detail"])
    assert len(detail) == 1_000
    assert detail.endswith("x…")


def test_a_table_that_the_parser_did_not_announce_or_shape_is_refused(
    tmp_path: Path, register_parser: Register
) -> None:
    class Careless(NoteParser):
        def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
            name, schema = json.loads(source.absolute.read_text())
            return Parsed("ok", tables={name: pa.schema(SCHEMAS[schema]).empty_table()})

    register_parser(Careless(name="careless", tables=("lanes", "activity")))
    path = tmp_path / "in" / "a.note"
    path.parent.mkdir()

    path.write_text('["spans", "spans"]')
    assert "'spans' is not among those" in str(the_row(tmp_path, "careless")["detail"])
    path.write_text('["activity", "ops"]')
    assert "'activity' has not the columns" in str(the_row(tmp_path, "careless")["detail"])
    path.write_text('["lanes", "lanes"]')
    assert the_row(tmp_path, "careless")["status"] == "ok"


def test_only_the_tables_of_the_parser_are_written(
    tmp_path: Path, register_parser: Register
) -> None:
    register_parser(NoteParser(name="few", tables=("lanes",)))
    write_note(tmp_path / "in" / "a.note", **capture())
    assert set(parsed(tmp_path, "a.note", parser="few")) == {"sources", "lanes"}


def test_a_job_out_of_memory_fails_so_that_it_is_tried_again_with_more(
    tmp_path: Path, register_parser: Register
) -> None:
    class Hungry(NoteParser):
        def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
            raise MemoryError

    register_parser(Hungry(name="hungry"))
    with pytest.raises(MemoryError):
        parsed(tmp_path, "a.note", parser="hungry")
    assert not any((tmp_path / "parsed").iterdir())


class InParts(NoteParser):
    """Hands the rows of `lanes` over one by one, and knows only then what came of it."""

    def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
        whole = super().parse(source, options)
        result = Parsed("failed")
        result.parts = {"lanes": self.one_by_one(whole, result)}
        return result

    def one_by_one(self, whole: Parsed, result: Parsed) -> Iterator[pa.Table]:
        for row in range(whole.tables["lanes"].num_rows):
            result.events += 1
            yield whole.tables["lanes"].slice(row, 1)
            if whole.detail is not None:
                raise ReadError(whole.detail)
        result.status = "ok"


def test_a_table_may_come_in_parts_and_tells_at_the_end_how_it_went(
    tmp_path: Path, register_parser: Register
) -> None:
    register_parser(InParts(name="parts"))
    lanes = [{"rank_id": 3}, {"rank_id": 4}]
    write_note(tmp_path / "in" / "a.note", lanes=lanes)
    write_note(tmp_path / "in" / "b.note", lanes=lanes, detail="the disk is gone")
    found = parsed(tmp_path, "a.note", "b.note", parser="parts")
    assert [row["rank_id"] for row in found["lanes"]] == [3, 4, 3]
    assert [(row["status"], row["events"]) for row in found["sources"]] == [
        ("ok", 2),
        ("salvaged", 0),
    ]
    assert found["sources"][1]["detail"] == "the disk is gone"


def test_the_options_reach_the_parser(tmp_path: Path, notes: NoteParser) -> None:
    write_note(tmp_path / "in" / "a.note")
    parse_unit(unit_file(tmp_path, "a.note"), tmp_path / "in", tmp_path / "out", {"depth": 3})
    assert notes.seen == [{"depth": 3}]


def test_the_parser_sees_the_input_folder_itself_behind_the_link(
    tmp_path: Path, register_parser: Register
) -> None:
    # GIVEN jobs that reach the input through a link, while its own name is that of a stage
    class Looks(NoteParser):
        def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
            return Parsed("empty", f"{source.root.name}: {source.absolute.read_text()}")

    register_parser(Looks(name="looks"))
    write_note(tmp_path / "actor_update" / "a.note")
    (tmp_path / "in").symlink_to("actor_update")
    assert the_row(tmp_path, "looks")["detail"] == "actor_update: {}"


def test_a_damaged_unit_file_and_a_missing_parser_are_told(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=r"unit\.json: damaged"):
        parse_unit(tmp_path / "unit.json", tmp_path, tmp_path / "out", {})
    with pytest.raises(PluginError, match="Unsupported cluster parser: gone"):
        parse_unit(unit_file(tmp_path, "a", parser="gone"), tmp_path, tmp_path / "out", {})


def test_a_cache_folder_appears_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN what an earlier job left, and half of what a killed one wrote
    folder = tmp_path / "unit"
    write_folder(folder, {"lanes": tables.from_rows(LANES, [{"lane_id": "old"}])})
    (tmp_path / ".unit.tmp").mkdir()
    (tmp_path / ".unit.tmp" / "half.parquet").touch()
    # WHEN the disk is full
    real = write_part

    def full(path: Path, content: pa.Table) -> None:
        if path.stem == "activity":
            raise OSError(28, "No space left on device")
        real(path, content)

    with monkeypatch.context() as broken, pytest.raises(OSError, match="No space left"):
        broken.setattr("rl_insight.pipeline.parse.write_part", full)
        write_folder(folder, {"lanes": tables.empty(LANES), "activity": tables.empty(ACTIVITY)})
    # THEN the old cache stands, and nothing half done beside it
    assert [entry.name for entry in tmp_path.iterdir()] == ["unit"]
    assert part(folder / "lanes.parquet")["lane_id"].to_pylist() == ["old"]
    # WHEN there is room again THEN the new one replaces it altogether
    write_folder(folder, {"spans": tables.empty(SPANS)})
    assert [path.name for path in tmp_path.rglob("*.parquet")] == ["spans.parquet"]


def test_a_parse_job_does_without_pandas(tmp_path: Path) -> None:
    # GIVEN pandas is installed, where it would cost every job 0.4 s and 50 MB
    pytest.importorskip("pandas")
    for name in ("a", "b"):
        problem = {"code": "odd", "severity": "info"}
        write_note(tmp_path / "in" / f"{name}.note", **capture(), problems=[problem])
    program = """
import sys
from pathlib import Path
from rl_insight.parsers import PARSERS
from rl_insight.pipeline.parse import parse_unit
from tests.made_up_parser import NoteParser
PARSERS.register("notes", NoteParser())
folder = Path(sys.argv[1])
parse_unit(folder / "unit.json", folder / "in", folder / "out", {})
print([name for name in ("pandas", "torch", "matplotlib", "plotly") if name in sys.modules])
"""
    unit_file(tmp_path, "a.note", "b.note", "gone.note")
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
    assert part(tmp_path / "out" / "sources.parquet")["status"].to_pylist() == [
        "ok",
        "ok",
        "failed",
    ]
    shutil.rmtree(tmp_path / "out")
