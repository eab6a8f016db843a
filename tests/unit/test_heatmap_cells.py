"""Rows to cells: which are averaged when there are too many, and how."""

from pathlib import Path

import numpy as np
import pytest

from rl_insight.visualizers import heatmap_cells, heatmap_data, heatmap_words
from rl_insight.visualizers.heatmap_model import ALL, Heatmap, View
from tests import expert_tables
from tests.expert_tables import Tables


def loaded(made: Tables, folder: Path, view: View = ALL) -> Heatmap:
    return heatmap_data.load(made.write(folder), view)


def matrix(heatmap: Heatmap, room: int, columns: int | None = None) -> list[list[float]]:
    drawn = heatmap_cells.lines(heatmap, room)
    cells = heatmap_cells.cells(heatmap.rows, drawn, columns or heatmap.rows.experts)
    return cells.tolist()


def test_with_room_every_row_is_a_line(tmp_path: Path) -> None:
    heatmap = loaded(expert_tables.training(ranks=3, layers=5, experts=4), tmp_path)

    drawn = heatmap_cells.lines(heatmap, 15)

    assert len(drawn) == 15
    assert drawn.note is None
    assert [(block.steps, block.ranks) for block in drawn.blocks] == [
        ((1,), (0,)),
        ((1,), (1,)),
        ((1,), (2,)),
    ]
    assert drawn.block.tolist() == [0] * 5 + [1] * 5 + [2] * 5


def test_a_layer_is_averaged_over_neighbouring_ranks_and_the_note_says_so(tmp_path: Path) -> None:
    made = Tables()
    for rank in range(4):
        for layer in range(2):
            made.layer([10 * rank, layer], layer=layer, rank_id=rank)
    heatmap = loaded(made, tmp_path)

    found = heatmap_cells.lines(heatmap, 7)
    assert found.note == "8 rows outnumber the pixels: averaged per layer over all 4 ranks"
    assert matrix(heatmap, 7) == [[15, 0], [15, 1]]
    assert found.blocks[0].ranks == (0, 1, 2, 3)


def test_groups_of_ranks_are_as_small_as_the_room_allows(tmp_path: Path) -> None:
    made = Tables()
    for rank in range(8):
        for layer in range(3):
            made.layer([rank, 100 * layer], layer=layer, rank_id=rank)
    heatmap = loaded(made, tmp_path)

    found = heatmap_cells.lines(heatmap, 23)

    assert found.note == "24 rows outnumber the pixels: averaged per layer over 4 ranks each"
    assert [block.ranks for block in found.blocks] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert matrix(heatmap, 23) == [
        [1.5, 0],
        [1.5, 100],
        [1.5, 200],
        [5.5, 0],
        [5.5, 100],
        [5.5, 200],
    ]


def test_steps_are_averaged_only_after_ranks(tmp_path: Path) -> None:
    made = Tables()
    for step in range(1, 5):
        for rank in range(2):
            made.layer([step, rank], layer=0, step=step, rank_id=rank)
    heatmap = loaded(made, tmp_path)

    assert matrix(heatmap, 7) == [[1.5, 0.5], [3.5, 0.5]]
    found = heatmap_cells.lines(heatmap, 7)
    assert (
        found.note
        == "8 rows outnumber the pixels: averaged per layer over all 2 ranks and 2 steps each"
    )
    assert [block.steps for block in found.blocks] == [(1, 2), (3, 4)]


def test_roles_are_never_averaged_together(tmp_path: Path) -> None:
    made = Tables()
    for rank in range(4):
        made.layer([1], layer=0, role="a", rank_id=rank)
        made.layer([3], layer=0, role="b", rank_id=rank)

    assert matrix(loaded(made, tmp_path), 4) == [[1], [3]]


def test_as_a_last_resort_neighbouring_lines_are_averaged(tmp_path: Path) -> None:
    made = Tables()
    for number in range(10):
        made.call([number], layer=None, phase=None, micro_batch=None, op_index=number)
    heatmap = loaded(made, tmp_path)

    found = heatmap_cells.lines(heatmap, 5)

    assert found.note == "10 rows outnumber the pixels: neighbouring ones are averaged"
    assert matrix(heatmap, 5) == [[0.5], [2.5], [4.5], [6.5], [8.5]]


