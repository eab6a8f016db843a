"""The timeline page in a browser: its buttons, its slider and what the pointer shows."""

import io
import struct
from collections.abc import Callable

import pytest
from PIL import Image

from rl_insight.visualizers.timeline_marks import marks
from tests import timeline_tables
from tests.browser.opened_page import Opened
from tests.timeline_tables import ORIGIN_NS, SECOND, Tables

pytestmark = pytest.mark.browser

Open = Callable[..., Opened]


def three_lanes() -> Tables:
    """Two ranks of one stage with a range inside, and a rollout replica; in seconds."""
    made = Tables()
    for lane in ("roll", "up0", "up1"):
        made.lane(lane, step=3)
    made.span("roll", 0, 4_000, role="agent_loop_rollout", replica=1, rank_id=0, step=3)
    for rank, long in ((0, 4_000), (1, 5_500)):
        where = {"role": "actor_update", "rank_id": rank, "step": 3}
        stage = made.span(f"up{rank}", 4_500, long, **where)
        made.span(
            f"up{rank}", 5_000, 2_000, kind="range", depth=1, name="micro_batch", micro_batch=7,
            parent_id=stage, **where,
        )  # fmt: skip
    made.breakdown.append(
        {
            "span_id": stage,
            "window_ns": 5_500_000_000,
            "computing_ns": 2_750_000_000,
            "communication_ns": 1_100_000_000,
            "overlapped_ns": 550_000_000,
            "free_ns": 2_200_000_000,
        }
    )
    return made


def test_rows_are_labelled_and_the_page_says_what_it_shows(open_page: Open) -> None:
    opened = open_page(timeline_tables.failures(three_lanes()))

    assert opened.labels() == [
        "agent_loop_rollout_replica_1 - Rank 0",
        "actor_update - Rank 0",
        "actor_update - Rank 1",
    ]
    header = opened.page.locator("header").inner_text()
    for fact in ("RL Timeline", "2026-08-14 12:27:31.089 UTC", "2 ranks"):
        assert fact in header
    # What was lost is counted once, in the strip below.
    assert "not read" not in header
    assert "3 files not read" in opened.page.locator("details summary").inner_text()
    assert opened.page.evaluate("document.documentElement.lang") == "en"


def test_doubts_open_above_the_timeline_and_skipped_files_raise_no_alarm(open_page: Open) -> None:
    made = three_lanes()
    made.source("left", "a.json.tmp", status="skipped", detail="A writer's leftover.")
    calm = open_page(made).page.locator("details")
    assert calm.locator("summary").inner_text() == "1 skipped (of 4)"
    quiet = calm.evaluate("one => getComputedStyle(one).backgroundColor")

    doubt = {"code": "clock_skew", "severity": "warning", "example": "its clock is <b>3 s</b> off"}
    made.source("odd", "odd.json", problems=[doubt])
    details = open_page(made).page.locator("details")

    assert details.locator("summary").inner_text() == "1 file read with doubts, 1 skipped (of 5)"
    assert not details.locator("li").first.is_visible()
    details.locator("summary").click()
    entry = details.locator("li").first.inner_text()
    assert entry == "doubtful odd.json clock_skew: its clock is <b>3 s</b> off"
    assert details.evaluate("one => getComputedStyle(one).backgroundColor") != quiet


def test_the_label_of_a_step_stays_inside_the_plot_at_its_right_edge(open_page: Open) -> None:
    made = Tables()
    made.lane("a")
    for step, start in ((1, 0), (2, 5_000), (3_000, 9_950)):
        made.span("a", start, 50, role="actor_update", rank_id=0, step=step)
    opened = open_page(made)

    ends = opened.page.evaluate(
        """() => [...document.querySelectorAll('#plot .annotation-text')]
             .map((one) => [one.textContent, one.getBoundingClientRect().right])"""
    )

    assert [text for text, _ in ends] == ["step 1", "step 2", "step 3000"]
    edge, _ = opened.place("actor_update - Rank 0", 10.0)
    assert all(right <= edge for _, right in ends)


