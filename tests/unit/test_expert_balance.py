"""The measures of balance against hand-made numbers and plain slow ones."""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_insight.analysis.expert_load import StructureOptions, structured
from rl_insight.schema import EXPERT_BALANCE
from tests import expert_ops
from tests.expert_ops import Op, Vector, cached, table


def balance(*rows: list, options: StructureOptions | None = None) -> list[dict]:  # type: ignore[type-arg]
    _, found, _ = structured(table(*rows), options or StructureOptions())
    assert found.schema.equals(EXPERT_BALANCE)
    return list(found.to_pylist())


def one(load: Vector) -> dict[str, float | None]:
    """The measures of one vector, from a call without a layer."""
    rows = cached([Op(0, load, 0, 0, "forward", 0)], load_kind="counts", load_kind_from="format")
    (row,) = balance(rows)
    return row


def test_by_hand() -> None:
    # mean 4, deviations 4, 0, -2, -2: variance 6. Ascending 2 2 4 8: (-3*2 - 2 + 4 + 3*8) / 64.
    row = one((8, 4, 2, 2))
    assert (row["total"], row["mean"], row["max"], row["argmax"]) == (16, 4.0, 8, 0)
    assert row["max_over_mean"] == 2.0
    assert row["max_vio"] == 1.0
    assert row["cv"] == pytest.approx(math.sqrt(6) / 4)
    assert row["gini"] == pytest.approx(20 / 64)
    assert row["dead_share"] == 0
    # Shares 1/2, 1/4, 1/8, 1/8: 1.75 bits of 2.
    assert row["entropy"] == pytest.approx(1.75 / 2)


def test_all_equal_and_one_has_all() -> None:
    row = one((5, 5, 5, 5))
    assert (row["max_vio"], row["cv"], row["gini"], row["dead_share"]) == (0, 0, 0, 0)
    assert row["entropy"] == pytest.approx(1)
    row = one((0, 0, 12, 0))
    assert (row["max_over_mean"], row["max_vio"], row["argmax"]) == (4, 3, 2)
    assert (row["gini"], row["dead_share"], row["entropy"]) == (0.75, 0.75, 0)


def test_no_tokens_and_one_expert_have_no_ratios_that_mean_nothing() -> None:
    row = one((0, 0, 0))
    assert (row["total"], row["mean"], row["max"], row["dead_share"]) == (0, 0, 0, 1)
    nothing = ("argmax", "max_over_mean", "max_vio", "cv", "gini", "entropy")
    assert [row[name] for name in nothing] == [None] * 6
    row = one((7,))
    assert (row["max_over_mean"], row["gini"], row["cv"], row["entropy"]) == (1, 0, 0, None)


def plain(load: Vector) -> dict[str, float]:
    """The definitions, word for word, with exact fractions where there are no roots or logs."""
    count, total = len(load), sum(load)
    mean = Fraction(total, count)
    apart = sum(abs(one - other) for one in load for other in load)
    shares = [one / total for one in load if one]
    return {
        "max_over_mean": float(max(load) / mean),
        "max_vio": float((max(load) - mean) / mean),
        "cv": statistics.pstdev(load) / float(mean),
        "gini": float(Fraction(apart) / (2 * count * count * mean)),
        "dead_share": load.count(0) / count,
        "entropy": -sum(share * math.log(share) for share in shares) / math.log(count),
    }


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 3) | st.integers(0, 10**6), min_size=2, max_size=40)
    .map(tuple)
    .filter(any)
)
def test_against_the_definitions(load: Vector) -> None:
    row = one(load)
    assert (row["experts"], row["total"], row["max"]) == (len(load), sum(load), max(load))
    assert row["argmax"] == load.index(max(load))
    for name, expected in plain(load).items():
        assert row[name] == pytest.approx(expected, rel=1e-9, abs=1e-12), name


def test_one_row_per_micro_batch_and_layer_and_one_per_layer_over_all() -> None:
    loads = [[(1, 2, 9), (4, 4, 4)], [(6, 0, 1), (2, 3, 2)]]
    other = [[(7, 0, 0), (0, 1, 6)], [(0, 8, 0), (1, 1, 6)]]
    for recompute in (False, True):
        rows = balance(
            cached(expert_ops.training(loads, 3, recompute), rank=0),
            cached(expert_ops.training(other, 3, recompute), rank=1),
        )
        per_rank = {
            (row["rank_id"], row["micro_batch"], row["layer"]): row["total"]
            for row in rows
            if row["rank_id"] is not None
        }
        assert per_rank == {
            (rank, batch, layer): sum(given[batch][layer])
            for rank, given in enumerate((loads, other))
            for batch in range(2)
            for layer in range(2)
        }
        overall = [row for row in rows if row["rank_id"] is None]
        assert [(row["layer"], row["ranks"], row["total"]) for row in overall] == [
            (0, 2, 34),
            (1, 2, 34),
        ]
        # 1+6+7+0, 2+0+0+8, 9+1+0+0 and 4+2+0+1, 4+3+1+1, 4+2+6+6
        assert [(row["max"], row["argmax"]) for row in overall] == [(14, 0), (18, 2)]
        assert len(rows) == 8 + 2


def test_the_way_back_stands_in_for_a_forward_pass_that_is_lost() -> None:
    ops = expert_ops.training(
        [[(1, 2, 9), (4, 4, 1), (3, 3, 5)], [(6, 0, 1), (2, 3, 5), (8, 1, 1)]]
    )
    kept = [op for op in ops if not (op.layer == 1 and op.phase == "forward")]
    rows = [row for row in balance(cached(kept)) if row["micro_batch"] is not None]
    assert [row["total"] for row in rows] == [12, 9, 11, 7, 10, 10]


