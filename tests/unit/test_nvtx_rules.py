"""An export of Nsight Systems is good in every form, and bad for a reason."""

import gzip
import json
from pathlib import Path

import pytest

from rl_insight.data.rules import NvtxJsonFieldValidRule, NvtxJsonFileExistsRule
from tests import nvtx_exports as made
from tests.data_findings import found
from tests.nvtx_exports import (
    PUSH_POP,
    details,
    session,
    string,
    string_range,
    text_range,
    variable,
)

KIND = "multi_json_nvtx"
NAME = "worker_process_70000.1.jsonl"
SECRET = "canary-must-not-leak"
GOOD = [
    string(7, "compute_values"),
    details(),
    string_range(10, 20, 7),
    variable("API_KEY", SECRET),
    variable("RANK", '"0"'),
]


@pytest.mark.parametrize("form", ["lines", "packed", "database", "no RID", "relocated"])
def test_a_good_export_has_nothing_to_say_in_any_form(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    if form == "database":
        path = made.write_database(folder / "report.sqlite", GOOD)
    elif form == "packed":
        path = made.write_lines(folder / NAME, GOOD)
        path.rename(path.with_suffix(".plain"))
        packed = gzip.compress(path.with_suffix(".plain").read_bytes())
        path.with_suffix(".plain").unlink()
        path = folder / f"{NAME}.gz"
        path.write_bytes(packed)
    else:
        name = {"lines": NAME, "no RID": "worker_process_7.jsonl"}.get(form, f"actor_n.a_{NAME}")
        path = made.write_lines(folder / name, GOOD)
    assert found(KIND, tmp_path) == []
    assert found(KIND, path) == []
    for rule in (NvtxJsonFileExistsRule(), NvtxJsonFieldValidRule()):
        assert rule.check(str(tmp_path)) is True
        assert rule.check(tmp_path) is True


@pytest.mark.parametrize("write", [made.write_lines, made.write_database])
def test_names_may_stand_inline_and_ranges_may_be_pushed_and_popped(
    write: object, tmp_path: Path
) -> None:
    rows = [text_range(1, 2, "update_actor", kind=PUSH_POP), session(), variable("PMI_RANK", "3")]
    suffix = "jsonl" if write is made.write_lines else "sqlite"
    write(tmp_path / f"any.{suffix}", rows)  # type: ignore[operator]
    assert found(KIND, tmp_path) == []


@pytest.mark.parametrize("suffix", ["jsonl", "sqlite"])
def test_doubts_are_told(suffix: str, tmp_path: Path) -> None:
    rows = [
        string(7, "compute_values"),
        string_range(10, 20, 7),
        text_range(30, None, "open"),
        {**text_range(1, 2, "x"), "text": None},
        {"table": "NVTX_EVENTS", "eventType": 75, "start": 5, "text": "CCCL"},
        variable("RANKS", "1"),
        variable("LOCAL_RANK_", "1"),
        {"table": "ANALYSIS_DETAILS", "duration": 5},
    ]
    write = made.write_lines if suffix == "jsonl" else made.write_database
    write(tmp_path / f"worker_process_7.1.{suffix}", rows)
    findings = found(KIND, tmp_path)
    assert {severity for severity, _, _ in findings} == {"warning"}
    assert [said for _, _, said in findings] == [
        "1 range of 3 without a name",
        "1 range of 3 never ended",
        "it has neither ANALYSIS_DETAILS.startTime nor utcEpochNs: its clock is unknown",
        "no process of it tells a RANK: was a launcher profiled?",
    ]


@pytest.mark.parametrize("suffix", ["jsonl", "sqlite"])
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"table": "NVTX_EVENTS", "eventType": 34, "start": 1, "text": "mark"}], "no NVTX ranges"),
        ([string_range(1, 2, 99)], "none of its ranges has a name"),
        ([{**text_range(1, 2, "x"), "text": None}], "none of its ranges has a name"),
        ([text_range(1, 2, "x"), {**text_range(1, 2, "x"), "start": None}], "without a start"),
    ],
    ids=["marks only", "unknown string", "no names", "no start"],
)
def test_what_cannot_be_drawn_is_an_error(
    suffix: str, rows: list[made.Row], words: str, tmp_path: Path
) -> None:
    write = made.write_lines if suffix == "jsonl" else made.write_database
    write(tmp_path / f"worker_process_7.1.{suffix}", [details(), variable("RANK", "0"), *rows])
    ((severity, _, said),) = found(KIND, tmp_path)
    assert severity == "error"
    assert words in said


def test_a_line_that_is_lost_is_an_error_and_is_never_quoted(tmp_path: Path) -> None:
    path = made.write_lines(tmp_path / NAME, GOOD)
    path.write_text(path.read_text() + f'{{"table": "META_DATA_CAPTURE", "value": "{SECRET}')
    ((severity, _, said),) = found(KIND, tmp_path)
    assert severity == "error"
    assert said.startswith("truncated, at byte ")
    assert SECRET not in said


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (NAME, b""),
        (NAME, b"hello"),
        ("worker_process_7.1.sqlite", b""),
        ("worker_process_7.1.sqlite", b"hello"),
    ],
)
def test_a_file_that_is_only_called_so_is_an_error(
    name: str, content: bytes, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert "error" in {severity for severity, _, _ in found(KIND, tmp_path)}


def test_a_database_without_ranges_is_an_error(tmp_path: Path) -> None:
    made.write_database(tmp_path / "report.sqlite", [string(1, "a"), details()])
    ((severity, path, said),) = found(KIND, tmp_path)
    assert (severity, path) == ("error", "report.sqlite")
    assert "NVTX_EVENTS" in said
    made.write_database(
        tmp_path / "report.sqlite", [{"table": "NVTX_EVENTS", "text": "a", "end": 4}]
    )
    ((severity, _, said),) = found(KIND, tmp_path)
    assert severity == "error"
    assert said.endswith("has no column start, eventType")


def test_a_report_that_was_not_exported_tells_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "worker_process_1.1.nsys-rep").write_bytes(b"raw")
    (tmp_path / "worker_process_70000.1.nsys-rep").write_bytes(b"raw")
    made.write_lines(tmp_path / NAME, GOOD)
    ((severity, path, said),) = found(KIND, tmp_path)
    assert (severity, path) == ("error", "worker_process_1.1.nsys-rep")
    assert "rl-insight preprocess" in said


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_folder_with_a_file_per_table_is_an_export(form: str, tmp_path: Path) -> None:
    made.write_folder(tmp_path / "report_dir", GOOD, form)
    said = "a folder with a file per table, which is read"
    assert found(KIND, tmp_path) == [("info", "report_dir", said)]


def test_files_of_others_are_passed_over(tmp_path: Path) -> None:
    made.write_lines(tmp_path / NAME, GOOD)
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": []}))
    (tmp_path / "notes.db").write_bytes(b"SQLite format 3\0")
    (tmp_path / "lines.jsonl").write_text('{"a": 1}\n')
    assert found(KIND, tmp_path) == []
