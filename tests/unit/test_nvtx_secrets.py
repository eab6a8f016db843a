"""Captures of nsys hold whole environments: nothing but ranks and a host name is ever read."""

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from rl_insight.errors import ReadError
from rl_insight.parsers import nvtx_arrow, nvtx_json
from rl_insight.parsers import nvtx_environment as environment
from rl_insight.parsers.nvtx_rows import Fact
from rl_insight.parsers.nvtx_schema import CAPTURE, EXPORT, SYSTEM
from rl_insight.pipeline.parse import write_folder as write_tables
from rl_insight.readers import table_rows
from tests.nvtx_exports import (
    Row,
    capture_fact,
    details,
    kernel,
    string,
    string_range,
    system_fact,
    variable,
)
from tests.unit.test_nvtx_parser import FORMS, Form, form, lane, parse_as

__all__ = ["form"]

SECRET = "canary-must-not-leak"

PLANTED: list[Row] = [
    variable("HF_TOKEN", f'"{SECRET}"'),
    variable("RANK_TOKEN", SECRET),
    variable("RANK", f'"{SECRET}"'),
    variable("RANK", f"5 {SECRET}"),
    variable("WANDB_API_KEY", SECRET, process=1),
    capture_fact("PROCESS_0:ARGUMENT_1", f"--token={SECRET}"),
    capture_fact("PROCESS_0:PID", SECRET),
    capture_fact("PROCESS_0:WORKING_DIR", f"/home/{SECRET}"),
    capture_fact(SECRET, SECRET),
    system_fact("DeviceEnvironment", f"PATH=/bin;API_TOKEN={SECRET}"),
    system_fact("Hostname", f"PASSWORD IS {SECRET}"),
    {"table": "META_DATA_EXPORT", "name": "EXPORT_USER", "value": SECRET},
    {"table": "PROCESSES", "globalPid": 1, "pid": 1, "name": SECRET},
    {"table": "DIAGNOSTIC_EVENT", "text": SECRET},
    string(77, SECRET),
]
ROWS: list[Row] = [
    details(),
    string(1, "update_actor"),
    string_range(10, 50, 1),
    string(2, "gemm"),
    kernel(20, 30, 2),
    variable("RANK", '"2"'),
    variable("WORLD_SIZE", '"4"'),
    system_fact("Hostname", "node-1"),
]


def test_planted_secrets_reach_no_table_and_no_log(
    tmp_path: Path, form: Form, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    parsed = parse_as(form, tmp_path, *PLANTED, *ROWS)
    one = lane(parsed)
    assert (one["rank_id"], one["world_size"], one["host"]) == (2, 4, "node-1")
    assert SECRET not in repr(parsed)
    assert SECRET not in caplog.text
    write_tables(tmp_path / "tables", parsed.tables)
    for name, table in parsed.tables.items():
        assert SECRET not in repr(table.to_pylist()), name


@pytest.mark.parametrize("cut", [1, 5, 20, 60, 100])
def test_secrets_in_damaged_lines_are_not_quoted(tmp_path: Path, cut: int) -> None:
    name = FORMS["jsonlines"](tmp_path, [*ROWS, *PLANTED])
    path = tmp_path / name
    # GIVEN every line damaged at some place
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join(line[:-cut] + b"\x01" + line[-cut:] for line in lines))
    try:
        parsed = parse_as(lambda root, rows: name, tmp_path)
    except ReadError as error:
        assert SECRET not in str(error)
    else:
        assert SECRET not in repr(parsed.problems._by_code)
        assert SECRET not in str(parsed.detail)
        for name_of_table, table in parsed.tables.items():
            assert SECRET not in repr(table.to_pylist()), name_of_table


def test_a_value_is_not_decoded_before_its_name_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a decoder that remembers what it was asked for
    asked: list[bytes] = []
    real = nvtx_json._TEXT

    class Watched:
        def decode(self, raw: msgspec.Raw) -> object:
            asked.append(bytes(raw))
            return real.decode(raw)

    monkeypatch.setattr(nvtx_json, "_TEXT", Watched())
    # WHEN the secrets are passed by
    parse_as(FORMS["jsonlines"], tmp_path, *PLANTED, *ROWS)
    # THEN only what may be read was decoded
    assert asked == [rb'"RANK=\"2\""', rb'"WORLD_SIZE=\"4\""', b'"node-1"']


