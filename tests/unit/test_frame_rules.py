"""The documented DataFrames have their columns, and rows that make sense."""

import pandas as pd
import pytest

from rl_insight.data import DataChecker, DataEnum, DataValidationError
from rl_insight.data.rules import ParserOutputValidatorRule

EVENTS = {
    "role": ["actor_update"] * 2,
    "name": ["actor_update"] * 2,
    "rank_id": [0, 1],
    "start_time_ms": [1.0, 2.0],
    "end_time_ms": [4.0, 2.0],
}
LOADS = {
    "role": ["actor_update"],
    "rank_id": [0],
    "step": [1],
    "stage": [0],
    "expert_index": [3],
    "load": [120],
}
ALLOCATIONS = {
    "name": ["aten::empty", "aten::empty"],
    "size_kb": [0.5, -0.5],
    "start_time_ms": [1.0, 2.0],
    "duration_ms": [0.0, 0.0],
    "total_allocated_mb": [10.5, 10.0],
}
GOOD = {
    DataEnum.SUMMARY_EVENT: EVENTS,
    DataEnum.GMM_SUMMARY: LOADS,
    DataEnum.MEMORY_SUMMARY: ALLOCATIONS,
}


def errors(kind: str, data: object) -> list[str]:
    with pytest.raises(DataValidationError, match="Data validation failed") as caught:
        DataChecker(kind, data).run()
    return caught.value.errors


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_frame_passes_and_may_have_more_columns(kind: DataEnum) -> None:
    frame = pd.DataFrame(GOOD[kind])
    assert DataChecker(kind, frame).run() == []
    assert DataChecker(kind, frame.assign(more=1)).run() == []


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("data", [None, {}, {"k": "v"}, [], "text", 3])
def test_what_is_no_frame_is_told_by_its_type(kind: DataEnum, data: object) -> None:
    assert errors(kind, data) == [
        f"the data is not a pandas DataFrame, but a {type(data).__name__}"
    ]


@pytest.mark.parametrize(("kind", "column"), [(kind, name) for kind in GOOD for name in GOOD[kind]])
def test_each_column_that_is_missing_is_named(kind: DataEnum, column: str) -> None:
    frame = pd.DataFrame(GOOD[kind]).drop(columns=column)
    assert errors(kind, frame) == [f"Required column missing: {column}"]


@pytest.mark.parametrize("kind", GOOD)
def test_an_empty_frame_is_an_error(kind: DataEnum) -> None:
    (text,) = errors(kind, pd.DataFrame(GOOD[kind]).head(0))
    assert "empty" in text


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("summary_event", "start_time_ms"),
        ("summary_event", "end_time_ms"),
        ("gmm_summary", "load"),
        ("gmm_summary", "expert_index"),
        ("memory_summary", "size_kb"),
        ("memory_summary", "total_allocated_mb"),
    ],
)
def test_columns_of_numbers_hold_numbers(kind: str, column: str) -> None:
    good = pd.DataFrame(GOOD[DataEnum(kind)])
    assert errors(kind, good.assign(**{column: "x"})) == [
        f"the column {column} does not hold numbers"
    ]
    assert errors(kind, good.assign(**{column: float("nan")})) == [
        f"the column {column} has no number in {len(good)} rows"
    ]


def test_stages_end_behind_their_start() -> None:
    frame = pd.DataFrame(EVENTS).assign(end_time_ms=[4.0, 1.5])
    assert errors("summary_event", frame) == ["1 rows end before they start"]


def test_allocations_have_names_and_allocate_something() -> None:
    frame = pd.DataFrame(ALLOCATIONS)
    assert errors("memory_summary", frame.assign(name=["a", " "])) == ["1 rows have no name"]
    assert errors("memory_summary", frame.assign(name=["a", None])) == ["1 rows have no name"]
    (text,) = errors("memory_summary", frame.assign(size_kb=[0.0, -1.0]))
    assert "no size is above 0" in text


def test_the_rule_takes_columns_of_your_own() -> None:
    rule = ParserOutputValidatorRule(domains=["a", "b"])
    assert rule.check(pd.DataFrame({"a": ["x"], "b": [1]})) is True
    assert rule.check(pd.DataFrame({"a": ["x"]})) is False
    assert rule.error_message == "Required column missing: b"