def test_calls_without_a_layer_stand_for_themselves() -> None:
    ops = expert_ops.training([[(1, 2, 9), (4, 4, 0)]], per_layer=2)
    rows = balance(cached(ops))
    assert [row["op_index"] for row in rows] == list(range(12))
    assert {row["layer"] for row in rows} == {None}


def test_passes_of_an_engine_are_added_up_and_stay_untouched() -> None:
    row = {
        "source_id": "s",
        "role": "agent_loop_rollout",
        "rank_id": 0,
        "phase": "forward",
        "load_kind": "counts",
        "load_kind_from": "format",
    }
    loads = {(0, 0): [1, 2, 3], (0, 1): [4, 4, 4], (1, 0): [5, 0, 0], (1, 1): [0, 0, 1]}
    rows = [
        {**row, "op_index": number, "pass_index": number, "layer": layer, "load": load}
        for (number, layer), load in loads.items()
    ]
    given = table(rows)
    for wish in ("auto", "cumsum"):
        options = StructureOptions(group_list_type=wish, ep_size=2)  # type: ignore[arg-type]
        found, measures, notes = structured(given, options)
        assert found.to_pylist() == given.to_pylist()
        assert not list(notes)
        each = [(line["rank_id"], line["layer"], line["total"]) for line in measures.to_pylist()]
        assert each == [(0, 0, 11), (0, 1, 13), (None, 0, 11), (None, 1, 13)]


def test_passes_summed_over_all_ranks_are_one_row_per_layer() -> None:
    rows = [
        {"source_id": "s", "op_index": at, "pass_index": at, "layer": layer, "load": load}
        for at, layer, load in ((0, 0, [1, 2]), (0, 1, [3, 3]), (1, 0, [4, 0]), (1, 1, [0, 1]))
    ]
    lines = balance([{**row, "load_kind": "counts", "load_kind_from": "format"} for row in rows])
    assert [(line["role"], line["rank_id"], line["layer"], line["total"]) for line in lines] == [
        (None, None, 0, 7),
        (None, None, 1, 7),
    ]


def test_numbers_that_are_no_tokens_are_left_out_and_told() -> None:
    ops = [Op(0, (5, -1, 3), 0, 0, "", 0), Op(1, (5, 2**62, 2**62), 0, 0, "", 0)]
    ops.append(Op(2, (5, 1, 3), 0, 0, "", 0))
    found, measures, notes = structured(table(cached(ops)), StructureOptions())
    assert found["load"].to_pylist() == [list(op.load) for op in ops]
    assert measures["op_index"].to_pylist() == [2]
    said = next(problem for problem in notes if problem.code == "load_implausible")
    assert said.count == 2
    assert said.example == "actor_update rank 0 step 1 call 0: -1 tokens for an expert"


def test_a_wrapper_does_not_count_twice() -> None:
    ops = expert_ops.training([[(1, 2, 9), (4, 4, 0)], [(6, 0, 1), (2, 3, 5)]])
    inner = cached(ops, load_kind="counts")
    outer = cached(ops[:-1], api="NPU.wrapper", load_kind="counts")
    _, measures, notes = structured(table(inner, outer), StructureOptions())
    overall = [row for row in measures.to_pylist() if row["rank_id"] is None]
    assert [row["total"] for row in overall] == [12 + 7, 8 + 10]
    assert "several_apis" in {problem.code for problem in notes}


def test_a_rank_recorded_twice_is_told() -> None:
    ops = expert_ops.training([[(1, 2, 9), (4, 4, 0)]])
    _, measures, notes = structured(
        table(cached(ops), cached(ops, source_id="copy")), StructureOptions()
    )
    assert "rank_recorded_twice" in {problem.code for problem in notes}
    assert len([row for row in measures.to_pylist() if row["rank_id"] == 0]) == 4


def test_dumps_of_unknown_ranks_are_added_up_and_it_is_told() -> None:
    ops = expert_ops.training([[(1, 2, 9), (4, 4, 4)]])
    names = ("proc1", "proc2", "proc3")
    _, measures, notes = structured(
        table(*(cached(ops, rank=None, source_id=name) for name in names)), StructureOptions()
    )
    overall = [row for row in measures.to_pylist() if row["micro_batch"] is None]
    assert [(row["ranks"], row["total"]) for row in overall] == [(3, 36), (3, 36)]
    (told,) = [problem for problem in notes if problem.code == "rank_recorded_twice"]
    assert told.example == (
        "actor_update of an unknown rank step 1: 3 recordings; the balance adds them up"
    )


def test_nothing_gives_nothing() -> None:
    found, measures, notes = structured(table(), StructureOptions())
    assert (found.num_rows, measures.num_rows, len(notes)) == (0, 0, 0)


def test_many_rows_in_blocks_are_the_same_as_one_by_one() -> None:
    chance = np.random.default_rng(3)
    loads = [[tuple(chance.integers(0, 90, 7).tolist()) for _ in range(30)] for _ in range(20)]
    rows = balance(cached(expert_ops.inference(loads, 1)), options=StructureOptions("counts", 1))
    totals = [row["total"] for row in rows if row["rank_id"] == 0]
    assert totals == [sum(load) for layers in loads for load in layers]
