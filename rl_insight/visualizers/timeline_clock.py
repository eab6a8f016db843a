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

    `start_ns` counts from `origin_ns`, the Unix time of the first span, which is None when no
    span has a wall clock. `note` says per span what is doubtful about its time, or None.
    """

    origin_ns: int | None
    start_ns: np.ndarray
    note: list[str | None]


def settle(
    start_ns: np.ndarray,
    clock: Sequence[str | None],
    source: Sequence[str | None],
) -> Settled:
    """Put spans on one axis; all arguments are one entry per span, `start_ns` as in the table.

    Starts that are no Unix time begin at the origin: together for boot clocks, whose hosts the
    merge has aligned with each other, and per source otherwise.
    """
    plausible = start_ns >= FIRST_PLAUSIBLE_NS
    origin = int(start_ns[plausible].min()) if plausible.any() else None
    relative = np.where(plausible, start_ns - (origin or 0), start_ns)
    groups: dict[tuple[str, str | None], list[int]] = {}
    note: list[str | None] = [_ALIGNED if kind == "boot" else None for kind in clock]
    for position in np.flatnonzero(~plausible).tolist():
        boot = clock[position] == "boot"
        key = ("boot", None) if boot else ("source", source[position])
        groups.setdefault(key, []).append(position)
        note[position] = _BOOT if boot else _RELATIVE
    for positions in groups.values():
        relative[positions] -= relative[positions].min()
    # One clock for everything is aligned with all there is.
    if origin is None and len(groups) == 1:
        note = [None] * len(note)
    return Settled(origin, relative, note)
