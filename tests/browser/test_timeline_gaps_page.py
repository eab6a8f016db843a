"""What is missing, on the timeline page in a browser: the strip, the hatching, and its words."""

from collections.abc import Callable

import pytest

from tests import timeline_tables
from tests.browser.opened_page import Opened
from tests.timeline_tables import HOSTILE, Tables

pytestmark = pytest.mark.browser

Open = Callable[..., Opened]

# Rank 1 lacks step 2 (1000 to 1103 ms), rank 2 everything; the run ends after 2103 ms.
LACKING = [(1, 2), (2, 1), (2, 2), (2, 3)]


def lacking() -> Tables:
    made = timeline_tables.grid(4, 3, without=LACKING)
    made.source(
        "broken", "actor_update/x.json", status="failed", detail="It is <b>cut</b>.",
        role="actor_update", rank_id=2, step=1,
    )  # fmt: skip
    return made


def hatched(opened: Opened) -> list[tuple[float, float]]:
    """From where to where, in the unit of the axis, there is hatching on screen."""
    found = opened.page.evaluate(
        """() => document.getElementById('plot').data
             .filter((trace) => trace.fillpattern && trace.fillpattern.shape)
             .flatMap((trace) => [...trace.x])"""
    )
    # Five corners, and nothing between two outlines.
    stretches = [found[at : at + 5] for at in range(0, len(found), 6)]
    found = [(min(corners), max(corners)) for corners in stretches]
    return sorted((from_, to) for from_, to in found)


def rows(opened: Opened) -> list[str]:
    return [label.rpartition(" ")[2] for label in opened.labels()]


def legend(opened: Opened, name: str) -> None:
    opened.page.locator("#legend").get_by_role("button", name=name, exact=True).click()
    opened.settle()


def test_the_strip_counts_what_is_missing_and_lists_it_at_a_click(open_page: Open) -> None:
    opened = open_page(lacking())
    strip = opened.page.locator("details")

    words = "3 of 4 ranks, 4 of 12 captures missing, 1 file not read (of 9)"
    assert strip.locator("summary").inner_text() == words
    assert not strip.locator("li").first.is_visible()
    strip.locator("summary").click()
    assert strip.locator("li").all_inner_texts() == [
        "missing actor_update step 1: 3 of 4 ranks, rank 2 gave nothing",
        "missing actor_update step 2: 2 of 4 ranks, ranks 1-2 missing",
        "missing actor_update step 3: 3 of 4 ranks, rank 2 missing",
        "failed actor_update/x.json It is <b>cut</b>.",
    ]
    header = opened.page.locator("header").inner_text()
    assert "3 of 4 ranks" in header
    assert "captures missing" not in header


def test_a_complete_run_has_no_strip_no_hatching_and_no_entry_for_it(open_page: Open) -> None:
    opened = open_page(timeline_tables.grid(4, 3))

    assert opened.page.locator("details").count() == 0
    assert hatched(opened) == []
    assert opened.page.locator("#legend button").all_inner_texts() == ["actor_update"]


def test_hatching_says_what_is_missing_there(open_page: Open) -> None:
    opened = open_page(lacking())
    assert hatched(opened) == [(0.0, 2.103), (1.0, 1.103)]

    opened.point("actor_update - Rank 1", 1.05)
    tip = opened.tip().splitlines()
    assert tip[0] == "not recorded: actor_update, step 2, rank 1"
    assert "Others ran from\t1.000000 s (12:27:32.089000 UTC)" in tip
    assert "to\t1.103000 s (12:27:32.192000 UTC)" in tip

    opened.point("actor_update - Rank 2", 0.5)
    assert opened.tip().splitlines()[0] == "nothing could be used: actor_update, steps 1-3, rank 2"
    assert "actor_update/x.json: It is <b>cut</b>." in opened.tip()
    assert "Nothing was recorded in this lane." in opened.tip()

    opened.point("actor_update - Rank 1", 0.5)
    assert opened.tip() == ""
    opened.point("actor_update - Rank 1", 0.05)
    assert "Duration" in opened.tip()


def test_all_ranks_tells_the_lanes_that_lack_something_from_the_idle_ones(open_page: Open) -> None:
    opened = open_page(lacking())

    opened.press("Hover: All Ranks")
    opened.point("actor_update - Rank 0", 1.05)

    tip = opened.tip()
    assert "step 2 · 2 lanes" in tip
    missing = tip[tip.index("not recorded") :].split("\n")
    assert [line for line in missing if "Rank" in line] == [
        "actor_update - Rank 1",
        "actor_update - Rank 2",
    ]
    assert "No span" not in tip
    opened.point("actor_update - Rank 0", 0.5)
    assert "No span at this time: 3 lanes" in opened.tip()


def test_the_legend_hides_the_hatching_and_the_empty_lanes(open_page: Open) -> None:
    opened = open_page(lacking())
    assert opened.page.locator("#legend button").all_inner_texts() == [
        "actor_update",
        "not recorded",
    ]
    assert rows(opened) == ["0", "1", "2", "3"]

    legend(opened, "not recorded")

    assert rows(opened) == ["0", "1", "3"]
    assert hatched(opened) == []
    opened.point("actor_update - Rank 1", 1.05)
    assert opened.tip() == ""
    legend(opened, "not recorded")
    assert rows(opened) == ["0", "1", "2", "3"]


