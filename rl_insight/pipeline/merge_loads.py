"""The merge of expert loads: one file, step after step, with identity and filters settled.

The vectors stay as the dumps hold them; what they mean the structure step decides. They may be many
gigabytes in all, so that only those of one step are in memory at a time.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rl_insight import tables
from rl_insight.data import identity
from rl_insight.data.identity import Identity
from rl_insight.files import replacing
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.parts import read_unit_table
from rl_insight.pipeline.settle import Row, excluded
from rl_insight.pipeline.source_rows import load_rows
from rl_insight.schema import EXPERT_LOAD, SCHEMAS

_IDENTITY = ("role", "rank_id", "step")


@dataclass(frozen=True, slots=True)
class _Dump:
    """One source that stays: whose it is, and the unit folder that holds its rows."""

    source_id: str
    path: str
    who: Identity
    folder: Path

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts dumps by step, role and rank, what is unknown last."""
        who = self.who
        return (
            *((who.step is None, who.step or 0), (who.role is None, who.role or "")),
            *((who.rank_id is None, who.rank_id or 0), self.path),
        )


def merge_loads(folders: Sequence[Path], output: Path, options: MergeOptions) -> list[Row]:
    """Join the units' expert loads into the Parquet file `output`; gives their rows of `sources`.

    Each row group holds one step, its rows sorted by role, rank, source and as they were recorded.
    Raises CacheError that names the folder to delete when a unit is incomplete.
    """
    rows: list[Row] = []
    settled: dict[str, Identity] = {}
    filtered: dict[str, str] = {}
    steps: dict[int | None, list[_Dump]] = defaultdict(list)
    for folder in folders:
        own: list[Row] = read_unit_table(folder, "sources").to_pylist()
        told = _told(folder)
        for row in own:
            source, path = str(row["source_id"]), str(row["path"])
            who = identity.resolve(path, told.get(source, {}), options.rules, options.root_name)
            settled[source] = who
            reason = excluded(_columns(who), frozenset(), options.filters)
            if reason is None:
                steps[who.step].append(_Dump(source, path, who, folder))
            else:
                filtered[source] = reason
        rows += own
    ordered = sorted((sorted(dumps, key=_order) for dumps in steps.values()), key=_first)
    _write(output, ordered)
    return load_rows(rows, settled, filtered, options)


def _order(dump: _Dump) -> tuple[object, ...]:
    return dump.order


def _first(dumps: Sequence[_Dump]) -> tuple[object, ...]:
    return dumps[0].order


def _told(folder: Path) -> dict[str, Mapping[str, object]]:
    """What the dumps of a unit themselves say about whose they are, by `source_id`."""
    # Without the vectors, which are nearly all of it.
    found = read_unit_table(folder, "expert_load", ("source_id", *_IDENTITY))
    names = [name for name in _IDENTITY if name in found.schema.names]
    if not names:
        return {}
    distinct = found.group_by(["source_id", *names]).aggregate([])
    return {str(row["source_id"]): row for row in distinct.to_pylist()}


def _columns(who: Identity) -> Row:
    return {"role": who.role, "replica": who.replica, "rank_id": who.rank_id, "step": who.step}


def _write(output: Path, steps: Iterable[Sequence[_Dump]]) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    with (
        replacing(output) as temporary,
        open(temporary, "wb") as file,
        pq.ParquetWriter(file, EXPERT_LOAD, compression="zstd") as writer,
    ):
        for dumps in steps:
            content = _step(dumps)
            if content.num_rows:
                writer.write_table(content, row_group_size=content.num_rows)


def _step(dumps: Sequence[_Dump]) -> pa.Table:
    """The loads of one step."""
    folders = dict.fromkeys(dump.folder for dump in dumps)
    parts = (read_unit_table(folder, "expert_load") for folder in folders)
    content = tables.concat(SCHEMAS["expert_load"], parts)
    ids = pa.array([dump.source_id for dump in dumps], pa.string())
    at = pc.index_in(content["source_id"], value_set=ids)
    order = pa.table({"at": at, "row": pa.array(range(content.num_rows), pa.int64())})
    order = order.filter(pc.is_valid(order["at"])).sort_by(
        [("at", "ascending"), ("row", "ascending")]
    )
    content = content.take(order["row"])
    for name in _IDENTITY:
        field = content.schema.field(name)
        values = [getattr(dump.who, name) for dump in dumps]
        plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        column = pa.chunked_array([pa.array(values, plain)]).take(order["at"])
        if pa.types.is_dictionary(field.type):
            column = column.dictionary_encode()
        content = content.set_column(content.schema.get_field_index(name), field, column)
    return content
