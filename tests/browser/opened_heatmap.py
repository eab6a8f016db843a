"""An open heatmap page, and what a person does with it and sees on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.browser.opened_page import Opened

if TYPE_CHECKING:
    from playwright.sync_api import Page


@dataclass
class OpenedHeatmap:
    """An open heatmap page."""

    opened: Opened

    @property
    def page(self) -> Page:
        return self.opened.page

    def choose(self, label: str, option: str) -> None:
        """Choose an option, by its text, of the control with that label."""
        self.control(label).select_option(label=option)
        self.settle()

    def control(self, label: str):  # type: ignore[no-untyped-def]
        return self.page.get_by_label(label, exact=True)

    def options(self, label: str) -> list[str]:
        """The texts of a control's options."""
        return [text.strip() for text in self.control(label).locator("option").all_inner_texts()]

    def press(self, caption: str) -> None:
        self.page.get_by_role("button", name=caption, exact=True).click()
        self.settle()

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.page.wait_for_selector("body[data-ready]")
        self.opened.settle()

    def rows(self) -> list[str]:
        """The labels of the rows, from top to bottom."""
        return self._texts("#map .ytick text", "top")

    def columns(self) -> list[str]:
        """The labels of the columns, from left to right."""
        return self._texts("#map .xtick text", "left")

    def point(self, row: str, expert: int) -> list[str]:
        """Move the pointer to the cell of a row and a labelled expert: the lines of what it shows.

        Cells of a table are parted by a tab.
        """
        x, y = self.place(row, expert)
        self.page.mouse.move(x, y)
        self.opened.settle()
        return self.tip()

    def tip(self) -> list[str]:
        """The lines of what the pointer shows."""
        return [line for line in self.opened.tip().splitlines() if line]

    def click(self, row: str, expert: int) -> None:
        x, y = self.place(row, expert)
        self.page.mouse.move(x, y)
        self.page.mouse.click(x, y)
        self.settle()

    def place(self, row: str, expert: int) -> tuple[float, float]:
        """Where on the page a cell is: beside its row's label, below its column's."""
        x, y = self.page.evaluate(
            """([row, expert]) => {
                 const box = (axis, text) => [...document.querySelectorAll(`#map .${axis} text`)]
                   .find((one) => one.textContent === text).getBoundingClientRect();
                 const column = box('xtick', expert);
                 const line = box('ytick', row);
                 return [(column.left + column.right) / 2, (line.top + line.bottom) / 2];
               }""",
            [row, str(expert)],
        )
        return x, y

    def lightness(self, row: str, expert: int) -> float:
        """How light a cell is on screen, from 0 to 255."""
        x, y = self.place(row, expert)
        found: float = self.page.evaluate(
            """async ([x, y]) => {
                 const image = document.querySelector('#map image');
                 const box = image.getBoundingClientRect();
                 const loaded = new Image();
                 loaded.src = image.getAttribute('href') ?? image.getAttribute('xlink:href');
                 await loaded.decode();
                 const canvas = document.createElement('canvas');
                 [canvas.width, canvas.height] = [loaded.width, loaded.height];
                 const pen = canvas.getContext('2d');
                 pen.drawImage(loaded, 0, 0);
                 const across = Math.floor((x - box.left) / box.width * loaded.width);
                 const down = Math.floor((y - box.top) / box.height * loaded.height);
                 const [r, g, b] = pen.getImageData(across, down, 1, 1).data;
                 return 0.2126 * r + 0.7152 * g + 0.0722 * b;
               }""",
            [x, y],
        )
        return found

    def text(self, selector: str) -> str:
        """The visible text of an element, or nothing."""
        found = self.page.locator(selector)
        return found.inner_text() if found.is_visible() else ""

    def marked(self) -> int:
        """How many rows of the heatmap are framed."""
        shapes: int = self.page.evaluate(
            "document.getElementById('map').layout.shapes"
            ".filter((one) => one.type === 'rect').length"
        )
        return shapes

    def _texts(self, selector: str, edge: str) -> list[str]:
        texts: list[str] = self.page.evaluate(
            """([selector, edge]) => [...document.querySelectorAll(selector)]
                 .map((one) => [one.getBoundingClientRect()[edge], one.textContent])
                 .sort((a, b) => a[0] - b[0]).map((one) => one[1])""",
            [selector, edge],
        )
        return texts
