"""The heatmap page in a browser: its controls, what the pointer shows, and its two panels."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from tests import expert_tables
from tests.browser.opened_heatmap import OpenedHeatmap
from tests.browser.opened_page import Opened
from tests.expert_tables import Tables

pytestmark = pytest.mark.browser

Open = Callable[..., OpenedHeatmap]


@pytest.fixture
def open_heatmap(open_page: Callable[..., Opened]) -> Open:
    """Draw the page of some tables and open it."""

    def open_one(made: Tables, **more: object) -> OpenedHeatmap:
        return OpenedHeatmap(open_page(made, visualizer="gmm_heatmap_html", **more))

    return open_one


def two_ranks(steps: int = 2) -> Tables:
    """Two ranks that hold the same four experts; step s has s times the tokens of step 1.

    Over both ranks layer 0 has 10, 20, 30 and 140 tokens in step 1, layer 1 has 50 everywhere.
    """
    made = Tables()
    for step in range(1, steps + 1):
        sums = {0: [10, 20, 30, 140], 1: [50, 50, 50, 50]}
        parts = {0: [[10, 20, 30, 40], [0, 0, 0, 100]], 1: [[20, 20, 20, 20], [30, 30, 30, 30]]}
        for rank in (0, 1):
            made.source(f"{rank}-{step}", f"step_{step}/rank{rank}")
            for layer in (0, 1):
                load = [count * step for count in parts[layer][rank]]
                made.layer(load, layer=layer, step=step, rank_id=rank, expert_offset=0)
        for layer, load in sums.items():
            where = {"step": step, "role": "actor_update", "layer": layer, "ranks": 2}
            made.expert_balance.append(
                expert_tables.balance([count * step for count in load], **where)
            )
    return made


def test_the_newest_step_comes_first_summed_over_its_ranks(open_heatmap: Open) -> None:
    heatmap = open_heatmap(two_ranks())

    assert heatmap.rows() == ["layer0", "layer1"]
    assert heatmap.columns() == ["0", "1", "2", "3"]
    header = heatmap.text("header")
    for fact in (
        "GMM expert load (group_list) ranks=2 — 8 snapshots, 4 experts",
        "steps 1–2",
        "the files hold counts (told by dump.json)",
    ):
        assert fact in header
    assert heatmap.text("#said") == (
        "2 rows × 4 experts · step 2 · actor_update · sum over ranks 0, 1 · forward. "
        "Fullest ×2.80 of the layer's mean: layer0, expert 3, 280 tokens."
    )
    assert heatmap.point("layer0", 3) == [
        "Expert 3 · layer0",
        "step 2 · actor_update · sum over ranks 0, 1 · forward",
        "Tokens\t280",
        "Of the layer's mean\t× 2.80 (mean 100)",
        "Of the layer's total\t70.00 % (of 400)",
        "Place\t1st of 4",
    ]
    assert heatmap.point("layer0", 1)[2:] == [
        "Tokens\t40",
        "Of the layer's mean\t× 0.40 (mean 100)",
        "Of the layer's total\t10.00 % (of 400)",
        "Place\t3rd of 4",
    ]
    assert heatmap.point("layer1", 1)[-1] == "Place\t1st of 4, as are 3 more"
    assert heatmap.lightness("layer0", 3) < heatmap.lightness("layer1", 0)
    assert heatmap.lightness("layer1", 0) < heatmap.lightness("layer0", 0)


def test_steps_are_chosen_one_summed_or_one_below_another(open_heatmap: Open) -> None:
    heatmap = open_heatmap(two_ranks(steps=3))

    heatmap.press("Earlier step")
    assert "step 2" in heatmap.text("#said")
    assert heatmap.point("layer0", 3)[2] == "Tokens\t280"
    heatmap.choose("Step", "1")
    assert heatmap.point("layer0", 3)[2] == "Tokens\t140"
    assert heatmap.page.get_by_role("button", name="Earlier step").is_disabled()
    heatmap.choose("Step", "all, summed")
    tip = heatmap.point("layer0", 3)
    assert tip[1].startswith("all steps · ")
    assert tip[2] == "Tokens\t840"
    heatmap.choose("Step", "all, one below another")
    assert heatmap.rows() == [
        f"step {step} · layer{layer}" for step in (1, 2, 3) for layer in (0, 1)
    ]
    assert heatmap.point("step 3 · layer0", 0)[2] == "Tokens\t30"


def test_ranks_are_chosen_one_some_summed_or_one_below_another(open_heatmap: Open) -> None:
    made = two_ranks(steps=1)
    made.layer([7, 0, 0, 0], layer=0, rank_id=5, step=1, expert_offset=0)
    heatmap = open_heatmap(made)

    assert heatmap.options("Ranks")[:4] == [
        "sum of 3",
        "each, one below another",
        "some …",
        "rank 0",
    ]
    heatmap.choose("Ranks", "rank 1")
    tip = heatmap.point("layer0", 0)
    assert tip[1] == "step 1 · actor_update · rank 1 · forward"
    assert tip[2:] == [
        "Tokens\t0",
        "Of the layer's mean\t× 0.00 (mean 25)",
        "Of the layer's total\t0.00 % (of 100)",
        "Place\t2nd of 4, as are 2 more",
    ]
    heatmap.choose("Ranks", "each, one below another")
    assert heatmap.rows()[::2] == ["rank 0 · layer0", "rank 1 · layer0", "rank 5 · layer0"]
    heatmap.choose("Ranks", "some …")
    some = heatmap.control("Ranks by number")
    some.fill("0, 5")
    some.press("Enter")
    heatmap.settle()
    assert heatmap.point("layer0", 0)[2] == "Tokens\t17"
    heatmap.control("summed").uncheck()
    heatmap.settle()
    assert heatmap.rows() == ["rank 0 · layer0", "rank 0 · layer1", "rank 5 · layer0"]
    some.fill("5-9")
    some.press("Enter")
    heatmap.settle()
    assert heatmap.rows() == ["layer0"]
    assert heatmap.text("#warned") == "No such rank here: 6, 7, 8, 9."
    some.fill("one")
    some.press("Enter")
    heatmap.settle()
    assert some.get_attribute("aria-invalid") == "true"


def batches_and_phases() -> Tables:
    made = Tables()
    for batch in (0, 1, 2):
        made.layer([10 + batch, 1], layer=0, micro_batch=batch, expert_offset=0)
        made.layer([100 + batch, 1], layer=0, micro_batch=batch, expert_offset=0, phase="backward")
    return made


def test_phase_and_micro_batch_are_chosen(open_heatmap: Open) -> None:
    heatmap = open_heatmap(batches_and_phases())

    assert heatmap.options("Phase") == ["forward", "backward", "all, one below another"]
    assert heatmap.point("layer0", 0)[2] == "Tokens\t10"
    heatmap.choose("Phase", "backward")
    assert heatmap.point("layer0", 0)[2] == "Tokens\t100"
    heatmap.choose("Micro-batch", "2")
    tip = heatmap.point("layer0", 0)
    assert tip[1].endswith("rank 0 · backward · micro-batch 2")
    assert tip[2] == "Tokens\t102"
    heatmap.choose("Micro-batch", "all 3, summed")
    assert heatmap.point("layer0", 0)[2] == "Tokens\t303"
    heatmap.choose("Phase", "all, one below another")
    heatmap.choose("Micro-batch", "all, one below another")
    assert heatmap.rows() == [
        f"batch {batch} · {phase} · layer0"
        for batch in (0, 1, 2)
        for phase in ("forward", "backward")
    ]


def test_the_configuration_says_what_is_shown_first(open_heatmap: Open) -> None:
    options = {
        "heatmap.visualizer.phase": "all",
        "heatmap.visualizer.micro_batch": "all",
        "heatmap.visualizer.cmap": "Greens",
    }
    heatmap = open_heatmap(batches_and_phases(), options=options)

    assert heatmap.rows() == ["forward · layer0", "backward · layer0"]
    assert heatmap.point("forward · layer0", 0)[2] == "Tokens\t33"
    assert heatmap.control("Colours").input_value() == "Greens"


def test_layers_are_averaged_by_their_own_shares(open_heatmap: Open) -> None:
    heatmap = open_heatmap(two_ranks(steps=1))

    heatmap.choose("Layers", "all layers averaged")
    assert heatmap.rows() == ["mean of 2 layers"]
    # (140 + 50) / 2 tokens; (2.8 + 1) / 2 of the layers' means; all experts have 200.
    assert heatmap.point("mean of 2 layers", 3)[2:] == [
        "Tokens, mean\t95",
        "Of the layers' means\t× 1.90",
        "Of all tokens\t47.50 % (of 200)",
        "Place\t1st of 4",
    ]
    heatmap.press("Share of layer's mean")
    assert "×2.00 of the layer's mean" in heatmap.text("#scale")
    heatmap.choose("Layers", "each layer")
    assert "×3.00" in heatmap.text("#scale")
    light = [heatmap.lightness("layer0", expert) for expert in range(4)]
    assert light == sorted(light, reverse=True)
    assert heatmap.lightness("layer0", 2) > heatmap.lightness("layer1", 0) > light[3]


def test_an_overloaded_expert_is_darker_than_those_that_are_merely_busy(open_heatmap: Open) -> None:
    made = Tables()
    for layer in range(20):
        made.layer([90, 110] * 32, layer=layer)
    # Of 1,344 cells one: 1,000 of 63 x 95 + 1,000 tokens, 9.15 times the mean of its layer.
    made.layer([1_000] + [95] * 63, layer=20)
    heatmap = open_heatmap(made)

    assert "1,000 tokens per expert" in heatmap.text("#scale")
    assert heatmap.lightness("layer20", 0) < heatmap.lightness("layer0", 0) - 100
    heatmap.press("Share of layer's mean")
    assert "×12 of the layer's mean" in heatmap.text("#scale")
    assert heatmap.lightness("layer20", 0) < heatmap.lightness("layer0", 0) - 100


def test_the_end_of_the_scale_says_how_many_cells_have_more(open_heatmap: Open) -> None:
    made = Tables()
    for layer in range(20):
        made.layer([100] * 64, layer=layer)
    made.layer([90_000] + [50] * 63, layer=20)
    heatmap = open_heatmap(made)

    end = round(4 * (20 * 100 + (90_000 + 63 * 50) / 64) / 21)
    assert f"{end} and more (1 cell, up to 90,000) tokens per expert" in heatmap.text("#scale")


def test_experts_of_an_expert_parallel_group_stand_at_their_global_ids(open_heatmap: Open) -> None:
    made = Tables()
    for rank, load in ((0, [1, 2, 3, 4]), (1, [5, 90_000])):
        made.layer(load, layer=0, rank_id=rank, expert_offset=4 * rank)
    heatmap = open_heatmap(made)

    assert heatmap.columns() == ["0", "1", "2", "3", "4", "5"]
    assert heatmap.point("layer0", 5)[2] == "Tokens\t90,000"
    assert heatmap.point("layer0", 5)[-1] == "Held\tnumber 1 on rank 1"
    assert heatmap.text("#scale-missing") == ""
    heatmap.choose("Ranks", "each, one below another")
    assert heatmap.point("rank 0 · layer0", 5) == [
        "Expert 5 · layer0",
        "step 1 · actor_update · rank 0 · forward",
        "no such expert on this rank",
    ]
    assert "no such expert" in heatmap.text("#scale-missing")
    assert heatmap.point("rank 1 · layer0", 5)[-2:] == [
        "Place\t1st of 2",
        "Held\tnumber 1 on rank 1",
    ]


def test_ranks_whose_experts_cannot_be_compared_are_never_summed(open_heatmap: Open) -> None:
    made = Tables()
    made.notes.add("expert_ids_local", "warning", example="The lists have 2, 4 experts.")
    made.layer([1, 2, 3, 4], layer=0, rank_id=0)
    made.layer([5, 6], layer=0, rank_id=1)
    made.call([7, 8], layer=None, phase=None, micro_batch=None, op_index=12, rank_id=1)
    heatmap = open_heatmap(made)

    assert heatmap.rows() == ["rank 0 · layer0", "rank 1 · layer0", "rank 1 · op12"]
    assert "ranks cannot be summed" in heatmap.text("#warned")
    assert "their order does not tell their layer" in heatmap.text("#warned")
    assert heatmap.control("Ranks").locator("option").first.is_disabled()
    assert heatmap.point("rank 1 · layer0", 1)[0] == "Expert 1 (counted on its rank) · layer0"
    assert heatmap.point("rank 1 · layer0", 3)[-1] == "no such expert on this rank"


def test_ranks_that_nothing_tells_apart_are_summed_and_the_page_says_what_it_takes_for_granted(
    open_heatmap: Open,
) -> None:
    made = Tables()
    for step in (1, 2):
        made.layer([1, 2, 3, 4], layer=0, rank_id=0, step=step)
        made.layer([10, 20, 30, 40], layer=0, rank_id=1, step=step)
    heatmap = open_heatmap(made)
    taken = "every rank is taken to hold all experts"

    assert heatmap.rows() == ["layer0"]
    assert heatmap.point("layer0", 1)[:3] == [
        "Expert 1 · layer0",
        "step 2 · actor_update · sum over ranks 0, 1 · forward",
        "Tokens\t22",
    ]
    # An assumption is no alarm.
    assert heatmap.text("#warned") == ""
    assert taken in heatmap.text("#assumes")
    assert "heatmap.parser.ep_size" in heatmap.text("#assumes")
    heatmap.choose("Step", "all, summed")
    assert heatmap.point("layer0", 1)[2] == "Tokens\t44"
    assert taken in heatmap.text("#assumes")
    # Of ranks apart nothing is taken for granted.
    heatmap.choose("Ranks", "each, one below another")
    assert heatmap.text("#assumes") == ""
    heatmap.choose("Ranks", "rank 1")
    assert heatmap.text("#assumes") == heatmap.text("#warned") == ""


def test_steps_of_a_single_rank_say_nothing_about_others(open_heatmap: Open) -> None:
    made = Tables()
    for rank in (0, 1):
        made.layer([1, 2], layer=0, rank_id=rank, step=rank)
    heatmap = open_heatmap(made)

    assert heatmap.text("#warned") == ""
    heatmap.choose("Step", "all, summed")
    assert "ranks cannot be summed" in heatmap.text("#warned")
    assert heatmap.rows() == ["rank 0 · layer0", "rank 1 · layer0"]


def two_dumps(rank: int | None) -> Tables:
    made = Tables()
    for source, load in (("a", [1, 2]), ("b", [10, 20])):
        made.source(source, f"dump_{source}")
        made.layer(load, layer=0, rank_id=rank, source_id=source)
    return made


def test_two_dumps_of_one_rank_are_added_up_or_told_apart(open_heatmap: Open) -> None:
    heatmap = open_heatmap(two_dumps(rank=3))

    assert heatmap.options("Ranks") == ["sum of 2", "each, one below another"]
    assert heatmap.point("layer0", 1)[2] == "Tokens\t22"
    assert heatmap.text("#warned") == ""
    heatmap.choose("Ranks", "each, one below another")
    assert heatmap.rows() == ["recording 1 · layer0", "recording 2 · layer0"]
    assert heatmap.point("recording 2 · layer0", 1)[1:3] == [
        "step 1 · actor_update · rank 3 · recording 2 · forward",
        "Tokens\t20",
    ]


def test_dumps_of_unknown_ranks_are_not_added_up_where_their_experts_differ(
    open_heatmap: Open,
) -> None:
    made = two_dumps(rank=None)
    made.notes.add("expert_ids_local", "warning", example="Each rank counts its own experts.")
    heatmap = open_heatmap(made)

    assert heatmap.rows() == ["recording 1 · layer0", "recording 2 · layer0"]
    assert "ranks cannot be summed" in heatmap.text("#warned")
    assert heatmap.control("Ranks").locator("option").first.is_disabled()


def test_a_layer_is_marked_in_both_panels(open_heatmap: Open) -> None:
    heatmap = open_heatmap(two_ranks(steps=3))
    legend = heatmap.page.locator("#balance-legend button")
    assert [text.strip() for text in legend.all_inner_texts()] == ["layer0 ×2.80", "layer1 ×1.00"]
    assert heatmap.marked() == 0

    heatmap.click("layer1", 2)
    assert heatmap.marked() == 1
    assert heatmap.control("Mark layer").input_value() == "layer1"
    pressed = [one.get_attribute("aria-pressed") for one in legend.all()]
    assert pressed == ["false", "true"]

    x, y = heatmap.page.evaluate(
        """() => {
             const points = document.querySelectorAll('#balance .scatterlayer .points path');
             const box = [...points].map((one) => one.getBoundingClientRect())
               .sort((a, b) => a.top - b.top || a.left - b.left)[0];
             return [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
           }"""
    )
    heatmap.page.mouse.move(x - 3, y)
    heatmap.page.mouse.move(x, y)
    heatmap.page.wait_for_selector("#tip:not([hidden])")
    assert heatmap.tip() == [
        "layer0",
        "step 1 · actor_update · all ranks and micro-batches",
        "Max / mean\t× 2.80",
        "Fullest expert\t3",
        "Experts\t4",
        "Tokens\t200",
        "Ranks\t2",
    ]
    heatmap.page.mouse.click(x, y)
    heatmap.settle()
    assert heatmap.control("Mark layer").input_value() == "layer0"
    heatmap.choose("Mark layer", "none")
    assert heatmap.marked() == 0


def test_of_very_many_layers_the_least_even_are_named(open_heatmap: Open) -> None:
    made = expert_tables.training(ranks=1, steps=2, layers=94, experts=8)
    heatmap = open_heatmap(made, width=700)

    buttons = heatmap.page.locator("#balance-legend button")
    assert buttons.count() == 8
    assert "86 more in grey" in heatmap.text("#balance-legend")
    peaks = [float(text.split("×")[1]) for text in buttons.all_inner_texts()]
    ratios = [
        max(
            float(str(row["max_over_mean"]))
            for row in made.expert_balance
            if row["layer"] == layer and row.get("rank_id") is None
        )
        for layer in range(94)
    ]
    assert peaks == [round(ratio, 2) for ratio in sorted(ratios, reverse=True)[:8]]
    assert heatmap.page.evaluate("document.documentElement.scrollWidth") <= 700


def test_the_keyboard_moves_from_cell_to_cell_and_marks_a_layer(open_heatmap: Open) -> None:
    heatmap = open_heatmap(two_ranks(steps=2))

    heatmap.page.focus("#map")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        heatmap.page.keyboard.press(key)
    assert heatmap.tip()[0] == "Expert 1 · layer1"
    heatmap.page.keyboard.press("Enter")
    assert heatmap.control("Mark layer").input_value() == "layer1"
    heatmap.page.keyboard.press("Escape")
    assert heatmap.tip() == []
    heatmap.page.keyboard.press(",")
    heatmap.settle()
    assert "step 1" in heatmap.text("#said")


def test_the_keys_for_steps_work_after_a_click_on_a_checkbox(open_heatmap: Open) -> None:
    heatmap = open_heatmap(two_ranks(steps=2))

    heatmap.page.get_by_label("hold scale").click()
    heatmap.settle()
    heatmap.page.keyboard.press(",")
    heatmap.settle()
    assert "step 1" in heatmap.text("#said")
    heatmap.page.keyboard.press(".")
    heatmap.settle()
    assert "step 2" in heatmap.text("#said")


def test_the_arrow_keys_go_on_from_the_cell_that_was_clicked(open_heatmap: Open) -> None:
    heatmap = open_heatmap(two_ranks())

    heatmap.click("layer1", 2)
    heatmap.page.keyboard.press("ArrowRight")
    assert heatmap.tip()[0] == "Expert 3 · layer1"
    heatmap.page.keyboard.press("ArrowUp")
    assert heatmap.tip()[0] == "Expert 3 · layer0"


def test_bars_of_several_roles_have_short_labels_that_do_not_overlap(open_heatmap: Open) -> None:
    made = Tables()
    for role in ("actor_compute_log_prob", "actor_update", "ref_compute_log_prob"):
        for layer in range(12):
            made.layer([1, 2, 3, 4], layer=layer, role=role)
            where = {"step": 1, "role": role, "layer": layer, "ranks": 1}
            made.expert_balance.append(expert_tables.balance([1, 2, 3, 4], **where))
    heatmap = open_heatmap(made)

    heatmap.choose("Role", "all, one below another")
    boxes = heatmap.page.evaluate(
        """[...document.querySelectorAll('#balance .xtick text')].map((one) => {
             const box = one.getBoundingClientRect();
             return [box.left, box.right, one.textContent];
           }).sort((a, b) => a[0] - b[0])"""
    )
    assert len(boxes) >= 9
    assert all(before[1] < after[0] for before, after in pairwise(boxes))
    below = heatmap.page.locator("#balance .annotation-text").all_text_contents()
    assert below == ["actor_compute_log_prob", "actor_update", "ref_compute_log_prob"]


def test_without_a_step_is_told_where_the_rest_is(open_heatmap: Open) -> None:
    made = Tables()
    made.layer([1, 2], layer=0)
    made.layer([3, 4], layer=0, step=None, role=None)
    heatmap = open_heatmap(made)

    heatmap.choose("Role", "all, one below another")
    heatmap.choose("Step", "unknown")
    assert "step “all, one below another” shows the rest too" in heatmap.text("#assumes")
    heatmap.choose("Step", "all, one below another")
    assert heatmap.text("#assumes") == ""


@pytest.mark.parametrize("slower", [1, 10])
def test_a_drag_zooms_and_a_double_click_shows_the_whole_again(
    open_heatmap: Open, slower: int
) -> None:
    made = Tables()
    for rank in (0, 1):
        for layer in range(4):
            made.layer([layer, rank, 5, 6], layer=layer, rank_id=rank, expert_offset=0)
    heatmap = open_heatmap(made)
    heatmap.choose("Ranks", "each, one below another")
    rows = heatmap.rows()
    assert len(rows) == 8

    left, top = heatmap.place("rank 0 · layer2", 1)
    right, bottom = heatmap.place("rank 1 · layer1", 2)
    heatmap.page.mouse.move(left - 20, top - 4)
    heatmap.page.mouse.down()
    heatmap.page.mouse.move(right + 20, bottom + 4, steps=4)
    heatmap.page.mouse.up()
    heatmap.settle()
    assert heatmap.columns() == ["1", "2"]
    assert heatmap.rows() == rows[2:6]
    assert heatmap.point("rank 0 · layer3", 1)[:3] == [
        "Expert 1 · layer3",
        "step 1 · actor_update · rank 0 · forward",
        "Tokens\t0",
    ]
    # On a slow machine Plotly takes drag and click for a double-click, or two clicks for none.
    devtools = heatmap.page.context.new_cdp_session(heatmap.page)
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    heatmap.page.mouse.dblclick(*heatmap.place("rank 0 · layer3", 2))
    heatmap.settle()
    # Functions, as the page's policy refuses to evaluate text more than once.
    heatmap.page.wait_for_function(
        "() => document.querySelectorAll('#map .ytick text').length === 8", timeout=30_000
    )
    assert heatmap.rows() == rows
    assert heatmap.columns() == ["0", "1", "2", "3"]
    heatmap.page.wait_for_function(
        "() => !document.getElementById('map').layout.shapes.some((one) => one.type === 'rect')",
        timeout=30_000,
    )


def test_a_double_click_marks_nothing_in_a_browser_that_is_busy(open_heatmap: Open) -> None:
    made = Tables()
    for layer in range(4):
        made.layer([layer, 4, 5, 6], layer=layer, rank_id=0, expert_offset=0)
    heatmap = open_heatmap(made)
    # Whoever draws between two clicks for so long sees the second one late.
    heatmap.page.evaluate(
        "() => { const now = performance.now.bind(performance);"
        " performance.now = () => 1_000 * now(); }"
    )
    heatmap.page.mouse.dblclick(*heatmap.place("layer3", 2))
    heatmap.settle()
    heatmap.page.wait_for_timeout(500)
    assert heatmap.marked() == 0


def test_what_was_not_read_and_what_was_doubted_stands_above(open_heatmap: Open) -> None:
    hostile = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    made = two_ranks(steps=1)
    made.layer([1, 2, 3, 2**40], layer=0, role=hostile, step=1, expert_offset=0)
    made.source("bad", f"{hostile}.pt", status="failed", detail=f"It is cut off {hostile}.")
    made.notes.add("odd", "warning", example=f"Taken as counts {hostile}.")
    heatmap = open_heatmap(made)

    assert "1 of 3 inputs not read" in heatmap.text("header")
    assert heatmap.text("#notes li") == f"Taken as counts {hostile}."
    troubles = heatmap.page.locator("#troubles")
    assert not troubles.locator("li").first.is_visible()
    troubles.locator("summary").click()
    assert f"It is cut off {hostile}." in troubles.inner_text()
    name = next(text for text in heatmap.options("Role") if text.startswith("<img"))
    heatmap.choose("Role", name)
    assert heatmap.point("layer0", 3)[2] == "Tokens\t1,099,511,627,776"
    heatmap.choose("Role", "all, one below another")
    assert len(heatmap.rows()) == 3
    assert any(row.startswith("<img") for row in heatmap.rows())


def test_an_inference_engine_without_steps_stands_beside_the_training(open_heatmap: Open) -> None:
    made = two_ranks(steps=2)
    made.source("engine", "expert_distribution_recorder_1.pt", parser="sglang")
    for forward_pass in range(3):
        made.call(
            [forward_pass, 7],
            source_id="engine",
            step=None,
            role=None,
            rank_id=None,
            micro_batch=None,
            layer=0,
            op_index=forward_pass,
            pass_index=None,
            expert_offset=0,
        )
    heatmap = open_heatmap(made)

    assert "step 2 · actor_update" in heatmap.text("#said")
    heatmap.choose("Role", "unknown role")
    assert heatmap.control("Step").input_value() == "null"
    assert heatmap.point("layer0", 0) == [
        "Expert 0 · layer0",
        "step unknown · unknown role · rank unknown · forward",
        "Tokens\t3",
        "Of the layer's mean\t× 0.25 (mean 12)",
        "Of the layer's total\t12.50 % (of 24)",
        "Place\t2nd of 2",
        "Summed over\t3 passes of the engine",
    ]
    assert "No balance was worked out" in heatmap.text("#balance")
    heatmap.choose("Step", "1")
    assert "step 1 · actor_update" in heatmap.text("#said")
    assert heatmap.text("#balance-legend").startswith("Layers, least even first")
    heatmap.choose("Ranks", "some …")
    some = heatmap.control("Ranks by number")
    some.fill("9")
    some.press("Enter")
    heatmap.settle()
    assert heatmap.text("#said") == ("Nothing was recorded for this choice. No such rank here: 9.")
    heatmap.choose("Ranks", "rank 1")
    heatmap.click("layer1", 0)
    assert heatmap.marked() == 1
    heatmap.choose("Role", "all, one below another")
    heatmap.choose("Step", "all, summed")
    heatmap.choose("Ranks", "sum of 3")
    assert heatmap.rows() == [
        "actor_update · layer0",
        "actor_update · layer1",
        "unknown role · layer0",
    ]
    assert heatmap.text("#warned") == ""


def test_a_page_without_loads_says_why(open_heatmap: Open) -> None:
    made = Tables()
    made.source("bad", "a.pt", status="failed", detail="It is cut off.")

    heatmap = open_heatmap(made)

    assert "the only input could not be read" in heatmap.text(".nothing")
    assert heatmap.page.locator("select").count() == 0
