"""Pages that follow a watch: they load themselves again and keep what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rl_insight.pipeline.watch_command import tell_pages
from rl_insight.visualizers import VISUALIZERS
from tests import timeline_tables
from tests.browser.conftest import Writable
from tests.browser.test_heatmap_page import two_ranks

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

LIVE = {"output.live": True}
SIGN = "#live"


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page that counts how often it was loaded, and what it complained about."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_offline(True)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    context.close()
    assert complaints == []


def drawn(folder: Path, made: Writable, visualizer: str = "html") -> Path:
    """Draw the page of some tables as a watch does, and tell pages that are open."""
    one = VISUALIZERS.get(visualizer)
    one.render(made.write(folder / "tables"), folder / one.output, LIVE)
    tell_pages(folder, watching=True)
    return folder / one.output


def reloaded(page: Page, act: Callable[[], object]) -> None:
    """Do something that makes the page load itself again, and wait until it has drawn."""
    page.evaluate("() => { window.before = true; }")
    act()
    page.wait_for_function("() => !window.before && document.body.dataset.ready", timeout=30_000)


def times(page: Page) -> list[float]:
    """From when to when the timeline is shown, in the unit of its axis."""
    found: list[float] = page.evaluate(
        "() => document.getElementById('plot')._fullLayout.xaxis.range"
    )
    return found


def pressed(page: Page) -> list[str]:
    return page.locator("button[aria-pressed=true]").all_inner_texts()


def test_a_timeline_loads_itself_again_and_keeps_what_it_shows(page: Page, tmp_path: Path) -> None:
    # GIVEN a page of three steps, zoomed in and the longest first, without one of its stages
    page.goto(drawn(tmp_path, timeline_tables.grid(4, 3)).as_uri())
    page.wait_for_selector("body[data-ready]")
    page.locator(SIGN, has_text="live").wait_for()
    page.get_by_role("button", name="Sort: Longest First").click()
    page.locator("#legend button").first.click()
    page.locator("#scroller").focus()
    for _ in range(4):
        page.keyboard.press("w")
    page.wait_for_timeout(300)
    before, buttons = times(page), pressed(page)

    # WHEN a fourth step is drawn
    reloaded(page, lambda: drawn(tmp_path, timeline_tables.grid(4, 4)))

    # THEN the page has it, and shows the same part of it in the same way
    page.wait_for_timeout(300)
    assert times(page) == pytest.approx(before, rel=1e-3)
    assert pressed(page) == buttons
    assert "Sort: Longest First" in buttons
    page.locator("#whole").click()
    page.wait_for_timeout(300)
    assert times(page)[1] > 3, "the fourth step begins after 3 s"


def test_a_timeline_that_is_shown_whole_is_shown_whole_again(page: Page, tmp_path: Path) -> None:
    page.goto(drawn(tmp_path, timeline_tables.grid(2, 1)).as_uri())
    page.wait_for_selector("body[data-ready]")
    page.locator(SIGN, has_text="live").wait_for()
    reloaded(page, lambda: drawn(tmp_path, timeline_tables.grid(2, 4)))
    assert times(page)[1] > 3


def test_a_heatmap_loads_itself_again_and_keeps_what_was_chosen(page: Page, tmp_path: Path) -> None:
    made = two_ranks(2)
    page.goto(drawn(tmp_path, made, "gmm_heatmap_html").as_uri())
    page.wait_for_selector("body[data-ready]")
    page.locator(SIGN, has_text="live").wait_for()
    page.locator("#step").select_option("2")
    page.locator("#layers").select_option("average")
    page.wait_for_selector("body[data-ready]")

    reloaded(page, lambda: drawn(tmp_path, two_ranks(3), "gmm_heatmap_html"))

    page.wait_for_timeout(500)
    assert page.locator("#step").input_value() == "2"
    assert page.locator("#layers").input_value() == "average"
    assert "3" in page.locator("#step option").all_inner_texts()


def test_a_page_says_when_it_is_no_longer_followed(page: Page, tmp_path: Path) -> None:
    page.goto(drawn(tmp_path, timeline_tables.grid(2, 1)).as_uri())
    page.locator(SIGN, has_text="live").wait_for()
    tell_pages(tmp_path, watching=False)
    page.locator(SIGN, has_text="no longer followed").wait_for(timeout=10_000)


def test_pages_of_other_runs_follow_nothing(page: Page, tmp_path: Path) -> None:
    one = VISUALIZERS.get("html")
    one.render(timeline_tables.grid(2, 1).write(tmp_path / "tables"), tmp_path / one.output, {})
    tell_pages(tmp_path, watching=True)
    page.goto((tmp_path / one.output).as_uri())
    page.wait_for_selector("body[data-ready]")
    assert page.locator(SIGN).count() == 0
    assert page.evaluate("() => typeof globalThis.rlInsightLive") == "undefined"