def test_where_a_rank_has_no_such_expert_there_is_no_number(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1, 2, 3], layer=0, rank_id=0)
    made.layer([4], layer=0, rank_id=1)
    made.layer([5], layer=0, rank_id=2, expert_offset=1)

    cells = np.array(matrix(loaded(made, tmp_path), 3))

    assert np.array_equal(
        cells, [[1, 2, 3], [4, np.nan, np.nan], [np.nan, 5, np.nan]], equal_nan=True
    )


def test_a_mean_over_ranks_counts_only_ranks_that_have_the_expert(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1, 2], layer=0, rank_id=0)
    made.layer([4], layer=0, rank_id=1)

    assert matrix(loaded(made, tmp_path), 1) == [[2.5, 2]]


def test_fewer_columns_than_experts_are_means_by_area(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1, 2, 3, 4, 5, 6], layer=0, rank_id=0)
    made.layer([9, 9], layer=0, rank_id=1)

    cells = np.array(matrix(loaded(made, tmp_path), 2, columns=4))

    # Each column covers one and a half experts: (1 + 2/2) / 1.5, (2/2 + 3) / 1.5, …
    assert cells[0] == pytest.approx([2 / 1.5, 4 / 1.5, 6.5 / 1.5, 8.5 / 1.5])
    # The second column has half an expert, of 9 tokens.
    assert cells[1, :2] == pytest.approx([9, 9])
    assert np.isnan(cells[1, 2:]).all()


def test_imbalance_is_worked_out_before_averaging(tmp_path: Path) -> None:
    made = Tables()
    made.layer([6, 0, 0], layer=0, rank_id=0)  # 6 / 2 = 3
    made.layer([0, 2, 4], layer=0, rank_id=1)  # 4 / 2 = 2
    made.layer([0, 0, 0], layer=0, rank_id=2)  # nothing
    made.layer([0, 0, 0], layer=1, rank_id=0)
    heatmap = loaded(made, tmp_path)

    drawn = heatmap_cells.lines(heatmap, 3)

    found = heatmap_cells.max_over_mean(heatmap.rows, drawn)
    assert found[0] == 2.5
    assert np.isnan(found[1])


def test_phases_and_batches_are_blocks_where_there_are_several(tmp_path: Path) -> None:
    made = Tables()
    for batch in range(2):
        for phase in ("forward", "backward"):
            made.layer([1], layer=0, micro_batch=batch, phase=phase)
    heatmap = loaded(made, tmp_path)

    blocks = heatmap_cells.lines(heatmap, 10).blocks

    found = [(block.micro_batch, block.phase) for block in blocks]
    assert found == [(0, 0), (0, 2), (1, 0), (1, 2)]
    (alone,) = heatmap_cells.lines(loaded(made, tmp_path, View()), 10).blocks
    assert (alone.micro_batch, alone.phase) == (None, None)


def test_dumps_of_unknown_ranks_are_blocks_of_their_own_until_they_are_averaged(
    tmp_path: Path,
) -> None:
    made = Tables()
    for source, load in (("proc1", 2), ("proc2", 4)):
        for layer in range(3):
            made.layer([load], layer=layer, rank_id=None, source_id=source)
    heatmap = loaded(made, tmp_path)

    drawn = heatmap_cells.lines(heatmap, 6)
    assert [heatmap_words.block_label(block, 20) for block in drawn.blocks] == [
        "step 1 · actor_update · rank ? · recording 1",
        "step 1 · actor_update · rank ? · recording 2",
    ]
    assert matrix(heatmap, 6) == [[2]] * 3 + [[4]] * 3

    averaged = heatmap_cells.lines(heatmap, 5)
    assert [heatmap_words.block_label(block, 20) for block in averaged.blocks] == [
        "step 1 · actor_update · rank ?"
    ]
    assert matrix(heatmap, 5) == [[3]] * 3
    assert averaged.note is not None
    assert averaged.note.endswith("averaged per layer over all recordings of a rank")


def test_rows_of_unknown_rank_and_step_are_drawn_last(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1], layer=0, rank_id=None, step=None, role=None)
    made.layer([2], layer=0, rank_id=5)
    heatmap = loaded(made, tmp_path)

    drawn = heatmap_cells.lines(heatmap, 10)

    assert matrix(heatmap, 10) == [[2], [1]]
    assert drawn.blocks[1].ranks == (None,)
    assert drawn.blocks[1].role is None
