"""What is written to a table comes back from it, or is refused: nothing is wrapped or guessed."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rl_insight import tables
from rl_insight.problems import Problem
from rl_insight.schema import LABEL, PROBLEM, SCHEMAS, SOURCES, SPANS
from rl_insight.table_parts import read_part, write_part

INT32_MAX = 2_147_483_647
INT32_MIN = -2_147_483_648
INT64_MAX = 9_223_372_036_854_775_807
INT64_MIN = -9_223_372_036_854_775_808


def schema_of(kind: pa.DataType) -> pa.Schema:
    return pa.schema([("value", kind)])


def stored(tmp_path: Path, kind: pa.DataType, values: tables.Column) -> list[object]:
    """`values` after a round trip through a Parquet file."""
    path = tmp_path / "table.parquet"
    tables.write(path, tables.table(schema_of(kind), {"value": values}))
    found = tables.read(path)
    found.validate(full=True)
    assert found.schema.equals(schema_of(kind))
    result: list[object] = found["value"].to_pylist()
    return result


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [0, -1, INT64_MAX, INT64_MIN]),
        (pa.int64(), [None, 5, None]),
        (pa.int64(), [None, None]),
        (pa.int32(), [INT32_MAX, None, INT32_MIN]),
        (pa.float64(), [0.5, None, -1.0, float("inf"), 3, np.float64(0.25)]),
        (pa.float64(), [None]),
        (pa.bool_(), [True, False, None, True, True, True, True, True, False]),
        (pa.string(), ["", None, "α<script>\n\x00\t", "𝔘", "x" * 100_000]),
        (LABEL, ["torch", None, "torch", "", "数据", "torch"]),
        (LABEL, [None, None]),
        (pa.list_(pa.int64()), [[1, 2], [], None, [INT64_MAX], []]),
        (pa.list_(pa.int64()), [None]),
        (pa.list_(pa.string()), [["a", None], [], None]),
        (
            pa.list_(PROBLEM),
            [
                [],
                None,
                [{"code": "a", "severity": "info", "count": 1, "offset": None, "example": "x"}],
                [
                    {
                        "code": "b",
                        "severity": "error",
                        "count": 2**40,
                        "offset": 7,
                        "example": None,
                    },
                    {
                        "code": None,
                        "severity": None,
                        "count": None,
                        "offset": None,
                        "example": None,
                    },
                ],
            ],
        ),
        (pa.struct([("code", pa.string())]), [{"code": "a"}, None, {"code": None}]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_every_kind_of_column_comes_back_as_it_was_given(
    tmp_path: Path, kind: pa.DataType, values: list[object]
) -> None:
    assert stored(tmp_path, kind, values) == values


@pytest.mark.parametrize("kind", {field.type for schema in SCHEMAS.values() for field in schema})
def test_a_column_of_no_values_is_possible_for_every_kind(
    tmp_path: Path, kind: pa.DataType
) -> None:
    assert stored(tmp_path, kind, []) == []


def test_a_numpy_column_is_taken_in_any_width_that_fits(tmp_path: Path) -> None:
    strided = np.arange(10, dtype=np.int64)[::3]
    assert stored(tmp_path, pa.int64(), strided) == [0, 3, 6, 9]
    assert stored(tmp_path, pa.int64(), np.array([7], dtype=np.uint8)) == [7]
    assert stored(tmp_path, pa.int32(), np.array([INT32_MAX, INT32_MIN])) == [INT32_MAX, INT32_MIN]
    assert stored(tmp_path, pa.int64(), np.array([INT64_MAX], dtype=np.uint64)) == [INT64_MAX]
    assert stored(tmp_path, pa.int32(), [np.int64(4), None]) == [4, None]
    assert stored(tmp_path, pa.int64(), np.array([], dtype=np.float64)) == []


@pytest.mark.parametrize(
    ("kind", "values", "offender"),
    [
        (pa.int32(), [1, INT32_MAX + 1], str(INT32_MAX + 1)),
        (pa.int32(), [INT32_MIN - 1, None], str(INT32_MIN - 1)),
        (pa.int32(), np.array([1, 2**40]), str(2**40)),
        (pa.int64(), [INT64_MAX + 1], str(INT64_MAX + 1)),
        (pa.int64(), [INT64_MAX + 1, -1], str(INT64_MAX + 1)),
        (pa.int64(), [10**40, None], str(10**40)),
        (pa.int64(), np.array([2**63], dtype=np.uint64), str(2**63)),
        (pa.int64(), [1, 2.5], "2.5"),
        (pa.int64(), np.array([0.1]), "0.1"),
        (pa.int64(), [float("nan")], "nan"),
        (pa.int64(), ["12"], "12"),
        (pa.int64(), [True], "True"),
        (pa.bool_(), [True, "false"], "false"),
        (pa.bool_(), [0], "0"),
        (pa.list_(pa.int32()), [[1], [2**31]], str(2**31)),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_value_that_does_not_fit_is_refused_with_its_column_and_never_wrapped(
    kind: pa.DataType, values: tables.Column, offender: str
) -> None:
    with pytest.raises(ValueError, match=r"column value") as refused:
        tables.table(schema_of(kind), {"value": values})
    assert offender in str(refused.value)
    assert str(kind) in str(refused.value)


def test_a_number_where_a_list_belongs_is_refused_with_its_column() -> None:
    with pytest.raises(ValueError, match=r"column value \(list"):
        tables.table(schema_of(pa.list_(pa.int64())), {"value": [[1], 2]})


def test_a_struct_is_given_as_mapping_or_as_object() -> None:
    problem = Problem("bad_json", "error", 3, 17, "x")
    table = tables.from_rows(SOURCES, [{"problems": [problem, {"code": "other"}]}])
    first, second = table["problems"].to_pylist()[0]
    assert first == {
        "code": "bad_json",
        "severity": "error",
        "count": 3,
        "offset": 17,
        "example": "x",
    }
    assert second["code"] == "other"
    assert second["count"] is None


def test_an_object_without_a_member_of_the_struct_is_refused() -> None:
    with pytest.raises(ValueError, match="column problems"):
        tables.from_rows(SOURCES, [{"problems": [SimpleNamespace(code="a")]}])


def test_a_lone_surrogate_is_stored_as_a_question_mark(tmp_path: Path) -> None:
    # GIVEN a file name that is not UTF-8, as Python spells it
    name = os.fsdecode(b"rank\xff.json")
    for kind in (pa.string(), LABEL):
        assert stored(tmp_path, kind, [name, "\ud800"]) == ["rank?.json", "?"]


def test_labels_that_look_alike_once_stored_share_one_dictionary_entry() -> None:
    # GIVEN two names that differ only in bytes that no text can hold
    names = [os.fsdecode(b"a\xff"), "b", os.fsdecode(b"a\xfe"), None]
    column = tables.table(schema_of(LABEL), {"value": names})["value"].chunk(0)
    assert column.to_pylist() == ["a?", "b", "a?", None]
    assert column.dictionary.to_pylist() == ["a?", "b"]


def test_labels_that_are_no_text_are_stored_as_their_text(tmp_path: Path) -> None:
    assert stored(tmp_path, LABEL, [140_000, "stream 7", 140_000]) == [
        "140000",
        "stream 7",
        "140000",
    ]


def test_a_column_that_is_not_given_is_null_and_never_zero() -> None:
    table = tables.table(SPANS, {"span_id": ["a", "b"]})
    assert table.schema.equals(SPANS)
    for name in SPANS.names[1:]:
        assert table[name].to_pylist() == [None, None], name


def test_a_row_may_lack_keys_and_have_others() -> None:
    table = tables.from_rows(SPANS, [{"span_id": "a"}, {"depth": 2, "unheard_of": 1}])
    assert table["span_id"].to_pylist() == ["a", None]
    assert table["depth"].to_pylist() == [None, 2]


def test_unknown_and_uneven_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="no such column: colour, size"):
        tables.table(SPANS, {"size": [], "colour": []})
    with pytest.raises(ValueError, match=r"differ in length: \[1, 2\]"):
        tables.table(SPANS, {"span_id": ["a"], "depth": [1, 2]})


@pytest.mark.parametrize("name", SCHEMAS)
def test_an_empty_table_keeps_its_schema_on_disk(tmp_path: Path, name: str) -> None:
    path = tmp_path / "table.parquet"
    tables.write(path, tables.empty(SCHEMAS[name]))
    found = tables.read(path)
    assert found.num_rows == 0
    assert found.schema.equals(SCHEMAS[name])


def test_only_the_columns_asked_for_are_read(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    tables.write(path, tables.from_rows(SPANS, [{"span_id": "a", "depth": 1, "role": "x"}]))
    assert tables.read(path, ["role", "depth"]).to_pylist() == [{"depth": 1, "role": "x"}]


def test_tables_are_compressed_with_zstd(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    tables.write(path, tables.from_rows(SPANS, [{"span_id": "a"}]))
    group = pq.ParquetFile(path).metadata.row_group(0)
    assert {group.column(i).compression for i in range(group.num_columns)} == {"ZSTD"}


def test_joined_tables_share_one_dictionary() -> None:
    # GIVEN two tables whose dictionaries number the same roles differently, and an empty one
    first = tables.from_rows(SPANS, [{"role": "a"}, {"role": "b"}])
    second = tables.from_rows(SPANS, [{"role": "b"}, {"role": None}, {"role": "c"}])
    # WHEN they are joined
    joined = tables.concat(SPANS, iter([first, tables.empty(SPANS), second]))
    # THEN each role has one number, and the table is in one piece
    assert joined["role"].to_pylist() == ["a", "b", "b", None, "c"]
    assert joined["role"].num_chunks == 1
    assert sorted(joined["role"].chunk(0).dictionary.to_pylist()) == ["a", "b", "c"]
    assert joined.schema.equals(SPANS)


def test_joining_nothing_gives_an_empty_table_of_the_schema() -> None:
    assert tables.concat(SPANS, []).schema.equals(SPANS)
    assert tables.concat(SPANS, [tables.empty(SPANS)]).num_rows == 0


def sample(kind: pa.DataType, n: int) -> object:
    """A value of `kind` that tells which one it is."""
    if pa.types.is_float64(kind):
        return n / 4
    if pa.types.is_list(kind):
        return [sample(kind.value_type, n)]
    if pa.types.is_struct(kind):
        return {field.name: sample(field.type, n) for field in kind}
    if pa.types.is_boolean(kind):
        return bool(n % 2)
    return n if pa.types.is_integer(kind) else f"text {n}"


@pytest.mark.parametrize("name", SCHEMAS)
def test_parts_that_hold_different_columns_are_joined_to_the_whole_table(
    tmp_path: Path, name: str
) -> None:
    # GIVEN parts of which each fills other columns, one fills none, and one has no rows
    schema = SCHEMAS[name]
    rows: list[dict[str, object]] = [
        {field.name: sample(field.type, at) for at, field in enumerate(schema) if at % 3 == which}
        for which in range(3)
    ]
    contents: list[list[dict[str, object]]] = [
        [rows[0], rows[1]],
        [rows[2]],
        [],
        [{}],
        [rows[2], {}, rows[0]],
    ]
    for at, content in enumerate(contents):
        write_part(tmp_path / f"{at}.parquet", tables.from_rows(schema, content))
    # WHEN they are read and joined
    parts = [read_part(tmp_path / f"{at}.parquet", schema) for at in range(len(contents))]
    joined = tables.concat(schema, parts)
    # THEN nothing is lost, and the table is one of the schema
    joined.validate(full=True)
    assert joined.schema.equals(schema)
    expected = tables.from_rows(schema, [row for content in contents for row in content])
    assert joined.to_pylist() == expected.to_pylist()


def test_a_part_leaves_out_what_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    write_part(path, tables.from_rows(SPANS, [{"span_id": "a"}, {"role": "x"}]))
    assert read_part(path, SPANS).schema.names == ["span_id", "role"]
    # Of those that are asked for, one was left out since it holds nothing.
    assert read_part(path, SPANS, ("role", "step")).schema.names == ["role"]


def test_a_large_part_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    write_part(path, tables.table(SPANS, {"start_ns": np.zeros(100_000, dtype=np.int64)}))
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "LZ4"


@pytest.mark.parametrize(
    "wrong",
    [
        pa.table({"unheard_of": [1]}),
        pa.table({"span_id": [1]}),
        pa.table({"start_ns": pa.array([1], pa.int32())}),
        pa.table({"role": [b"x"]}),
    ],
    ids=lambda table: str(table.schema),
)
def test_a_part_of_another_table_or_version_is_refused(tmp_path: Path, wrong: pa.Table) -> None:
    path = tmp_path / "part.parquet"
    write_part(path, wrong)
    with pytest.raises(ValueError, match=r"no column \w+ \(\w+\) is known"):
        read_part(path, SPANS)


def test_a_table_is_written_and_read_in_a_folder_of_any_name(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"-run \xff {1}\n*")
    folder.mkdir()
    content = tables.from_rows(SPANS, [{"span_id": "a"}])
    tables.write(folder / "t.parquet", content)
    assert tables.read(folder / "t.parquet").equals(content)


def test_a_write_that_fails_leaves_the_table_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    tables.write(path, tables.from_rows(SPANS, [{"span_id": "old"}]))
    with pytest.raises(AttributeError):
        tables.write(path, None)
    assert tables.read(path)["span_id"].to_pylist() == ["old"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.parquet"]


def test_no_thread_of_arrow_stays_behind_with_a_file_of_a_process_that_is_about_to_end(
    tmp_path: Path,
) -> None:
    # GIVEN a table of many columns and row groups
    path = tmp_path / "t.parquet"
    rows = tables.from_rows(SPANS, [{"span_id": str(number)} for number in range(3)])
    with pq.ParquetWriter(path, SPANS) as writer:
        for _ in range(4):
            writer.write_table(rows)
    # WHEN a process of its own reads it
    program = """
