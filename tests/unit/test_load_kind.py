"""Counts, cumulative sums or pairs: what says so, what cannot be true, and what it comes to."""

import random
from dataclasses import replace
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_insight.analysis.expert_load import StructureOptions, structured
from rl_insight.problems import Problem, Problems
from tests import expert_ops
from tests.expert_ops import Op, Vector, cached, cumsum, pairs, table

Kind = Literal["auto", "counts", "cumsum", "pairs"]


def calls(*loads: Vector) -> list[Op]:
    return [Op(at, load, 0, 0, "forward", 0) for at, load in enumerate(loads)]


def run(load: pa.Table, wish: Kind = "auto") -> tuple[list[list[int]], list[str], Problems]:
    """Tokens per expert, «kind from source» of each row, and the notes."""
    found, _, notes = structured(load, StructureOptions(group_list_type=wish))
    kinds = zip(found["load_kind"].to_pylist(), found["load_kind_from"].to_pylist(), strict=True)
    return found["load"].to_pylist(), [f"{kind} {origin}" for kind, origin in kinds], notes


def note(notes: Problems, code: str) -> Problem:
    return next(problem for problem in notes if problem.code == code)


def uneven(count: int, experts: int, seed: int = 1) -> list[Vector]:
    chance = random.Random(seed)
    return [tuple(chance.randrange(100) for _ in range(experts)) for _ in range(count)]


def dumped(ops: list[Op], kind: str, origin: str = "dump.json", **more: object) -> pa.Table:
    return table(cached(ops, load_kind=kind, load_kind_from=origin, **more))  # type: ignore[arg-type]


def test_a_sum_keeps_its_first_group() -> None:  # [68]
    for origin, load in (
        ("dump.json", dumped(calls((10, 25, 30)), "cumsum")),
        ("format", dumped(calls((10, 25, 30)), "cumsum", "format")),
    ):
        assert run(load)[:2] == ([[10, 15, 5]], [f"cumsum {origin}"])
    load = table(cached(calls((10, 25, 30))))
    assert run(load, "cumsum")[:2] == ([[10, 15, 5]], ["cumsum config"])


def test_numbers_that_never_fall_are_sums() -> None:
    loads = uneven(6, 16)
    found, kinds, notes = run(table(cached(calls(*map(cumsum, loads)))))
    assert found == [list(load) for load in loads]
    assert set(kinds) == {"cumsum auto"}
    assert "load_kind_assumed" not in notes


def test_sums_are_recognised_where_each_layer_has_other_tokens() -> None:
    # Expert parallelism: the last sum of a rank differs from layer to layer.
    loads = [(1, 2, 3, 4), (9, 0, 2, 2), (5, 5, 1, 7), (2, 8, 8, 1), (3, 1, 4, 1), (7, 2, 9, 6)]
    assert len({sum(load) for load in loads}) > 3
    found, kinds, _ = run(table(cached(calls(*map(cumsum, loads)))))
    assert found == [list(load) for load in loads]
    assert set(kinds) == {"cumsum auto"}


def test_one_vector_that_falls_makes_all_of_them_counts() -> None:
    loads = [*map(cumsum, uneven(6, 16)), (120, 48, 96)]
    found, kinds, _ = run(table(cached(calls(*loads))))
    assert found == [list(load) for load in loads]
    assert set(kinds) == {"counts auto"}


@pytest.mark.parametrize(
    ("loads", "doubt", "severity"),
    [
        ([(7,), (9,)], "one expert", "info"),
        ([(0, 0, 0, 0, 0)] * 3, "no tokens at all", "info"),
        ([(8, 8, 8, 8)] * 3, "all experts alike", "warning"),
        ([(1, 2, 3), (2, 5, 9), (3, 4, 8)], "fewer than 4 experts", "warning"),
        ([(1, 2, 3, 4)] * 9, "too few different lists", "warning"),
    ],
)
def test_numbers_that_do_not_tell_are_counts_and_it_is_said(
    loads: list[Vector], doubt: str, severity: str
) -> None:
    # [69]
    found, kinds, notes = run(table(cached(calls(*loads), rank=3)))
    assert found == [list(load) for load in loads]
    assert set(kinds) == {"counts assumed"}
    said = note(notes, "load_kind_assumed")
    assert (said.severity, said.count) == (severity, len(loads))
    assert said.example is not None
    assert f"actor_update rank 3 step 1: the numbers do not tell counts from sums ({doubt})" in (
        said.example
    )


