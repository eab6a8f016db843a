"""Exports in which columns and tables are not what nsys makes of them: by mistake, or by intent."""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rl_insight.data.tree import scan
from rl_insight.errors import ReadError
from rl_insight.parsers import Source
from rl_insight.parsers.nvtx_discovery import claims
from rl_insight.parsers.nvtx_rows import LONGEST_NAME
from rl_insight.parsers.nvtx_sources import open_rows
from rl_insight.problems import Problems
from rl_insight.readers import sqlite
from tests.nvtx_exports import (
    SECOND,
    details,
    kernel,
    string,
    string_range,
    text_range,
    thread,
    variable,
    write_database,
    write_folder,
    write_lines,
)
from tests.unit.test_nvtx_parser import (
    Form,
    form,
    lane,
    parse,
    parse_as,
    parse_file,
    ranges,
    stage,
    stages,
    table,
    times,
    told,
)

__all__ = ["form"]

WORKER = [
    string(38, "actor_update"),
    details(),
    string_range(SECOND, 5 * SECOND, 38),
    variable("RANK", '"3"'),
]
ENDLESS = (
    "ALTER TABLE NVTX_EVENTS RENAME TO old; CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(start) AS "
    '(SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start, start + 1 AS "end", '
    "60 AS eventType, 1 AS globalTid, 'x' AS text FROM n;"
)


@pytest.mark.parametrize(
    "lie",
    [
        "",
        "PRAGMA writable_schema = ON;"
        "UPDATE sqlite_master SET type = 'table' WHERE name = 'NVTX_EVENTS';",
        "PRAGMA writable_schema = ON;"
        "UPDATE sqlite_master SET type = 'table', rootpage = 2 WHERE name = 'NVTX_EVENTS';",
    ],
)
def test_a_view_in_place_of_a_table_is_told_and_costs_no_other(tmp_path: Path, lie: str) -> None:
    # GIVEN a database with a view that never ends in place of its ranges
    write_database(tmp_path / "a.sqlite", [*WORKER, kernel(1, SECOND, 38)], ENDLESS + lie)
    # WHEN it is parsed
    parsed = parse_file(tmp_path, "a.sqlite")
    # THEN it says so, and the device's activity is drawn
    assert parsed.status == "salvaged"
    assert parsed.detail is not None and parsed.detail.startswith("damaged: NVTX_EVENTS: it is no ")
    assert lane(parsed)["rank_id"] == 3
    assert len(table(parsed, "activity")) == 1
    # What is there and cannot be read was not left out when it was recorded.
    assert "no_ranges" not in [problem.code for problem in parsed.problems]


def test_tables_in_small_letters_are_read(tmp_path: Path) -> None:
    # GIVEN a database that went through a program which writes names in small letters
    write_database(tmp_path / "a.sqlite", WORKER)
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
        for name in names:
            connection.execute(f'ALTER TABLE "{name}" RENAME TO moved')
            connection.execute(f'ALTER TABLE moved RENAME TO "{name.lower()}"')
    connection.close()
    # WHEN it is looked for and parsed, THEN SQLite's own rule holds: names have no case
    assert [one.path for one in claims(scan(tmp_path))] == ["a.sqlite"]
    parsed = parse_file(tmp_path, "a.sqlite")
    assert parsed.status == "ok"
    assert (stage(parsed)["name"], lane(parsed)["rank_id"]) == ("actor_update", 3)


def test_numbers_may_stand_as_text(tmp_path: Path) -> None:
    # GIVEN a database whose columns became text on their way through another program
    rows = [{k: str(v) if k != "table" else v for k, v in row.items()} for row in WORKER]
    write_database(tmp_path / "a.sqlite", rows)
    # (SQLite compares text with text: the kinds of events stay numbers)
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        connection.execute("UPDATE NVTX_EVENTS SET eventType = 60")
    connection.close()
    parsed = parse_file(tmp_path, "a.sqlite")
    assert (stage(parsed)["name"], times(stage(parsed))[1] - times(stage(parsed))[0]) == (
        "actor_update",
        4 * SECOND,
    )
    assert list(parsed.problems) == []


@pytest.mark.parametrize("value", ["zeroblob(100000)", "'x'", "'1e9'", "'-5'", "''", "1.5"])
def test_what_is_no_number_has_no_time(tmp_path: Path, value: str) -> None:
    change = f"UPDATE NVTX_EVENTS SET start = {value} WHERE text = 'x';"
    write_database(tmp_path / "a.sqlite", [*WORKER, text_range(1, 2, "x")], change)
    parsed = parse_file(tmp_path, "a.sqlite")
    assert stage(parsed)["name"] == "actor_update"
    assert told(parsed.problems) == {"no_time": 1}