@pytest.mark.parametrize(
    ("table", "name", "value", "expected"),
    [
        (CAPTURE, "PROCESS_0:ENVIRONMENT_VARIABLE", 'RANK="3"', [Fact("RANK", 3, 0)]),
        (CAPTURE, "PROCESS_12:ENVIRONMENT_VARIABLE", "rank=3", [Fact("RANK", 3, 12)]),
        (CAPTURE, "PROCESS_0:ENVIRONMENT_VARIABLE", 'LOCAL_RANK="0"', [Fact("LOCAL_RANK", 0, 0)]),
        (CAPTURE, "PROCESS_0:ENVIRONMENT_VARIABLE", "RANK=3;TOKEN=x", []),
        (CAPTURE, "PROCESS_0:ENVIRONMENT_VARIABLE", "XRANK=3", []),
        (CAPTURE, "PROCESS_0:ENVIRONMENT_VARIABLE", "RANK=٣", []),
        (CAPTURE, "ENVIRONMENT_VARIABLE", "RANK=3", []),
        (CAPTURE, "PROCESS_0:PID", "4711", [Fact("PID", 4711, 0)]),
        (CAPTURE, "PROCESS_0:PID", "0", []),
        (CAPTURE, "DEVICE_DISPLAY_NAME", "node", [Fact("DEVICE_DISPLAY_NAME", "node")]),
        (CAPTURE, "DEVICE_DISPLAY_NAME", "Local (CLI)", []),
        (SYSTEM, "Hostname", "node", [Fact("Hostname", "node")]),
        (SYSTEM, "PROCESS_0:ENVIRONMENT_VARIABLE", "RANK=3", []),
        (SYSTEM, "DeviceEnvironment", "RANK=3", []),
        (EXPORT, "EXPORT_SCHEMA_VERSION", "3.25.0", [Fact("EXPORT_SCHEMA_VERSION", "3.25.0")]),
        (EXPORT, "EXPORT_USER", "me", []),
        (CAPTURE, None, "RANK=3", []),
        (CAPTURE, "PROCESS_0:ENVIRONMENT_VARIABLE", None, []),
    ],
)
def test_only_named_values_are_taken(
    table: str, name: object, value: object, expected: list[Fact]
) -> None:
    assert list(environment.facts_in(table, name, value)) == expected
    raw = msgspec.json.encode(value)
    # A process id of 0 is none, and no secret.
    assert environment.may_pass(table, name, raw) == (bool(expected) or value == "0")


def test_values_that_may_not_be_read_never_leave_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a watch on the rows that queries give
    seen: list[tuple[object, ...]] = []
    real = table_rows.chunks

    def watched(
        connection: sqlite3.Connection, query: str, values: Sequence[object] = ()
    ) -> Iterator[list[tuple[object, ...]]]:
        for chunk in real(connection, query, values):
            seen.extend(chunk)
            yield chunk

    monkeypatch.setattr(table_rows, "chunks", watched)
    # WHEN the database is read
    parsed = parse_as(FORMS["sqlite"], tmp_path, *PLANTED, *ROWS)
    # THEN of the planted rows only that came which calls itself the host's name
    assert lane(parsed)["rank_id"] == 2
    leaked = [row for row in seen if SECRET in repr(row)]
    assert leaked == [("Hostname", f"PASSWORD IS {SECRET}")]
    # AND strings that no range and no kernel refers to stayed where they are
    assert (77, SECRET) not in seen


@pytest.mark.parametrize("form", ["parquetdir", "arrowdir, files"])
def test_values_that_may_not_be_read_never_become_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    seen: list[str | None] = []
    real = nvtx_arrow.texts

    def watched(column: pa.Array, longest: int | None = None) -> list[str | None]:
        found = real(column, longest)
        seen.extend(found)
        return found

    monkeypatch.setattr(nvtx_arrow, "texts", watched)
    rows = [row for row in PLANTED if row["table"] != "StringIds"]
    parsed = parse_as(FORMS[form], tmp_path, *rows, *ROWS)
    assert lane(parsed)["rank_id"] == 2
    assert [text for text in seen if text and SECRET in text] == [f"PASSWORD IS {SECRET}"]
