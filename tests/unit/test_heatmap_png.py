"""The still picture of expert load: its pixels, its size, and that it is always there."""

import io
import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rl_insight.visualizers import VISUALIZERS, heatmap_layout, heatmap_picture, ink
from rl_insight.visualizers.heatmap_layout import MOST_PIXELS, MOST_SIDE, Sheet
from rl_insight.visualizers.heatmap_paint import Paint
from rl_insight.visualizers.heatmap_png import CMAP, DPI, MICRO_BATCH, PHASE
from tests import expert_tables
from tests.expert_tables import Tables
from tests.timeline_tables import HOSTILE

VIRIDIS_FEW, VIRIDIS_MANY = (253, 231, 37), (68, 1, 84)  # its two ends, as published


class Drawn:
    """A picture read back: its pixels, the texts written on it, and where its plot lies."""

    def __init__(self, pixels: np.ndarray, texts: list[tuple[str, float, float]], paint: Paint):
        self.pixels, self.texts, self.paint = pixels, texts, paint
        self.sheet: Sheet = paint.sheet

    @property
    def words(self) -> str:
        return " ".join(text for text, _, _ in self.texts)

    def cell(self, line: int, column: int) -> tuple[int, int, int]:
        """The colour near a cell's upper left corner, which no number covers."""
        sheet = self.sheet
        y = sheet.top + int(sheet.tops[line]) + min(1, sheet.size.row - 1)
        x = sheet.left + column * sheet.size.column + min(1, sheet.size.column - 1)
        return tuple(self.pixels[y, x].tolist())

    def ticks(self) -> list[tuple[str, float]]:
        return [(text, y) for text, _, y in self.texts if text.startswith(("layer", "op"))]


def read(picture: Path) -> Image.Image:
    return Image.open(io.BytesIO(picture.read_bytes()))


Draw = Callable[..., Drawn]


@pytest.fixture
def draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Draw:
    texts: list[tuple[str, float, float]] = []
    paints: list[Paint] = []
    write, png = ink.Paper.text, ink.Paper.png

    def text(paper: ink.Paper, x: float, y: float, text: str, *how, **more) -> None:  # type: ignore[no-untyped-def]
        texts.append((text, x, y))
        write(paper, x, y, text, *how, **more)

    def kept(paper: ink.Paper, paint: Paint | None = None) -> bytes:
        if paint is not None:
            paints.append(paint)
        return png(paper, paint)

    monkeypatch.setattr(ink.Paper, "text", text)
    monkeypatch.setattr(ink.Paper, "png", kept)

    def drawn(made: Tables, **options: object) -> Drawn:
        texts.clear()
        keys = {"dpi": DPI, "cmap": CMAP, "phase": PHASE, "micro_batch": MICRO_BATCH}
        output = tmp_path / "gmm_heatmap.png"
        VISUALIZERS.get("gmm_heatmap").render(
            made.write(tmp_path / "tables"),
            output,
            {keys[name]: value for name, value in {"dpi": 100, **options}.items()},
        )
        pixels = np.asarray(read(output).convert("RGB"))
        return Drawn(pixels, list(texts), paints[-1])

    return drawn


def test_the_fullest_expert_is_darkest_and_the_empty_one_brightest(draw: Draw) -> None:
    made = Tables()
    made.layer([5, 0, 700, 30], layer=0)
    made.layer([9, 350, 8, 1], layer=1)

    picture = draw(made)

    assert picture.cell(0, 2) == VIRIDIS_MANY
    assert picture.cell(0, 1) == VIRIDIS_FEW
    # Half of the fullest has the middle colour of the map.
    assert np.abs(np.array(picture.cell(1, 1)) - (33, 145, 140)).max() <= 3


