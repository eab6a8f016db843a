"""A headless Chromium that has no network and reports every complaint of a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from rl_insight.visualizers import VISUALIZERS
from tests.browser.opened_page import Opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Two pages of its own that Chromium would load for the address bar of every window take a third
    # of all time. The last two say what Playwright says by the same option.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxFullPopup,WebUIOmniboxAimPopup,PaintHolding,"
    "OptimizationHints",
)


class Writable(Protocol):
    """Made-up tables."""

    def write(self, folder: Path) -> Path:
        """Write them to `folder` and give it back."""
        ...


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A headless Chromium; a laptop without one skips, CI does not."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if not os.environ.get("CI"):
        pytest.importorskip("playwright")
        if found is None:
            pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=list(_QUIET))
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Draw the page of some tables and open it; a complaint or a request fails the test."""
    pages: list[Opened] = []

    def open_one(
        made: Writable,
        width: int = 1400,
        height: int = 850,
        visualizer: str = "html",
        options: Mapping[str, object] | None = None,
    ) -> Opened:
        drawn = VISUALIZERS.get(visualizer)
        output = tmp_path / drawn.output
        drawn.render(made.write(tmp_path / "tables"), output, options or {})
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
