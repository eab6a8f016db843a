"""Micro-batch, phase and layer from the order of the calls alone."""

from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_insight.analysis.expert_load import StructureOptions, structured
from rl_insight.problems import Problem, Problems
from tests import expert_ops
from tests.expert_ops import Op, Vector, cached, labels, table, truth

A, B, C, D, E, F = (
    (3, 1, 4, 1),
    (5, 9, 2, 6),
    (5, 3, 5, 8),
    (9, 7, 9, 3),
    (2, 3, 8, 4),
    (6, 2, 6, 4),
)
IDLE = (0, 0, 0, 0)
NOTHING = (None, None, None, None)

Loads = list[list[Vector]]


def run(
    load: pa.Table, gmm_per_layer: int | Literal["auto"] = 3
) -> tuple[list[tuple[object, ...]], Problems]:
    found, _, notes = structured(load, StructureOptions(gmm_per_layer=gmm_per_layer))
    return labels(found), notes


def note(notes: Problems, code: str) -> Problem:
    return next(problem for problem in notes if problem.code == code)


def numbered(layers: int, micro_batches: int, start: int = 0) -> Loads:
    """Loads of which no two are alike."""
    return [
        [(start + 1 + batch * layers + layer, 7, 5, 3) for layer in range(layers)]
        for batch in range(micro_batches)
    ]


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("per_layer", [1, 2, 3, 4])
def test_calls_of_training_are_told_apart(per_layer: int, recompute: bool) -> None:
    ops = expert_ops.training([[A, B, C], [D, E, F]], per_layer, recompute)
    for option in (per_layer, "auto"):
        found, notes = run(table(cached(ops)), option)
        assert found == truth(ops)
        assert not list(notes)


@pytest.mark.parametrize("option", [2, "auto"])
def test_recomputation_alone_mirrors_where_the_backward_pass_is_another_operator(
    option: int | Literal["auto"],
) -> None:
    ops = expert_ops.training([[A, B, C], [D, E, F]], 2, True, gradients=0)
    found, notes = run(table(cached(ops, api="MindSpeed.npu_gmm", load_kind="counts")), option)
    assert found == truth(ops)
    assert not list(notes)


@pytest.mark.parametrize("recompute", [False, True])
def test_stack_json_tells_of_a_gradient_that_is_another_operator(recompute: bool) -> None:
    ops = expert_ops.training([[A, B, C], [D, E, F]], 3, recompute, gradients=1)
    rows = [{**row, "phase": op.phase} for row, op in zip(cached(ops), ops, strict=True)]
    found, notes = run(table(rows))
    assert found == truth(ops)
    assert not list(notes)


def test_the_order_written_out_by_hand() -> None:
    # Two layers, two matmuls each, with recomputation: 4 forward, then 2 + 4 per layer back.
    load = table(cached(expert_ops.training([[A, B]], 2, True)))
    found, _ = run(load, 2)
    assert found == (
        [(0, 0, "forward", 0)] * 2
        + [(0, 1, "forward", 0)] * 2
        + [(0, 1, "recompute", 1)] * 2
        + [(0, 1, "backward", 1)] * 4
        + [(0, 0, "recompute", 1)] * 2
        + [(0, 0, "backward", 1)] * 4
    )


def test_neighbouring_layers_with_equal_loads_stay_two_layers() -> None:
    ops = expert_ops.training([[A, A, B, C], [B, D, D, A]], 3, True)
    found, notes = run(table(cached(ops)))
    assert found == truth(ops)
    assert not list(notes)


def test_idle_layers_and_micro_batches_keep_their_place() -> None:
    ops = expert_ops.training([[A, B, C], [IDLE, IDLE, IDLE], [D, IDLE, E]])
    found, notes = run(table(cached(ops)))
    assert found == truth(ops)
    assert not list(notes)


def test_one_layer_is_recognised_in_an_update() -> None:
    ops = expert_ops.training([[A], [B], [C]], 3, True)
    assert run(table(cached(ops)))[0] == truth(ops)


def test_rows_keep_their_order_whatever_it_is() -> None:
    ops = expert_ops.training([[A, B], [C, D]])
    mixed = ops[1::2][::-1] + ops[::2]
    found, _, _ = structured(table(cached(mixed)), StructureOptions())
    assert labels(found) == truth(mixed)
    assert found["op_index"].to_pylist() == [op.at for op in mixed]