@pytest.mark.parametrize(
    ("cmap", "darker"),
    [("viridis", True), ("gray", True), ("Blues", True), ("magma", True), ("viridis_r", False)],
)
def test_darker_is_more_unless_the_map_is_turned_round(draw: Draw, cmap: str, darker: bool) -> None:
    made = Tables()
    made.layer([0, 100], layer=0)

    picture = draw(made, cmap=cmap)

    assert (sum(picture.cell(0, 1)) < sum(picture.cell(0, 0))) == darker


def test_every_cell_stands_in_the_row_of_its_layer_and_the_column_of_its_expert(draw: Draw) -> None:
    made = Tables()
    for rank in range(3):
        for layer in range(5):
            load = [0] * 7
            load[(2 * layer + rank) % 7] = 1
            made.layer(load, layer=layer, rank_id=rank)

    picture = draw(made)

    for rank in range(3):
        for layer in range(5):
            found = [picture.cell(5 * rank + layer, expert) for expert in range(7)]
            assert found.index(VIRIDIS_MANY) == (2 * layer + rank) % 7
            assert found.count(VIRIDIS_FEW) == 6


def test_the_bar_changes_its_colour_exactly_where_the_rank_changes(draw: Draw) -> None:
    made = expert_tables.training(ranks=3, layers=6, experts=8)

    picture = draw(made)

    sheet = picture.sheet
    column = picture.pixels[:, sheet.bar + 1]
    colours = [
        {
            tuple(column[sheet.top + int(sheet.tops[6 * rank + layer])].tolist())
            for layer in range(6)
        }
        for rank in range(3)
    ]
    assert [len(found) for found in colours] == [1, 1, 1]
    assert len(set.union(*colours)) == 3
    for rank in range(3):
        top = sheet.top + int(sheet.tops[6 * rank])
        bottom = sheet.top + int(sheet.tops[6 * rank + 5]) + sheet.size.row
        (colour,) = colours[rank]
        assert tuple(column[bottom - 1].tolist()) == colour
        assert tuple(column[top - 1].tolist()) != colour
        label = f"step 1 · actor_update · rank {rank}"
        (y,) = (y for text, _, y in picture.texts if text == label)
        assert abs(y - (top + bottom) / 2) <= 1


@pytest.mark.parametrize(
    ("ranks", "layers"), [(1, 1), (1, 16), (1, 64), (1, 400), (8, 48), (64, 16), (70, 1)]
)
def test_at_most_40_layers_have_a_tick_and_none_overlap(
    draw: Draw, ranks: int, layers: int
) -> None:
    picture = draw(expert_tables.training(ranks=ranks, layers=layers, experts=4, calls=1))

    ticks = picture.ticks()
    heights = [y for _, y in ticks]
    assert 1 <= len(ticks) <= 40
    assert min(np.diff(heights), default=99) >= 11
    assert ticks[0][0] == "layer0"


def test_a_tick_stands_at_the_middle_of_its_row(draw: Draw) -> None:
    picture = draw(expert_tables.training(ranks=2, layers=4, experts=4))

    sheet = picture.sheet
    assert [text for text, _ in picture.ticks()] == [f"layer{layer}" for layer in range(4)] * 2
    for line, (_, y) in enumerate(picture.ticks()):
        assert y == sheet.top + sheet.tops[line] + sheet.size.row / 2


def test_axes_and_colour_bar_have_their_titles(draw: Draw) -> None:
    picture = draw(expert_tables.training(ranks=2, steps=2, layers=2, experts=4))

    assert "expert_index" in picture.words
    assert "tokens per expert" in picture.words
    assert picture.texts[0][0] == ("GMM expert load (group_list) ranks=2 — 8 snapshots, 4 experts")
    assert "the files hold counts (told by dump.json)" in picture.words


