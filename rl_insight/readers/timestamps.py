"""Microseconds as the producers write them to exact nanoseconds.

Chrome traces count time in microseconds with up to three decimals (kineto writes `%.3f`, Ascend's
msprof a string of the same shape). An absolute one, 1712195495519689.123, has 19 digits and does
not fit a double, whose neighbours are 0.25 µs apart there; a relative one does.
"""

from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import cast

import numpy as np
from numpy.typing import NDArray

Microseconds = float | int | str | Decimal | None

# What stands for a time that is none: null, text, not a number, beyond the years of int64.
NOT_A_TIME = int(np.iinfo(np.int64).min)

# Below 2**43 µs (101 days) the doubles are at most 2**-10 µs apart, so the double nearest to a
# number of three decimals is off by at most 2**-11 µs = 0.49 ns: rounding its nanoseconds gives
# the written digits back. `value - floor(value)` is exact (Sterbenz), and times 1000 adds less
# than 1e-13. From 2**43 on the error reaches 0.98 ns and digits are lost.
EXACT_FLOAT_US = float(2**43)

# From here on (the year 2255) it is no time. Up to here the ns fit int64 and every whole number of
# µs is exact as a double.
_TOO_LARGE_US = 2**53

# "." less "0", as an unsigned byte
_POINT = (ord(".") - ord("0")) % 256
_DECIMALS = 3
_WHOLE_DIGITS = 16


def exact_ns(values: Sequence[Microseconds]) -> NDArray[np.int64]:
    """Nanoseconds of `values`, which are µs as numbers, Decimals or decimal text, mixed at will.

    Exact for numbers of up to three decimals in text and Decimals, and in floats below
    `EXACT_FLOAT_US`; a larger float gives the nanosecond nearest to that double. Finer digits are
    rounded, ties to even. `NOT_A_TIME` stands for whatever is no time.
    """
    kinds = set(map(type, values))
    if kinds <= {float, int}:
        try:
            return _of_floats(np.array(values, dtype=np.float64))
        except OverflowError:  # an int beyond the doubles
            kinds.clear()
    result = np.full(len(values), NOT_A_TIME, dtype=np.int64)
    rest: Iterable[int] = range(len(values))
    if kinds == {str}:
        rest = _of_texts(cast(Sequence[str], values), result)
    for index in rest:
        result[index] = _of_one(values[index])
    return result


def _of_floats(us: NDArray[np.float64]) -> NDArray[np.int64]:
    good = np.abs(us) < _TOO_LARGE_US  # False for nan
    us = np.where(good, us, 0.0)
    whole = np.floor(us)
    ns = whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64)
    return np.where(good, ns, NOT_A_TIME)


def _of_texts(texts: Sequence[str], result: NDArray[np.int64]) -> Iterable[int]:
    """Fill `result` for the texts of the producers' shape; returns the indices of the others.

    The shape is up to 16 digits, a point and three digits, and all of them usually have the same
    length: then they are one table of characters and the work is done in columns.
    """
    each = list(map(len, texts))
    lengths = np.array(each, dtype=np.int64)
    # One byte for each character, whatever it is, keeps the table straight.
    characters = np.frombuffer("".join(texts).encode("ascii", "replace"), dtype=np.uint8)
    starts = np.cumsum(lengths) - lengths
    done = np.zeros(len(texts), dtype=np.bool_)
    # Not by `np.unique`: it imports numpy.ma, 25 ms in every job.
    for length in set(each):
        whole = length - _DECIMALS - 1
        if not 1 <= whole <= _WHOLE_DIGITS:
            continue
        rows = np.flatnonzero(lengths == length)
        if len(rows) == len(texts):
            table = characters.reshape(len(rows), length)
        else:
            table = characters[starts[rows, None] + np.arange(length)]
        # One row per place, side by side in memory; what stands below "0" wraps around to > 9.
        places = np.ascontiguousarray(table.T) - np.uint8(ord("0"))
        good = places[whole] == _POINT
        places[whole] = 0
        good &= places.max(axis=0) <= 9
        us, ns = np.zeros((2, len(rows)), dtype=np.int64)
        for place in places[:whole]:
            us *= 10
            us += place
        for place in places[whole + 1 :]:
            ns *= 10
            ns += place
        good &= us < _TOO_LARGE_US
        ns += us * 1000
        result[rows[good]] = ns[good]
        done[rows[good]] = True
    return np.flatnonzero(~done).tolist()


def _of_one(value: Microseconds) -> int:
    if isinstance(value, bool) or value is None:
        return NOT_A_TIME
    try:
        us = Decimal(value)
    except (InvalidOperation, ValueError, TypeError):
        return NOT_A_TIME
    # Looking at the exponent first keeps 1e999999999 from becoming a number of that many digits.
    if not us.is_finite() or us.adjusted() >= _WHOLE_DIGITS or abs(us) >= _TOO_LARGE_US:
        return NOT_A_TIME
    if us.adjusted() < -_DECIMALS - 1:
        return 0
    whole = int(us.to_integral_value(ROUND_FLOOR))
    return whole * 1000 + int(((us - whole) * 1000).to_integral_value(ROUND_HALF_EVEN))