def test_an_empty_lane_goes_with_the_stage_that_it_lacks(open_page: Open) -> None:
    made = timeline_tables.grid(3, 1, without=[(1, 1)])
    for rank in range(3):
        where = {"role": "ref_compute_log_prob", "rank_id": rank, "step": 1}
        made.lane(f"ref{rank}", world_size=3, **where)
        made.span(f"ref{rank}", 200, 100, **where)
    opened = open_page(made)
    assert "actor_update - Rank 1" in opened.labels()

    legend(opened, "actor_update")

    assert opened.labels() == [f"ref_compute_log_prob - Rank {rank}" for rank in range(3)]


def test_sorting_and_thin_rows_keep_the_empty_lanes_in_their_place(open_page: Open) -> None:
    made = timeline_tables.training(ranks=32, steps=2)
    made.lanes = [row for row in made.lanes if row["lane_id"] != "actor_update-9-2"]
    made.spans = [row for row in made.spans if row["lane_id"] != "actor_update-9-2"]
    gone = {f"ref_compute_log_prob-9-{step}" for step in (1, 2)}
    made.lanes = [row for row in made.lanes if row["lane_id"] not in gone]
    made.spans = [row for row in made.spans if row["lane_id"] not in gone]
    known = {row["lane_id"]: row for row in made.spans}
    made.lanes = [
        {
            **row,
            "role": known[row["lane_id"]]["role"],
            "rank_id": known[row["lane_id"]]["rank_id"],
            "replica": known[row["lane_id"]].get("replica"),
            "world_size": 32 if "rollout" not in str(row["lane_id"]) else None,
        }
        for row in made.lanes
    ]
    opened = open_page(made, height=3_000)
    by_stage = opened.labels()
    at = by_stage.index("ref_compute_log_prob - Rank 9")
    assert by_stage[at - 1 : at + 2] == [f"ref_compute_log_prob - Rank {n}" for n in (8, 9, 10)]

    opened.press("Sort: By Rank ID")
    by_rank = opened.labels()

    at = by_rank.index("ref_compute_log_prob - Rank 9")
    assert by_rank[at - 1] == "actor_compute_log_prob - Rank 9"
    assert by_rank[at + 1] == "actor_update - Rank 9"
    opened.page.set_viewport_size({"width": 1400, "height": 700})
    opened.settle()
    opened.press("Thin rows")
    assert len(hatched(opened)) == 2


def test_hatching_follows_a_zoom_and_leaves_the_axis_alone(open_page: Open) -> None:
    opened = open_page(lacking())
    assert opened.shown() == pytest.approx((0.0, 2.103))

    opened.page.keyboard.press("w")
    opened.settle()

    low, high = opened.shown()
    assert (low, high) == pytest.approx((2.103 * 0.15, 2.103 * 0.85))
    opened.point("actor_update - Rank 1", 1.05)
    assert opened.tip().startswith("not recorded: actor_update, step 2, rank 1")
    opened.press("Whole run")
    assert opened.shown() == pytest.approx((0.0, 2.103))


def test_a_gap_too_short_for_a_pixel_can_still_be_seen_and_found(open_page: Open) -> None:
    made = Tables()
    for rank, step in ((0, 1), (0, 2), (0, 3), (1, 1), (1, 3)):
        where = {"role": "actor_update", "rank_id": rank, "step": step}
        made.lane(f"{rank}-{step}", **where)
        made.span(f"{rank}-{step}", 5_000_000 * (step - 1), 100, **where)
    opened = open_page(made)

    pixel = (opened.shown()[1] - opened.shown()[0]) / 1_400
    ((from_, to),) = hatched(opened)

    assert from_ == 5_000
    assert 2 * pixel < to - from_ < 5 * pixel
    opened.point("actor_update - Rank 1", from_ + pixel)
    assert opened.tip().startswith("not recorded: actor_update, step 2, rank 1")


def test_hostile_names_are_shown_where_something_is_missing_and_do_nothing(open_page: Open) -> None:
    made = Tables()
    for number, role in enumerate(HOSTILE):
        for rank, step in ((0, 1), (0, 2), (1, 1), (2, 1), (2, 2)):
            where = {"role": role, "rank_id": rank, "step": step}
            made.lane(f"{number}-{rank}-{step}", **where)
            made.span(f"{number}-{rank}-{step}", 1000 * step, 500, **where)
        made.source(
            f"bad{number}", f"{role}.json", status="failed", detail=f"broken: {role}",
            role=role, rank_id=3, step=1,
        )  # fmt: skip
    opened = open_page(made, height=1_200)

    opened.page.locator("details summary").click()
    listed = opened.page.locator("details").inner_text()
    assert "<script>alert(1)</script> step 2: 2 of" in listed
    opened.page.locator("details summary").click()
    opened.settle()
    opened.point("<script>alert(1)</script> - Rank 1", 1_200)
    assert opened.tip().startswith("not recorded: <script>alert(1)</script>, step 2, rank 1")
    opened.point("<script>alert(1)</script> - Rank 3", 700)
    assert "broken: <script>alert(1)</script>" in opened.tip()
    opened.press("Hover: All Ranks")
    opened.point("<script>alert(1)</script> - Rank 1", 1_200)
    for element in ("script[src]", "img", "#plot svg a", "#legend b", "#tip b", "details b"):
        assert opened.page.locator(element).count() == 0
    with opened.page.expect_download():
        opened.page.locator('[data-title="Download plot as a PNG"]').click()
