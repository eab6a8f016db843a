"""What the heatmap page's scripts are given, as plain data."""

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from rl_insight.visualizers import (
    VISUALIZERS,
    heatmap_budget,
    heatmap_chunks,
    heatmap_data,
    heatmap_page,
)
from rl_insight.visualizers.heatmap_chunks import COLUMNS, Chunk
from rl_insight.visualizers.heatmap_model import ALL, Heatmap, Segment, View
from tests import expert_tables
from tests.expert_tables import Tables

HOSTILE = "</script><script>alert(1)</script>\u2028<b>\u202e\x1b[31m"


def loaded(made: Tables, folder: Path) -> Heatmap:
    return heatmap_data.load(made.write(folder), ALL)


def chunks(made: Tables, folder: Path, most_cells: int = 10**6) -> tuple[list[Chunk], str]:
    heatmap = loaded(made, folder)
    fitted = heatmap_budget.fit(heatmap, most_cells)
    packed = heatmap_chunks.chunks(fitted, heatmap.ids_local)
    return packed, " ".join(fitted.losses)


def opened(chunk: Chunk) -> list[dict[str, object]]:
    """The rows of a chunk, read number by number."""
    content = zlib.decompress(base64.b64decode(chunk.data))
    counts = [chunk.rows] * len(COLUMNS) + [chunk.cells]
    columns = []
    for kind, count in zip(chunk.kinds, counts, strict=True):
        width = int(kind[1:])
        part, content = content[: width * count], content[width * count :]
        if kind == "f8":
            columns.append(np.frombuffer(part, "<f8").tolist())
        else:
            columns.append(
                [
                    sum(part[plane * count + at] << (8 * plane) for plane in range(width))
                    for at in range(count)
                ]
            )
    assert content == b""
    *heads, loads = columns
    rows = []
    for row in zip(*heads, strict=True):
        named = {
            name: (None if number == 0 else int(number) - 1)
            for name, number in zip(COLUMNS, row, strict=True)
        }
        length = named.pop("length")
        assert length is not None
        rows.append({**named, "load": loads[:length]})
        loads = loads[length:]
    assert loads == []
    return rows


def payload(made: Tables, folder: Path, cmap: str = "viridis") -> dict[str, object]:
    heatmap = loaded(made, folder)
    fitted = heatmap_budget.fit(heatmap)
    packed = heatmap_chunks.chunks(fitted, heatmap.ids_local)
    return heatmap_page.payload(heatmap, fitted, packed, View(), cmap)


def page(made: Tables, folder: Path) -> str:
    output = folder / "gmm_heatmap.html"
    tables = made.write(folder / "tables")
    VISUALIZERS.get("gmm_heatmap_html").render(tables, output, {})
    return output.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("values", "kind", "content"),
    [
        ([0, 255], "u1", b"\x00\xff"),
        ([1, 256, 65535], "u2", b"\x01\x00\xff\x00\x01\xff"),
        ([65536, 2], "u4", b"\x00\x02\x00\x00\x01\x00\x00\x00"),
        ([2**32], "f8", b"\x00\x00\x00\x00\x00\x00\xf0\x41"),
        ([-1], "f8", b"\x00\x00\x00\x00\x00\x00\xf0\xbf"),
        ([], "u1", b""),
    ],
)
def test_numbers_lie_byte_by_byte_in_the_narrowest_form(
    values: list[int], kind: str, content: bytes
) -> None:
    assert heatmap_chunks.packed(np.array(values, dtype=np.int64)) == (kind, content)


def test_a_chunk_is_one_role_in_one_step_with_its_ranks_and_what_is_unknown(
    tmp_path: Path,
) -> None:
    made = Tables()
    made.layer([1, 70_000], layer=3, rank_id=5, expert_offset=2)
    made.layer([7], layer=0, rank_id=4, micro_batch=1, phase="backward", expert_offset=0)
    made.call([8], layer=None, phase=None, micro_batch=None, rank_id=None, op_index=300)
    made.layer([9], layer=1, step=None, role=None)

    (first, last), losses = chunks(made, tmp_path)

    assert (first.step, first.role, first.ranks, first.placed) == (
        1,
        "actor_update",
        (4, 5, None),
        False,
    )
    rows = opened(first)
    assert [row["load"] for row in rows] == [[7], [1, 70_000], [8]]
    assert [[row[name] for name in COLUMNS if name != "length"] for row in rows] == [
        [0, 1, 2, 0, 3, 1, 0],
        [1, 0, 0, 3, 0, 1, 2],
        [2, None, None, None, 300, 1, 0],
    ]
    assert (last.step, last.role, last.ranks) == (None, None, (0,))
    assert [row["load"] for row in opened(last)] == [[9]]
    assert losses == ""


