"""Which spans lasted longer than their table says: the capture or its file ended before they did.

`truncated` is wider: it also marks a stage of which everything about its time is known, and only a
part of what ran inside is lost.
"""

import numpy as np

from rl_insight.visualizers import troubles
from rl_insight.visualizers.columns import Columns

_OPEN = "open_range"


def unfinished(spans: Columns, captures: Columns, sources: Columns) -> np.ndarray:
    """Bool per span: its duration is only the least that it can be.

    `spans` has at least lane_id, source_id, kind, raw_name, start_ns, duration_ns and truncated,
    `captures` lane_id and capture_end_ns, `sources` source_id, status and problems.
    """
    cut = spans.flags("truncated")
    if not cut.any():
        return cut
    columns = zip(sources.strings("source_id"), sources.strings("status"), strict=True)
    salvaged = {source for source, status in columns if status == "salvaged"}
    with_open = troubles.example_of(sources, _OPEN).keys()
    ends = dict(zip(captures.strings("lane_id"), captures.optional("capture_end_ns"), strict=True))
    lane, source = spans.strings("lane_id"), spans.strings("source_id")
    kind, raw_name = spans.strings("kind"), spans.strings("raw_name")
    end_ns = spans.integers("start_ns", 0) + spans.integers("duration_ns", 0)
    found = np.zeros(len(spans), dtype=bool)
    for at in np.flatnonzero(cut).tolist():
        if raw_name[at] is None or kind[at] != "stage" or source[at] not in salvaged:
            found[at] = True
            continue
        # An annotation that a damaged file still holds has its end in it, unless it was open.
        end = ends.get(lane[at])
        found[at] = source[at] in with_open and end is not None and int(end_ns[at]) >= end
    return found
