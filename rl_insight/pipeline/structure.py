"""The structure step: what each expert load belongs to, and how even it is, step after step."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rl_insight import notes, tables
from rl_insight.analysis.expert_load import StructureOptions, structured
from rl_insight.errors import CacheError
from rl_insight.files import replacing
from rl_insight.pipeline import layout
from rl_insight.problems import Problems
from rl_insight.schema import EXPERT_BALANCE, EXPERT_LOAD


def structure_options(text: str) -> StructureOptions:
    """What `Run.structure_options` wrote, for the structure job."""
    values = json.loads(text)
    return StructureOptions(
        group_list_type=values["heatmap.parser.group_list_type"],
        gmm_per_layer=values["heatmap.visualizer.gmm_per_layer"],
        ep_size=values["heatmap.parser.ep_size"],
    )


def structure(loads: Path, output: Path, options: StructureOptions) -> None:
    """Write the tables `expert_load` and `expert_balance` in `output` from the merged `loads`.

    Each row group of `loads` is one step, as `merge_loads` leaves it, and becomes one of each
    table. What is doubtful stands in the notes of both.
    Raises CacheError when `loads` is damaged.
    """
    said = Problems()
    with (
        _opened(layout.table(output, "expert_load"), EXPERT_LOAD) as load_table,
        _opened(layout.table(output, "expert_balance"), EXPERT_BALANCE) as balance_table,
    ):
        for step in _steps(loads):
            load, balance, doubts = structured(step, options)
            said.extend(doubts)
            load_table.write_table(load, row_group_size=max(load.num_rows, 1))
            balance_table.write_table(balance, row_group_size=max(balance.num_rows, 1))
        for writer in (load_table, balance_table):
            writer.add_key_value_metadata(notes.metadata(said))


def _steps(loads: Path) -> Iterator[pa.Table]:
    try:
        with tables.opened(loads) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, use_threads=False)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CacheError(f"{loads}: damaged ({error}); delete it and run again") from error


@contextlib.contextmanager
def _opened(path: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """A writer of `path`, which appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        replacing(path) as temporary,
        open(temporary, "wb") as file,
        pq.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        yield writer
