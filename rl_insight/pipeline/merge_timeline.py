"""The merge of captures: one set of tables, with identity, clock and filters settled.

It goes over the units twice. First only for what settles them: sources, lanes, and when the stages
of each lane were. Then for all their rows, some units at a time (`merge_batch`), so that memory
does not grow with the number of units. The rows of a table are in the order of their units
(`parts.in_order`), and within a unit as its parse job left them: the same units give the same
files, to the byte, however many processes read them.
"""

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight import selection, tables
from rl_insight.pipeline.clock_skew import Window
from rl_insight.pipeline.merge_batch import (
    COUNTS,
    STAGES,
    TOLD,
    Batch,
    answer,
    batches,
)
from rl_insight.pipeline.merge_children import children
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.parts import filled_by, in_order, read_each
from rl_insight.pipeline.settle import Row, settle_lanes
from rl_insight.pipeline.source_rows import source_rows
from rl_insight.pipeline.unit_tables import Unit
from rl_insight.schema import SCHEMAS
from rl_insight.table_writer import TableWriter

# From so many units on processes of their own read them: starting those takes as long as reading
# some hundred units.
_MANY_UNITS = 200
# As many as the merge's rule asks cores for (workflow/rules/merge.smk).
_PROCESSES = 2

_Answer = Callable[[Batch], dict[str, pa.Table]]


def merge_timeline(
    folders: Iterable[Path],
    options: MergeOptions,
    writers: Mapping[str, TableWriter],
) -> list[Row]:
    """Join the units' cache `folders` into the timeline's tables; gives their rows of `sources`.

    `writers` has one for each of `TIMELINE_TABLES`.
    Raises CacheError that names the folder to delete when a unit is incomplete.
    """
    units = [Unit(folder, filled_by(folder)) for folder in in_order(folders)]
    with _answering(len(units)) as answered:
        told = _told(units, answered)
        sources = told["sources"].to_pylist()
        settled = settle_lanes(
            told["lanes"].to_pylist(),
            {row["source_id"]: row["path"] for row in sources},
            _stage_roles(told[STAGES]),
            options,
            _stages(told[STAGES]),
        )
        lanes = tables.from_rows(SCHEMAS["lanes"], settled.lanes)
        chosen = options.filters
        writers["lanes"].add(selection.attach(lanes, chosen.ranks, chosen.steps, chosen.roles))
        wanted = _with_lanes(units, told, lanes, chosen.roles)
        for completed in read_each(wanted, answered):
            for name, table in completed.items():
                writers[name].add(table)
    return source_rows(sources, settled, options)


@contextlib.contextmanager
def _answering(units: int) -> Iterator[_Answer]:
    """Who answers the batches of so many units: this process, or some of their own."""
    if units < _MANY_UNITS:
        yield answer
        return
    with children(_PROCESSES) as started:
        yield started.answer


def _told(units: Sequence[Unit], answered: _Answer) -> dict[str, pa.Table]:
    """What of all units settles whose their captures are, as `merge_batch.answer` gives it."""
    found: dict[str, list[pa.Table]] = defaultdict(list)
    for one in read_each(map(Batch, batches(units)), answered):
        for name, table in one.items():
            found[name].append(table)
    return {name: tables.concat(schema, found[name]) for name, schema in TOLD.items()}


def _with_lanes(
    units: Sequence[Unit],
    told: Mapping[str, pa.Table],
    lanes: pa.Table,
    roles: frozenset[str] | None,
) -> Iterator[Batch]:
    """The batches of the units with lanes that stay, each with its own of the settled `lanes`."""
    place = {lane: at for at, lane in enumerate(lanes["lane_id"].to_pylist())}
    ids = iter(told["lanes"]["lane_id"].to_pylist())
    kept: dict[Unit, list[int]] = {}
    for unit, count in zip(units, told[COUNTS]["lanes"].to_pylist(), strict=True):
        own = [place[lane] for lane in itertools.islice(ids, count) if lane in place]
        if own:
            kept[unit] = own
    for some in batches(list(kept)):
        at = sorted({position for unit in some for position in kept[unit]})
        yield Batch(some, lanes.take(pa.array(at, pa.int64())), roles)


def _stage_roles(stages: pa.Table) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for row in stages.group_by(["lane_id", "role"]).aggregate([]).to_pylist():
        if row["role"] is not None:
            found[row["lane_id"]].add(row["role"])
    return {lane: frozenset(names) for lane, names in found.items()}


def _stages(stages: pa.Table) -> dict[str, list[Window]]:
    """The stages of each lane, with their raw times."""
    found: dict[str, list[Window]] = defaultdict(list)
    ends = pc.add(stages["start_ns"], stages["duration_ns"])
    columns = (stages["lane_id"], stages["role"], stages["start_ns"], ends)
    for lane, *window in zip(*(column.to_pylist() for column in columns), strict=True):
        found[lane].append((window[0], window[1], window[2]))
    return found