def test_missing_experts_are_hatched_and_the_legend_says_what_that_means(draw: Draw) -> None:
    made = Tables()
    made.layer([1] * 64, layer=0, rank_id=0)
    made.layer([1] * 32, layer=0, rank_id=1)

    picture = draw(made)

    sheet = picture.sheet
    top = sheet.top + int(sheet.tops[1])
    middle = sheet.left + 32 * sheet.size.column
    right = sheet.left + sheet.plot_width
    rest = picture.pixels[top : top + sheet.size.row, middle:right].reshape(-1, 3)
    assert set(map(tuple, rest.tolist())) == {(244, 244, 246), (196, 199, 205)}
    assert picture.cell(1, 31) == VIRIDIS_MANY
    assert "no such expert on this rank" in picture.words
    assert "no such expert" not in draw(expert_tables.training(ranks=2, layers=1)).words


def test_expert_parallel_ranks_stand_at_their_global_ids(draw: Draw) -> None:
    made = Tables()
    for rank in range(4):
        made.layer([0, 8], layer=0, rank_id=rank, expert_offset=2 * rank)

    picture = draw(made)

    for rank in range(4):
        assert picture.cell(rank, 2 * rank) == VIRIDIS_FEW
        assert picture.cell(rank, 2 * rank + 1) == VIRIDIS_MANY


def test_rows_that_outnumber_the_pixels_are_averaged_and_the_picture_says_so(draw: Draw) -> None:
    made = Tables()
    for rank in range(600):
        for layer in range(6):
            made.call([rank % 2 * 200, 300 * (layer == 5)], layer=layer, rank_id=rank)

    picture = draw(made, dpi=50)

    assert "3,600 rows outnumber the pixels: averaged per layer over" in picture.words.lower()
    # 100 is the mean over ranks, 300 the most: a third of the way through the map.
    third = np.array(picture.cell(0, 0))
    assert np.abs(third - (53, 183, 121)).max() <= 3
    assert picture.cell(5, 1) == VIRIDIS_MANY


def test_an_outlier_ends_the_scale_below_it_is_marked_and_the_picture_says_so(draw: Draw) -> None:
    made = Tables()
    for layer in range(20):
        made.layer([100] * 64, layer=layer)
    made.layer([90_000] + [50] * 63, layer=20)

    picture = draw(made)

    # Four times the mean of the layers: 20 of 100 and one of (90,000 + 63 x 50) / 64 = 1,455.5.
    end = round(4 * (20 * 100 + 1_455.5) / 21)
    assert f"The colours end at {end} tokens; 1 cell has more (red dot)." in picture.words
    assert picture.cell(20, 0) == VIRIDIS_MANY
    assert picture.cell(0, 0) not in (VIRIDIS_MANY, VIRIDIS_FEW)
    red, green, blue = (picture.pixels[:, :, channel].astype(int) for channel in range(3))
    dots = np.argwhere((red > 200) & (green < 100) & (blue < 100))
    left, top = picture.sheet.left, picture.sheet.top + int(picture.sheet.tops[20])
    size = picture.sheet.size
    assert len(dots) >= 1
    assert ((dots >= [top, left]) & (dots < [top + size.row, left + size.column])).all()


def test_cells_beyond_the_scale_that_are_too_small_for_a_dot_are_counted_all_the_same(
    draw: Draw,
) -> None:
    made = Tables()
    for layer in range(20):
        made.layer([100] * 2_000, layer=layer)
    made.layer([9_000_000] + [50] * 1_999, layer=20)

    picture = draw(made)

    assert "1 cell has more." in picture.words
    assert "red dot" not in picture.words


def test_loads_that_are_all_zero_have_one_colour_and_the_picture_says_so(draw: Draw) -> None:
    made = Tables()
    for layer in range(3):
        made.layer([0] * 5, layer=layer)

    picture = draw(made)

    assert {picture.cell(line, column) for line in range(3) for column in range(5)} == {VIRIDIS_FEW}
    assert "No expert got a token." in picture.words


def test_calls_without_a_layer_are_named_by_their_number(
    draw: Draw,
) -> None:
    made = Tables()
    for number in range(6):
        made.call([1, 2], layer=None, phase=None, micro_batch=None, op_index=number + 7)

    picture = draw(made)

    assert [text for text, _ in picture.ticks()] == [f"op{number + 7}" for number in range(6)]
    assert "6 rows by op index, as the order of the calls tells no layers" in picture.words


