"""Which rank took longest of all and which computed most, beside the others of its role and step.

Ranks that wait for each other in collectives end together, so that their stages last equally long:
who they wait for shows in the time that each computes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight.pipeline import layout
from rl_insight.pipeline.summary_tables import read
from rl_insight.pipeline.terminal import printable
from rl_insight.plain_text import count

# What differs by less is no news.
_WORTH_TELLING = 1.1

_WHOSE = ["role", "step", "replica", "rank_id"]

_Group = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Extreme:
    """The rank of a role and step that is farthest above the median of its `ranks`, in ns."""

    role: str
    step: int | None
    replica: int | None
    rank_id: int
    value_ns: int
    median_ns: float
    ranks: int


@dataclass(frozen=True, slots=True)
class StageSummary:
    """The extremes of a run; None where all ranks are about even or nothing tells.

    Of computing only among stages that lasted about equally long.
    """

    longest: Extreme | None
    most_computing: Extreme | None


def summarise_stages(output: Path) -> StageSummary:
    """Read `spans` and `breakdown` below `output`.

    Raises FileNotFoundError when one is missing, CacheError when one is damaged.
    """
    folder = output / layout.TABLES
    spans = read(layout.table(folder, "spans"), [*_WHOSE, "kind", "duration_ns", "truncated"])
    stages = spans.filter(pc.equal(spans["kind"].cast(pa.string()), "stage"))
    # Of a stage that broke off nobody knows how long it was.
    lasted = pc.if_else(stages["truncated"], None, stages["duration_ns"])
    parts = read(layout.table(folder, "breakdown"), [*_WHOSE, "computing_ns"])
    lengths = _extremes(stages.select(_WHOSE), lasted)
    computing = _extremes(parts.select(_WHOSE), parts["computing_ns"])
    # Who lasts longer also computes longer: that is told already.
    hidden = [one for whose, one in computing.items() if whose not in lengths]
    return StageSummary(_farthest(lengths.values()), _farthest(hidden))


def stage_lines(summary: StageSummary) -> Iterator[str]:
    """What stands out, in a line each."""
    for what, found in (
        ("longest", summary.longest),
        ("most computing", summary.most_computing),
    ):
        if found is not None:
            yield f"  {what}: {_words(found)}"


def _extremes(whose: pa.Table, values: pa.ChunkedArray) -> dict[_Group, Extreme]:
    """The rank of each role and step that is well above the median; `values` are ns or null."""
    columns = [whose[name] for name in _WHOSE[1:]]
    table = pa.Table.from_arrays(
        [whose["role"].cast(pa.string()), *columns, values], names=[*_WHOSE, "ns"]
    )
    sums = table.group_by(_WHOSE).aggregate([("ns", "sum"), ("ns", "count"), ([], "count_all")])
    groups: dict[_Group, list[dict[str, int | None]]] = defaultdict(list)
    for row in sums.to_pylist():
        # One whose rank or whose time is not known in full cannot be compared.
        if row["role"] and row["rank_id"] is not None and row["ns_count"] == row["count_all"]:
            groups[row["role"], row["step"]].append(row)
    found = {group: _of_group(*group, rows) for group, rows in groups.items()}
    return {group: one for group, one in found.items() if one is not None}


def _of_group(role: str, step: int | None, rows: list[dict[str, int | None]]) -> Extreme | None:
    # A rank may have been recorded more often than another, and without steps in several of them.
    usual = Counter(row["count_all"] for row in rows).most_common(1)[0][0]
    if step is None and usual != 1:
        return None
    rows = [row for row in rows if row["count_all"] == usual]
    middle = median(row["ns_sum"] or 0 for row in rows)
    top = max(rows, key=lambda row: row["ns_sum"] or 0)
    value, rank = top["ns_sum"] or 0, top["rank_id"]
    if len(rows) < 2 or rank is None or value < middle * _WORTH_TELLING or not middle:
        return None
    return Extreme(role, step, top["replica"], rank, value, middle, len(rows))


def _farthest(extremes: Iterable[Extreme]) -> Extreme | None:
    return max(extremes, key=lambda one: one.value_ns - one.median_ns, default=None)


def _words(found: Extreme) -> str:
    whose = [printable(found.role)]
    whose += [f"replica {found.replica}"] if found.replica is not None else []
    whose += [f"rank {found.rank_id}"]
    when = f" in step {found.step}" if found.step is not None else ""
    ratio = f"{found.value_ns / found.median_ns:.2f} times the median"
    return (
        f"{' '.join(whose)}{when}: {_time(found.value_ns)}, {ratio} of {count(found.ranks, 'rank')}"
    )


def _time(ns: int) -> str:
    if ns < 1_000_000_000:
        return f"{ns / 1e6:.3g} ms"
    return f"{ns / 1e9:.2f} s" if ns < 10_000_000_000 else f"{ns / 1e9:,.1f} s"
