"""Expert load as a page: the last of three steps to `gmm_heatmap.html`.

The page's loads are chunks of packed bytes, the rest is JSON; its scripts in `assets` unpack the
chunks of what is chosen, add up what is to be summed, and Plotly draws it.
"""

from collections.abc import Iterable

from markupsafe import Markup  # part of Jinja
from plotly.offline import get_plotlyjs

from rl_insight.schema import PHASES
from rl_insight.visualizers import heatmap_budget, heatmap_chunks, heatmap_colours, heatmap_words
from rl_insight.visualizers.heatmap_budget import Fitted
from rl_insight.visualizers.heatmap_chunks import Chunk
from rl_insight.visualizers.heatmap_model import Heatmap, LayerBalance, View
from rl_insight.visualizers.html_page import Json, asset, embedded, rendered
from rl_insight.visualizers.labels import plain
from rl_insight.visualizers.troubles import summarised

_SCRIPTS = (
    "heatmap_data.js",
    "heatmap_slice.js",
    "heatmap_colours.js",
    "heatmap_figure.js",
    "heatmap_balance.js",
    "heatmap_hover.js",
    "heatmap_controls.js",
    "heatmap_page.js",
)
# Beside the configured one; all of them are told apart without colour vision, by lightness alone.
_MAPS = ("viridis", "cividis", "inferno", "Greys", "Blues")
_STOPS = 33
_SHOWN_NOTES = 200


def page(heatmap: Heatmap, first: View, cmap: str, live: bool = False) -> str:
    """The whole page as HTML; `heatmap` holds all there is, `first` and `cmap` are shown first.

    A `live` page loads itself again when a newer one is drawn.
    """
    drawable = bool(len(heatmap.rows))
    fitted = heatmap_budget.fit(heatmap)
    packed = heatmap_chunks.chunks(fitted, heatmap.ids_local)
    return rendered(
        "heatmap.html",
        title=heatmap_words.heading(heatmap).title if drawable else heatmap_words.TITLE,
        heading=heatmap_words.heading(heatmap) if drawable else None,
        losses=fitted.losses,
        notes=heatmap_words.notes(heatmap, _SHOWN_NOTES),
        troubles=summarised(heatmap.troubles, heatmap.sources, "input", "without expert load"),
        nothing=None if drawable else heatmap_words.nothing_to_draw(heatmap),
        styles=[asset("page.css"), asset("heatmap.css")],
        plotly=Markup(get_plotlyjs()) if drawable else "",
        scripts=[asset(name) for name in _SCRIPTS] if drawable else [],
        # Base64 has no character that HTML knows.
        chunks=[Markup(chunk.data) for chunk in packed],
        live=asset("live.js") if live else "",
        data=embedded(payload(heatmap, fitted, packed, first, cmap)) if drawable else "",
    )


def payload(heatmap: Heatmap, fitted: Fitted, packed: list[Chunk], first: View, cmap: str) -> Json:
    """What the page's scripts read, apart from the loads.

    `balance` has one list per row: step, role, layer, op index, ranks, experts, total, fullest
    expert, max / mean. Roles are positions in `roles`.
    """
    names = {chunk.role for chunk in packed} | {row.role for row in heatmap.balance}
    roles = sorted(names, key=lambda role: (role is None, role or ""))
    place = {role: at for at, role in enumerate(roles)}
    return {
        "roles": [plain(role) if role is not None else "unknown role" for role in roles],
        "phases": list(PHASES),
        "columns": list(heatmap_chunks.COLUMNS),
        "chunks": [
            {
                "step": chunk.step,
                "role": place[chunk.role],
                "ranks": chunk.ranks,
                "recordings": chunk.recordings,
                "placed": chunk.placed,
                "comparable": chunk.comparable,
                "summed": chunk.summed,
                "rows": chunk.rows,
                "cells": chunk.cells,
                "kinds": chunk.kinds,
            }
            for chunk in packed
        ],
        "balance": [_balance(row, place[row.role]) for row in heatmap.balance],
        "maps": _maps(cmap),
        "map_note": heatmap_colours.colour_map(cmap).note,
        "first": {"phase": first.phase, "micro_batch": first.micro_batch},
    }


def _balance(row: LayerBalance, role: int) -> list[object]:
    ratio = None if row.max_over_mean is None else round(row.max_over_mean, 6)
    where = [row.step, role, row.layer, row.op_index]
    return [*where, row.ranks, row.experts, row.total, row.argmax, ratio]


def _maps(cmap: str) -> list[Json]:
    """The configured map first; of each some colours from few tokens to many, as `#rrggbb`."""
    return [{"name": plain(name, 40), "colours": _hex(name)} for name in _distinct((cmap, *_MAPS))]


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _hex(name: str) -> list[str]:
    colours = heatmap_colours.colour_map(name).colours
    places = [round(at * 255 / (_STOPS - 1)) for at in range(_STOPS)]
    return [f"#{colours[place].tobytes().hex()}" for place in places]
