"""One time axis for lanes whose clocks are not all wall clocks.

The merge puts every lane that it can on Unix time. What it cannot — a capture that only knows the
time since boot, or since it began — still has to be drawn somewhere near the others, and said.
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
) -> Settled:
    """Put spans on one axis; all arguments are one entry per span, `start_ns` as in the table.

    Starts that are no Unix time begin at the origin: together for boot clocks, whose hosts the
    merge has aligned with each other, and per source otherwise. Starts of captures that do not
    tell the date may look like Unix time, since the merge has moved them to where others begin;
    they never begin before what is dated.
    """
    plausible = start_ns >= FIRST_PLAUSIBLE_NS
    moved = plausible & np.array([kind == "relative" for kind in clock], dtype=bool)
    undated = moved | ~plausible
    origin = None if undated.all() else int(start_ns[~undated].min())
    relative = np.where(plausible, start_ns - (origin or 0), start_ns)
    groups: dict[tuple[str, str | None], list[int]] = {}
    note: list[str | None] = [_ALIGNED if kind == "boot" else None for kind in clock]
    for position in np.flatnonzero(undated).tolist():
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
    if origin is None and len(groups) == 1:
        note = [None] * len(note)
    return Settled(origin, relative, note, undated)