def test_missing_files_are_gaps_not_shifts() -> None:
    ops = expert_ops.training(numbered(5, 3), 3, True)
    kept = [op for op in ops if op.at % 7 != 3 and not 20 <= op.at < 29]
    found, notes = run(table(cached(kept)))
    assert found == truth(kept)
    lost = len(ops) - len(kept)
    assert note(notes, "calls_missing").example == (
        f"actor_update rank 0 step 1: {lost} of {len(ops)} grouped matmuls not recorded or not read"
    )


def test_a_dump_that_was_cut_keeps_what_is_clear() -> None:
    ops = expert_ops.training(numbered(4, 3))
    cut = ops[: 2 * 36 + 20]
    found, notes = run(table(cached(cut)))
    assert found == truth(cut)
    assert "micro_batch_cut" in notes
    assert "structure_ambiguous" not in notes


def test_a_dump_cut_on_the_first_way_back_is_read_and_doubted() -> None:
    ops = expert_ops.training(numbered(6, 1))
    cut = ops[: 18 + 6 + 6 + 2]
    found, notes = run(table(cached(cut)))
    assert found == truth(cut)
    assert {"micro_batch_cut", "structure_ambiguous"} <= {problem.code for problem in notes}


def test_a_dump_cut_before_the_way_back_is_one_forward_pass() -> None:
    cut = expert_ops.training(numbered(6, 1))[:15]
    found, notes = run(table(cached(cut)))
    assert found == truth(cut)
    assert "structure_ambiguous" in notes


def test_fused_gate_up_with_the_default_of_three_is_shown_by_call_and_told() -> None:
    ops = expert_ops.training([[A, B, C], [D, E, F]], per_layer=2)
    found, notes = run(table(cached(ops, rank=5)), 3)
    assert found == [NOTHING] * len(ops)
    said = note(notes, "structure_unknown")
    assert said.severity == "warning"
    assert said.example == (
        "actor_update rank 5 step 1: 36 calls, not in the order of 3 grouped matmuls a layer; "
        "heatmap.visualizer.gmm_per_layer=2 fits; shown by call"
    )


def test_a_number_that_splits_every_layer_is_followed_and_doubted() -> None:
    ops = expert_ops.training([[A, B, C], [D, E, F]], per_layer=3)
    found, notes = run(table(cached(ops)), 1)
    assert {layer for _, layer, _, _ in found} == set(range(9))
    said = note(notes, "gmm_per_layer_doubtful").example
    assert said is not None and "gmm_per_layer=3" in said


def test_an_order_that_no_number_explains_is_left_open() -> None:
    # Pipeline parallelism: the second micro-batch starts before the first comes back.
    def calls(load: Vector, times: int) -> list[Vector]:
        return [load] * times

    sequence = calls(A, 3) + calls(B, 3) + calls(C, 3) + calls(D, 3)
    sequence += calls(B, 6) + calls(A, 6) + calls(D, 6) + calls(C, 6)
    ops = [Op(at, load, 0, 0, "forward", 0) for at, load in enumerate(sequence)]
    for option in (3, "auto"):
        found, notes = run(table(cached(ops)), option)
        assert found == [NOTHING] * len(ops)
        assert "structure_unknown" in notes


def test_equal_loads_everywhere_are_no_certain_answer() -> None:
    ops = expert_ops.training([[A] * 4] * 3)
    found, notes = run(table(cached(ops)))
    assert {batch for batch, _, _, _ in found} == {0}
    said = note(notes, "structure_ambiguous").example
    assert said is not None and "layers: 12 are taken, the loads allow 1, 2, 3" in said


@pytest.mark.parametrize("option", [3, "auto"])
@pytest.mark.parametrize("cut", [0, 5])
def test_another_rank_tells_what_equal_loads_leave_open(
    option: int | Literal["auto"], cut: int
) -> None:
    idle = expert_ops.training([[IDLE] * 4] * 3)
    idle = idle[: len(idle) - cut]
    busy = expert_ops.training(numbered(4, 3))
    found, notes = run(table(cached(idle, rank=0), cached(busy, rank=1)), option)
    assert found == truth(idle) + truth(busy)
    assert "structure_ambiguous" not in notes