def test_other_ranks_of_the_role_tell_what_one_leaves_open() -> None:
    sums = cached(calls(*map(cumsum, uneven(4, 8))), rank=0)
    open_one = cached(calls((6,) * 8), rank=1)
    elsewhere = cached(calls((6,) * 8), "ref_compute_log_prob", rank=1)
    found, kinds, _ = run(table(sums, open_one, elsewhere))
    assert (found[4], kinds[4]) == ([6, 0, 0, 0, 0, 0, 0, 0], "cumsum auto")
    assert (found[5], kinds[5]) == ([6] * 8, "counts assumed")


def test_each_role_is_decided_for_itself() -> None:  # [69]
    loads = uneven(5, 8)
    rollout = cached(calls(*map(cumsum, loads)), "rollout_generate")
    training = cached(calls(*loads), "actor_update")
    found, kinds, _ = run(table(rollout, training))
    assert found == [list(load) for load in loads] * 2
    assert kinds == ["cumsum auto"] * 5 + ["counts auto"] * 5


def test_the_user_wins_over_the_dump_and_it_is_noted() -> None:
    load = dumped(calls((10, 25, 30), (3, 4, 9)), "cumsum", rank=2)
    found, kinds, notes = run(load, "counts")
    assert (found, kinds) == ([[10, 25, 30], [3, 4, 9]], ["counts config"] * 2)
    assert note(notes, "load_kind_disagrees") == Problem(
        "load_kind_disagrees",
        "warning",
        2,
        None,
        "actor_update rank 2 step 1 call 0: the dump says cumsum, group_list_type says counts, "
        "which was taken",
    )
    assert "load_kind_disagrees" not in run(load, "cumsum")[2]


@pytest.mark.parametrize("wish", ["auto", "cumsum"])
def test_one_damaged_list_does_not_make_counts_of_sums(wish: Kind) -> None:
    ops = expert_ops.inference([uneven(4, 8)], per_layer=3)
    rows = cached([replace(op, load=cumsum(op.load)) for op in ops], role="actor_compute_log_prob")
    broken = [*cumsum(ops[4].load)]
    broken[5] = broken[4] - 1
    rows[4] = {**rows[4], "load": broken}

    found, kinds, notes = run(table(rows), wish)

    assert found == [list(op.load) for op in ops if op.at != 4]
    assert kinds == [f"cumsum {'auto' if wish == 'auto' else 'config'}"] * 11
    assert note(notes, "sums_damaged").example == (
        "actor_compute_log_prob rank 0 step 1 call 4: its values fall, and the other 11 lists are "
        "cumulative sums; left out"
    )
    # The others are found in their places.
    result, _, _ = structured(table(rows), StructureOptions(group_list_type=wish))
    assert result["layer"].to_pylist() == [op.layer for op in ops if op.at != 4]


@pytest.mark.parametrize(
    ("sums", "counts", "told"),
    # Too many that fall; too few experts to be sure; what the dump says; what the user says.
    [(8, 1, None), (9, 1, None), (20, 1, "counts"), (20, 1, "wish")],
)
def test_lists_that_fall_are_counts_unless_the_others_are_sums_beyond_doubt(
    sums: int, counts: int, told: str | None
) -> None:
    experts = 4 if sums == 9 else 8
    rising = [cumsum(load) for load in uneven(sums, experts)]
    if sums == 9:
        rising = rising[:1] * sums
    ops = calls(*rising, *[(9, *range(1, experts))] * counts)
    load = table(cached(ops)) if told in (None, "wish") else dumped(ops, told)
    found, kinds, notes = run(load, "counts" if told == "wish" else "auto")
    assert found == [list(op.load) for op in ops]
    assert {kind.split()[0] for kind in kinds} == {"counts"}
    assert "sums_damaged" not in notes


def test_what_the_user_says_gives_way_where_it_cannot_be_true() -> None:
    falling = calls((10, 25, 30), (9, 4, 2))
    found, kinds, notes = run(dumped(falling, "counts"), "cumsum")
    assert (found, kinds) == ([[10, 25, 30], [9, 4, 2]], ["counts dump.json"] * 2)
    said = note(notes, "load_kind_impossible")
    assert said.count == 1
    assert said.example == "actor_update rank 0 step 1 call 1 cannot be cumsum: its values fall"
    assert run(table(cached(falling)), "cumsum")[1] == ["counts auto"] * 2
    assert run(table(cached(falling)), "pairs")[1] == ["counts auto"] * 2
    for wish in ("counts", "cumsum"):
        _, kinds, notes = run(dumped(calls((0, 5, 1, 6)), "pairs", "format"), wish)
        assert kinds == ["pairs format"]
        assert "load_kind_impossible" in notes


