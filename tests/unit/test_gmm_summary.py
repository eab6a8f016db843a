"""The documented frame of expert load: one row per expert of every call."""

import pytest

from rl_insight import tables
from rl_insight.data import gmm_summary
from rl_insight.schema import EXPERT_LOAD


def test_one_row_per_expert_sorted_as_documented() -> None:
    pytest.importorskip("pandas")
    rows = [
        {"step": 2, "role": "actor_update", "rank_id": 0, "op_index": 0, "load": [5]},
        {"step": 1, "role": "actor_update", "rank_id": 1, "op_index": 10, "load": [7, 8]},
        {"step": 1, "role": "actor_update", "rank_id": 1, "op_index": 9, "load": [3, 0, 4]},
        {"step": 1, "role": "actor_update", "rank_id": None, "op_index": None, "load": [1]},
        {"step": 1, "role": "actor_update", "rank_id": 1, "op_index": 8, "load": []},
    ]
    frame = gmm_summary(tables.from_rows(EXPERT_LOAD, rows))
    assert list(frame.columns) == ["role", "rank_id", "step", "stage", "expert_index", "load"]
    assert frame.to_numpy().tolist() == [
        ["actor_update", -1, 1, -1, 0, 1],
        ["actor_update", 1, 1, 9, 0, 3],
        ["actor_update", 1, 1, 9, 1, 0],
        ["actor_update", 1, 1, 9, 2, 4],
        ["actor_update", 1, 1, 10, 0, 7],
        ["actor_update", 1, 1, 10, 1, 8],
        ["actor_update", 0, 2, 0, 0, 5],
    ]


def test_no_loads_give_an_empty_frame() -> None:
    pytest.importorskip("pandas")
    assert gmm_summary(tables.empty(EXPERT_LOAD)).empty
