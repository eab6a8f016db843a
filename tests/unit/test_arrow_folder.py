"""Parquet files, Arrow files and Arrow streams are read alike, by columns, without pandas."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from rl_insight.errors import ReadError
from rl_insight.readers.arrow_folder import batches, integers, texts
from tests.nvtx_exports import write_folder

MISSING = -(2**63)
FORMS = {"parquet": "T.parquet", "arrow": "T.arrow", "stream": "T.arrow"}
ROWS: list[dict[str, object]] = [
    {"table": "T", "number": 1, "name": "a", "other": 1.5},
    {"table": "T", "number": None, "name": None, "other": 2.5},
    {"table": "T", "number": 3, "name": "ü", "other": None},
]


@pytest.fixture(params=FORMS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_folder(tmp_path / "export", ROWS, request.param) / FORMS[request.param]


def test_the_wanted_columns_come_with_null_as_missing(path: Path) -> None:
    (batch,) = batches(path, ("name", "number", "absent"))
    assert batch.schema.names == ["name", "number"]
    assert integers(batch.column("number"), MISSING).tolist() == [1, MISSING, 3]
    assert texts(batch.column("name")) == ["a", None, "ü"]


def test_a_file_that_breaks_off_cannot_be_read_on(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-70])
    with pytest.raises(ReadError, match=rf"^{path.name} cannot be read: "):
        list(batches(path, ("name",)))


def test_an_empty_file_says_why(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(ReadError, match="it is empty: its writer was killed"):
        list(batches(path, ("name",)))


def test_a_missing_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="cannot be read"):
        list(batches(tmp_path / "none.parquet", ("name",)))


def test_the_batches_before_the_damage_are_good(tmp_path: Path) -> None:
    # GIVEN a stream of two batches, the second of which breaks off
    path = tmp_path / "T.arrow"
    batch = pa.record_batch({"number": list(range(1_000))})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    path.write_bytes(path.read_bytes()[:-500])
    # WHEN it is read
    reader = batches(path, ("number",))
    # THEN the first is there
    assert next(reader).num_rows == 1_000
    with pytest.raises(ReadError):
        next(reader)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3], pa.int8()),
        pa.array([1, None, 3], pa.uint64()),
        pa.array([1, None, 3], pa.int64()),
        pa.array([1, None, 3]).dictionary_encode(),
        pa.array([0, 1, None, 3, 4], pa.int32()).slice(1, 3),
    ],
)
def test_whole_numbers_of_any_width_are_int64(column: pa.Array) -> None:
    assert integers(column, MISSING).tolist() == [1, MISSING, 3]


def test_a_column_of_nulls_is_missing() -> None:
    assert integers(pa.nulls(2), MISSING).tolist() == [MISSING, MISSING]
    assert texts(pa.nulls(2)) == [None, None]


def test_a_number_beyond_int64_and_a_column_of_decimals_are_refused() -> None:
    with pytest.raises(ReadError, match="too large"):
        integers(pa.array([2**63], pa.uint64()), MISSING)
    with pytest.raises(ReadError, match="holds double"):
        integers(pa.array([1.5]), MISSING)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "ü"]),
        pa.array(["a", None, "ü"], pa.large_string()),
        pa.array(["a", None, "ü"]).dictionary_encode(),
        pa.array(["x", "a", None, "ü"]).slice(1),
    ],
)
def test_text_of_any_kind_is_text(column: pa.Array) -> None:
    assert texts(column) == ["a", None, "ü"]


def test_a_column_that_is_no_text_gives_none() -> None:
    assert texts(pa.array([1, 2])) == [None, None]


def test_no_rows_are_no_rows() -> None:
    assert integers(pa.array([], pa.int64()), MISSING).tolist() == []
    assert texts(pa.array([], pa.string())) == []


def test_reading_does_not_import_pandas(path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from rl_insight.readers.arrow_folder import batches, integers, texts
for batch in batches(Path({str(path)!r}), ("name", "number")):
    texts(batch.column("name")), integers(batch.column("number"), -1)
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_damaged_length_that_asks_for_more_memory_than_there_is_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_folder(tmp_path / "export", ROWS, "stream") / "T.arrow"

    def fail(file: object) -> None:
        raise MemoryError("malloc of size 4611686018427387904 failed")

    monkeypatch.setattr("pyarrow.ipc.open_stream", fail)
    with pytest.raises(ReadError, match="malloc of size 4611686018427387904 failed"):
        list(batches(path, ("name",)))