def test_a_dump_that_cannot_be_true_is_put_aside() -> None:
    found, kinds, notes = run(dumped(calls((9, 4, 2, 8)), "cumsum"))
    assert (found, kinds) == ([[9, 4, 2, 8]], ["counts auto"])
    assert "cumulative sums, but its values fall" in str(note(notes, "load_kind_impossible"))


def test_a_dump_that_tells_of_some_calls_tells_of_all() -> None:
    rows = cached(calls((1, 2), (3, 5), (2, 2)))
    rows[0] = {**rows[0], "load_kind": "cumsum", "load_kind_from": "dump.json"}
    found, kinds, _ = run(table(rows))
    assert (found, kinds) == ([[1, 1], [3, 2], [2, 0]], ["cumsum dump.json"] * 3)


def test_pairs_become_a_list_by_expert_as_long_as_the_role_needs() -> None:
    loads = [(4, 0, 7), (0, 1), (0, 0, 0, 0, 9)]
    load = dumped(calls(*map(pairs, loads)), "pairs", "format")
    found, kinds, notes = run(load)
    assert found == [[4, 0, 7, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 9]]
    assert set(kinds) == {"pairs format"}
    assert not {problem.code for problem in notes} & {"pairs_damaged", "pairs_repeated"}
    assert set(run(load, "pairs")[1]) == {"pairs config"}


def test_pairs_and_lists_may_stand_side_by_side() -> None:
    listed, paired = uneven(2, 4, seed=5), uneven(2, 4, seed=6)
    rows = cached(calls(listed[0], pairs(paired[0]), listed[1], pairs(paired[1])))
    for at in (1, 3):
        rows[at] = {**rows[at], "load_kind": "pairs", "load_kind_from": "format"}
    found, _, _ = run(table(rows))
    assert found == [list(vector) for vector in (listed[0], paired[0], listed[1], paired[1])]


def test_pairs_with_impossible_or_repeated_experts_are_noted() -> None:
    load = dumped(calls((1, 5, -3, 6, 2**40, 7, 1, 2), (0, 4)), "pairs", "format")
    found, _, notes = run(load)
    assert found == [[0, 7], [4, 0]]
    assert note(notes, "pairs_damaged").count == 2
    assert note(notes, "pairs_repeated").count == 1
    assert "there is no expert -3" in str(note(notes, "pairs_damaged"))


def test_rows_without_a_vector_stay_without_one() -> None:
    rows = cached(calls((1, 2, 3, 4), (0,), (2, 7, 9, 9)), load_kind="cumsum")
    rows[1] = {**rows[1], "load": None}
    found, _, _ = run(table(rows))
    assert found == [[1, 1, 1, 1], None, [2, 5, 2, 0]]


def test_a_table_in_slices_and_chunks_is_the_same_table() -> None:
    loads = uneven(9, 5)
    whole = table(cached(calls(*map(cumsum, loads))))
    pieces = pa.concat_tables([whole.slice(0, 4), whole.slice(4, 1), whole.slice(5)])
    assert run(pieces)[0] == [list(load) for load in loads]
    assert run(whole.slice(2, 5))[0] == [list(load) for load in loads[2:7]]


vectors = st.lists(st.integers(0, 2**40), min_size=0, max_size=12).map(tuple)


@settings(max_examples=100, deadline=None)
@given(st.lists(vectors, min_size=1, max_size=8), st.lists(st.integers(0, 2), min_size=8))
def test_all_three_kinds_give_the_same_counts(loads: list[Vector], choice: list[int]) -> None:
    forms = ((tuple, "counts"), (cumsum, "cumsum"), (pairs, "pairs"))
    rows = []
    for at, load in enumerate(loads):
        write, kind = forms[choice[at]]
        (row,) = cached(calls(write(load)), load_kind=kind, load_kind_from="dump.json")
        rows.append({**row, "op_index": at})
    found, _, _ = run(table(rows))
    paired = [load for at, load in enumerate(loads) if choice[at] == 2]
    used = max((at + 1 for load in paired for at in range(len(load)) if load[at]), default=0)
    for at, load in enumerate(loads):
        expected = list(load) if choice[at] < 2 else [*load, *[0] * used][:used]
        assert found[at] == expected