def test_what_is_not_shown_is_named_with_the_key_that_shows_it(draw: Draw) -> None:
    made = Tables()
    for batch in range(2):
        for phase in ("forward", "backward"):
            made.layer([1, 2], layer=0, micro_batch=batch, phase=phase)

    usual, whole = draw(made).words, draw(made, phase="all", micro_batch="all").words

    assert "9 more calls with heatmap.visualizer.phase=all, .micro_batch=all" in usual
    assert "more call" not in whole
    assert "step 1 · actor_update · rank 0 · batch 1 · backward" in whole


def test_roles_of_other_magnitudes_are_coloured_by_the_mean_of_each_layer(draw: Draw) -> None:
    made = Tables()
    # The engine has 100 times the tokens of the training, spread evenly; the training is uneven.
    made.layer([100, 100, 100, 100], layer=0)
    made.layer([20, 60, 20, 300], layer=1)
    engine = {"role": None, "step": None, "micro_batch": None}
    made.layer([10_000, 10_000, 10_000, 10_000], layer=0, **engine)

    picture = draw(made)

    assert "tokens / mean of the layer" in picture.words
    assert "the roles' tokens differ by magnitudes" in picture.words.lower()
    assert picture.cell(1, 3) == VIRIDIS_MANY
    # Even layers have one colour, of however many tokens; 1 of 3 times the mean.
    assert picture.cell(0, 0) == picture.cell(2, 0)
    assert np.abs(np.array(picture.cell(0, 0)) - (53, 183, 121)).max() <= 3
    # Numbers in the cells are tokens all the same.
    assert "300" in picture.words and "10k" in picture.words
    # What nothing needs is not said.
    assert "batch" not in picture.texts[0][0] and "batch ?" not in picture.words
    assert "step 1, and without a step" in picture.words


def test_roles_of_like_magnitudes_are_coloured_by_tokens(draw: Draw) -> None:
    made = Tables()
    made.layer([100, 300], layer=0)
    made.layer([400, 600], layer=0, role="critic")

    words = draw(made).words

    assert "tokens per expert" in words
    assert "magnitudes" not in words


def test_what_is_missing_is_said(draw: Draw) -> None:
    made = Tables()
    for step in (1, 2, 3):
        for rank in range(4):
            name = f"step_{step}/actor_update/step0/rank{rank}"
            where = {"step": step, "role": "actor_update", "rank_id": rank}
            if (step, rank) == (2, 2):
                continue
            # What a filter left out is not missing.
            made.source(name, name, **where, status="skipped" if step == 3 else "ok")
            if step < 3:
                made.layer([1, 2], layer=0, source_id=name, **where)

    words = draw(made).words

    assert "Missing: actor_update step 2: 3 of 4 ranks, rank 2 missing" in words
    assert "actor_update step 3" not in words