def test_the_sort_buttons_order_the_rows(open_page: Open) -> None:
    opened = open_page(timeline_tables.training(ranks=2, steps=1, replicas=1))
    by_stage = opened.labels()

    opened.press("Sort: By Rank ID")
    by_rank = opened.labels()
    opened.press("Sort: Default")

    assert by_stage == opened.labels()
    assert sorted(by_rank) == sorted(by_stage)
    assert [label.rpartition(" ")[2] for label in by_rank] == ["0"] * 4 + ["1"] * 4
    assert [label.partition(" ")[0] for label in by_stage[::2]] == [
        "agent_loop_rollout_replica_0",
        "actor_compute_log_prob",
        "ref_compute_log_prob",
        "actor_update",
    ]


def straggler(ranks: int, slow: int) -> Tables:
    """One step of `actor_update`: all ranks take from 5.0 to 5.1 s, the `slow` one 7.05 s."""
    made = Tables()
    for rank in range(ranks):
        made.lane(f"r{rank}")
        long = 7_050 if rank == slow else 5_000 + rank * 100 / ranks
        made.span(f"r{rank}", 0, long, role="actor_update", rank_id=rank, step=1)
    return made


def test_the_slow_rank_among_hundreds_is_on_top_when_the_longest_are_first(
    open_page: Open,
) -> None:
    opened = open_page(straggler(300, 250))
    opened.page.locator("#scroller").evaluate("one => { one.scrollTop = 3000; }")
    opened.settle()
    assert "actor_update - Rank 0" not in opened.labels()

    opened.press("Sort: Longest First")

    assert opened.labels()[:3] == [
        "actor_update - Rank 250",
        "actor_update - Rank 299",
        "actor_update - Rank 298",
    ]
    opened.press("Sort: Default")
    assert opened.labels()[0] == "actor_update - Rank 0"


def test_the_longest_are_first_in_each_role(open_page: Open) -> None:
    # Rank 1 takes 5.5 s to update the actor, rank 0 and the rollout before it 4 s.
    opened = open_page(three_lanes())

    opened.press("Sort: Longest First")

    assert opened.labels() == [
        "agent_loop_rollout_replica_1 - Rank 0",
        "actor_update - Rank 1",
        "actor_update - Rank 0",
    ]


@pytest.mark.parametrize("ranks", [16, 2_000])
def test_the_range_slider_shows_the_tail_of_one_rank_among_thousands(
    ranks: int, open_page: Open
) -> None:
    opened = open_page(straggler(ranks, 7))

    # Of 7.05 s: inside everybody's, in the tail just after it, and just before its end.
    body, tail, end = piles(opened, 2.5 / 7.05, 5.2 / 7.05, 7.0 / 7.05)

    assert body > 30
    assert 1 <= tail == end < body / 2


def test_the_range_slider_shows_a_microsecond_at_the_end(open_page: Open) -> None:
    made = straggler(300, 7)
    made.span("r7", 9_000, 0.001, role="actor_update", rank_id=7, step=2)
    opened = open_page(made)

    between, end = piles(opened, 8 / 9, 1)
    assert between == 0
    assert end >= 1


def test_many_small_stages_at_one_time_all_have_their_place_in_the_range_slider(
    open_page: Open,
) -> None:
    made = Tables()
    for rank in range(1_000):
        # Ten roles of one rank each among 990 ranks of another.
        role = f"reward_{rank}" if rank < 10 else "actor_update"
        made.lane(f"r{rank}")
        made.span(f"r{rank}", 0, 1_000, role=role, rank_id=rank, step=1)
    opened = open_page(made)

    colours = opened.page.evaluate(
        """() => {
             const canvas = document.querySelector('#slider canvas');
             const at = Math.round(canvas.width / 2);
             const { data } = canvas.getContext('2d').getImageData(at, 0, 1, canvas.height);
             const found = new Set();
             for (let y = 0; y < canvas.height; y += 1) {
               if (data[4 * y + 3] === 255) found.add(data.slice(4 * y, 4 * y + 3).join());
             }
             const own = JSON.parse(document.getElementById('data').textContent).stages;
             const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join();
             return own.map((stage) => found.has(rgb(stage.colour)));
           }"""
    )

    assert colours == [True] * 11