def two_ranks_of_an_expert_parallel_group(steps: int = 1) -> Tables:
    made = Tables()
    for step in range(1, steps + 1):
        for batch in (0, 1):
            for rank, first in ((0, 0), (1, 2), (2, 0), (3, 2)):
                for layer in (0, 1):
                    load = [10 * layer + rank, 100 * step + batch]
                    where = {"layer": layer, "rank_id": rank, "step": step, "micro_batch": batch}
                    made.layer(load, expert_offset=first, **where)
    return made


@pytest.mark.parametrize("block", [1, 5, 10**6])
def test_what_is_too_much_is_first_summed_over_micro_batches(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heatmap_budget, "_BLOCK", block)
    made = two_ranks_of_an_expert_parallel_group()

    (chunk,), losses = chunks(made, tmp_path, most_cells=16)

    assert losses.startswith("The tables hold 32 cells, more than a page can: micro-batches are")
    assert chunk.ranks == (0, 1, 2, 3)
    assert [(row["rank"], row["layer"], row["first"], row["load"]) for row in opened(chunk)] == [
        (0, 0, 0, [0, 201]),
        (0, 1, 0, [20, 201]),
        (1, 0, 2, [2, 201]),
        (1, 1, 2, [22, 201]),
        (2, 0, 0, [4, 201]),
        (2, 1, 0, [24, 201]),
        (3, 0, 2, [6, 201]),
        (3, 1, 2, [26, 201]),
    ]
    assert {row["micro_batch"] for row in opened(chunk)} == {None}


@pytest.mark.parametrize("block", [1, 5, 10**6])
def test_then_over_ranks_each_expert_at_its_global_id(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heatmap_budget, "_BLOCK", block)
    made = two_ranks_of_an_expert_parallel_group()

    (chunk,), losses = chunks(made, tmp_path, most_cells=8)

    assert "micro-batches are summed, up to 4 ranks are summed." in losses
    assert (chunk.ranks, chunk.summed, chunk.placed) == ((None,), 4, True)
    # Layer 0, expert 0: ranks 0 and 2 have 0 and 2 tokens in each of two micro-batches.
    assert [(row["layer"], row["first"], row["load"]) for row in opened(chunk)] == [
        (0, 0, [4, 402, 8, 402]),
        (1, 0, [44, 402, 48, 402]),
    ]


def test_ranks_whose_experts_cannot_be_compared_are_not_summed(tmp_path: Path) -> None:
    made = two_ranks_that_count_alike()
    made.notes.add("expert_ids_local", "warning", example="The lists have 2, 4 experts.")

    kept, losses = chunks(made, tmp_path, most_cells=4)

    assert [(chunk.step, chunk.ranks) for chunk in kept] == [(2, (0, 1))]
    assert "the first 1 step of a role are left out" not in losses
    assert "the oldest step is left out" in losses


def two_ranks_that_count_alike() -> Tables:
    """No list is placed, and all are of one length."""
    made = Tables()
    for rank in (0, 1):
        made.layer([1, 2], layer=0, rank_id=rank, step=1)
        made.layer([3, 4], layer=0, rank_id=rank, step=2)
    return made


def test_ranks_are_summed_where_nothing_speaks_of_expert_parallelism(tmp_path: Path) -> None:
    kept, losses = chunks(two_ranks_that_count_alike(), tmp_path, most_cells=4)

    assert "up to 2 ranks are summed" in losses
    assert [(chunk.step, chunk.ranks, chunk.summed) for chunk in kept] == [
        (1, (None,), 2),
        (2, (None,), 2),
    ]
    assert [(chunk.placed, chunk.comparable) for chunk in kept] == [(False, True)] * 2
    assert [row["load"] for chunk in kept for row in opened(chunk)] == [[2, 4], [6, 8]]


def test_a_role_that_the_balance_adds_up_is_comparable_beside_one_that_is_not(
    tmp_path: Path,
) -> None:
    made = two_ranks_that_count_alike()
    for rank in (0, 1):
        made.layer([1, 2], layer=0, rank_id=rank, role="critic_update")
    where = {"role": "actor_update", "layer": 0, "ranks": 2}
    made.expert_balance.append(expert_tables.balance([2, 4], step=1, **where))
    made.notes.add("expert_ids_local", "warning", example="Of the critic and of step 2.")

    kept, _ = chunks(made, tmp_path)

    assert {(chunk.step, chunk.role): chunk.comparable for chunk in kept} == {
        (1, "actor_update"): True,
        (1, "critic_update"): False,
        (2, "actor_update"): False,
    }


def test_several_dumps_of_a_rank_have_numbers(tmp_path: Path) -> None:
    made = Tables()
    for source, rank in (("a", 0), ("b", 0), ("c", 1)):
        made.layer([1, 2], layer=0, rank_id=rank, source_id=source)

    (chunk,), _ = chunks(made, tmp_path)

    assert (chunk.ranks, chunk.recordings) == ((0, 0, 1), (1, 2, 0))
    assert [row["rank"] for row in opened(chunk)] == [0, 1, 2]


