"""Hosts whose clocks differ look plausible on one timeline, and are told. [40]"""

from rl_insight.data.identity import compile_rules
from rl_insight.pipeline.clock_skew import Window, suspects
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.settle import MergeOptions, settle_lanes
from rl_insight.pipeline.source_rows import source_rows
from rl_insight.schema import LANES, SOURCES

SECOND = 1_000_000_000
EPOCH = 1_779_630_014 * SECOND


def step(late: int = 0) -> list[Window]:
    """Two steps of a rank: log probs of 2 s, an update of 3 s; all `late` seconds late."""
    return [
        (role, EPOCH + (start + late) * SECOND, EPOCH + (start + late + long) * SECOND)
        for begin in (0, 30)
        for role, start, long in (("log_prob", begin, 2), ("update", begin + 10, 3))
    ]


def test_a_host_that_does_everything_seven_seconds_later_is_suspected() -> None:
    lanes = [("node-1", step()), ("node-1", step()), ("node-2", step(7)), ("node-2", step(7))]
    assert suspects(lanes) == {"node-2": ("node-1", 7 * SECOND)}


def test_the_host_with_most_lanes_is_believed() -> None:
    lanes = [("node-1", step(7)), ("node-2", step()), ("node-2", step())]
    assert suspects(lanes) == {"node-1": ("node-2", 7 * SECOND)}


def test_hosts_whose_stages_overlap_are_trusted() -> None:
    assert suspects([("node-1", step()), ("node-2", step(1))]) == {}


def test_one_stage_that_overlaps_is_enough() -> None:
    other = [*step(7)[1:], ("log_prob", EPOCH + SECOND, EPOCH + 3 * SECOND)]
    assert suspects([("node-1", step()), ("node-2", other)]) == {}


def test_hosts_that_take_turns_are_trusted() -> None:
    # GIVEN stages that come now 7 s, now 15 s later
    other = [*step(7)[:2], *step(15)[2:]]
    assert suspects([("node-1", step()), ("node-2", other)]) == {}


def test_other_steps_are_no_clock_that_differs() -> None:
    assert suspects([("node-1", step()), ("node-2", step()[:2])]) == {}
    assert suspects([("node-1", step()), ("node-2", step(7_200))]) == {}


def test_hosts_without_a_common_stage_or_a_name_are_trusted() -> None:
    assert suspects([("node-1", step()[:1]), ("node-2", step(7)[1:2])]) == {}
    assert suspects([(None, step()), ("node-2", step(7))]) == {}
    assert suspects([("node-1", step()), ("node-2", [(None, EPOCH, EPOCH + 1)])]) == {}
    assert suspects([]) == {}


def test_a_late_host_is_told_in_the_sources_and_drawn_where_its_clock_says() -> None:
    # GIVEN two ranks of two nodes, the second 7 s late
    lanes = []
    for rank, late in ((0, 0), (8, 7)):
        own = {"lane_id": f"{rank}-0", "source_id": str(rank), "rank_id": rank, "clock": "utc"}
        times = {"capture_start_ns": EPOCH + late * SECOND, "capture_end_ns": EPOCH + 60 * SECOND}
        lanes.append({**dict.fromkeys(LANES.names), **own, **times, "host": f"node-{rank}"})
    options = MergeOptions(compile_rules([]), Filters(), "")
    windows = {"0-0": step(), "8-0": step(7)}
    # WHEN they are settled
    settled = settle_lanes(lanes, {"0": "a.json", "8": "b.json"}, {}, options, windows)
    # THEN nothing moved
    assert [row["clock_offset_ns"] for row in settled.lanes] == [0, 0]
    # AND the late one says so
    told = {"status": "ok", "problems": []}
    parsed = [{**dict.fromkeys(SOURCES.names), **told, "source_id": one} for one in ("0", "8")]
    first, second = source_rows(parsed, settled, options)
    assert first["problems"] == []
    (problem,) = second["problems"]  # type: ignore[misc]
    assert (problem.code, problem.severity) == ("clock_skew", "warning")  # type: ignore[has-type]
    assert problem.example == (  # type: ignore[has-type]
        "all stages of node-8 come 7.000 s after those of node-0: their clocks may differ"
    )