def test_the_pointer_shows_one_span_with_its_times_and_breakdown(open_page: Open) -> None:
    opened = open_page(three_lanes())

    opened.point("actor_update - Rank 1", 9.5)

    tip = opened.tip()
    for words in (
        "actor_update",
        "actor_update - Rank 1",
        "Step\t3",
        "4.500000 s",
        "12:27:35.589000 UTC",
        "10.000000 s",
        "5.50 s",
        "Computing\t2.75 s\t50.0 %",
        "Communication\t1.10 s\t20.0 %, 550 ms of it overlapped",
        "Free\t2.20 s\t40.0 %",
    ):
        assert words in tip
    assert "Memory" not in tip
    opened.point("actor_update - Rank 0", 2.0)
    assert opened.tip() == ""


def test_a_rank_counted_inside_its_replica_is_said_and_shown_globally(open_page: Open) -> None:
    made = Tables()
    made.lane("roll", global_rank=2)
    made.lane("up", global_rank=0)
    made.span("roll", 0, 4_000, role="agent_loop_rollout", replica=1, rank_id=0)
    made.span("up", 5_000, 4_000, role="actor_update", rank_id=0)
    opened = open_page(made)

    header = opened.page.locator("header").inner_text()
    assert "rollout ranks are counted inside their replica" in header
    opened.point("agent_loop_rollout_replica_1 - Rank 0", 2.0)
    assert "Rank\t0\nGlobal rank\t2" in opened.tip()
    opened.point("actor_update - Rank 0", 6.0)
    assert "Global rank" not in opened.tip()


def test_a_step_that_was_inferred_says_so(open_page: Open) -> None:
    made = Tables()
    made.lane("roll", step=2, step_source="inferred")
    made.lane("up", step=2, step_source="name")
    where = {"role": "agent_loop_rollout", "replica": 1, "rank_id": 0, "step": 2}
    stage = made.span("roll", 0, 4_000, **where)
    made.span("roll", 0, 4_000, kind="range", depth=1, name="micro_batch", micro_batch=7,
              parent_id=stage, **where)  # fmt: skip
    made.span("up", 5_000, 4_000, role="actor_update", rank_id=0, step=2)
    opened = open_page(made)

    opened.point("agent_loop_rollout_replica_1 - Rank 0", 2.0)
    assert "Step\t2 (inferred)" in opened.tip()
    opened.point("actor_update - Rank 0", 6.0)
    assert "Step\t2\n" in opened.tip()
    opened.press("Hover: All Ranks")
    opened.point("agent_loop_rollout_replica_1 - Rank 0", 2.0)
    assert "step 2 (inferred) · 1 lane" in opened.tip()
    assert opened.tip().count("inferred") == 1


def test_the_pointer_finds_a_range_inside_its_stage(open_page: Open) -> None:
    opened = open_page(three_lanes())

    opened.point("actor_update - Rank 0", 6.0)

    tip = opened.tip()
    assert "micro_batch" in tip
    assert "Inside\tactor_update" in tip
    assert "micro-batch 7" in tip
    opened.press("Show ranges")
    opened.point("actor_update - Rank 0", 6.0)
    assert "Inside" not in opened.tip()


def test_a_span_says_what_its_file_lost_and_tells_no_time_that_nobody_knows(
    open_page: Open,
) -> None:
    made = Tables()
    made.lane("well")
    made.source("file-cut", "cut.jsonl", status="salvaged", detail="it <b>breaks off</b>")
    made.lane("cut", clock="relative")
    # GIVEN two captures of one rank, one of which neither tells its time nor is complete
    made.span("well", 0, 4_000, role="actor_update", rank_id=0)
    made.span("cut", 5_000, 4_000, role="actor_update", rank_id=0)
    opened = open_page(made)

    opened.point("actor_update - Rank 0", 2.0)
    assert opened.tip().count(" UTC") == 2
    assert "Read in part" not in opened.tip()
    assert "No clock" not in opened.tip()

    opened.point("actor_update - Rank 0", 7.0)
    assert "UTC" not in opened.tip()
    assert "Start\t5.000000 s\n" in opened.tip()
    assert "Read in part: it <b>breaks off</b>." in opened.tip()
    assert "No clock in this capture" in opened.tip()


