"""The grid of roles, steps and ranks as a table for a terminal, however many there are."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rl_insight.data import roles
from rl_insight.data.coverage import Coverage, Recorded
from rl_insight.data.coverage_words import ranges
from rl_insight.pipeline.terminal import printable

_MOST_ROWS = 40
_MOST_COLUMNS = 8
_LONGEST_ROLE = 44
_UNKNOWN = "?"


@dataclass(slots=True)
class _Row:
    """One role of one replica: its ranks, and by step those that are there, missing, unknown."""

    ranks: set[int] = field(default_factory=set)
    there: dict[int | None, set[int]] = field(default_factory=lambda: defaultdict(set))
    lacking: dict[int | None, int] = field(default_factory=lambda: defaultdict(int))
    unranked: dict[int | None, int] = field(default_factory=lambda: defaultdict(int))

    def cell(self, step: int | None) -> str:
        there, unranked = len(self.there[step]), self.unranked[step]
        expected = there + self.lacking[step]
        if not expected:
            return f"{unranked} of rank ?" if unranked else "-"
        return f"{there:,}/{expected:,}" + (f" + {unranked}" if unranked else "")


def grid_lines(recorded: Iterable[Recorded], found: Coverage) -> list[str]:
    """A table with a row for each role and replica; steps that look alike share a column.

    A cell says how many ranks are there of those that are expected, `-` where none is.
    """
    rows: dict[tuple[str, int], _Row] = defaultdict(_Row)
    for one in recorded:
        row = rows[_key(one.role, one.replica)]
        if one.rank_id is not None:
            row.ranks.add(one.rank_id)
            if one.gave:
                row.there[one.step].add(one.rank_id)
        elif one.gave:
            row.unranked[one.step] += 1
    for column in found.columns:
        row = rows[_key(column.role, column.replica)]
        row.ranks.update((*column.missing, *column.lost))
        if not column.capture:
            row.lacking[column.step] += len(column.missing) + len(column.lost)
    ordered = sorted(rows.items())
    steps = {step for row in rows.values() for held in (row.there, row.lacking, row.unranked)
             for step in held}  # fmt: skip
    alike = _alike([row for _, row in ordered], sorted(step for step in steps if step is not None))
    columns = alike[:_MOST_COLUMNS]
    heads = [_head(group) for group in columns]
    if None in steps:
        columns, heads = [*columns, [None]], [*heads, "step ?"]
    table = [["role", "ranks", *heads]]
    for (role, replica), row in ordered[:_MOST_ROWS]:
        label = roles.lane_role_label(role or None, None if replica < 0 else replica)
        cells = [row.cell(group[0]) for group in columns]
        table.append([printable(label, _LONGEST_ROLE), ranges(row.ranks, 4) or _UNKNOWN, *cells])
    lines = _aligned(table)
    if len(alike) > _MOST_COLUMNS:
        more = [step for group in alike[_MOST_COLUMNS:] for step in group if step is not None]
        lines.append(f"and steps {ranges(more)}")
    if len(ordered) > _MOST_ROWS:
        lines.append(f"and {len(ordered) - _MOST_ROWS:,} more roles and replicas")
    return lines


def _key(role: str | None, replica: int | None) -> tuple[str, int]:
    return role or "", -1 if replica is None else replica


def _alike(rows: Sequence[_Row], steps: Sequence[int]) -> list[list[int | None]]:
    """The `steps` in order, those of the same cells together."""
    groups: dict[tuple[str, ...], list[int | None]] = {}
    for step in steps:
        groups.setdefault(tuple(row.cell(step) for row in rows), []).append(step)
    return list(groups.values())


def _head(group: Sequence[int | None]) -> str:
    known = [step for step in group if step is not None]
    return f"step{'' if len(known) == 1 else 's'} {ranges(known, 3)}"


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
