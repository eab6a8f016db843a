"""From the tables of expert load to the rows of a heatmap."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rl_insight import notes, tables
from rl_insight.errors import CacheError
from rl_insight.visualizers import heatmap_data
from rl_insight.visualizers.heatmap_model import ALL, UNKNOWN, Heatmap, Segment, View
from tests import expert_tables
from tests.expert_tables import Tables


def loaded(made: Tables, folder: Path, view: View | None = None) -> Heatmap:
    return heatmap_data.load(made.write(folder), view or View())


def loads(heatmap: Heatmap) -> list[list[int]]:
    return [heatmap.rows.load(row).tolist() for row in range(len(heatmap.rows))]


def test_the_calls_of_a_layer_are_one_row(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1, 2], calls=3, layer=0)
    made.layer([1, 2], calls=2, layer=1)

    heatmap = loaded(made, tmp_path)

    assert loads(heatmap) == [[1, 2], [1, 2]]
    assert heatmap.rows.calls.tolist() == [3, 2]
    assert [heatmap.rows.tick(row) for row in range(2)] == ["layer0", "layer1"]
    assert heatmap.recorded == 5


def test_rows_are_sorted_by_step_role_rank_batch_phase_and_layer_with_the_unknown_last(
    tmp_path: Path,
) -> None:
    made = Tables()
    places = [
        (None, "a", 0, 0, "forward", 0),
        (2, "a", 0, 0, "forward", 0),
        (1, "b", 0, 0, "forward", 0),
        (1, "a", None, 0, "forward", 0),
        (1, "a", 10, 0, "forward", 0),
        (1, "a", 9, 1, "forward", 0),
        (1, "a", 9, 0, "backward", 0),
        (1, "a", 9, 0, "recompute", 0),
        (1, "a", 9, 0, "forward", 11),
        (1, "a", 9, 0, "forward", 2),
    ]
    for number, (step, role, rank, batch, phase, layer) in enumerate(places):
        made.call(
            [number],
            step=step,
            role=role,
            rank_id=rank,
            micro_batch=batch,
            phase=phase,
            layer=layer,
        )

    heatmap = loaded(made, tmp_path, ALL)

    assert loads(heatmap) == [[9], [8], [7], [6], [5], [4], [3], [2], [1], [0]]
    assert heatmap.segments == [
        Segment(1, "a", 9),
        Segment(1, "a", 10),
        Segment(1, "a", None),
        Segment(1, "b", 0),
        Segment(2, "a", 0),
        Segment(None, "a", 0),
    ]
    assert heatmap.rows.segment.tolist() == [0, 0, 0, 0, 0, 1, 2, 3, 4, 5]


def test_the_usual_view_is_the_forward_phase_of_the_first_micro_batch(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1], layer=0, micro_batch=0, phase="forward")
    made.layer([2], layer=0, micro_batch=0, phase="backward", calls=6)
    made.layer([3], layer=0, micro_batch=1, phase="forward")
    made.call([4], layer=None, micro_batch=None, phase=None, op_index=77)
    # A rank whose first micro-batch was not dumped shows its first one.
    made.layer([5], layer=0, rank_id=1, micro_batch=2, phase="forward")

    heatmap = loaded(made, tmp_path)

    assert loads(heatmap) == [[1], [4], [5]]
    assert (heatmap.of_other_phases, heatmap.of_other_batches) == (6, 3)
    assert heatmap.rows.tick(1) == "op77"
    assert loads(loaded(made, tmp_path, View("all", "first"))) == [[1], [2], [4], [5]]
    assert loads(loaded(made, tmp_path, View("forward", "all"))) == [[1], [3], [4], [5]]
    assert loads(loaded(made, tmp_path, View("backward", "all"))) == [[2], [4]]


def test_where_the_layer_is_unknown_every_call_is_a_row(tmp_path: Path) -> None:
    made = Tables()
    for number in range(3):
        made.call([7, 7], layer=None, micro_batch=None, phase=None, op_index=number)

    heatmap = loaded(made, tmp_path)

    assert loads(heatmap) == [[7, 7]] * 3
    assert [heatmap.rows.tick(row) for row in range(3)] == ["op0", "op1", "op2"]
    assert heatmap.rows.layer.tolist() == [UNKNOWN] * 3


def test_the_passes_of_an_inference_engine_are_summed_per_layer(tmp_path: Path) -> None:
    made = Tables()
    made.source("s", "expert_distribution_recorder_1.pt", parser="sglang")
    for number in range(3):
        for layer in range(2):
            made.call(
                [number, 10 * layer],
                source_id="s",
                role=None,
                step=None,
                micro_batch=None,
                pass_index=None,
                op_index=number,
                layer=layer,
                load_kind_from="format",
            )

    heatmap = loaded(made, tmp_path)

    assert loads(heatmap) == [[3, 0], [3, 30]]
    assert heatmap.rows.passes.tolist() == [3, 3]
    assert heatmap.recorders == ("sglang",)


def test_files_of_an_engine_may_number_their_passes_alike(tmp_path: Path) -> None:
    made = Tables()
    for source, load in (("s", [1, 2]), ("t", [10, 20])):
        made.source(source, f"expert_distribution_recorder_{source}.pt", parser="sglang")
        for number in range(2):
            where = {"source_id": source, "role": None, "step": None, "rank_id": None}
            made.call(load, layer=0, micro_batch=None, op_index=number, pass_index=number, **where)

    heatmap = loaded(made, tmp_path)

    assert loads(heatmap) == [[1 + 1 + 10 + 10, 2 + 2 + 20 + 20]]
    assert heatmap.rows.passes.tolist() == [4]
    assert heatmap.segments == [Segment(None, None, None)]


@pytest.mark.parametrize("rank", [3, None])
def test_dumps_of_one_rank_or_of_unknown_ranks_are_told_apart(
    tmp_path: Path, rank: int | None
) -> None:
    made = Tables()
    for number, source in enumerate(("proc9", "proc10", "proc8")):
        made.layer([number], layer=0, rank_id=rank, source_id=source)
    made.layer([7], layer=0, rank_id=5)

    heatmap = loaded(made, tmp_path)

    # In the order of the table; an unknown rank comes last.
    several = [Segment(1, "actor_update", rank, number) for number in (1, 2, 3)]
    alone = Segment(1, "actor_update", 5)
    assert heatmap.segments == ([*several, alone] if rank is not None else [alone, *several])
    assert loads(heatmap) == ([[0], [1], [2], [7]] if rank is not None else [[7], [0], [1], [2]])
    assert heatmap.rows.calls.tolist() == [3] * 4


def test_experts_stand_at_their_global_ids_where_these_are_known(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1, 2], layer=0, rank_id=0, expert_offset=0)
    made.layer([3, 4, 5], layer=0, rank_id=1, expert_offset=2)
    made.layer([6], layer=0, rank_id=2)

    rows = loaded(made, tmp_path).rows

    assert rows.first_expert.tolist() == [0, 2, 0]
    assert rows.placed.tolist() == [True, True, False]
    assert rows.length.tolist() == [2, 3, 1]
    assert rows.experts == 5


def test_numbers_beyond_32_bits_are_kept_exactly(tmp_path: Path) -> None:
    made = Tables()
    made.layer([2**40 + 1, 0], layer=0)
    made.layer([3, 4], layer=1)

    assert loads(loaded(made, tmp_path)) == [[2**40 + 1, 0], [3, 4]]


@pytest.mark.parametrize("empty", [None, []])
def test_a_call_without_experts_is_counted_and_not_drawn(
    empty: list[int] | None, tmp_path: Path
) -> None:
    made = Tables()
    made.layer([1], layer=0, calls=1)
    made.layer(empty, layer=1, calls=2)

    heatmap = loaded(made, tmp_path)

    assert loads(heatmap) == [[1]]
    assert heatmap.without_loads == 2


def test_what_the_files_held_and_what_said_so_is_counted(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1], layer=0, load_kind="cumsum")
    made.layer([1], layer=1, calls=2, load_kind_from="assumed")
    made.notes.add("load_kind_disagreement", "warning", example="They disagree.")

    heatmap = loaded(made, tmp_path)

    assert [(kind.kind, kind.told_by, kind.rows) for kind in heatmap.kinds] == [
        ("cumsum", "dump.json", 3),
        ("counts", "assumed", 2),
    ]
    assert [note.code for note in heatmap.notes] == ["load_kind_disagreement"]


def test_notes_of_a_table_that_was_written_bit_by_bit_are_read_too(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1], layer=0)
    path = made.write(tmp_path) / "expert_load.parquet"
    content = tables.read(path).replace_schema_metadata(None)
    made.notes.add("late", "warning", example="Known only at the end.")
    with pq.ParquetWriter(path, content.schema) as writer:
        writer.write_table(content)
        writer.add_key_value_metadata(notes.metadata(made.notes))

    (note,) = heatmap_data.load(tmp_path, View()).notes

    assert note.example == "Known only at the end."


def test_the_balance_over_all_ranks_is_kept_apart_from_a_file_of_unknown_rank(
    tmp_path: Path,
) -> None:
    made = expert_tables.training(ranks=2, layers=2, experts=4)
    unknown = expert_tables.balance([1, 0, 0, 0], step=1, role="actor_update", layer=0, ranks=1)
    made.expert_balance = [unknown, *made.expert_balance, unknown]

    heatmap = loaded(made, tmp_path)

    assert [(row.layer, row.ranks) for row in heatmap.balance] == [(0, 2), (1, 2)]


def test_only_the_sources_of_expert_load_count(tmp_path: Path) -> None:
    made = expert_tables.training(ranks=1, layers=1)
    made.source("t", "trace.json", parser="torch", status="failed", detail="Broken.")
    made.source("g", "step_1/a/rank3", status="failed", detail="Cut off.")

    heatmap = loaded(made, tmp_path)

    assert heatmap.sources == 2
    assert [(trouble.path, trouble.detail) for trouble in heatmap.troubles] == [
        ("step_1/a/rank3", "Cut off.")
    ]


def test_a_parser_of_another_package_that_feeds_the_heatmap_is_one_of_ours(
    tmp_path: Path,
) -> None:
    made = Tables()
    made.source("a", "a.load", parser="loads")
    made.source("b", "b.load", parser="loads", status="failed", detail="Cut off.")
    made.source("t", "t.watch", parser="stopwatch", status="failed", detail="Broken.")
    made.layer([1, 2], layer=0, source_id="a")
    made.presets = {"loads": "heatmap", "stopwatch": "timeline"}

    heatmap = loaded(made, tmp_path)

    assert heatmap.sources == 2
    assert [trouble.path for trouble in heatmap.troubles] == ["b.load"]
    assert heatmap.recorders == ("loads",)


def test_no_tables_at_all_are_an_empty_heatmap(tmp_path: Path) -> None:
    heatmap = heatmap_data.load(tmp_path, View())

    assert len(heatmap.rows) == 0
    assert heatmap.rows.experts == 0
    assert heatmap.segments == []


def test_a_large_table_is_read_in_batches_and_in_the_order_of_the_rows(tmp_path: Path) -> None:
    made = Tables()
    numbers = [(index * 7_919) % 20_011 for index in range(20_011)]
    for number in numbers:
        made.call([number, number + 1], layer=number, op_index=number)

    heatmap = loaded(made, tmp_path)

    assert loads(heatmap) == [[number, number + 1] for number in range(20_011)]


def test_a_damaged_table_is_named_with_what_to_do(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1], layer=0)
    path = made.write(tmp_path) / "expert_load.parquet"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(
        CacheError, match=r"expert_load\.parquet: damaged .*delete it and run again"
    ):
        heatmap_data.load(tmp_path, View())