@pytest.mark.parametrize(
    ("name", "batch", "words"),
    [
        ("micro_batch1", {"micro_batch": 1}, "micro-batch 1"),
        ("mini_batch", {"mini_batch": 1}, "mini-batch 1"),
        ("micro-batch-01", {"mini_batch": 0, "micro_batch": 1}, "mini-batch 0, micro-batch 1"),
        ("micro_batch1", {"micro_batch": 2}, "micro_batch1, micro-batch 2"),
        ("forward", {"micro_batch": 1}, "forward, micro-batch 1"),
    ],
)
def test_a_range_that_is_called_after_its_batch_says_it_once(
    open_page: Open, name: str, batch: dict[str, int], words: str
) -> None:
    made = Tables()
    made.lane("a")
    where = {"role": "actor_update", "rank_id": 0}
    stage = made.span("a", 0, 10_000, **where)
    inner = {"kind": "range", "depth": 1, "parent_id": stage, "name": name, **batch}
    made.span("a", 1_000, 8_000, **where, **inner)
    opened = open_page(made)

    opened.press("Hover: All Ranks")
    opened.point("actor_update - Rank 0", 5.0)

    assert f"Rank 0\t10.0 s\t{words}" in opened.tip().splitlines()


@pytest.mark.parametrize("thin", [False, True])
def test_a_bar_whose_end_nobody_knows_is_torn_and_says_at_least(
    open_page: Open, thin: bool
) -> None:
    made = three_lanes()
    # Thin rows are offered where not all lanes are on screen.
    for rank in range(2, 60):
        made.lane(f"up{rank}", step=3)
        where = {"role": "actor_update", "rank_id": rank, "step": 3}
        made.span(f"up{rank}", 4_500, 2_000, truncated=rank == 2, **where)
    opened = open_page(made)
    if thin:
        opened.press("Thin rows")
    plot = opened.page.evaluate(
        """() => {
             const { data, layout } = document.getElementById('plot');
             const torn = data.filter((trace) => trace.name === 'end unknown');
             const texts = data.flatMap((trace) => [...(trace.text || [])]);
             return { torn: torn.map(({ x, y }) => [[...x], [...y]]), texts,
                      ticks: layout.yaxis.tickvals, labels: layout.yaxis.ticktext };
           }"""
    )

    ((times, heights),) = plot["torn"]
    # Its own first and last corner lead to the edge of the plot; the stage ends at 6.5 s.
    corners = list(zip(times, heights, strict=True))
    inside = [(time, height) for time, height in corners if time > 4.5]
    assert inside
    assert 6.4 < max(time for time, _ in inside) < 6.52
    row = dict(zip(plot["labels"], plot["ticks"], strict=True)).get("actor_update - Rank 2", 3.5)
    assert all(row - 0.5 < height < row + 0.5 for _, height in inside)
    if not thin:
        assert plot["texts"].count("≥ 2.00 s") == 1
        assert plot["texts"].count("2.00 s") > 10
        opened.point("actor_update - Rank 2", 5)
        assert "Duration\t≥ 2.00 s" in opened.tip()
    assert "end unknown" in opened.page.locator("#legend").inner_text()
    assert open_page(three_lanes()).page.locator("#legend .entry").count() == 0


def test_hover_all_ranks_lists_what_every_lane_does(open_page: Open) -> None:
    opened = open_page(three_lanes())

    opened.press("Hover: All Ranks")
    opened.point("agent_loop_rollout_replica_1 - Rank 0", 6.0)

    tip = opened.tip()
    assert float(tip.split()[1]) == pytest.approx(6, abs=0.02)
    assert "2 lanes" in tip
    assert "Rank 0\t4.00 s\tmicro-batch 7" in tip
    assert "Rank 1\t5.50 s\tmicro-batch 7" in tip
    assert "No span at this time: 1 lane" in tip
    assert opened.page.locator("#cursor").is_visible()
    opened.press("Hover: Current Only")
    opened.point("actor_update - Rank 1", 9.5)
    assert "No span" not in opened.tip()
    assert "Duration" in opened.tip()


def test_the_list_of_hundreds_of_lanes_stays_readable(open_page: Open) -> None:
    made = Tables()
    for rank in range(300):
        made.lane(f"l{rank}")
        made.span(f"l{rank}", 0, 1_000 + rank, role="actor_update", rank_id=rank, step=1)
    opened = open_page(made)

    opened.press("Hover: All Ranks")
    opened.point("actor_update - Rank 2", 0.5 * 1_000)

    lines = opened.tip().splitlines()
    assert len(lines) < 40
    assert "Rank 299\t1.30 s" in lines
    (rest,) = [line for line in lines if line.startswith("… and ")]
    listed = sum(line.startswith("Rank ") for line in lines)
    assert rest == f"… and {300 - listed} more (the longest are listed)"
    box = opened.page.locator("#tip").bounding_box()
    assert box is not None and box["y"] >= 0 and box["y"] + box["height"] <= 850


