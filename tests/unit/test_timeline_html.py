"""What the page's scripts are given, as plain data."""

import json
from pathlib import Path

from rl_insight.visualizers import (
    VISUALIZERS,
    html_page,
    timeline_data,
    timeline_layout,
    timeline_page,
)
from tests import timeline_tables
from tests.timeline_tables import MS, Tables


def payload(made: Tables, folder: Path) -> dict[str, object]:
    timeline = timeline_data.load(made.write(folder))
    given = timeline_page.payload(timeline, timeline_layout.arrange(timeline))
    plain: dict[str, object] = json.loads(str(html_page.embedded(given)))
    return plain


def test_spans_come_line_by_line_in_time_order(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a", step_index=4)
    made.span("a", 50, 10, role="actor_update", rank_id=0, step=2, truncated=True)
    made.span("a", 0, 20, role="actor_update", rank_id=0, step=1)
    made.span("a", 5, 1, role="reference", rank_id=0)

    given = payload(made, tmp_path)

    spans = given["spans"]
    assert isinstance(spans, dict)
    assert spans["start"] == [0, 50 * MS, 5 * MS]
    assert spans["duration"] == [20 * MS, 10 * MS, 1 * MS]
    assert spans["step"] == [1, 2, None]
    assert spans["inferred"] == []
    assert spans["capture"] == [4, 4, 4]
    assert spans["truncated"] == [1]
    assert given["lines"] == [[0, 0, 0, 2, 0.1, 0.9], [1, 0, 2, 3, 0.1, 0.9]]
    assert given["origin"] == str(timeline_tables.ORIGIN_NS)
    assert given["unit"] == {"symbol": "ms", "ns": MS}
    assert given["extent"] == 60 * MS


def test_the_breakdown_goes_with_its_span_and_keeps_unknowns(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a")
    late = made.span("a", 50, 10, role="r", rank_id=0)
    made.span("a", 0, 20, role="r", rank_id=0)
    made.breakdown.append({"span_id": late, "window_ns": 10, "computing_ns": 4, "free_ns": 6})

    assert payload(made, tmp_path)["breakdown"] == {"1": [10, 4, None, None, None, 6]}


def test_data_cannot_end_its_script_element() -> None:
    text = str(html_page.embedded({"name": "</script><!--&\u2028\u2029"}))

    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"name": "</script><!--&\u2028\u2029"}


def test_the_page_replaces_the_old_one_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    folder = timeline_tables.training(steps=1).write(tmp_path / "tables")
    output = tmp_path / "out" / "rl_timeline.html"
    output.parent.mkdir()
    output.write_text("old")

    VISUALIZERS.get("html").render(folder, output, {})

    assert output.stat().st_size > 1_000_000
    assert list(output.parent.iterdir()) == [output]


def test_the_same_tables_give_the_same_page(tmp_path: Path) -> None:
    timeline = timeline_data.load(timeline_tables.training(steps=1).write(tmp_path))

    assert timeline_page.page(timeline) == timeline_page.page(timeline)


def test_the_visualizer_says_what_it_needs() -> None:
    visualizer = VISUALIZERS.get("html")

    assert (visualizer.name, visualizer.preset) == ("html", "timeline")
    assert visualizer.output == "rl_timeline.html"
    assert set(visualizer.tables) == {"sources", "lanes", "spans", "breakdown"}
