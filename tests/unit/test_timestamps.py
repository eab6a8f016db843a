from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_insight.readers.timestamps import EXACT_FLOAT_US, NOT_A_TIME, exact_ns

TOO_LARGE_US = 2**53


def ns_of(us: Decimal) -> int:
    return int((us * 1000).to_integral_value(ROUND_HALF_EVEN))


def decimals(largest_ns: int, smallest_ns: int = 0) -> st.SearchStrategy[Decimal]:
    return st.integers(smallest_ns, largest_ns).map(lambda ns: Decimal(ns).scaleb(-3))


@given(st.lists(decimals(int(EXACT_FLOAT_US) * 1000 - 1)))
def test_floats_of_three_decimals_below_the_bound_are_exact(values: list[Decimal]) -> None:
    floats = [float(format(value, ".3f")) for value in values]
    assert exact_ns(floats).tolist() == [ns_of(value) for value in values]


def test_the_bound_for_floats_is_where_digits_begin_to_be_lost() -> None:
    # Right above it the doubles are 2**-9 µs apart: .001 is nearer to .001953125 than to 0.
    lost = Decimal(int(EXACT_FLOAT_US)) + Decimal("0.001")
    assert exact_ns([float(lost)])[0] != ns_of(lost)


@given(st.lists(decimals(TOO_LARGE_US * 1000 - 1)))
def test_text_and_decimals_are_exact_at_any_size(values: list[Decimal]) -> None:
    expected = [ns_of(value) for value in values]
    assert exact_ns([format(value, ".3f") for value in values]).tolist() == expected
    assert exact_ns([format(value, "f") for value in values]).tolist() == expected
    assert exact_ns(values).tolist() == expected


@given(st.lists(st.integers(-TOO_LARGE_US + 1, TOO_LARGE_US - 1)))
def test_whole_microseconds_are_exact(values: list[int]) -> None:
    expected = [value * 1000 for value in values]
    assert exact_ns(values).tolist() == expected
    assert exact_ns([float(value) for value in values]).tolist() == expected
    assert exact_ns([str(value) for value in values]).tolist() == expected


@given(st.lists(decimals(int(EXACT_FLOAT_US) * 1000 - 1, smallest_ns=-(10**15))), st.randoms())
def test_kinds_may_be_mixed(values: list[Decimal], random: object) -> None:
    kinds = [str, float, Decimal]
    mixed = [kinds[index % 3](value) for index, value in enumerate(values)]
    assert exact_ns(mixed).tolist() == [ns_of(value) for value in values]


def test_an_absolute_time_keeps_its_nanoseconds() -> None:
    assert exact_ns(["1712195495519689.047"]).tolist() == [1712195495519689047]
    assert exact_ns([Decimal("1773285904640626.314")]).tolist() == [1773285904640626314]


def test_text_of_many_lengths_keeps_its_order() -> None:
    texts = ["9.999", "10.000", "7", "1e3", "100.001", " 5.5 ", "8.123", "-0.001"]
    expected = [9999, 10000, 7000, 1000000, 100001, 5500, 8123, -1]
    assert exact_ns(texts).tolist() == expected


@pytest.mark.parametrize("digits", ["0.0004", "0.0005", "0.0015", "0.00051", "12.34567", "3.9999"])
def test_finer_digits_are_rounded(digits: str) -> None:
    assert exact_ns([digits]).tolist() == [ns_of(Decimal(digits))]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        "now",
        "1,5",
        "nan",
        float("nan"),
        float("inf"),
        float("-inf"),
        Decimal("NaN"),
        Decimal("sNaN"),
        TOO_LARGE_US,
        float(TOO_LARGE_US),
        str(TOO_LARGE_US),
        "9007199254740992.000",
        "9999999999999999.999",
        10**400,
        "1e999999999",
        "1" * 5000,
        [1],
        {},
    ],
)
def test_what_is_no_time_says_so_and_harms_no_neighbour(value: object) -> None:
    assert exact_ns([value]).tolist() == [NOT_A_TIME]
    assert exact_ns(["1.001", value, "2.002"]).tolist() == [1001, NOT_A_TIME, 2002]
    assert exact_ns([1.25, value, 2.5]).tolist() == [1250, NOT_A_TIME, 2500]


def test_characters_beyond_ascii_do_not_shift_the_table() -> None:
    assert exact_ns(["1.001", "１.００２", "é.001", "4.004"]).tolist() == [
        1001,
        1002,  # Decimal knows full-width digits
        NOT_A_TIME,
        4004,
    ]


def test_a_vanishing_time_is_zero() -> None:
    assert exact_ns(["1e-999999999"]).tolist() == [0]


def test_no_values_are_no_times() -> None:
    assert exact_ns([]).dtype == np.int64
    assert exact_ns([]).tolist() == []
