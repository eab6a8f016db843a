"""Units and round numbers for an axis of relative time."""

from dataclasses import dataclass
from math import floor, log10

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of time by its symbol and its length in nanoseconds."""

    symbol: str
    ns: int


# From which duration on a unit is used, and its own length.
_DURATIONS = (
    ("h", 6_000 * _SECOND, 3_600 * _SECOND),
    ("min", 600 * _SECOND, 60 * _SECOND),
    ("s", _SECOND, _SECOND),
    ("ms", 1_000_000, 1_000_000),
    ("µs", 1_000, 1_000),
)

SECONDS, MILLISECONDS = Unit("s", _SECOND), Unit("ms", 1_000_000)


def unit(extent_ns: int) -> Unit:
    """Seconds for a timeline of two seconds and more, else milliseconds."""
    return SECONDS if extent_ns >= 2 * _SECOND else MILLISECONDS


def duration(duration_ns: int) -> str:
    """A duration in the unit that people would use, to three digits: `12.3 s`, `842 ms`."""
    for symbol, least_ns, ns in _DURATIONS:
        if duration_ns >= least_ns:
            value = duration_ns / ns
            return f"{value:.{max(0, 2 - floor(log10(value)))}f} {symbol}"
    return f"{duration_ns} ns"


def ticks(extent_ns: int, most: int) -> list[tuple[int, str]]:
    """At most about `most` round places from 0 to `extent_ns`, with their text in `unit`."""
    if extent_ns <= 0:
        return [(0, "0")]
    scale = unit(extent_ns)
    rough = extent_ns / scale.ns / max(most, 1)
    power = 10.0 ** floor(log10(rough))
    step = next((power * nice for nice in (1, 2, 5) if power * nice >= rough), power * 10)
    decimals = max(0, -floor(log10(step) + 1e-9))
    steps = int(extent_ns / scale.ns / step + 1e-9)
    return [
        (round(number * step * scale.ns), f"{number * step:,.{decimals}f}")
        for number in range(steps + 1)
    ]
