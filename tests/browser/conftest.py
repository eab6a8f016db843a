"""A headless Chromium that has no network and reports every complaint of a page."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rl_insight.visualizers import VISUALIZERS
from tests.timeline_tables import Tables

playwright = pytest.importorskip("playwright.sync_api") if not os.environ.get("CI") else None
if playwright is None:
    from playwright import sync_api as playwright  # in CI it must be there

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass
class Opened:
    """An open timeline page, what it complained about and what it asked the network for."""

    page: "playwright.Page"
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def labels(self) -> list[str]:
        """The labels of the rows on screen, from top to bottom."""
        texts: list[str] = self.page.evaluate(
            """() => [...document.querySelectorAll('#plot .ytick text')]
                 .map((one) => [one.getBoundingClientRect().top, one.textContent])
                 .sort((a, b) => a[0] - b[0]).map((one) => one[1])"""
        )
        return texts

    def shown(self) -> tuple[float, float]:
        """The time on screen, from and to, in the unit of the axis."""
        low, high = self.page.evaluate("document.getElementById('plot').layout.xaxis.range")
        return low, high

    def point(self, label: str, time: float) -> None:
        """Move the pointer to a row at a time, in the unit of the axis."""
        x, y = self.place(label, time)
        self.page.mouse.move(x, y)
        self.settle()

    def place(self, label: str, time: float) -> tuple[float, float]:
        """Where on the page a row is at a time."""
        x, y = self.page.evaluate(
            """([label, time]) => {
                 const { layout } = document.getElementById('plot');
                 const box = document.getElementById('plot').getBoundingClientRect();
                 const text = [...document.querySelectorAll('#plot .ytick text')]
                   .find((one) => one.textContent === label).getBoundingClientRect();
                 const [from, to] = layout.xaxis.range;
                 const { l, r } = layout.margin;
                 const part = (time - from) / (to - from);
                 return [box.left + l + part * (layout.width - l - r), text.top + text.height / 2];
               }""",
            [label, time],
        )
        return x, y

    def tip(self) -> str:
        """What the pointer shows, or nothing."""
        tip = self.page.locator("#tip")
        return tip.inner_text() if tip.is_visible() else ""

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame("
            "() => setTimeout(done, 30))))"
        )

    def press(self, caption: str) -> None:
        """Press the page's own button with exactly that caption."""
        self.page.locator(".toolbar").get_by_role("button", name=caption, exact=True).click()
        self.settle()


@pytest.fixture(scope="session")
def chromium() -> Iterator["playwright.Browser"]:
    """A headless Chromium; a laptop without one skips, CI does not."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None and not os.environ.get("CI"):
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=list(_QUIET))
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: "playwright.Browser", tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Draw the page of some tables and open it; a complaint or a request fails the test."""
    pages: list[Opened] = []

    def open_one(made: Tables, width: int = 1400, height: int = 850) -> Opened:
        output = tmp_path / "rl_timeline.html"
        VISUALIZERS.get("html").render(made.write(tmp_path / "tables"), output, {})
        context = chromium.new_context(viewport={"width": width, "height": height})
        context.set_offline(True)
        opened = Opened(context.new_page())
        pages.append(opened)
        page = opened.page
        page.on("console", lambda message: opened.complaints.append(message.text))
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.on("dialog", lambda dialog: opened.complaints.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: opened.requests.append(request.url))
        page.goto(output.as_uri())
        if page.locator("#data").count():
            page.wait_for_selector("body[data-ready]")
            opened.settle()
        return opened

    yield open_one
    for opened in pages:
        opened.page.context.close()
        assert opened.complaints == []
        outside = [
            url for url in opened.requests if not url.startswith(("file:", "data:", "blob:"))
        ]
        assert outside == []
        assert sum(url.startswith("file:") for url in opened.requests) == 1