def test_the_range_slider_zooms_by_its_handles_and_moves_by_its_window(open_page: Open) -> None:
    opened = open_page(three_lanes())
    slider = opened.page.locator("#slider").bounding_box()
    assert slider is not None
    middle = slider["y"] + slider["height"] / 2
    assert opened.shown() == (0, 10)

    drag(opened, (slider["x"] - 3, middle), (slider["x"] + slider["width"] * 0.4, middle))
    low, high = opened.shown()
    assert low == pytest.approx(4, abs=0.1)
    assert high == 10

    drag(
        opened,
        (slider["x"] + slider["width"] * 0.7, middle),
        (slider["x"] + slider["width"] * 0.5, middle),
    )
    low, high = opened.shown()
    assert low == pytest.approx(2, abs=0.1)
    assert high - low == pytest.approx(6, abs=0.1)

    opened.press("Whole run")
    assert opened.shown() == (0, 10)


def test_the_range_slider_obeys_keys(open_page: Open) -> None:
    opened = open_page(three_lanes())
    start = opened.page.get_by_role("slider", name="Start of what is shown")

    start.focus()
    start.press("PageUp")
    start.press("ArrowRight")
    opened.settle()

    assert opened.shown()[0] == pytest.approx(1.1)
    assert start.get_attribute("aria-valuetext") == "1.100000 s"


def test_keys_of_the_range_slider_that_come_in_one_frame_all_count(open_page: Open) -> None:
    opened = open_page(three_lanes())
    start = opened.page.get_by_role("slider", name="Start of what is shown")
    start.evaluate(
        """(one) => { for (const key of ["PageUp", "ArrowRight", "ArrowRight"])
             one.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })); }"""
    )
    opened.settle()
    assert opened.shown()[0] == pytest.approx(1.2)


def test_a_drag_in_the_plot_zooms_and_a_double_click_shows_the_whole_run(open_page: Open) -> None:
    opened = open_page(three_lanes())
    left = opened.place("actor_update - Rank 0", 4.0)
    right = opened.place("actor_update - Rank 0", 6.0)

    drag(opened, left, right)

    low, high = opened.shown()
    assert low == pytest.approx(4, abs=0.1)
    assert high == pytest.approx(6, abs=0.1)
    opened.page.mouse.dblclick(*opened.place("actor_update - Rank 0", 5.0))
    opened.page.wait_for_timeout(400)
    opened.settle()
    assert opened.shown() == (0, 10)


def test_wheel_and_keys_zoom_around_the_pointer_and_pan(open_page: Open) -> None:
    opened = open_page(three_lanes())
    opened.page.mouse.move(*opened.place("actor_update - Rank 0", 5.0))

    opened.page.keyboard.down("Control")
    opened.page.mouse.wheel(0, -250)
    opened.page.keyboard.up("Control")
    opened.settle()
    low, high = opened.shown()
    assert (low + high) / 2 == pytest.approx(5, abs=0.05)
    assert 2 < high - low < 6

    opened.page.keyboard.press("d")
    opened.settle()
    assert opened.shown()[0] > low
    opened.page.keyboard.press("0")
    opened.settle()
    assert opened.shown() == (0, 10)


def test_zoom_brings_out_what_one_pixel_held(open_page: Open) -> None:
    made = Tables()
    made.lane("a")
    for turn in range(2_000):
        made.span("a", turn, 0.5, role="actor_update", rank_id=0, step=turn)
    made.span("a", 60_000, 100, role="reference", rank_id=0)
    opened = open_page(made)
    opened.point("actor_update - Rank 0", 1.0)
    crowded = opened.tip()

    opened.page.evaluate(
        "Plotly.relayout('plot', {'xaxis.range[0]': 0.9995, 'xaxis.range[1]': 1.0095})"
    )
    opened.settle()
    opened.point("actor_update - Rank 0", 1.00025)

    assert "more in this pixel: zoom in" in crowded
    assert "Step\t1000" in opened.tip()
    assert "500 µs" in opened.tip()
    assert "more in this pixel" not in opened.tip()


