"""The mean of each line of a heatmap, and whether colours are to be shares of it."""

import numpy as np

from rl_insight.visualizers.heatmap_cells import Lines
from rl_insight.visualizers.heatmap_model import Heatmap

_MAGNITUDE = 5


def magnitudes_differ(heatmap: Heatmap, drawn_cells: np.ndarray, drawn: Lines) -> bool:
    """Whether a layer of one role has some five times as many tokens as one of another: on one
    scale of tokens the lesser would look even. An engine counts all passes of a window."""
    roles = np.array(
        [heatmap.roles.index(block.role) if block.role else -1 for block in drawn.blocks]
    )
    mean = layer_mean(drawn_cells, np.isfinite(drawn_cells))
    role = roles[drawn.block]
    usual = [
        float(np.median(known))
        for one in np.unique(role)
        if len(known := mean[(role == one) & (mean > 0)])
    ]
    return len(usual) > 1 and max(usual) > _MAGNITUDE * min(usual)


def of_mean(drawn_cells: np.ndarray) -> np.ndarray:
    """Cells as shares of the mean of their line."""
    mean = layer_mean(drawn_cells, np.isfinite(drawn_cells))
    return np.asarray(drawn_cells / np.where(mean > 0, mean, 1)[:, None], dtype=np.float32)


def layer_mean(drawn_cells: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The mean of each line over its `known` cells; 0 for a line without any."""
    total = np.where(known, drawn_cells, 0).sum(axis=1, dtype=np.float64)
    return np.asarray(total / np.maximum(known.sum(axis=1), 1))