def test_ranks_may_have_different_layers() -> None:
    first = expert_ops.training(numbered(3, 2))
    second = expert_ops.training(numbered(5, 2), recompute=True)
    found, _ = run(table(cached(first, rank=0), cached(second, rank=1)))
    assert found == truth(first) + truth(second)


def test_forward_passes_have_the_layers_of_the_training() -> None:
    ops = expert_ops.training(numbered(4, 2))
    # Expert parallelism: the tokens of a rank differ from layer to layer.
    passes = expert_ops.inference(numbered(4, 3, start=50))
    for role in ("actor_compute_log_prob", "ref_compute_log_prob"):
        found, notes = run(table(cached(ops), cached(passes, role)))
        assert found == truth(ops) + truth(passes)
        assert "structure_ambiguous" not in notes


def test_a_critic_has_layers_of_its_own() -> None:
    actor = expert_ops.training(numbered(4, 2))
    critic = expert_ops.training(numbered(2, 2))
    values = expert_ops.inference(numbered(2, 6, start=90))
    found, _ = run(
        table(
            cached(actor),
            cached(critic, "critic_update"),
            cached(values, "critic_compute_values"),
        )
    )
    assert found == truth(actor) + truth(critic) + truth(values)


def test_tokens_tell_the_micro_batches_of_forward_passes() -> None:
    # Without expert parallelism each layer of a micro-batch has the same tokens: 10, then 12, 9.
    loads = [[(1, 9), (2, 8), (3, 7)], [(6, 6), (7, 5), (8, 4)], [(5, 4), (4, 5), (0, 9)]]
    passes = expert_ops.inference(loads, 2)
    found, notes = run(table(cached(passes, "actor_compute_log_prob")), 2)
    assert found == truth(passes)
    assert not list(notes)


def test_the_layers_of_the_training_part_micro_batches_with_equal_tokens() -> None:
    loads = [[(1, 9), (2, 8), (3, 7)], [(4, 6), (5, 5), (1, 9)], [(6, 6), (7, 5), (8, 4)]]
    passes = expert_ops.inference(loads, 2)
    training = expert_ops.training(numbered(3, 2), 2)
    found, notes = run(table(cached(passes, "actor_compute_log_prob"), cached(training)), 2)
    assert found == truth(passes) + truth(training)
    assert not list(notes)


def test_forward_passes_that_nothing_tells_apart_are_one_micro_batch() -> None:
    passes = expert_ops.inference(numbered(4, 1))
    found, notes = run(table(cached(passes, "actor_compute_log_prob")))
    assert found == truth(passes)
    assert note(notes, "structure_ambiguous").severity == "info"


def test_a_forward_pass_that_is_no_multiple_is_shown_by_call() -> None:
    passes = expert_ops.inference([[A]], 2)
    found, notes = run(table(cached(passes, "actor_compute_log_prob")))
    assert found == [NOTHING] * 2
    said = note(notes, "structure_unknown").example
    assert said is not None and "gmm_per_layer=2 fits" in said


def test_phases_of_stack_json_decide_between_orders() -> None:
    # All alike: 24 calls are 2 layers of recomputed training, or 8 layers forward, or …
    ops = expert_ops.training([[A, A]], 3, True)
    rows = [{**row, "phase": op.phase} for row, op in zip(cached(ops, "worker"), ops, strict=True)]
    found, notes = run(table(rows))
    assert found == truth(ops)
    assert not {"structure_ambiguous", "phase_disagrees"} & {problem.code for problem in notes}


def test_phases_that_the_order_contradicts_are_noted() -> None:
    ops = expert_ops.training([[A, B, C], [D, E, F]])
    rows = [{**row, "phase": "backward"} for row in cached(ops)]
    found, notes = run(table(rows))
    assert found == truth(ops)
    assert note(notes, "phase_disagrees").count == sum(op.phase == "forward" for op in ops)


