"""`gmm_heatmap.png`: how many tokens each expert got, layer by layer, as one picture."""

from collections.abc import Mapping
from pathlib import Path

from rl_insight.files import replacing

DPI = "heatmap.visualizer.dpi"
CMAP = "heatmap.visualizer.cmap"
PHASE = "heatmap.visualizer.phase"
MICRO_BATCH = "heatmap.visualizer.micro_batch"


class HeatmapPng:
    """The `gmm_heatmap` visualizer: data, layout and drawing lie in the `heatmap_*` modules."""

    name = "gmm_heatmap"
    preset = "heatmap"
    output = "gmm_heatmap.png"
    tables = ("sources", "expert_load", "expert_balance")
    options = (DPI, CMAP, PHASE, MICRO_BATCH)

    def render(self, tables: Path, output: Path, options: Mapping[str, object]) -> None:
        """Draw the tables in `tables` to `output`.

        A colour map that matplotlib does not know, or a resolution that would make the picture too
        large, is replaced, and the picture says so.
        """
        # Whoever only asks for the name of the output must not wait for matplotlib.
        from rl_insight.visualizers import heatmap_data, heatmap_picture
        from rl_insight.visualizers.heatmap_model import View

        view = View(
            phase=str(options.get(PHASE, "forward")),
            micro_batch=str(options.get(MICRO_BATCH, "first")),
        )
        dpi = float(str(options.get(DPI, 200)))
        cmap = str(options.get(CMAP, "viridis"))
        content = heatmap_picture.picture(heatmap_data.load(tables, view), dpi, cmap)
        with replacing(output) as temporary:
            Path(temporary).write_bytes(content)


VISUALIZER = HeatmapPng()