def test_no_value_of_a_database_is_taken_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a database with something large in every column that is read
    large = "'" + "y" * 100_000 + "'"
    names = ("start", "end", "globalTid", "domainId", "text", "textId")
    change = "".join(f"UPDATE NVTX_EVENTS SET {name} = {large} WHERE text = 'x';" for name in names)
    rows = [*WORKER, *(text_range(1, 2, "x", textId=1) for _ in names), string(2, large)]
    write_database(tmp_path / "a.sqlite", rows, change)
    # WHEN it is parsed
    longest = 0
    real = sqlite.chunks

    def watched(connection: sqlite3.Connection, query: str, values: Sequence[object]) -> object:
        nonlocal longest
        for chunk in real(connection, query, values):
            texts = [value for row in chunk for value in row if isinstance(value, str | bytes)]
            longest = max(longest, *map(len, texts), 0)
            yield chunk

    monkeypatch.setattr("rl_insight.readers.table_rows.chunks", watched)
    parsed = parse_file(tmp_path, "a.sqlite")
    # THEN nothing larger than a name ever left it
    assert stage(parsed)["name"] == "actor_update"
    assert 0 < longest <= LONGEST_NAME


def test_of_a_long_name_the_beginning_is_kept(form: Form, tmp_path: Path) -> None:
    # GIVEN a range inside the stage with a name of a megabyte
    rows = [*WORKER, text_range(2 * SECOND, 3 * SECOND, "z" * 1_000_000)]
    # WHEN it is parsed THEN it has a name that can be shown
    (inner,) = ranges(parse_as(form, tmp_path, *rows))
    assert set(inner["name"]) == {"z"} and len(inner["name"]) <= LONGEST_NAME


def test_a_string_of_two_values_is_told_and_the_first_counts(form: Form, tmp_path: Path) -> None:
    parsed = parse_as(form, tmp_path, *WORKER, string(38, "ref"), string(38, "actor_update"))
    assert stage(parsed)["name"] == "actor_update"
    assert told(parsed.problems) == {"string_conflict": 1}


