"""The still picture: its size, what is left out when it is too tall, and hostile names."""

import struct
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rl_insight.visualizers import (
    VISUALIZERS,
    ink,
    timeline_bars,
    timeline_data,
    timeline_layout,
    timeline_torn,
)
from rl_insight.visualizers.timeline_png import SCALE, WIDTH
from rl_insight.visualizers.timeline_sheet import MOST_HEIGHT, Sheet, plan
from tests import timeline_tables
from tests.timeline_tables import Tables


def drawn(made: Tables, folder: Path, width: object = 800, scale: object = 1) -> Path:
    output = folder / "rl_timeline.png"
    made.write(folder / "tables")
    VISUALIZERS.get("png").render(folder / "tables", output, {WIDTH: width, SCALE: scale})
    return output


def size(picture: Path) -> tuple[int, int]:
    content = picture.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def planned(lanes: int, scale: float = 2, each: int = 4) -> Sheet:
    groups = [lane // each for lane in range(lanes)]
    return plan([1.0] * lanes, groups, 2000, scale, label_width=250, legend_lines=1)


@pytest.mark.parametrize(
    ("width", "scale"), [(2000, 2), (800, 1), (801, 1.5), (1000, 3), (777, 2), ("1200", "2")]
)
def test_the_picture_is_exactly_width_times_scale_pixels_wide(
    width: object, scale: object, tmp_path: Path
) -> None:
    picture = drawn(timeline_tables.training(ranks=2, steps=1), tmp_path, width, scale)

    assert size(picture)[0] == round(float(str(width)) * float(str(scale)))


def test_the_height_grows_with_the_lanes_up_to_a_limit() -> None:
    heights = [planned(lanes).height for lanes in (1, 4, 64, 200, 1_000, 4_000, 40_000)]

    assert heights[0] < heights[1] < heights[2] < heights[3] < heights[4]
    assert max(heights) <= MOST_HEIGHT


@pytest.mark.parametrize("scale", [0.5, 1, 2, 4])
def test_no_picture_is_taller_than_the_limit(scale: float) -> None:
    for lanes in (1, 333, 1_000, 3_999, 5_000, 100_000):
        assert planned(lanes, scale).height <= MOST_HEIGHT


def test_labels_thin_out_when_rows_get_small_and_the_picture_says_so() -> None:
    assert planned(64).label_every == 1
    assert planned(64).note is None
    sheet = planned(1_000)
    assert sheet.label_every > 1
    assert len(sheet.kept) == 1_000
    assert sheet.note == f"one lane in {sheet.label_every} is labelled"


def test_too_many_lanes_are_thinned_by_whole_ranks_and_the_picture_says_so() -> None:
    sheet = planned(20_000)

    assert len(sheet.kept) < 20_000
    assert sheet.note == f"too many lanes for one picture: {len(sheet.kept):,} of 20,000 drawn"
    ranks = {place // 4 for place in sheet.kept}
    assert len(sheet.kept) == 4 * len(ranks)


def test_one_rank_with_too_many_lanes_is_thinned_too() -> None:
    sheet = plan([1.0] * 9_000, [0] * 9_000, 2000, 2, label_width=250, legend_lines=1)

    assert 0 < len(sheet.kept) < 9_000
    assert sheet.height <= MOST_HEIGHT


def test_every_lane_is_in_the_picture_as_a_bar_of_its_stages_colour(tmp_path: Path) -> None:
    timeline = timeline_data.load(timeline_tables.training(ranks=4, steps=1).write(tmp_path))
    layout = timeline_layout.arrange(timeline)
    tops = {lane: 10 * place for place, lane in enumerate(layout.by_rank.lanes)}

    found = timeline_bars.bars(timeline, layout, tops, 10, 500, gap=1, room_for_ranges=0)

    assert set(found) == {stage.colour for stage in layout.stages}
    rows = {bar.top // 10 for bars in found.values() for bar in bars}
    assert rows == set(range(len(layout.rows)))
    assert all(0 <= bar.left < bar.right <= 500 for bars in found.values() for bar in bars)


@pytest.mark.parametrize("tracks", [76, 1000])
def test_one_stage_among_very_many_of_another_is_seen_in_the_picture(
    tracks: int, tmp_path: Path
) -> None:
    made = Tables()
    made.lane("a")
    for turn in range(tracks):
        name = "reference" if turn == 0 else "rollout"
        made.span("a", turn, 6_000, role="rollout", rank_id=0, name=name)
    timeline = timeline_data.load(made.write(tmp_path))
    layout = timeline_layout.arrange(timeline)
    colour = {stage.name: stage.colour for stage in layout.stages}

    found = timeline_bars.bars(timeline, layout, {0: 0}, 20, 500, gap=1, room_for_ranges=0)

    # What is painted over the middle of the picture: later colours hide earlier ones.
    seen = {}
    for paint, bars in found.items():
        for bar in bars:
            if bar.left <= 250 < bar.right:
                seen.update(dict.fromkeys(range(bar.top, bar.bottom), paint))
    # Four plain rows of 20 pixels without a tenth of one at either side.
    assert set(range(2, 78)) <= set(seen) <= set(range(2, 79))
    assert 1 <= list(seen.values()).count(colour["reference"]) <= 2


def test_ranges_are_drawn_where_their_stage_has_room(tmp_path: Path) -> None:
    timeline = timeline_data.load(timeline_tables.training(2, 1, 1, 4).write(tmp_path))
    layout = timeline_layout.arrange(timeline)
    tops = {lane: 20 * place for place, lane in enumerate(layout.by_rank.lanes)}
    stages = {stage.colour for stage in layout.stages}

    wide = timeline_bars.bars(timeline, layout, tops, 20, 2000, gap=1, room_for_ranges=24)
    narrow = timeline_bars.bars(timeline, layout, tops, 20, 60, gap=1, room_for_ranges=24)

    assert set(wide) > stages
    assert set(narrow) == stages


def test_hostile_names_are_drawn_without_a_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = drawn(timeline_tables.hostile(), tmp_path, 1000, 1)

    assert size(picture)[0] == 1000
    assert size(picture)[1] < 800


@pytest.mark.parametrize("failed", [0, 3, 500])
def test_an_empty_timeline_is_a_picture_that_says_so(failed: int, tmp_path: Path) -> None:
    made = timeline_tables.nothing([f"f{n}.json" for n in range(failed)], ["failed"] * failed)

    width, height = size(drawn(made, tmp_path, 800, 2))

    assert width == 1600
    assert 100 < height < 2_000


def test_a_white_edge_parts_neighbouring_bars(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a")
    for turn in range(4):
        made.span("a", 100 * turn, 100, role="actor_update", rank_id=0)
    timeline = timeline_data.load(made.write(tmp_path))
    layout = timeline_layout.arrange(timeline)

    (bars,) = timeline_bars.bars(timeline, layout, {0: 0}, 10, 400, 2, 0).values()

    gaps = [after.left - before.right for before, after in pairwise(bars)]
    assert gaps == [2, 2, 2]
    assert np.ptp([bar.top for bar in bars]) == 0


def test_the_label_of_a_step_at_the_right_edge_is_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Tables()
    made.lane("a")
    for step, start in ((1, 0), (3_000, 9_950)):
        made.span("a", start, 50, role="actor_update", rank_id=0, step=step)
    written: dict[str, tuple[float, str]] = {}
    write = ink.Paper.text

    def text(paper: ink.Paper, x: float, y: float, text: str, *how, **more) -> None:  # type: ignore[no-untyped-def]
        written[text] = (x, more.get("across", "left"))
        write(paper, x, y, text, *how, **more)

    monkeypatch.setattr(ink.Paper, "text", text)
    drawn(made, tmp_path, 800, 1)

    assert written["step 1"][1] == "left"
    assert written["step 3000"][1] == "right"
    assert written["step 3000"][0] <= 800


def test_asking_for_the_visualizers_loads_no_drawing_library() -> None:
    code = (
        "import sys; from rl_insight.visualizers import VISUALIZERS;"
        "[VISUALIZERS.get(name).output for name in ('html', 'png')];"
        "print([name for name in ('matplotlib', 'plotly', 'pandas') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_picture_hatches_what_is_missing_and_says_how_much_in_its_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = timeline_tables.grid(4, 3, without=[(1, 2), (2, 1), (2, 2), (2, 3)])
    written: dict[str, float] = {}
    boxes: list[ink.Box] = []
    write, hatch = ink.Paper.text, ink.Paper.hatched

    def text(paper: ink.Paper, x: float, y: float, text: str, *how, **more) -> None:  # type: ignore[no-untyped-def]
        written[text] = y
        write(paper, x, y, text, *how, **more)

    def hatched(paper: ink.Paper, found, *how, **more) -> None:  # type: ignore[no-untyped-def]
        boxes.extend(found)
        hatch(paper, found, *how, **more)

    monkeypatch.setattr(ink.Paper, "text", text)
    monkeypatch.setattr(ink.Paper, "hatched", hatched)
    picture = drawn(made, tmp_path, 800, 1)

    (facts,) = [text for text in written if text.startswith("3 of 4 ranks · 3 lanes")]
    assert written["4 of 12 captures missing"] == written[facts]
    assert written["not recorded"] == written["actor_update"]
    # The legend's, a stretch of rank 1 and all of rank 2; rows lie where their labels do.
    swatch, stretch, lane = boxes
    assert swatch[3] < stretch[1]
    assert stretch[1] < written["actor_update - Rank 1"] < stretch[3]
    assert lane[1] < written["actor_update - Rank 2"] < lane[3]
    assert stretch[2] - stretch[0] < (lane[2] - lane[0]) / 10
    assert max(lane[2], stretch[2]) <= size(picture)[0]


def test_ranks_that_lack_something_are_the_last_to_be_left_out() -> None:
    groups = [lane // 4 for lane in range(20_000)]
    always = [4 * 777 + 1, 4 * 778]

    sheet = plan([1.0] * 20_000, groups, 2000, 2, 250, 1, always)

    assert len(sheet.kept) < 20_000
    assert {777, 778} <= {place // 4 for place in sheet.kept}
    assert sheet.height <= MOST_HEIGHT
    everywhere = plan([1.0] * 20_000, groups, 2000, 2, 250, 1, range(20_000))
    assert 0 < len(everywhere.kept) < 20_000
    assert everywhere.height <= MOST_HEIGHT


def test_a_bar_whose_end_nobody_knows_is_torn_and_says_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Tables()
    for rank, long in ((0, 4_000), (1, 2_000)):
        made.lane(str(rank), step=1)
        where = {"role": "actor_update", "rank_id": rank, "step": 1}
        made.span(str(rank), 0, long, truncated=rank == 1, **where)
    written: dict[str, float] = {}
    write = ink.Paper.text

    def text(paper: ink.Paper, x: float, y: float, text: str, *how, **more) -> None:  # type: ignore[no-untyped-def]
        written[text] = y
        write(paper, x, y, text, *how, **more)

    monkeypatch.setattr(ink.Paper, "text", text)
    pixels = np.asarray(Image.open(drawn(made, tmp_path, 800, 1)).convert("RGB")).astype(int)

    assert {"4.00 s", "≥ 2.00 s", "end unknown"} <= set(written)
    assert "2.00 s" not in written
    # By the height at which a bar has no figure: in each row the last pixel of the bar's colour.
    layout = timeline_layout.arrange(timeline_data.load(tmp_path / "tables"))
    colour = [int(layout.stages[0].colour[at : at + 2], 16) for at in (1, 3, 5)]
    ends = {
        rank: {
            int(np.flatnonzero((pixels[round(middle) + off] == colour).all(axis=1))[-1])
            for off in range(-11, 12)
        }
        for rank, middle in ((r, written[f"actor_update - Rank {r}"]) for r in (0, 1))
    }
    assert len(ends[0]) == 1
    assert max(ends[1]) - min(ends[1]) >= 6
    whole = ends[0].pop() - (max(ends[1]) - min(ends[1]))
    assert max(ends[1]) < whole


@pytest.mark.parametrize("height", [1, 2, 3, 5, 8, 12, 24, 60])
@pytest.mark.parametrize("scale", [0.5, 1, 2])
def test_a_torn_end_stays_in_its_bar_and_leaves_some_of_it(height: int, scale: float) -> None:
    for width in (3, 4, 8, 30, 500):
        box = (100.0, 50.0, 100.0 + width, 50.0 + height)
        outlines = list(timeline_torn.torn(box, scale))
        assert outlines
        for x, y in (corner for outline in outlines for corner in outline):
            assert box[0] < x <= box[2]
            assert box[1] <= y <= box[3]


def test_only_single_bars_of_an_unknown_end_are_torn(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a")
    # Of 400 pixels for 4 s: bars of 100 pixels, and one of a single pixel.
    for start, long, cut in ((0, 1_000, True), (1_000, 990, False), (2_000, 10, True)):
        made.span("a", start, long, role="actor_update", rank_id=0, truncated=cut)
    made.span("a", 3_000, 1_000, role="actor_update", rank_id=0, truncated=True)
    timeline = timeline_data.load(made.write(tmp_path))
    layout = timeline_layout.arrange(timeline)

    torn = timeline_bars.unfinished_bars(timeline, layout, {0: 20}, 10, 400, 1)

    # The first gives its last pixel to the gap before its neighbour.
    assert [(bar.left, bar.right) for bar in torn] == [(0, 99), (300, 400)]
    assert {(bar.top, bar.bottom) for bar in torn} == {(21, 29)}
    assert timeline_bars.unfinished_bars(timeline, layout, {}, 10, 400, 1) == []