def test_ids_that_are_global_on_some_ranks_only_are_not_comparable(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1, 2], layer=0, rank_id=0, expert_offset=0)
    made.layer([1, 2], layer=0, rank_id=1)

    (chunk,), _ = chunks(made, tmp_path)

    assert (chunk.placed, chunk.comparable) == (False, False)


def test_then_other_phases_and_at_last_the_oldest_steps_are_left_out(tmp_path: Path) -> None:
    made = Tables()
    for step in (1, 2, 3):
        made.layer([step, 0], layer=0, step=step, expert_offset=0)
        made.layer([9, 9], layer=0, step=step, phase="backward", expert_offset=0)

    kept, losses = chunks(made, tmp_path, most_cells=4)

    assert [chunk.step for chunk in kept] == [2, 3]
    assert [row["load"] for chunk in kept for row in opened(chunk)] == [[2, 0], [3, 0]]
    assert "only the forward phase is here, the oldest step is left out." in losses


def test_one_step_stays_however_large(tmp_path: Path) -> None:
    kept, _ = chunks(expert_tables.training(ranks=1, steps=3), tmp_path, most_cells=1)

    assert [chunk.step for chunk in kept] == [3]


def test_the_balance_names_roles_by_place_and_unknown_roles_last(tmp_path: Path) -> None:
    made = Tables()
    made.layer([1, 3], layer=0, role=None)
    made.layer([1, 3], layer=0)
    made.expert_balance.append(
        expert_tables.balance([1, 3], step=1, role="actor_update", layer=0, ranks=1)
    )

    given = payload(made, tmp_path)

    assert given["roles"] == ["actor_update", "unknown role"]
    # max 3, mean 2; four tokens, most of them expert 1's.
    assert given["balance"] == [[1, 0, 0, None, 1, 2, 4, 1, 1.5]]


def test_the_configured_colours_come_first_and_darker_is_more(tmp_path: Path) -> None:
    made = expert_tables.training()

    maps = payload(made, tmp_path, "magma")["maps"]

    assert isinstance(maps, list)
    assert [one["name"] for one in maps][:2] == ["magma", "viridis"]
    for one in maps:
        lights = [sum(bytes.fromhex(colour[1:])) for colour in one["colours"]]
        assert lights[0] > 3 * lights[-1], one["name"]


def test_names_from_files_are_text_on_the_page(tmp_path: Path) -> None:
    made = Tables()
    made.source("a", HOSTILE, status="failed", detail=HOSTILE)
    made.layer([1, 2], layer=0, role=HOSTILE)
    made.notes.add("odd", "warning", example=HOSTILE)

    text = page(made, tmp_path)

    without_plotly = re.sub(r"<script>/\*\*.*?</script>", "", text, flags=re.DOTALL)
    assert "alert(1)" in without_plotly
    assert not re.search(r"<script>alert|<b>|[\x1b\u2028\u202e]", without_plotly)
    data = re.search(r'id="data">(.*?)</script>', text)
    assert data is not None
    assert "alert(1)" in json.loads(data[1])["roles"][0]


def test_the_page_of_nothing_says_so_and_needs_no_script(tmp_path: Path) -> None:
    made = Tables()
    made.source("a", "a.pt", status="failed", detail="The file is cut off.")

    text = page(made, tmp_path)

    assert "the only input could not be read" in text
    assert "The file is cut off." in text
    assert "<script" not in text


def test_the_visualizer_says_what_it_needs() -> None:
    visualizer = VISUALIZERS.get("gmm_heatmap_html")

    assert (visualizer.name, visualizer.preset) == ("gmm_heatmap_html", "heatmap")
    assert visualizer.output == "gmm_heatmap.html"
    assert set(visualizer.tables) == {"sources", "expert_load", "expert_balance"}


def test_the_same_tables_give_the_same_page_and_nothing_beside_it(tmp_path: Path) -> None:
    made = expert_tables.training(ranks=1)
    tables = made.write(tmp_path / "tables")
    output = tmp_path / "out" / "gmm_heatmap.html"
    output.parent.mkdir()
    VISUALIZERS.get("gmm_heatmap_html").render(tables, output, {})
    before = output.read_bytes()

    VISUALIZERS.get("gmm_heatmap_html").render(tables, output, {})

    assert output.read_bytes() == before
    assert list(output.parent.iterdir()) == [output]


def test_segments_that_are_summed_keep_step_and_role(tmp_path: Path) -> None:
    heatmap = loaded(two_ranks_of_an_expert_parallel_group(steps=2), tmp_path)

    fitted = heatmap_budget.fit(heatmap, most_cells=16)

    assert fitted.segments == [Segment(1, "actor_update", None), Segment(2, "actor_update", None)]
    assert fitted.summed == [4, 4]