def test_notes_and_inputs_that_were_not_read_are_said(draw: Draw) -> None:
    made = expert_tables.training(ranks=2, layers=2)
    for number in range(6):
        made.notes.add(f"code_{number}", "info", example=f"Sentence {number}.")
    made.notes.add("grave", "warning", count=3, example="The worst comes first.")
    made.source("x", "step_1/a/rank9", status="failed", detail="Cut off.")

    words = draw(made).words

    assert "The worst comes first. (and 2 more such)" in words
    assert "Sentence 2." in words
    assert "Sentence 3." not in words
    assert "+3 more notes" in words
    assert "1 of 3 inputs not read" in words


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        (["salvaged"], "1 of 3 inputs read in part"),
        (["failed", "salvaged", "salvaged"], "1 of 5 inputs not read, 2 read in part"),
    ],
)
def test_inputs_read_in_part_are_said_as_loudly_as_those_not_read(
    statuses: list[str], said: str, draw: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = expert_tables.training(ranks=2, layers=2)
    for number, status in enumerate(statuses):
        made.source(f"x{number}", f"step_1/a/rank{number}", status=status, detail="Cut off.")
    alarms: list[str] = []
    write = ink.Paper.text

    def text(
        paper: ink.Paper,
        x: float,
        y: float,
        text: str,
        points: float,
        colour: str = ink.INK,
        **more,
    ) -> None:  # type: ignore[no-untyped-def]
        if colour == ink.ALARM:
            alarms.append(text)
        write(paper, x, y, text, points, colour, **more)

    monkeypatch.setattr(ink.Paper, "text", text)
    draw(made)

    assert alarms == [said]


def test_an_unknown_colour_map_is_said(draw: Draw) -> None:
    words = draw(expert_tables.training(layers=2), cmap="virdis").words

    assert "No colour map is called “virdis” (did you mean viridis?): drawn with viridis." in words


def test_the_number_of_tokens_stands_in_cells_that_have_room(draw: Draw) -> None:
    made = Tables()
    made.layer([1_234, 56_789, 7], layer=0)
    picture = draw(made)

    texts = [text for text, _, _ in picture.texts]

    assert {"1,234", "56.8k", "7"} <= set(texts)
    # They lie on the cells: those that are empty have only one colour.
    sheet = picture.sheet
    middle = sheet.top + sheet.size.row // 2
    row = picture.pixels[middle, sheet.left : sheet.left + sheet.size.column - sheet.cell_edge]
    assert len(np.unique(row, axis=0)) > 1


@pytest.mark.parametrize("dpi", [50, 72, 100, 200])
def test_nothing_is_written_beyond_the_edge(draw: Draw, dpi: int) -> None:
    made = expert_tables.training(
        ranks=3, layers=6, experts=40, roles=("actor_update", "a_role_of_" + "long_" * 30 + "name")
    )
    made.notes.add("long", "warning", example="A sentence as long as it may be. " * 6)

    picture = draw(made, dpi=dpi)

    edge = round(6 * dpi / 100)
    rim = np.ones(picture.pixels.shape[:2], dtype=bool)
    rim[edge:-edge, edge:-edge] = False
    assert (picture.pixels[rim] == 255).all()


@pytest.mark.parametrize("dpi", [10, 100, 200, "300"])
def test_the_size_follows_the_resolution(draw: Draw, dpi: object) -> None:
    picture = draw(expert_tables.training(ranks=2, layers=8, experts=16), dpi=dpi)

    height, width, _ = picture.pixels.shape
    # An upright page of ten inches, give or take what whole pixels cost.
    assert 6 < width / float(str(dpi)) < 13
    assert 2.5 < height / float(str(dpi)) < 8


@pytest.mark.parametrize("dpi", [200, 600, 2_400])
@pytest.mark.parametrize(("rows", "experts"), [(1, 1), (4, 20_000), (3_000, 128), (300_000, 1_024)])
def test_no_picture_is_larger_than_the_limits(dpi: int, rows: int, experts: int) -> None:
    scale = heatmap_layout.fitting(dpi, rows, experts, labels=340, head=460)

    lines = min(rows, heatmap_layout.room(rows, scale))
    size = heatmap_layout.size(lines, experts, scale)
    width = 340 * scale + size.columns * size.column + heatmap_layout.RIGHT * scale
    height = 460 * scale + lines * size.row
    assert 0 < scale <= dpi / 100
    assert max(width, height) <= MOST_SIDE
    assert width * height <= MOST_PIXELS


def test_too_high_a_resolution_is_lowered_and_the_picture_says_so(
    draw: Draw,
) -> None:
    picture = draw(expert_tables.training(ranks=1, layers=16, experts=128, calls=1), dpi=2_400)

    assert picture.pixels.shape[0] * picture.pixels.shape[1] <= MOST_PIXELS
    assert "dpi: at 2400 the picture would be too large." in picture.words


def test_the_picture_grows_more_slowly_than_its_rows_and_experts() -> None:
    heights = [heatmap_layout.size(lines, 64, 2).row * lines for lines in (8, 32, 128, 512, 2_048)]
    widths = [
        size.columns * size.column
        for size in (heatmap_layout.size(8, experts, 2) for experts in (16, 64, 256, 1_024))
    ]

    for grown in (heights, widths):
        ratios = [after / before for before, after in pairwise(grown)]
        assert all(1 < ratio < 3 for ratio in ratios)


@pytest.mark.parametrize("role", HOSTILE)
def test_hostile_names_are_drawn_without_a_warning(draw: Draw, role: str) -> None:
    made = expert_tables.training(ranks=1, layers=2, roles=(role,))
    made.notes.add("n", "warning", example=role)
    made.expert_load[0] = {**made.expert_load[0], "load_kind": role, "load_kind_from": role}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = draw(made)

    assert picture.pixels.shape[1] < 2_000
    assert not any("\n" in text or "\x1b" in text for text, _, _ in picture.texts)


def test_roles_that_had_to_be_shortened_stand_whole_in_the_legend(draw: Draw) -> None:
    name = "a_role_whose_name_is_longer_than_any_label_can_be_in_a_picture"

    assert (
        f"step 1 · {name} · rank 0"
        in draw(expert_tables.training(ranks=1, layers=3, roles=(name,))).words
    )


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ([], "no group list was found"),
        (["failed"], "the only input could not be read"),
        (["failed"] * 40, "none of 40 inputs could be read"),
        (["failed", "empty"], "1 of 2 inputs could not be read, the rest is empty"),
        (["ok", "skipped"], "A filter on ranks, roles or steps may have left nothing"),
    ],
)
def test_without_rows_the_picture_says_why(
    sources: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Tables()
    for number, status in enumerate(sources):
        made.source(str(number), f"rank{number}", status=status, detail="So it is.")
    texts: list[str] = []
    write = heatmap_picture._write

    def noted(paper, lines) -> None:  # type: ignore[no-untyped-def]
        texts.extend(line.text for line in lines)
        write(paper, lines)

    monkeypatch.setattr(heatmap_picture, "_write", noted)
    output = tmp_path / "gmm_heatmap.png"
    VISUALIZERS.get("gmm_heatmap").render(made.write(tmp_path / "tables"), output, {})

    assert words in " ".join(texts)
    assert (f"… and {len(sources) - 20} more" in texts) == (len(sources) > 20)
    assert read(output).size[0] == 2_000


def test_a_view_without_rows_names_the_key_that_shows_them(draw: Draw, tmp_path: Path) -> None:
    made = Tables()
    made.layer([1, 2], layer=0, phase="backward")
    output = tmp_path / "gmm_heatmap.png"

    VISUALIZERS.get("gmm_heatmap").render(made.write(tmp_path / "tables"), output, {})

    assert read(output).size[1] < 400


def test_a_drawing_that_fails_leaves_the_picture_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "gmm_heatmap.png"
    output.write_bytes(b"before")
    monkeypatch.setattr(ink.Paper, "png", lambda *_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        VISUALIZERS.get("gmm_heatmap").render(tmp_path, output, {})

    assert output.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["gmm_heatmap.png"]


def test_the_same_tables_give_the_same_bytes(tmp_path: Path) -> None:
    tables = expert_tables.training(ranks=2, layers=3).write(tmp_path)
    pictures = []
    for name in ("a.png", "b.png"):
        VISUALIZERS.get("gmm_heatmap").render(tables, tmp_path / name, {DPI: 50})
        pictures.append((tmp_path / name).read_bytes())

    assert pictures[0] == pictures[1]
    assert read(tmp_path / "a.png").info["dpi"] == pytest.approx((50, 50), abs=0.1)


def test_asking_for_the_visualizer_loads_no_drawing_library() -> None:
    code = (
        "import sys; from rl_insight.visualizers import VISUALIZERS;"
        "VISUALIZERS.get('gmm_heatmap').output;"
        "print([name for name in ('matplotlib', 'plotly', 'pandas') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
