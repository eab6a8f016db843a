"""One module per picture or page: tables to files that people look at.

Another package adds one through the entry point group `rl_insight.visualizers`.
"""

from rl_insight.registry import Registry
from rl_insight.visualizers.base import Visualizer

VISUALIZERS: Registry[Visualizer] = Registry("cluster visualizer", "rl_insight.visualizers")
VISUALIZERS.register("html", "rl_insight.visualizers.timeline_html:VISUALIZER")
VISUALIZERS.register("gmm_heatmap_html", "rl_insight.visualizers.heatmap_html:VISUALIZER")
VISUALIZERS.register("png", "rl_insight.visualizers.timeline_png:VISUALIZER")
VISUALIZERS.register("gmm_heatmap", "rl_insight.visualizers.heatmap_png:VISUALIZER")

__all__ = ["VISUALIZERS", "Visualizer"]
