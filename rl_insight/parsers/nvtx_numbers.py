"""Numbers of an nsys export as int64, whatever its writer made of them."""

from array import array
from collections.abc import Sequence

import numpy as np

from rl_insight.data.name_facts import INT64, number
from rl_insight.intervals import IntArray
from rl_insight.parsers.nvtx_rows import MISSING, UNREADABLE


def column(values: Sequence[object]) -> IntArray:
    """A column of numbers as int64; MISSING for null and for what is no whole number."""
    if not values:
        return np.empty(0, np.int64)
    first = values[0]
    # Most columns hold one value over long stretches: comparing takes a tenth of converting.
    if values[-1] == first and values.count(first) == len(values):
        return np.full(len(values), _whole(first), np.int64)
    try:
        # Unlike numpy, an array refuses to cut decimals off and to read text.
        return np.frombuffer(array("q", values), np.int64)  # type: ignore[type-var]
    except (OverflowError, TypeError):
        return np.fromiter((_whole(value) for value in values), np.int64, len(values))


def ends(values: Sequence[object]) -> IntArray:
    """A column of times at which ranges ended: UNREADABLE where one is no whole number."""
    found = column(values)
    missing = np.flatnonzero(found == MISSING).tolist()
    odd = [at for at in missing if values[at] is not None]
    if odd:
        found = found.copy()
        found[odd] = UNREADABLE
    return found


def whole(value: object) -> int | None:
    """`value` as a whole number that int64 holds, also from text; None if it is none."""
    found = _whole(value)
    return None if found == MISSING else found


def _whole(value: object) -> int:
    if isinstance(value, bool):
        return MISSING
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None
    elif isinstance(value, str):
        digits = value.strip()
        value = number(digits) if digits.isascii() and digits.isdigit() else None
    return value if isinstance(value, int) and MISSING < value <= INT64 else MISSING
