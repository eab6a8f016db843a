"""A table that is written bit by bit is the same as one written at once."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rl_insight import tables
from rl_insight.part_writer import PartWriter
from rl_insight.schema import EXPERT_LOAD
from rl_insight.table_parts import read_part


def loads(first: int, count: int) -> pa.Table:
    """Rows numbered from `first`, each with a load of 100 numbers."""
    rows = range(first, first + count)
    return tables.from_rows(
        EXPERT_LOAD,
        [{"op_index": row, "api": f"api{row % 3}", "load": np.full(100, row)} for row in rows],
    )


@pytest.mark.parametrize("held_bytes", [0, 5_000, 10_000_000])
def test_whatever_is_held_the_rows_are_there_in_order(tmp_path: Path, held_bytes: int) -> None:
    path = tmp_path / "x.parquet"
    with PartWriter(path, EXPERT_LOAD, held_bytes) as writer:
        for first in range(0, 50, 10):
            writer.add(loads(first, 10))
    found = tables.concat(EXPERT_LOAD, [read_part(path, EXPERT_LOAD)])
    assert found.equals(loads(0, 50))
    groups = pq.ParquetFile(path).num_row_groups
    assert groups == {0: 5, 5_000: 5, 10_000_000: 1}[held_bytes]


def test_a_table_without_rows_is_there_all_the_same(tmp_path: Path) -> None:
    with PartWriter(tmp_path / "x.parquet", EXPERT_LOAD):
        pass
    assert read_part(tmp_path / "x.parquet", EXPERT_LOAD).num_rows == 0


def test_an_error_passes_through_and_closes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with pytest.raises(KeyError), PartWriter(path, EXPERT_LOAD, 0) as writer:
        writer.add(loads(0, 1))
        raise KeyError
    path.unlink()
