"""Hosts whose clocks differ look plausible on one timeline, and are told. [40]"""

from collections.abc import Sequence

from rl_insight.data.identity import compile_rules
from rl_insight.pipeline import clock_skew
from rl_insight.pipeline.clock_skew import Window
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.settle import settle_lanes
from rl_insight.pipeline.source_rows import source_rows
from rl_insight.schema import LANES, SOURCES

SECOND = 1_000_000_000
MS = 1_000_000
EPOCH = 1_779_630_014 * SECOND


def step(late: int = 0) -> list[Window]:
    """Two steps of a rank: log probs of 2 s, an update of 3 s; all `late` seconds late."""
    return [
        (role, EPOCH + (start + late) * SECOND, EPOCH + (start + late + long) * SECOND)
        for begin in (0, 30)
        for role, start, long in (("log_prob", begin, 2), ("update", begin + 10, 3))
    ]


def suspects(lanes: Sequence[tuple[str | None, list[Window]]]) -> dict[str, tuple[str, int]]:
    """Those of lanes whose names tell no step."""
    return clock_skew.suspects([(host, None, windows) for host, windows in lanes])


def test_a_host_that_does_everything_seven_seconds_later_is_suspected() -> None:
    lanes = [("node-1", step()), ("node-1", step()), ("node-2", step(7)), ("node-2", step(7))]
    assert suspects(lanes) == {"node-2": ("node-1", 7 * SECOND)}


def test_the_host_with_most_lanes_is_believed() -> None:
    lanes = [("node-1", step(7)), ("node-2", step()), ("node-2", step())]
    assert suspects(lanes) == {"node-1": ("node-2", 7 * SECOND)}


def run(late_ms: int, late_end_ms: int, steps: int = 3) -> list[Window]:
    """Updates of 8 s, once a minute, that begin and end so many milliseconds late."""
    at = [EPOCH + 60 * SECOND * number for number in range(steps)]
    return [
        ("update", start + late_ms * SECOND // 1_000, start + 8 * SECOND + late_end_ms * MS)
        for start in at
    ]


def test_a_host_that_begins_and_ends_late_by_the_same_is_suspected_though_stages_overlap() -> None:
    for late_ms in (7_000, 1_000):
        lanes = [("node-1", run(0, 0)), ("node-2", run(late_ms, late_ms + 90))]
        assert suspects(lanes) == {"node-2": ("node-1", late_ms * MS)}


def test_work_that_takes_longer_and_hosts_that_start_late_are_no_clock_that_differs() -> None:
    # GIVEN one host that works 1 s longer, one that joins 1 s late and ends with the others
    assert suspects([("node-1", run(0, 0)), ("node-2", run(0, 1_000))]) == {}
    assert suspects([("node-1", run(0, 0)), ("node-2", run(1_000, 0))]) == {}
    # AND one that is scheduled 50 ms after the other
    assert suspects([("node-1", run(0, 0)), ("node-2", run(50, 50))]) == {}
    # AND one stage alone, which may be late for any reason
    assert suspects([("node-1", run(0, 0, 1)), ("node-2", run(1_000, 1_000, 1))]) == {}


def test_of_four_hosts_the_one_that_differs_is_suspected_though_it_is_named_first() -> None:
    names = ("node-0", "node-1", "node-2", "node-3")
    late = {"node-0": 7_000}
    lanes = [
        (name, run(late.get(name, number), late.get(name, number)))
        for number, name in enumerate(names)
    ]
    assert suspects(lanes) == {"node-0": ("node-1", 6_999 * MS)}


def test_trainers_and_rollout_engines_are_compared_among_themselves() -> None:
    rollout = [("rollout", start, end) for _, start, end in run(0, 0)]
    late = [("rollout", start, end) for _, start, end in run(1_000, 1_000)]
    lanes = [("a", run(0, 0)), ("b", run(0, 0)), ("c", rollout), ("d", late)]
    assert suspects(lanes) == {"d": ("c", SECOND)}


def test_where_steps_are_known_a_call_that_was_lost_hides_no_late_host() -> None:
    # GIVEN step 2 that one host did not record, and a host that is 7 s late
    lanes = [("node-1", number, [one]) for number, one in enumerate(run(0, 0))]
    lanes += [("node-2", number, [one]) for number, one in enumerate(run(7_000, 7_000))]
    del lanes[4]
    assert clock_skew.suspects(lanes) == {"node-2": ("node-1", 7 * SECOND)}


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
