"""Captures of nsys are found by their names or by what they hold, and each is read once."""

import gzip
import json
from pathlib import Path

import pytest

from rl_insight.data.tree import scan
from rl_insight.parsers import PARSERS
from rl_insight.parsers.nvtx_kinds import export_command
from tests.nvtx_exports import (
    Row,
    details,
    string,
    text_range,
    write_database,
    write_folder,
    write_lines,
)

NVTX = PARSERS.get("nvtx")
ROWS: list[Row] = [string(1, "a"), details(), text_range(1, 2, "update_actor")]


def found(root: Path) -> dict[str, str | None]:
    """What is claimed below `root`: the path and the reason to skip it."""
    return {one.path: one.skip for one in NVTX.discover(scan(root))}


@pytest.mark.parametrize(
    "name",
    [
        "worker_process_70000.1.jsonl",
        "worker_process_70000.jsonl",  # [65]
        "actor_node-1.cluster.local_worker_process_70000.3.jsonl",  # [65]
        "anything.jsonl",
        "anything.jsonlines",
        "anything.ndjson",
        "anything.json",
    ],
)
def test_json_lines_are_found_by_what_they_hold(tmp_path: Path, name: str) -> None:
    path = write_lines(tmp_path / "deep" / "er" / name, ROWS)
    assert found(tmp_path) == {f"deep/er/{name}": None}
    packed = path.with_name(f"{name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert found(tmp_path) == {f"deep/er/{name}.gz": None}


@pytest.mark.parametrize("name", ["worker_process_1.2.sqlite", "any.sqlite", "any.db"])
def test_databases_are_found_by_their_tables(tmp_path: Path, name: str) -> None:
    write_database(tmp_path / name, ROWS)
    assert found(tmp_path) == {name: None}


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_a_folder_of_tables_is_one_capture(tmp_path: Path, form: str) -> None:
    write_folder(tmp_path / "runs" / "any name", ROWS, form)
    (one,) = NVTX.discover(scan(tmp_path))
    suffix = "parquet" if form == "parquet" else "arrow"
    assert (one.path, one.skip) == ("runs/any name", None)
    assert one.files == tuple(
        f"runs/any name/{table}.{suffix}"
        for table in ("ANALYSIS_DETAILS", "NVTX_EVENTS", "StringIds")
    )


def test_the_input_folder_itself_may_be_the_capture(tmp_path: Path) -> None:
    write_folder(tmp_path / "x_pqtdir", ROWS)
    (one,) = NVTX.discover(scan(tmp_path / "x_pqtdir"))
    assert one.path == "."
    assert one.files[0] == "ANALYSIS_DETAILS.parquet"


def test_a_file_alone_may_be_the_input(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", ROWS)
    assert found(path) == {"a.jsonl": None}


def test_other_tables_in_a_folder_are_not_needed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "x_pqtdir", ROWS)
    (folder / "OSRT_API.parquet").write_bytes(b"PAR1")
    (one,) = NVTX.discover(scan(tmp_path))
    assert all("OSRT_API" not in file for file in one.files)


# -- one capture in several forms ----------------------------------------------------------------


def test_of_several_forms_the_database_is_read(tmp_path: Path) -> None:
    name = "worker_process_7.1"
    write_lines(tmp_path / f"{name}.jsonl", ROWS)
    write_database(tmp_path / f"{name}.sqlite", ROWS)
    write_folder(tmp_path / f"{name}_pqtdir", ROWS)
    write_folder(tmp_path / f"{name}_arwdir", ROWS, "arrow")
    (tmp_path / f"{name}.nsys-rep").write_bytes(b"report")
    why = f"the same capture was exported as {name}.sqlite, which is read"
    assert found(tmp_path) == {
        f"{name}.sqlite": None,
        f"{name}_pqtdir": why,
        f"{name}_arwdir": why,
        f"{name}.jsonl": why,
        f"{name}.nsys-rep": why,
    }


def test_without_a_database_a_folder_is_read_before_json_lines(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", ROWS)
    write_folder(tmp_path / "a_arwdir", ROWS, "stream")
    assert found(tmp_path) == {
        "a_arwdir": None,
        "a.jsonl": "the same capture was exported as a_arwdir, which is read",
    }
    write_folder(tmp_path / "a_pqtdir", ROWS)
    assert found(tmp_path)["a_pqtdir"] is None


def test_an_export_that_its_writer_left_unfinished_is_passed_over_for_a_good_one(
    tmp_path: Path,
) -> None:
    write_lines(tmp_path / "worker_process_7.jsonl", ROWS)
    (tmp_path / "worker_process_7.sqlite").write_bytes(b"")
    assert found(tmp_path)["worker_process_7.jsonl"] is None


def test_captures_of_other_names_and_folders_are_other_captures(tmp_path: Path) -> None:
    write_lines(tmp_path / "a" / "worker_process_7.1.jsonl", ROWS)
    write_database(tmp_path / "b" / "worker_process_7.1.sqlite", ROWS)
    write_database(tmp_path / "a" / "worker_process_7.2.sqlite", ROWS)
    assert found(tmp_path) == {
        "a/worker_process_7.1.jsonl": None,
        "a/worker_process_7.2.sqlite": None,
        "b/worker_process_7.1.sqlite": None,
    }


# -- what is claimed only to say what to do ------------------------------------------------------


@pytest.mark.parametrize("name", ["worker_process_7.1.nsys-rep", "any.nsys-rep", "old.qdrep"])
def test_a_report_that_was_not_exported_is_claimed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"report")
    assert found(tmp_path) == {name: None}


@pytest.mark.parametrize("suffix", ["qdstrm", "h5", "arrows"])
def test_other_forms_of_a_workers_capture_are_claimed(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"worker_process_7.1.{suffix}").write_bytes(b"x")
    assert found(tmp_path) == {f"worker_process_7.1.{suffix}": None}


def test_an_export_of_the_older_kind_is_claimed(tmp_path: Path) -> None:  # [67]
    for number, line in enumerate(
        (
            '{"NvtxEvent":{"Type":59,"Timestamp":1}}',
            '{"Type":48,"CudaEvent":{"startNs":"1"}}',
            '{"type":"String","id":"3720","value":"x"}',
            '{"data":["[Unknown]","[Unknown kernel module]"]}',
        )
    ):
        (tmp_path / f"{number}.json").write_text(f"{line}\n{line}\n")
    assert found(tmp_path) == dict.fromkeys(("0.json", "1.json", "2.json", "3.json"))


def test_a_workers_file_is_claimed_whatever_state_it_is_in(tmp_path: Path) -> None:
    for number, content in enumerate((b"", b"\0" * 100, b"{broken", b'{"loss":1}\n')):
        (tmp_path / f"worker_process_{number}.jsonl").write_bytes(content)
        (tmp_path / f"worker_process_1{number}.sqlite").write_bytes(content)
    assert len(found(tmp_path)) == 8


def test_a_damaged_beginning_does_not_hide_an_export(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", ROWS)
    path.write_bytes(b"%%%\n" + path.read_bytes())
    long = {"table": "StringIds", "id": 1, "value": "x" * 100_000}
    (tmp_path / "b.jsonl").write_text(json.dumps(long))
    assert found(tmp_path) == {"a.jsonl": None, "b.jsonl": None}


# -- what is not ours ----------------------------------------------------------------------------


def test_what_others_wrote_is_not_claimed(tmp_path: Path) -> None:
    trace = json.dumps({"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "a"}]})
    for name, content in {
        "metrics.jsonl": '{"step":1,"loss":0.5}\n',
        "rows.jsonl": '{"table":"users","id":1}\n',
        "trace.json": trace,
        "actor_update/prof_rank-0_031847.json": trace,
        "list.json": "[1, 2]",
        "empty.json": "",
        "notes.txt": '{"table":"StringIds"}',
        "array.h5": "x",
        "stream.arrows": "x",
        "table.parquet": "x",
        "data/train.arrow": "x",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    other: list[Row] = [{"table": "TASK", "startNs": 1}, {"table": "STRING_IDS", "id": 1}]
    write_database(tmp_path / "other.sqlite", other)
    (tmp_path / "text.sqlite").write_text("no database")
    (tmp_path / "cut.db").write_bytes(b"SQLite format 3\x00 cut off")
    assert found(tmp_path) == {}


def test_databases_of_ascend_captures_are_not_even_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rl_insight.parsers.nvtx_discovery.database", None)
    write_database(tmp_path / "ascend_pytorch_profiler_0.db", ROWS)
    write_database(tmp_path / "x_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "analysis.db", ROWS)
    write_database(tmp_path / "x_ascend_pt" / "any.sqlite", ROWS)
    assert found(tmp_path) == {}


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("-x.nsys-rep", "-o ./-x.sqlite ./-x.nsys-rep"),
        ("a b/it's.nsys-rep", """-o 'a b/it'"'"'s.sqlite' 'a b/it'"'"'s.nsys-rep'"""),
        ("a\nb.nsys-rep", r"-o $'a\012b.sqlite' $'a\012b.nsys-rep'"),
        ("a.json.nsys-rep", "-o a.json.sqlite a.json.nsys-rep"),
        ("a.json.gz", "-o a.sqlite a.nsys-rep"),
    ],
)
def test_the_command_that_exports_can_be_pasted(path: str, command: str) -> None:
    assert export_command(path) == f"nsys export --type sqlite --force-overwrite=true {command}"


def test_looking_changes_nothing(tmp_path: Path) -> None:
    path = write_database(tmp_path / "a.sqlite", ROWS)
    before = path.read_bytes()
    found(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.sqlite"]
    assert path.read_bytes() == before