def test_a_click_in_the_legend_hides_a_stage_and_its_rows(open_page: Open) -> None:
    opened = open_page(three_lanes())
    rollout = opened.page.locator("#legend").get_by_role("button", name="agent_loop_rollout")

    rollout.click()
    opened.settle()
    assert opened.labels() == ["actor_update - Rank 0", "actor_update - Rank 1"]
    assert rollout.get_attribute("aria-pressed") == "false"

    rollout.click()
    opened.settle()
    assert len(opened.labels()) == 3


def test_the_camera_gives_a_png_of_all_rows(open_page: Open) -> None:
    opened = open_page(timeline_tables.training(ranks=16, steps=1), width=1000, height=600)

    with opened.page.expect_download() as download:
        opened.page.locator('[data-title="Download plot as a PNG"]').click()

    path = download.value.path()
    content = path.read_bytes()
    assert download.value.suggested_filename == "rl_timeline.png"
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    assert width > 1_800
    assert height > 2 * 600


def test_a_thousand_lanes_are_scrolled_through_and_stay_readable(open_page: Open) -> None:
    opened = open_page(timeline_tables.many(4_000, 1_000))
    assert opened.labels()[0] == "agent_loop_rollout - Rank 0"
    assert 15 < len(opened.labels()) < 40

    opened.page.mouse.move(*opened.place("agent_loop_rollout - Rank 5", 1.0))
    opened.page.mouse.wheel(0, 10_000_000)
    opened.page.wait_for_timeout(300)
    opened.settle()
    assert opened.labels()[-1] == "actor_update - Rank 249"

    opened.press("Thin rows")
    assert opened.labels()[0] == "agent_loop_rollout - Rank 0"
    assert "lanes 1–" in opened.page.locator("#shown").inner_text()


def test_one_lane_on_screen_is_called_a_lane(open_page: Open) -> None:
    made = Tables()
    for rank in range(2):
        for number in range(6):
            made.lane(f"{rank}-{number}")
            made.span(f"{rank}-{number}", number, 100, role="actor_update", rank_id=rank)
    opened = open_page(made)

    opened.page.locator("main").evaluate(
        "one => { one.style.cssText = 'flex: none; min-height: 0; height: 160px'; }"
    )
    opened.page.wait_for_timeout(300)
    opened.settle()

    assert opened.page.locator("#shown").inner_text() == "lane 1 of 2: scroll for more"


def test_few_marks_are_drawn_of_many_spans(open_page: Open) -> None:
    opened = open_page(timeline_tables.many(20_000, 64))

    points = opened.page.evaluate(
        "document.getElementById('plot').data.reduce((sum, trace) => sum + trace.x.length, 0)"
    )
    elements = opened.page.evaluate("document.querySelectorAll('#plot *').length")

    assert points < 60_000
    assert elements < 1_000


def test_hostile_names_are_shown_and_do_nothing(open_page: Open) -> None:
    opened = open_page(timeline_tables.hostile())

    label = "<script>alert(1)</script> - Rank 0"
    assert label in opened.labels()
    opened.point(label, 0.05)
    assert "<script>alert(1)</script>" in opened.tip()
    opened.press("Hover: All Ranks")
    opened.point(label, 0.05)
    opened.page.locator("details summary").click()
    assert "broken: <script>alert(1)</script>" in opened.page.locator("details").inner_text()
    for element in ("script[src]", "img", "#plot svg a", "#legend b", "#tip b", "details b"):
        assert opened.page.locator(element).count() == 0
    with opened.page.expect_download():
        opened.page.locator('[data-title="Download plot as a PNG"]').click()


def test_overlapping_files_of_one_rank_can_both_be_seen(open_page: Open) -> None:
    made = Tables()
    for source in ("a", "b"):
        made.lane(source)
    made.span("a", 0, 3_000, role="actor_update", rank_id=0, step=1)
    made.span("b", 1_000, 4_000, role="actor_update", rank_id=0, step=2)
    opened = open_page(made)
    x, y = opened.place("actor_update - Rank 0", 2.0)

    found = []
    for down in (-8, 8):
        opened.page.mouse.move(x, y + down)
        opened.settle()
        found.append(next(line for line in opened.tip().splitlines() if "Duration" in line))

    assert found == ["Duration\t3.00 s", "Duration\t4.00 s"]


