"""Which experts a rank holds: global ids where something tells them, a note where nothing does."""

import pyarrow as pa
import pytest

from rl_insight.analysis.expert_load import StructureOptions, structured
from rl_insight.problems import Problem, Problems
from tests import expert_ops
from tests.expert_ops import cached, table

FOUR = [[(3, 1, 4, 1)], [(5, 9, 2, 6)]]
TWO = [[(3, 1)], [(5, 9)]]


def run(load: pa.Table, ep_size: int | None = None) -> tuple[pa.Table, pa.Table, Problems]:
    return structured(load, StructureOptions(ep_size=ep_size))


def note(notes: Problems, code: str) -> Problem:
    return next(problem for problem in notes if problem.code == code)


def about_experts(notes: Problems) -> set[str]:
    return {problem.code for problem in notes if problem.code.startswith(("ep_", "expert_"))}


def ids(load: pa.Table) -> set[tuple[object, ...]]:
    names = ("rank_id", "ep_rank", "ep_size", "expert_offset")
    return set(zip(*(load[name].to_pylist() for name in names), strict=True))


def ranks(*numbers: int | None, **more: object) -> pa.Table:
    ops = expert_ops.training(FOUR)
    return table(*(cached(ops, rank=rank, **more) for rank in numbers))


def overall(balance: pa.Table) -> list[dict[str, object]]:
    """The rows over all ranks."""
    rows: list[dict[str, object]] = balance.to_pylist()
    return [row for row in rows if row["rank_id"] is None and row["micro_batch"] is None]


def test_the_option_numbers_the_experts_of_all_ranks() -> None:
    found, balance, notes = run(ranks(0, 1, 2, 5), ep_size=2)
    assert ids(found) == {(0, 0, 2, 0), (1, 1, 2, 4), (2, 0, 2, 0), (5, 1, 2, 4)}
    assert not about_experts(notes)
    # Layer 0 got 8, 10, 6 and 7 tokens in its two micro-batches, on two ranks per half.
    (row,) = overall(balance)
    assert (row["ranks"], row["experts"], row["total"]) == (4, 8, 4 * 31)
    assert (row["max"], row["argmax"]) == (20, 1)


def test_the_expert_with_the_most_tokens_has_its_global_id() -> None:
    _, balance, _ = run(ranks(1), ep_size=2)
    rows = balance.to_pylist()
    assert [row["argmax"] for row in rows[:2]] == [4 + 2, 4 + 1]


def test_what_the_dump_says_stays_and_a_contradiction_is_noted() -> None:
    load = ranks(0, 1, ep_rank=3, ep_size=4)
    found, _, notes = run(load, ep_size=2)
    assert ids(found) == {(0, 3, 4, 12), (1, 3, 4, 12)}
    assert note(notes, "ep_size_disagrees").example == (
        "actor_update rank 0 step 1: the dump says 4, heatmap.parser.ep_size says 2; "
        "the dump's was taken"
    )
    found, _, notes = run(ranks(0, ep_rank=1, ep_size=2, expert_offset=7))
    assert ids(found) == {(0, 1, 2, 7)}
    assert not about_experts(notes)


@pytest.mark.parametrize(
    ("seen", "ep_size", "doubtful"),
    [
        ((0, 1, 2, 3), 3, True),
        ((0, 1, 2, 3), 8, True),
        ((0, 1, 2, 3), 2, False),
        ((0, 1, 2, 3), 1, False),
        # Not all ranks were recorded: their number is not known.
        ((0, 1, 2, 5), 3, False),
        ((0,), 4, False),
    ],
)
def test_a_size_that_does_not_divide_the_ranks_is_doubted(
    seen: tuple[int, ...], ep_size: int, doubtful: bool
) -> None:
    _, _, notes = run(ranks(*seen), ep_size=ep_size)
    assert ("ep_size_doubtful" in notes) == doubtful
    if doubtful:
        assert note(notes, "ep_size_doubtful").example == (
            f"actor_update: ranks 0 to 3 are no whole number of groups of "
            f"heatmap.parser.ep_size={ep_size}; its experts may be numbered wrongly"
        )


def test_a_rank_that_is_not_known_has_no_global_experts() -> None:
    found, balance, notes = run(ranks(0, None), ep_size=2)
    assert ids(found) == {(0, 0, 2, 0), (None, None, 2, None)}
    assert "ep_rank_unknown" in notes
    assert "expert_ids_local" in notes
    assert not overall(balance)


def test_without_any_sign_all_ranks_hold_all_experts() -> None:
    found, balance, notes = run(ranks(0, 1))
    assert ids(found) == {(0, None, None, None), (1, None, None, None)}
    assert not about_experts(notes)
    (row,) = overall(balance)
    assert (row["experts"], row["total"], row["max"], row["argmax"]) == (4, 62, 20, 1)


# Four experts on two ranks, 12 tokens in each layer and micro-batch: 7 and 5, 4 and 8, 9 and 3.
HALVES = (
    [[(3, 4), (1, 3), (5, 4)], [(6, 0), (2, 2), (7, 0)]],
    [[(1, 4), (6, 2), (2, 1)], [(3, 3), (4, 4), (5, 0)]],
)


