"""An open timeline page, and what a person does with it and sees on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


@dataclass
class Opened:
    """An open timeline page, what it complained about and what it asked the network for."""

    page: Page
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
