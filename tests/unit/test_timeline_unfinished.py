"""Which spans are drawn as unfinished: those whose real end nobody knows."""

from pathlib import Path

import pytest

from rl_insight.visualizers import timeline_data
from tests.timeline_tables import MS, ORIGIN_NS, Tables

OPEN = [{"code": "open_range", "severity": "info", "example": "a range was still open"}]


@pytest.mark.parametrize(
    ("source", "span", "expected"),
    [
        # Taken from the events of a file that breaks off: it may have gone on for long.
        ({"status": "salvaged"}, {"raw_name": None}, True),
        # Its annotation was read from what is left of the file, with its end.
        ({"status": "salvaged"}, {"raw_name": "update_actor"}, False),
        # Open when the capture ended, in a whole file and in a damaged one.
        ({"status": "ok"}, {"raw_name": "update_actor"}, True),
        ({"status": "salvaged", "problems": OPEN}, {"raw_name": "update_actor"}, True),
        # It ended before the capture did: what is open is another.
        ({"status": "salvaged", "problems": OPEN}, {"raw_name": "a", "duration_ns": MS}, False),
        # A range is only cut by the end of its capture.
        ({"status": "salvaged"}, {"raw_name": "a", "kind": "range", "depth": 1}, True),
        ({"status": "salvaged"}, {"raw_name": None, "truncated": False}, False),
    ],
)
def test_a_span_is_unfinished_when_nobody_knows_its_end(
    source: dict[str, object], span: dict[str, object], expected: bool, tmp_path: Path
) -> None:
    made = Tables()
    made.source("file-a", "a.json", **source)
    made.lane("a", capture_end_ns=ORIGIN_NS + 50 * MS)
    made.span("a", 0, 50, **{"role": "actor_update", "rank_id": 0, "truncated": True, **span})

    spans = timeline_data.load(made.write(tmp_path)).spans

    assert spans.unfinished.tolist() == [expected]