def test_of_very_many_processes_some_are_left_out_and_counted(
    form: Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN two kernels of each of 7 processes, where 5 processes are kept
    monkeypatch.setattr("rl_insight.parsers.nvtx_devices.MOST_PROCESSES", 5)
    rows = [kernel(10 * i, 10 * i + 5, 38, pid=i % 7 + 1) for i in range(14)]
    # WHEN that is parsed THEN the events of those beyond are counted
    parsed = parse_as(form, tmp_path, string(38, "gemm"), details(), *rows)
    assert [one["pid"] for one in table(parsed, "lanes")] == [1, 2, 3, 4, 5]
    assert told(parsed.problems, "warning")["events_left_out"] == 4


def _retyped(folder: Path, name: str, column: str, values: pa.Array) -> None:
    path = folder / f"{name}.parquet"
    content = pq.read_table(path)
    at = content.schema.get_field_index(column)
    pq.write_table(content.set_column(at, column, values), path)


def test_numbers_with_decimals_are_numbers_where_they_are_whole(tmp_path: Path) -> None:
    # GIVEN a folder that went through pandas: a column with nulls is one of doubles there
    rows = [*WORKER, text_range(2 * SECOND, 3 * SECOND, "inner")]
    folder = write_folder(tmp_path / "a_pqtdir", rows)
    _retyped(folder, "NVTX_EVENTS", "textId", pa.array([38.0, None]))
    # WHEN it is parsed THEN nothing is lost
    parsed = parse_file(tmp_path, "a_pqtdir")
    assert (stage(parsed)["name"], [one["name"] for one in ranges(parsed)]) == (
        "actor_update",
        ["inner"],
    )
    assert list(parsed.problems) == []


@pytest.mark.parametrize(
    ("name", "column", "values"),
    [
        ("NVTX_EVENTS", "domainId", [[1]]),
        ("NVTX_EVENTS", "globalTid", [{"a": 1}]),
        ("META_DATA_CAPTURE", "value", [["RANK=1"]]),
        ("META_DATA_CAPTURE", "name", [5]),
    ],
)
def test_a_column_of_another_kind_is_told_and_costs_no_other(
    tmp_path: Path, name: str, column: str, values: Sequence[object]
) -> None:
    folder = write_folder(tmp_path / "a_pqtdir", WORKER)
    _retyped(folder, name, column, pa.array(values))
    parsed = parse_file(tmp_path, "a_pqtdir")
    assert parsed.status == "salvaged"
    assert parsed.detail is not None
    assert parsed.detail.startswith(f"damaged: the column {column} of {name} cannot be used: ")
    assert stage(parsed)["name"] == "actor_update"


def test_bytes_that_are_no_text_are_no_assignment(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a_pqtdir", WORKER)
    _retyped(folder, "META_DATA_CAPTURE", "value", pa.array([b"RANK=\xff"]))
    parsed = parse_file(tmp_path, "a_pqtdir")
    assert (parsed.status, lane(parsed)["rank_id"]) == ("ok", None)


def test_a_folder_that_is_called_by_no_text_is_read(tmp_path: Path) -> None:
    # GIVEN folders whose names are not UTF-8, as an archive from elsewhere leaves them
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xffl"))
    write_database(folder / "a.sqlite", WORKER)
    write_lines(folder / "b.jsonl", WORKER)
    # WHEN they are looked for and parsed THEN all is there
    found = list(claims(scan(tmp_path)))
    assert len(found) == 2
    assert [len(stages(parse_file(tmp_path, one.path))) for one in found] == [1, 1]


def test_one_field_of_an_odd_type_costs_only_itself(tmp_path: Path) -> None:
    odd = {**text_range(2 * SECOND, 3 * SECOND, "x"), "text": 5}
    parsed = parse(tmp_path, *WORKER, odd)
    assert [one["name"] for one in ranges(parsed)] == ["(unnamed)"]
    assert told(parsed.problems) == {"field_dropped": 1, "unnamed_range": 1}


def test_ids_of_threads_and_processes_may_be_anything(form: Form, tmp_path: Path) -> None:
    odd = [text_range(2, 3, "x", globalTid=number) for number in (0, -1, 2**63 - 1, thread(0))]
    parsed = parse_as(form, tmp_path, *WORKER, *odd)
    assert [one["name"] for one in stages(parsed)] == ["actor_update"]


def test_a_capture_is_believed_to_be_up_to_twice_as_long_as_it_says(tmp_path: Path) -> None:
    # GIVEN captures of 10 hours by their own word, with a range behind that
    hour = 3_600 * SECOND
    for last, lost in ((19 * hour, {}), (21 * hour, {"outside_capture": 1})):
        late = text_range(9 * hour, last, "actor_update")
        # WHEN one is parsed THEN the range counts where it ends before 20 hours
        parsed = parse(tmp_path, details(duration=10 * hour), text_range(0, 5, "x"), late)
        assert told(parsed.problems, "warning") == lost
        roles = [one["role"] for one in stages(parsed)]
        assert ("actor_update" in roles) == (not lost)


def test_numbers_that_are_text_are_not_passed_over_unseen(tmp_path: Path) -> None:
    # GIVEN a database whose columns have no type, and where a program wrote all numbers as text
    worker = [
        {name: str(value) if isinstance(value, int) else value for name, value in row.items()}
        for row in (*WORKER, text_range(SECOND, 2 * SECOND, "micro_batch_1"))
    ]
    odd = text_range(SECOND, 2 * SECOND, "odd") | {"eventType": "range"}
    none = text_range(SECOND, 2 * SECOND, "none")
    del none["eventType"]
    write_database(tmp_path / "a.sqlite", [*worker, odd, none])
    # WHEN it is parsed
    parsed = parse_file(tmp_path, "a.sqlite")
    # THEN its ranges are there, and what does not say what it is, is counted
    assert [span["raw_name"] for span in ranges(parsed)] == ["micro_batch_1"]
    assert lane(parsed)["rank_id"] == 3
    assert told(parsed.problems, "warning") == {"no_event_type": 2}


def test_a_damaged_page_that_sqlite_reads_over_is_told(tmp_path: Path) -> None:
    # GIVEN zeros in a page of ranges
    rows = [text_range(n, n + 1, f"range {n}") for n in range(1, 2_000)]
    path = write_database(tmp_path / "a.sqlite", [*WORKER, *rows])
    raw = bytearray(path.read_bytes())
    start = raw.index(b"range 1000") // 4096 * 4096 + 2_000
    raw[start : start + 1_000] = bytes(1_000)
    path.write_bytes(raw)
    # WHEN it is parsed THEN it says so
    parsed = parse_file(tmp_path, "a.sqlite")
    assert parsed.status == "salvaged"
    assert parsed.detail is not None
    assert parsed.detail.startswith("damaged: NVTX_EVENTS: damaged inside: ")
    assert told(parsed.problems, "warning")["table_damaged"] == 1
    assert stage(parsed)["role"] == "actor_update"


def test_one_list_of_all_rows_is_named(tmp_path: Path) -> None:
    content = '[{"table": "NVTX_EVENTS"}, {"table": "StringIds"}]'
    (tmp_path / "worker_process_7.jsonl").write_text(content)
    (found,) = claims(scan(tmp_path))
    with pytest.raises(ReadError, match="one JSON list instead of a row per line: nsys export"):
        open_rows(Source("source", found.path, tmp_path, found.files), Problems())
