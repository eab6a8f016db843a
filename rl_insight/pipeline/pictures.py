"""Which files a run draws, as its configuration asks for them."""

from pathlib import Path

from rl_insight import config as configuration
from rl_insight.config import Config
from rl_insight.visualizers import VISUALIZERS, Visualizer

_HEATMAP = "gmm_heatmap"


def visualizers(config: Config, preset: str) -> list[Visualizer]:
    """The visualizers of a preset.

    Raises PluginError for a name that is not registered.
    """
    chosen = configuration.get(config, f"{preset}.visualizer.type")
    return [VISUALIZERS.get(name) for name in configuration.parse_names(chosen)]


def output_of(config: Config, visualizer: Visualizer) -> str:
    """The file that a visualizer draws, relative to the output folder."""
    documented = Path(visualizer.output)
    if visualizer.preset == "heatmap" and documented.stem == _HEATMAP:
        # `output.path` may name it.
        file = Path(configuration.heatmap_file(config))
        return str(file.with_suffix(documented.suffix))
    return str(documented)


def pictures(config: Config) -> tuple[str, ...]:
    """All that is drawn when the input holds something of each preset.

    Raises PluginError for a name that is not registered.
    """
    return tuple(
        output_of(config, visualizer)
        for preset in configuration.presets(config)
        for visualizer in visualizers(config, preset)
    )
