"""`gmm_heatmap.html`: how many tokens each expert got, as one page that opens offline."""

from collections.abc import Mapping
from pathlib import Path

from rl_insight.files import replacing
from rl_insight.visualizers.base import LIVE

CMAP = "heatmap.visualizer.cmap"
PHASE = "heatmap.visualizer.phase"
MICRO_BATCH = "heatmap.visualizer.micro_batch"


class HeatmapHtml:
    """The `gmm_heatmap_html` visualizer: data and page lie in the `heatmap_*` modules.

    The options are what the page shows first; its controls show the rest.
    """

    name = "gmm_heatmap_html"
    preset = "heatmap"
    output = "gmm_heatmap.html"
    tables = ("sources", "expert_load", "expert_balance")
    options = (CMAP, PHASE, MICRO_BATCH, LIVE)

    def render(self, tables: Path, output: Path, options: Mapping[str, object]) -> None:
        """Write the page of the tables in `tables` to `output`."""
        # Whoever only asks for the name of the output must not wait for plotly.
        from rl_insight.visualizers import heatmap_data, heatmap_page
        from rl_insight.visualizers.heatmap_model import ALL, View

        first = View(
            phase=str(options.get(PHASE, "forward")),
            micro_batch=str(options.get(MICRO_BATCH, "first")),
        )
        cmap = str(options.get(CMAP, "viridis"))
        live = options.get(LIVE) is True
        content = heatmap_page.page(heatmap_data.load(tables, ALL), first, cmap, live)
        with replacing(output) as temporary:
            Path(temporary).write_text(content, encoding="utf-8")


VISUALIZER = HeatmapHtml()
