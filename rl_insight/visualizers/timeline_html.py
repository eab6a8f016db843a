"""`rl_timeline.html`: the timeline as one page that opens offline."""

from collections.abc import Mapping
from pathlib import Path

from rl_insight.files import replacing
from rl_insight.visualizers.base import LIVE


class TimelineHtml:
    """The `html` visualizer: data, layout and page lie in the `timeline_*` modules."""

    name = "html"
    preset = "timeline"
    output = "rl_timeline.html"
    tables = ("sources", "lanes", "spans", "breakdown")
    options = (LIVE,)

    def render(self, tables: Path, output: Path, options: Mapping[str, object]) -> None:
        """Write the page of the tables in `tables` to `output`."""
        # Whoever only asks for the name of the output must not wait for plotly.
        from rl_insight.visualizers import timeline_data, timeline_page

        content = timeline_page.page(timeline_data.load(tables), live=options.get(LIVE) is True)
        with replacing(output) as temporary:
            Path(temporary).write_text(content, encoding="utf-8")


VISUALIZER = TimelineHtml()
