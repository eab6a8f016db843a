"""A timeline as a page: the last of three steps to `rl_timeline.html`.

The page's data are what `timeline_layout` arranged, as JSON; its scripts in `assets` choose what
to draw of them for the window on screen, and Plotly draws it.
"""

from collections.abc import Sequence

from markupsafe import Markup  # part of Jinja
from plotly.offline import get_plotlyjs

from rl_insight.visualizers import (
    timeline_axis,
    timeline_layout,
    timeline_missing,
    timeline_words,
)
from rl_insight.visualizers.html_page import Json, asset, embedded, rendered
from rl_insight.visualizers.labels import SENTENCE_LIMIT, plain
from rl_insight.visualizers.timeline_layout import Layout, Sorting
from rl_insight.visualizers.timeline_model import Breakdown, Timeline

_SCRIPTS = (
    "timeline_model.js",
    "timeline_marks.js",
    "timeline_gaps.js",
    "timeline_torn.js",
    "timeline_figure.js",
    "timeline_slider.js",
    "timeline_hover.js",
    "timeline_kept.js",
    "timeline_page.js",
)


def page(timeline: Timeline, live: bool = False) -> str:
    """The whole page as HTML; a `live` one loads itself again when a newer one is drawn."""
    drawable = bool(timeline.lanes)
    return rendered(
        "timeline.html",
        heading=timeline_words.heading(timeline),
        troubles=timeline_words.troubles(timeline),
        nothing=None if drawable else timeline_words.nothing_to_draw(timeline),
        styles=[asset("page.css"), asset("timeline.css")],
        plotly=Markup(get_plotlyjs()) if drawable else "",
        scripts=[asset(name) for name in _SCRIPTS] if drawable else [],
        live=asset("live.js") if live else "",
        data=embedded(payload(timeline, timeline_layout.arrange(timeline))) if drawable else "",
    )


def payload(timeline: Timeline, layout: Layout) -> Json:
    """What the page's scripts read.

    Spans are columns in the order of `Layout.order`; a line is `[lane, level, first, last, top,
    bottom]`, the last two being fractions of its row. Times are nanoseconds from the origin:
    whole numbers that a browser keeps exactly up to 104 days.
    """
    spans, order = timeline.spans, layout.order.tolist()
    heading = timeline_words.heading(timeline)
    unit = timeline_axis.unit(timeline.extent_ns)
    return {
        "title": f"{heading.title} (origin {heading.origin})",
        "facts": " · ".join([*heading.facts, *filter(None, [heading.lost])]),
        "unit": {"symbol": unit.symbol, "ns": unit.ns},
        "extent": timeline.extent_ns,
        "origin": None if timeline.origin_ns is None else str(timeline.origin_ns),
        "rows": [
            {
                "label": row.label,
                "role": row.role,
                "rank": row.rank,
                "global_rank": row.global_rank,
                "notes": row.notes,
                "clock": row.clock,
                "files": row.files,
                "height": row.height,
                "recorded": row.recorded,
            }
            for row in layout.rows
        ],
        "gaps": _gaps(timeline),
        "sortings": {
            "default": _sorting(layout.default),
            "by_rank": _sorting(layout.by_rank),
            "longest": _sorting(layout.longest),
        },
        "lines": _lines(layout),
        "names": [plain(name) for name in timeline.names],
        "tones": layout.tone_of,
        "stages": [
            {"name": stage.name, "colour": stage.colour, "ink": stage.ink, "tones": stage.tones}
            for stage in layout.stages
        ],
        "typical": layout.typical_ns,
        "steps": [[mark.step, mark.start_ns] for mark in layout.steps],
        "spans": {
            "start": spans.start_ns[order].tolist(),
            "duration": spans.duration_ns[order].tolist(),
            "name": spans.name[order].tolist(),
            "stage": layout.stage_of[order].tolist(),
            "step": [spans.step[position] for position in order],
            "capture": [spans.capture[position] for position in order],
            "mini_batch": [spans.mini_batch[position] for position in order],
            "micro_batch": [spans.micro_batch[position] for position in order],
            "inferred": [place for place, at in enumerate(order) if spans.step_inferred[at]],
            "truncated": [place for place, at in enumerate(order) if spans.truncated[at]],
            "unfinished": [place for place, at in enumerate(order) if spans.unfinished[at]],
            "undated": [place for place, at in enumerate(order) if spans.undated[at]],
            "remarks": _remarks(timeline, order),
        },
        "breakdown": {
            str(place): _parts(timeline.breakdown[at])
            for place, at in enumerate(order)
            if at in timeline.breakdown
        },
    }


def _gaps(timeline: Timeline) -> list[Json]:
    """Where to hatch, and what to say there."""
    return [
        {
            "lane": gap.lane,
            "from": gap.start_ns,
            "to": gap.end_ns,
            "words": timeline_missing.about(gap, timeline.lanes[gap.lane]),
            "reasons": [plain(text, SENTENCE_LIMIT) for text in gap.reasons],
        }
        for gap in timeline.missing.gaps
    ]


def _remarks(timeline: Timeline, order: Sequence[int]) -> Json:
    """Each text once, and for every span of which there is any to show, the numbers of its own."""
    numbers: dict[str, int] = {}
    own = {
        str(place): [numbers.setdefault(text, len(numbers)) for text in told]
        for place, at in enumerate(order)
        if (told := timeline.spans.remarks[at])
    }
    return {"texts": [plain(text, SENTENCE_LIMIT) for text in numbers], "own": own}


def _sorting(sorting: Sorting) -> Json:
    return {"lanes": sorting.lanes, "group": sorting.group}


def _lines(layout: Layout) -> list[list[float]]:
    found = []
    for line in layout.lines:
        units = layout.rows[line.lane].height
        places = [round(place, 4) for place in line.extent(units)]
        found.append([line.lane, line.level, line.first, line.last, *places])
    return found


def _parts(breakdown: Breakdown) -> list[int | None]:
    return [
        breakdown.window_ns,
        breakdown.computing_ns,
        breakdown.communication_ns,
        breakdown.overlapped_ns,
        breakdown.memory_ns,
        breakdown.free_ns,
    ]