import os, sys
from pathlib import Path
from rl_insight import tables

before = len(os.listdir("/proc/self/task"))
path = Path(sys.argv[1])
assert tables.read(path).num_rows == 12
print(len(os.listdir("/proc/self/task")) - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    # THEN it has the threads it began with: one that lets go of the file late ends it by SIGABRT
    assert done.stdout.strip() == "0"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_parse_job_builds_writes_and_reads_every_table_without_pandas(
    tmp_path: Path, name: str
) -> None:
    # GIVEN pandas is installed, where pa.array and to_pylist would import it
    pytest.importorskip("pandas")
    # WHEN a process of its own fills every column of a table, joins, writes and reads it
    program = """
import sys
from pathlib import Path
import pyarrow as pa
from rl_insight import tables
from rl_insight.schema import SCHEMAS
from rl_insight.table_parts import read_part, write_part

def sample(kind):
    if pa.types.is_list(kind):
        return [sample(kind.value_type)]
    if pa.types.is_struct(kind):
        return {f.name: sample(f.type) for f in kind}
    if pa.types.is_boolean(kind):
        return True
    if pa.types.is_float64(kind):
        return 0.5
    return 7 if pa.types.is_integer(kind) else "seven"

schema = SCHEMAS[sys.argv[1]]
row = {field.name: sample(field.type) for field in schema}
table = tables.from_rows(schema, [row, {}, row])
path = Path(sys.argv[2]) / "t.parquet"
write_part(path, tables.concat(schema, [table, tables.empty(schema)]))
assert tables.concat(schema, [read_part(path, schema)] * 2).num_rows == 6
tables.write(path, tables.concat(schema, [table, tables.empty(schema), table]))
assert tables.read(path).num_rows == 6
assert tables.read(path).schema.equals(schema)
print("pandas" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, name, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    # THEN pandas was not imported
    assert done.stdout.strip() == "False"