def test_phases_stay_where_the_order_tells_nothing() -> None:
    ops = expert_ops.training([[A, B, C], [D, E, F]], per_layer=2)
    rows = [{**row, "phase": "forward"} for row in cached(ops)]
    found, _ = run(table(rows), 3)
    assert found == [(None, None, "forward", None)] * len(ops)


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ([0, 1, 1, 2], "call 1 was recorded more than once"),
        ([None, 0, 1, 2], "do not tell the numbers of the calls"),
        ([0, 1, 2, 10**15], "is said to be number 1000000000000000"),
    ],
)
def test_numbers_that_cannot_be_used_leave_the_order_open(
    numbers: list[int | None], reason: str
) -> None:
    ops = expert_ops.inference([[A], [B]], 2)
    rows = [{**row, "op_index": at} for row, at in zip(cached(ops), numbers, strict=True)]
    found, notes = run(table(rows))
    assert found == [NOTHING] * 4
    said = note(notes, "structure_unknown").example
    assert said is not None and reason in said


def test_a_counter_that_did_not_start_at_zero() -> None:
    ops = expert_ops.training([[A, B, C], [D, E, F]])
    rows = [{**row, "op_index": op.at + 1000} for row, op in zip(cached(ops), ops, strict=True)]
    found, notes = run(table(rows))
    assert found == truth(ops)
    assert "calls_missing" not in notes


@st.composite
def recordings(draw: st.DrawFn) -> tuple[list[Op], int]:
    """Training of any shape, whose loads are often alike."""
    layers, micro_batches = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    per_layer = draw(st.integers(1, 4))
    variety = draw(st.integers(1, 40))
    loads = [
        [(draw(st.integers(0, variety)), 5, 2, 1) for _ in range(layers)]
        for _ in range(micro_batches)
    ]
    ops = expert_ops.training(loads, per_layer, draw(st.booleans()))
    return ops, per_layer


DOUBTS = {"structure_ambiguous", "structure_unknown"}


@settings(max_examples=80, deadline=None)
@given(recordings())
def test_what_is_certain_is_true(made: tuple[list[Op], int]) -> None:
    ops, per_layer = made
    found, notes = run(table(cached(ops)), per_layer)
    assert found == truth(ops) or "structure_ambiguous" in notes


@settings(max_examples=80, deadline=None)
@given(
    layers=st.integers(1, 5),
    micro_batches=st.integers(1, 4),
    per_layer=st.integers(1, 4),
    recompute=st.booleans(),
    alike=st.integers(0, 30),
    data=st.data(),
)
def test_what_is_certain_is_true_of_what_is_left(
    layers: int,
    micro_batches: int,
    per_layer: int,
    recompute: bool,
    alike: int,
    data: st.DataObject,
) -> None:
    loads = numbered(layers, micro_batches)
    batch, layer = divmod(alike, layers)
    if batch < micro_batches and layer:
        loads[batch][layer] = loads[batch][layer - 1]
    ops = expert_ops.training(loads, per_layer, recompute)
    lost = data.draw(st.sets(st.integers(0, len(ops) - 2), max_size=len(ops) // 4))
    end = data.draw(st.integers(len(ops) // 2, len(ops)))
    kept = [op for op in ops[:end] if op.at not in lost]
    if kept:
        found, notes = run(table(cached(kept)), per_layer)
        assert found == truth(kept) or DOUBTS & {problem.code for problem in notes}


@settings(max_examples=60, deadline=None)
@given(
    layers=st.integers(3, 6),
    micro_batches=st.integers(1, 4),
    per_layer=st.integers(1, 6),
    recompute=st.booleans(),
    auto=st.booleans(),
    lost=st.sets(st.integers(1, 40), max_size=3),
)
def test_loads_that_differ_leave_no_doubt(
    layers: int,
    micro_batches: int,
    per_layer: int,
    recompute: bool,
    auto: bool,
    lost: set[int],
) -> None:
    ops = expert_ops.training(numbered(layers, micro_batches), per_layer, recompute)
    # The last call tells where the end is, and of each layer's calls some are there.
    missing = {at for at in lost if at % per_layer == 1 and at < len(ops) - 1}
    ops = [op for op in ops if op.at not in missing]
    found, notes = run(table(cached(ops)), "auto" if auto else per_layer)
    assert found == truth(ops)
    assert not DOUBTS & {problem.code for problem in notes}
