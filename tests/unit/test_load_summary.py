"""What the closing summary says of expert load."""

from pathlib import Path

import pyarrow.parquet as pq

from rl_insight import notes, tables
from rl_insight.pipeline.load_summary import load_lines, summarise_loads
from rl_insight.problems import Problems
from rl_insight.schema import EXPERT_BALANCE
from tests import expert_tables
from tests.expert_tables import Row, balance


def said(folder: Path, rows: list[Row], doubts: Problems | None = None) -> list[str]:
    path = folder / "tables" / "expert_balance.parquet"
    path.parent.mkdir()
    # As the structure step writes it: the notes come last.
    with open(path, "wb") as file, pq.ParquetWriter(file, EXPERT_BALANCE) as writer:
        writer.write_table(tables.from_rows(EXPERT_BALANCE, rows))
        writer.add_key_value_metadata(notes.metadata(doubts or Problems()))
    return list(load_lines(summarise_loads(folder)))


def of_rank(rank: int, load: list[int], **more: object) -> Row:
    where = {"step": 2, "role": "actor_update", "rank_id": rank, "micro_batch": 0, "ranks": 1}
    return balance(load, **{**where, "layer": 3, **more})


def test_layers_experts_ranks_and_steps_are_counted(tmp_path: Path) -> None:
    made = expert_tables.training(ranks=2, steps=3, layers=4, experts=16)

    assert said(tmp_path, made.expert_balance)[0] == (
        "Expert load: 4 layers, 16 experts, 2 ranks, 3 steps."
    )


def test_the_least_even_layer_is_that_of_all_ranks_as_in_the_picture(tmp_path: Path) -> None:
    # Alone rank 0 is at 9 / 5; both together have 12 of their 16 tokens on expert 1, 8 being even.
    rows = [of_rank(0, [1, 9]), of_rank(1, [3, 3])]
    rows.append(balance([4, 12], step=2, role="actor_update", layer=3, ranks=2))

    assert said(tmp_path, rows)[1] == (
        "  least even: expert 1 in layer3 (actor_update, 2 ranks, step 2) "
        "has 1.50 times the mean of its layer"
    )


def test_it_is_that_of_a_rank_where_ranks_are_not_added_up(tmp_path: Path) -> None:
    rows = [of_rank(0, [3, 3]), of_rank(1, [1, 9], layer=None, op_index=7, micro_batch=None)]

    assert said(tmp_path, rows)[1] == (
        "  least even: expert 1 in op7 (actor_update, rank 1, step 2) "
        "has 1.80 times the mean of its layer"
    )


def test_a_single_rank_is_not_called_several(tmp_path: Path) -> None:
    rows = [balance([1, 3], step=None, role=None, layer=0, ranks=1)]

    counted, least_even = said(tmp_path, rows)
    assert counted == "Expert load: 1 layer, 2 experts, ranks unknown."
    assert least_even == "  least even: expert 1 in layer0 has 1.50 times the mean of its layer"


def test_layers_without_tokens_are_not_compared(tmp_path: Path) -> None:
    assert said(tmp_path, [of_rank(0, [0, 0])]) == [
        "Expert load: 1 layer, 2 experts, 1 rank, 1 step."
    ]


def test_nothing_recorded_is_said(tmp_path: Path) -> None:
    assert said(tmp_path, []) == ["No expert load could be drawn."]


def test_doubts_are_said_and_of_many_where_the_rest_is(tmp_path: Path) -> None:
    doubts = Problems()
    doubts.add("told", "info", example="Nothing to worry about.")
    for number in range(7):
        doubts.add(f"doubt_{number}", "warning", number + 1, example=f"Sentence {number}.")

    lines = said(tmp_path, [of_rank(0, [1, 1])], doubts)[2:]

    assert lines[0] == "  warning: Sentence 0."
    assert lines[1] == "  warning: Sentence 1. (and 1 more such)"
    assert lines[-1] == "  and 1 more note in tables/expert_load.parquet"
    assert len(lines) == 7
