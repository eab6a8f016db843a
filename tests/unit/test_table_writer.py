"""Tables that are written bit by bit: row groups of one size, and all of them or none."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rl_insight import table_writer, tables
from rl_insight.schema import OPS, SPANS
from rl_insight.table_writer import writing


@pytest.fixture(autouse=True)
def _four_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_writer, "ROW_GROUP", 4)


def ops(*names: str) -> pa.Table:
    return tables.from_rows(OPS, [{"span_id": "a", "name": name} for name in names])


def test_rows_are_gathered_to_row_groups_of_one_size(tmp_path: Path) -> None:
    with writing(tmp_path, ["ops"]) as writers:
        for names in (("a", "b", "a"), (), ("c", "b"), tuple("defghijkl")):
            writers["ops"].add(ops(*names))
    path = tmp_path / "ops.parquet"
    told = pq.read_metadata(path)
    assert [told.row_group(at).num_rows for at in range(told.num_row_groups)] == [4, 4, 4, 2]
    found = tables.read(path)
    assert found.schema.equals(OPS)
    assert found["name"].to_pylist() == list("abacbdefghijkl")
    # One dictionary for all of them: Arrow groups by no column that has several.
    assert len({chunk.dictionary.to_pylist().__repr__() for chunk in found["name"].chunks}) == 1


def test_a_table_without_rows_is_one_all_the_same_and_keeps_what_its_schema_tells(
    tmp_path: Path,
) -> None:
    with writing(tmp_path / "new", ["ops", "spans"]) as writers:
        writers["ops"].add(tables.empty(OPS).replace_schema_metadata({"told": "this"}))
    found = tables.read(tmp_path / "new" / "ops.parquet")
    assert found.num_rows == 0
    assert found.schema.equals(OPS)
    assert found.schema.metadata[b"told"] == b"this"
    assert tables.read(tmp_path / "new" / "spans.parquet").schema.equals(SPANS)


def test_what_goes_wrong_leaves_all_files_as_they_were(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    with writing(folder, ["ops", "spans"]) as writers:
        writers["ops"].add(ops("before"))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ZeroDivisionError), writing(folder, ["ops", "spans"]) as writers:
        writers["ops"].add(ops(*"abcdefgh"))
        raise ZeroDivisionError
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "none", ["ops"]):
        raise ZeroDivisionError
    assert not (tmp_path / "none").exists()


def test_a_file_that_cannot_be_finished_replaces_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writing(tmp_path, ["ops", "spans"]) as writers:
        writers["ops"].add(ops("before"))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(OSError, match="full"), writing(tmp_path, ["ops", "spans"]) as writers:
        writers["ops"].add(ops("after"))

        def full() -> None:
            raise OSError("the disk is full")

        monkeypatch.setattr(writers["spans"], "finish", full)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
