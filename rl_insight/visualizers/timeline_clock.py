"""One time axis for lanes whose clocks are not all wall clocks.

The merge puts every lane that it can on Unix time. What it cannot — a capture that only knows the
time since boot, or since it began — still has to be drawn somewhere near the others, and said. So
has a capture that its clock puts days away: the others would be dots on an axis of weeks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Before September 2001: no profiler wrote this, so the number is not Unix time.
FIRST_PLAUSIBLE_NS = 1_000_000_000 * 1_000_000_000

_ALIGNED = "recorded on a boot clock and aligned with its host"
_BOOT = "boot clock only: drawn from the origin, not aligned with lanes that tell the time"
_RELATIVE = "no clock in this capture: drawn from the origin, not aligned with other lanes"


@dataclass(frozen=True, slots=True)
class Settled:
    """Starts on one axis.

    `start_ns` counts from `origin_ns`, the Unix time of the first span of which that is known, and
    None when it is known of none. `note` says per span what is doubtful about its time, or None;
    `undated` holds where the time on the axis is not the time at which it was.
    """

    origin_ns: int | None
    start_ns: np.ndarray
    note: list[str | None]
    undated: np.ndarray


def settle(
    start_ns: np.ndarray,
    clock: Sequence[str | None],
    source: Sequence[str | None],
    far: Sequence[str | None] | None = None,
    belongs: Sequence[tuple[object, ...]] = (),
) -> Settled:
    """Put spans on one axis; all arguments are one entry per span, `start_ns` as in the table.

    `far` is the evidence where a capture's clock cannot be right: a source of such spans begins
    where others begin that have its own `belongs` (role and step), else those of which all but the
    first of that (the role) is its own, else at the origin.

    Starts that are no Unix time begin at the origin: together for boot clocks, whose hosts the
    merge has aligned with each other, and per source otherwise. Starts of captures that do not
    tell the date may look like Unix time, since the merge has moved them to where others begin;
    they never begin before what is dated.
    """
    plausible = start_ns >= FIRST_PLAUSIBLE_NS
    moved = plausible & np.array([kind == "relative" for kind in clock], dtype=bool)
    stray = plausible & np.array([bool(text) for text in far or [None] * len(clock)], dtype=bool)
    undated = moved | ~plausible | stray
    origin = None if undated.all() else int(start_ns[~undated].min())
    relative = np.where(plausible, start_ns - (origin or 0), start_ns)
    groups: dict[tuple[str, str | None], list[int]] = {}
    note: list[str | None] = [_ALIGNED if kind == "boot" else None for kind in clock]
    for position in np.flatnonzero(undated & ~stray).tolist():
        boot = clock[position] == "boot"
        key = ("boot", None) if boot else ("source", source[position])
        if moved[position]:
            key = ("moved", None)
        groups.setdefault(key, []).append(position)
        note[position] = _BOOT if boot else _RELATIVE
    for (kind, _), positions in groups.items():
        first = relative[positions].min()
        relative[positions] -= min(0, first) if kind == "moved" and origin is not None else first
    # One clock for everything is aligned with all there is.
    if origin is None and len(groups) == 1 and not stray.any():
        note = [None] * len(note)
    if far is not None and stray.any():
        _place(relative, stray, undated, source, belongs)
        note = [text if at else own for at, text, own in zip(stray, far, note, strict=True)]
    return Settled(origin, relative, note, undated)


def _place(
    start_ns: np.ndarray,
    stray: np.ndarray,
    undated: np.ndarray,
    source: Sequence[str | None],
    belongs: Sequence[tuple[object, ...]],
) -> None:
    """Let each source of `stray` spans begin where others begin that belong where it does."""
    begins: dict[tuple[object, ...], int] = {}
    for position in np.flatnonzero(~undated).tolist():
        start = int(start_ns[position])
        for key in (belongs[position], belongs[position][1:]):
            begins[key] = min(begins.get(key, start), start)
    groups: dict[str | None, list[int]] = {}
    for position in np.flatnonzero(stray).tolist():
        groups.setdefault(source[position], []).append(position)
    for positions in groups.values():
        first = min(positions, key=lambda at: int(start_ns[at]))
        where = begins.get(belongs[first], begins.get(belongs[first][1:], 0))
        start_ns[positions] += where - start_ns[first]