@pytest.mark.parametrize(("tracks", "height"), [(40, 600), (76, 850), (76, 600), (500, 600)])
def test_every_stage_of_a_deep_stack_is_painted_and_so_is_one_alone_in_its_lane(
    tracks: int, height: int, open_page: Open
) -> None:
    made = Tables()
    made.lane("a")
    made.span("a", 0, 12_000, role="actor_update", rank_id=0)
    made.lane("b")
    made.span("b", 0, 3_000, role="rollout", rank_id=0)
    for turn in range(tracks):
        name = "reference" if turn == tracks // 2 else "rollout"
        made.span("b", 5_000 + turn, 6_000, role="rollout", rank_id=0, name=name)
    opened = open_page(made, width=900, height=height)
    model = "RLTimeline.read(document.getElementById('data').textContent)"
    colours = dict(opened.page.evaluate(f"{model}.stages.map((one) => [one.name, one.colour])"))

    stack = column(opened, "rollout - Rank 0", 8.0)
    alone = column(opened, "rollout - Rank 0", 1.5)
    opened.point("rollout - Rank 0", 1.0)

    # Four plain rows of at least 21 pixels, of which a tenth of one stays free at either side.
    assert alone.count(colours["rollout"].lower()) >= 76
    rare = stack.count(colours["reference"].lower())
    assert rare >= 1
    # Most of the height is painted in full, and nothing wider than a blurred gap is left.
    assert stack.count(colours["rollout"].lower()) >= (38 if tracks == 40 else 74)
    assert "3.00 s" in opened.tip()


def test_an_unknown_rank_is_said(open_page: Open) -> None:
    opened = open_page(timeline_tables.unknown_ranks())

    label = "actor_update - Rank ? (unknown: report_a.nsys-rep, pid 100)"
    assert label in opened.labels()
    opened.point(label, 1.0)
    assert "The rank is unknown" in opened.tip()


@pytest.mark.parametrize("failed", [0, 30])
def test_a_page_without_spans_says_what_is_wrong(failed: int, open_page: Open) -> None:
    opened = open_page(
        timeline_tables.nothing([f"actor/f{n}.json" for n in range(failed)], ["failed"] * failed)
    )

    body = opened.page.locator("body").inner_text()
    assert "No spans to draw" in body
    assert ("actor/f7.json It was failed." in body) == bool(failed)
    assert opened.page.locator("button").count() == 0


def test_every_button_is_reached_by_keyboard(open_page: Open) -> None:
    opened = open_page(three_lanes())
    reached = []

    for _ in range(13):
        opened.page.keyboard.press("Tab")
        reached.append(opened.page.evaluate("document.activeElement.textContent.trim()"))

    for caption in (
        "Hover: Current Only",
        "Hover: All Ranks",
        "Sort: Default",
        "Sort: By Rank ID",
        "Sort: Longest First",
        "actor_update",
    ):
        assert caption in reached
    opened.page.get_by_role("button", name="Sort: By Rank ID").focus()
    opened.page.keyboard.press("Enter")
    opened.settle()
    assert opened.labels()[0] == "agent_loop_rollout_replica_1 - Rank 0"
    assert opened.labels()[1] == "actor_update - Rank 0"


def test_page_and_picture_choose_the_same_marks(open_page: Open) -> None:
    made = timeline_tables.many(400, 4)
    made.span("lane-0", 500, 0.2, role="reference", rank_id=0)
    opened = open_page(made)
    cell, gap = 40_000_000.0, 1

    lines = opened.page.evaluate(
        """([cell, gap]) => {
             const model = RLTimeline.read(document.getElementById('data').textContent);
             const window = { from: 0, to: model.extent, cell, gap };
             return model.lines.flat().map((line) => {
               const many = line.last - line.first;
               const places = [...Array(many).keys()].map((at) => line.first + at);
               return {
                 start: places.map((at) => model.start[at]),
                 end: places.map((at) => model.end[at]),
                 paint: places.map((at) => at % 3),
                 marks: RLTimeline.marks(model, line, window, () => true, (at) => at % 3)
                   .map((mark) => [mark.left, mark.right, mark.paint, mark.single]),
               };
             });
           }""",
        [cell, gap],
    )

    assert len(lines) == 5
    for line in lines:
        ours = marks(line["start"], line["end"], line["paint"], cell, gap)
        assert [[m.left, m.right, m.paint, m.single] for m in ours] == line["marks"]
    assert any(single for line in lines for *_, single in line["marks"])
    assert any(not single for line in lines for *_, single in line["marks"])


