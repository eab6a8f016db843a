"""Columns of Arrow, of whatever type, become whole numbers and texts."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from rl_insight.errors import ReadError
from rl_insight.readers.arrow_columns import are_text, integers, matching, nulls, texts

MISSING = -(2**63)


def test_null_and_what_is_no_number_are_null() -> None:
    assert nulls(pa.array([1, None, 3])).tolist() == [False, True, False]
    assert nulls(pa.array([1.0, float("nan"), float("inf"), None])).tolist() == [
        False,
        True,
        False,
        True,
    ]
    assert nulls(pa.array(["a", None]).dictionary_encode()).tolist() == [False, True]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3], pa.int8()),
        pa.array([1, None, 3], pa.uint64()),
        pa.array([1, None, 3], pa.int64()),
        pa.array([1, None, 3]).dictionary_encode(),
        pa.array([0, 1, None, 3, 4], pa.int32()).slice(1, 3),
    ],
)
def test_whole_numbers_of_any_width_are_int64(column: pa.Array) -> None:
    assert integers(column, MISSING).tolist() == [1, MISSING, 3]


def test_a_column_of_nulls_is_missing() -> None:
    assert integers(pa.nulls(2), MISSING).tolist() == [MISSING, MISSING]
    assert texts(pa.nulls(2)) == [None, None]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([2**63, 2**64 - 1, 2**63 - 1], pa.uint64()), [None, None, 2**63 - 1]),
        # What pandas makes of whole numbers with a null among them.
        (pa.array([1.0, None, 3.5, float("nan")]), [1, None, None, None]),
        (pa.array([float("inf"), -(2.0**63), 2.0**63, 1e300]), [None, None, None, None]),
        (pa.array([2.0, -2.0], pa.float32()), [2, -2]),
        (
            pa.array(["12", " 7 ", "-1", "x", "", None, "9" * 19, "9" * 99, "1.5"]),
            [12, 7, *[None] * 7],
        ),
        (pa.array([b"12", b"\xff", None]), [12, None, None]),
        (pa.array([Decimal(5), None, Decimal(10**25)], pa.decimal128(30, 0)), [5, None, None]),
        (pa.array([5, None], pa.timestamp("ns")), [5, None]),
        (pa.array([5, None], pa.duration("ns")), [5, None]),
        (pa.array([7.0, None, 8.5]).dictionary_encode(), [7, None, None]),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array([4, None])),
            [4, None, None],
        ),
    ],
)
def test_a_number_that_is_not_whole_or_too_large_is_missing_and_no_other(
    column: pa.Array, expected: list[int | None]
) -> None:
    found = integers(column, MISSING).tolist()
    assert found == [MISSING if number is None else number for number in expected]


@pytest.mark.parametrize(
    "column",
    [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([True]), pa.array([1], pa.time64("us"))],
)
def test_a_column_of_anything_else_is_refused_by_its_kind(column: pa.Array) -> None:
    with pytest.raises(ReadError, match="not whole numbers"):
        integers(column, MISSING)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "ü"]),
        pa.array(["a", None, "ü"], pa.large_string()),
        pa.array(["a", None, "ü"]).dictionary_encode(),
        pa.array(["x", "a", None, "ü"]).slice(1),
        pa.array(["x", "a", None, "ü"]).dictionary_encode().slice(1),
        pa.array(["a", None, "ü"], pa.string_view()),
        pa.array(["a", None, "ü"], pa.binary_view()),
        pa.array([b"a", None, "ü".encode()], pa.large_binary()),
        pa.DictionaryArray.from_arrays(pa.array([2, 1, 0]), pa.array(["ü", None, "a"])),
    ],
)
def test_text_of_any_kind_is_text(column: pa.Array) -> None:
    assert texts(column) == ["a", None, "ü"]


def test_a_column_that_is_no_text_gives_none() -> None:
    assert texts(pa.array([1, 2])) == [None, None]
    assert texts(pa.array([1, 2]).dictionary_encode()) == [None, None]
    assert not are_text(pa.array([1])) and not are_text(pa.array([1]).dictionary_encode())
    assert are_text(pa.nulls(1)) and are_text(pa.array(["a"], pa.string_view()))


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert texts(pa.array([b"a\xffb"])) == ["a\N{REPLACEMENT CHARACTER}b"]


@pytest.mark.parametrize(
    "column", [pa.array(["abcd", "ef"]), pa.array(["abcd", "ef"]).dictionary_encode()]
)
def test_of_a_long_text_only_the_beginning_is_looked_at(column: pa.Array) -> None:
    assert texts(column, 3) == ["abc", "ef"]


def test_buffers_may_be_longer_than_their_items() -> None:
    # GIVEN columns whose buffers end with a part of an item, as in a damaged file that is valid yet
    numbers = pa.py_buffer(np.array([7, 8, 9], np.int64).tobytes() + b"abc")
    offsets = pa.py_buffer(np.array([0, 1, 3, 4], np.int32).tobytes() + b"abc")
    column = pa.Array.from_buffers(pa.int64(), 3, [None, numbers])
    text = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abbc")])
    column.validate(full=True)
    text.validate(full=True)
    # WHEN they are read THEN their items are there
    assert integers(column.slice(1), MISSING).tolist() == [8, 9]
    assert texts(text.slice(1)) == ["bb", "c"]


@pytest.mark.parametrize("encode", [False, True])
def test_texts_are_told_by_a_pattern(encode: bool) -> None:
    column = pa.array(["x", "RANK=1", None, "rank=2", "TOKEN=3"]).slice(1)
    column = column.dictionary_encode() if encode else column
    assert matching(column, "^RANK=[0-9]$").tolist() == [True, False, False, False]
    folded = matching(column, "^RANK=[0-9]$", ignore_case=True)
    assert folded.tolist() == [True, False, True, False]
    assert matching(pa.nulls(1), "x").tolist() == [False]
    with pytest.raises(ReadError, match="not text"):
        matching(pa.array([1]), "1")


def test_no_rows_are_no_rows() -> None:
    assert integers(pa.array([], pa.int64()), MISSING).tolist() == []
    assert texts(pa.array([], pa.string())) == []