@pytest.mark.parametrize(("calls", "batches"), [("training", 2), ("inference", 1)])
def test_layers_of_different_totals_are_those_of_a_part_of_the_experts(
    calls: str, batches: int
) -> None:
    made = [getattr(expert_ops, calls)(half[:batches]) for half in HALVES]
    load = table(*(cached(ops, rank=rank) for rank, ops in enumerate(made)))
    found, balance, notes = run(load)
    assert ids(found) == {(0, None, None, None), (1, None, None, None)}
    assert not overall(balance)
    said = note(notes, "expert_ids_local").example
    assert said is not None
    assert "in one micro-batch layer 1 has 4 tokens and layer 2 has 9" in said
    # In front, where a limit to the sentence's length does not cut it.
    assert said.split(": ")[1].startswith("heatmap.parser.ep_size is not set")

    _, balance, notes = run(load, ep_size=2)
    assert not about_experts(notes)
    assert [(row["experts"], row["total"]) for row in overall(balance)] == [(4, 12 * batches)] * 3


def test_who_says_that_every_rank_holds_all_experts_is_believed() -> None:
    load = table(
        *(cached(expert_ops.training(half), rank=rank) for rank, half in enumerate(HALVES))
    )
    _, balance, notes = run(load, ep_size=1)
    assert not about_experts(notes)
    assert [row["experts"] for row in overall(balance)] == [2, 2, 2]


def test_one_damaged_list_is_no_sign_of_expert_parallelism() -> None:
    even = [[(5, 7), (6, 6), (2, 10)], [(1, 11), (9, 3), (4, 8)], [(12, 0), (7, 5), (3, 9)]]
    damaged = [[*layers] for layers in even]
    damaged[1][2] = (4, 9)
    load = table(
        cached(expert_ops.training(even), rank=0), cached(expert_ops.training(damaged), rank=1)
    )
    _, balance, notes = run(load)
    assert not about_experts(notes)
    assert [row["ranks"] for row in overall(balance)] == [2, 2, 2]


def test_lists_of_different_lengths_are_not_about_the_same_experts() -> None:
    load = table(
        cached(expert_ops.training(FOUR), rank=0), cached(expert_ops.training(TWO), rank=1)
    )
    found, balance, notes = run(load)
    assert not overall(balance)
    said = note(notes, "expert_ids_local").example
    assert said is not None and "the lists have 2, 4 experts" in said
    assert "expert_count_changes" not in notes
    found, balance, notes = run(load, ep_size=2)
    assert ids(found) == {(0, 0, 2, None), (1, 1, 2, None)}
    assert "expert_count_differs" in notes
    assert not overall(balance)


def test_mindspeed_counts_the_experts_of_each_rank() -> None:
    _, balance, notes = run(ranks(0, 1, api="MindSpeed.npu_gmm", load_kind="counts"))
    assert "expert_ids_local" in notes
    assert not overall(balance)
    _, balance, notes = run(ranks(0, api="MindSpeed.npu_gmm", load_kind="counts"))
    assert "expert_ids_local" not in notes
    assert overall(balance)


def test_files_of_one_rank_with_other_numbers_of_experts_are_noted() -> None:
    ops = expert_ops.training([[(3, 1, 4), (5, 9)]])
    found, _, notes = run(table(cached(ops)))
    assert set(found["layer"].to_pylist()) == {0, 1}
    assert note(notes, "expert_count_changes").example == (
        "actor_update rank 0 step 1: 3 experts in call 2, 2 in call 3"
    )


def test_experts_of_ranks_that_were_not_recorded_are_not_counted() -> None:
    _, balance, notes = run(ranks(0, 3), ep_size=4)
    (row,) = overall(balance)
    # Experts 0 to 3 and 12 to 15.
    assert (row["ranks"], row["experts"], row["argmax"]) == (2, 8, 1)
    assert row["dead_share"] == 0
    assert not about_experts(notes)


def test_ids_that_lie_far_apart_cost_no_memory() -> None:
    # A metadata file may claim any place: a vector from the first to the last id has 2**53 bytes.
    ops = expert_ops.training(FOUR)
    load = table(
        *(
            cached(ops, rank=rank, ep_rank=rank, ep_size=9, expert_offset=offset)
            for rank, offset in enumerate((2**50, 2, 0, 2**50))
        )
    )
    _, balance, _ = run(load)
    # Layer 0 got 3 1 4 1 and 5 9 2 6, 8 10 6 7 in all; by id, of the ranks 2 and 1:
    #   8 10 6+8 7+10 6 7, and twice 8 10 6 7 far away.
    (row,) = overall(balance)
    assert (row["ranks"], row["experts"], row["total"]) == (4, 10, 4 * 31)
    assert (row["max"], row["argmax"]) == (20, 2**50 + 1)


def test_lists_that_lie_inside_others_are_added_up_in_their_places() -> None:
    # Experts 0 to 3, 1, and 3 to 4: one row of five without a gap.
    load = table(
        *(
            cached(expert_ops.training([[loads]]), rank=rank, expert_offset=offset)
            for rank, (offset, loads) in enumerate(((0, (1, 2, 3, 4)), (1, (50,)), (3, (6, 700))))
        )
    )
    (row,) = overall(run(load)[1])
    assert (row["experts"], row["total"]) == (5, 766)
    assert (row["max"], row["argmax"], row["dead_share"]) == (700, 4, 0)