def test_times_are_exact_a_hundred_days_into_a_run(open_page: Open) -> None:
    made = Tables()
    made.lane("a")
    made.span("a", 0, 1, role="actor_update", rank_id=0)
    late = ORIGIN_NS + 100 * 86_400 * SECOND + 123_456_789
    made.span("a", 0, 1, role="actor_update", rank_id=0, start_ns=late)
    opened = open_page(made)

    wall, start = opened.page.evaluate(
        """() => { const model = RLTimeline.read(document.getElementById('data').textContent);
             return [RLTimeline.wall(model, model.start[1]), model.start[1]]; }"""
    )

    assert start == late - ORIGIN_NS
    assert wall == "12:27:31.212456 UTC"


def test_stages_can_all_be_hidden_and_one_shown_alone(open_page: Open) -> None:
    opened = open_page(three_lanes())
    buttons = opened.page.locator("#legend button")

    for place in range(buttons.count()):
        buttons.nth(place).click()
    opened.settle()
    assert opened.labels() == []

    buttons.nth(1).dblclick()
    opened.settle()
    assert opened.labels() == ["actor_update - Rank 0", "actor_update - Rank 1"]
    buttons.nth(1).dblclick()
    opened.settle()
    assert len(opened.labels()) == 3


def test_the_page_follows_the_windows_size(open_page: Open) -> None:
    opened = open_page(three_lanes())

    opened.page.set_viewport_size({"width": 700, "height": 500})
    opened.page.wait_for_timeout(300)
    opened.settle()

    plot = opened.page.locator("#plot svg").first.bounding_box()
    assert plot is not None and plot["x"] + plot["width"] <= 700
    assert opened.labels()[1] == "actor_update - Rank 0"
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 700


def column(opened: Opened, label: str, time: float) -> list[str]:
    """The colours of the pixels of a row at a time, from top to bottom."""
    x, middle = opened.place(label, time)
    # Beside the duration that is written into the middle of a bar.
    x += 60
    with Image.open(io.BytesIO(opened.page.screenshot())) as picture:
        pixels = picture.convert("RGB")
        rows = range(round(middle) - 68, round(middle) + 68)
        inside = (y for y in rows if 0 <= y < pixels.height)
        return ["#{:02x}{:02x}{:02x}".format(*pixels.getpixel((round(x), y))) for y in inside]


def piles(opened: Opened, *parts: float) -> list[float]:
    """How high the overview is painted at those parts of the run, in pixels of the page."""
    # Painted is not seen: the frame of the window must not lie on it.
    frame = opened.page.locator("#slider [data-part=window]").bounding_box()
    canvas = opened.page.locator("#slider canvas").bounding_box()
    assert frame is not None and canvas is not None
    border = 2
    assert frame["y"] + border <= canvas["y"]
    assert frame["y"] + frame["height"] - border >= canvas["y"] + canvas["height"]
    painted: list[float] = opened.page.evaluate(
        """(parts) => {
             const canvas = document.querySelector('#slider canvas');
             const { width, height } = canvas;
             const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
             return parts.map((part) => {
               const x = Math.min(Math.floor(part * width), width - 1);
               let rows = 0;
               for (let y = 0; y < height; y += 1) rows += data[4 * (y * width + x) + 3] > 200;
               return rows * canvas.clientHeight / height;
             });
           }""",
        parts,
    )
    return painted


def drag(opened: Opened, start: tuple[float, float], end: tuple[float, float]) -> None:
    opened.page.mouse.move(*start)
    opened.page.mouse.down()
    opened.page.mouse.move((start[0] + end[0]) / 2, end[1], steps=4)
    opened.page.mouse.move(*end, steps=4)
    opened.page.mouse.up()
    opened.settle()
    opened.settle()
