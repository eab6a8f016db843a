"""Hosts whose clocks differ look plausible on one timeline, and are told. [40]"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import pytest

from rl_insight.data.identity import compile_rules
from rl_insight.pipeline import clock_skew
from rl_insight.pipeline.clock_skew import Lane, Window
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


def test_roles_that_have_hosts_of_their_own_are_compared_among_themselves() -> None:
    scores = [("reward", start, end) for _, start, end in run(0, 0)]
    late = [("reward", start, end) for _, start, end in run(1_000, 1_000)]
    lanes = [("a", run(0, 0)), ("b", run(0, 0)), ("c", scores), ("d", late)]
    assert suspects(lanes) == {"d": ("c", SECOND)}


# By how many ms the second host's part of a stage begins and ends later than the first's.
Later = Callable[[int], tuple[int, int]]


def job(
    skews_ms: Sequence[int],
    tail_ms: int = 0,
    late: Mapping[str, Later] = MappingProxyType({}),
) -> list[Lane]:
    """Four steps of hosts whose clocks are off so far.

    Each step is a rollout of 8 s, which does not know its step and on the last host lasts
    `tail_ms` longer in the second; then for all hosts together log_prob and ref of 2 s and an
    update of 5 s. `late` maps a role to how it differs on the last host, by the step.
    """
    lanes: list[Lane] = []
    for host, skew in enumerate(skews_ms):
        last = host == len(skews_ms) - 1
        for number in range(4):
            at = EPOCH + 60 * SECOND * number + skew * MS
            tail = tail_ms * MS if last and number == 1 else 0
            rollout = ("agent_loop_rollout", at, at + 8 * SECOND + tail)
            lanes.append((f"node-{host}", None, [rollout]))
            for role, begin, long in (("log_prob", 25, 2), ("ref", 28, 2), ("update", 31, 5)):
                start, end = late[role](number) if last and role in late else (0, 0)
                # Ranks of one host end by hundredths of a second earlier than those of another.
                window = (
                    role,
                    at + begin * SECOND + start * MS,
                    at + (begin + long) * SECOND + end * MS + 20 * MS * host,
                )
                lanes.append((f"node-{host}", number, [window]))
    return lanes


@pytest.mark.parametrize("skew_ms", [3_000, 5_000, -3_000])
def test_a_long_tail_of_a_rollout_hides_no_late_host(skew_ms: int) -> None:
    for hosts in (2, 4):
        lanes = job([0] * (hosts - 1) + [skew_ms], tail_ms=12_000)
        last = f"node-{hosts - 1}"
        assert clock_skew.suspects(lanes) == {last: ("node-0", skew_ms * MS)}


def test_a_role_that_jitters_or_lasts_as_it_likes_hides_no_late_host() -> None:
    # GIVEN stages of one role that begin and end at random, or that only end so
    scattered = [(-9_000, 1_000), (4_000, 700), (9_000, -1_500), (1_500, 6_000)]
    ends = [(0, 0), (0, 9_000), (0, 4_000), (0, 18_000)]
    for odd in (scattered, ends):
        for role in ("log_prob", "ref", "update"):
            lanes = job([0, 3_000], late={role: odd.__getitem__})
            assert clock_skew.suspects(lanes) == {"node-1": ("node-0", 3 * SECOND)}


def test_a_role_that_regularly_comes_at_another_time_is_outvoted_by_two() -> None:
    # GIVEN a role that begins and ends 8 s later on the late host, a stage of which is then over
    lanes = job([0, 3_000], late={"ref": lambda _: (8_000, 8_000)})
    assert clock_skew.suspects(lanes) == {"node-1": ("node-0", 3 * SECOND)}
    # AND not by one
    alone = [lane for lane in lanes if lane[2][0][0] != "update"]
    assert clock_skew.suspects(alone) == {}


def test_one_call_in_four_that_a_straggler_drew_out_hides_no_late_host() -> None:
    late: dict[str, Later] = {
        "log_prob": lambda number: (0, 4_000 * (number == 1)),
        "update": lambda number: (0, 4_000 * (number == 2)),
    }
    assert clock_skew.suspects(job([0, 3_000], late=late)) == {"node-1": ("node-0", 3 * SECOND)}


def test_a_few_calls_among_others_that_are_late_alike_by_chance_are_no_clock_that_differs() -> None:
    # GIVEN hosts that do not wait for each other, and one role of which three calls are alike
    chance = [(3_000, 3_100), (3_100, 3_200), (2_950, 2_800), (-7_000, -7_000)]
    scattered = [(-9_000, -9_000), (4_000, 4_000), (9_000, 9_000), (1_500, 1_500)]
    late: dict[str, Later] = {
        "log_prob": chance.__getitem__,
        "ref": scattered.__getitem__,
        "update": scattered[::-1].__getitem__,
    }
    lanes = job([0, 0], late=late)
    assert clock_skew.suspects(lanes) == {}
    only = [lane for lane in lanes if lane[2][0][0] == "log_prob"]
    assert clock_skew.suspects(only) == {}
    # AND one of which all are, beside two that are not
    always = job([0, 0], late={**late, "log_prob": lambda _: (3_000, 3_000)})
    assert clock_skew.suspects(always) == {}


def test_where_steps_are_unknown_a_call_that_was_lost_silences_its_role_alone() -> None:
    windows = {host: [*step(late)] for host, late in (("node-1", 0), ("node-2", 7))}
    del windows["node-2"][0]
    assert suspects(list(windows.items())) == {"node-2": ("node-1", 7 * SECOND)}


def test_a_long_tail_alone_is_no_clock_that_differs() -> None:
    for hosts in (2, 4):
        assert clock_skew.suspects(job([0] * hosts, tail_ms=12_000)) == {}


def test_a_slow_host_is_no_clock_that_differs() -> None:
    # GIVEN one whose stages all last 3 s longer, though all hosts wait for each other
    slower = dict.fromkeys(("log_prob", "ref", "update"), lambda _: (0, 3_000))
    assert clock_skew.suspects(job([0, 0], late=slower)) == {}
    # AND one that falls behind in the first stage of each step, and is waited for at its end only
    behind: dict[str, Later] = {
        "log_prob": lambda _: (0, 3_000),
        "ref": lambda _: (3_000, 3_100),
        "update": lambda _: (3_100, 3_300),
    }
    assert clock_skew.suspects(job([0, 0], tail_ms=12_000, late=behind)) == {}


def test_a_host_that_is_late_for_each_stage_and_ends_with_the_others_is_none_either() -> None:
    late: dict[str, Later] = dict.fromkeys(("log_prob", "ref", "update"), lambda _: (1_500, 0))
    assert clock_skew.suspects(job([0, 0], late=late)) == {}
    # AND though one of its stages is not waited for
    late["update"] = lambda _: (1_500, 1_500)
    del late["ref"]
    lanes = [lane for lane in job([0, 0], late=late) if lane[2][0][0] != "ref"]
    assert clock_skew.suspects(lanes) == {}


def test_jitter_is_no_clock_that_differs() -> None:
    # GIVEN roles of which three calls in four are late by almost the same, by chance
    chance = [(150, 160), (155, 150), (145, 140), (-60, 90)]
    others = [(-120, 80), (40, -30), (190, 20), (-10, 130)]
    late: dict[str, Later] = {
        "log_prob": chance.__getitem__,
        "ref": others.__getitem__,
        "update": others[::-1].__getitem__,
    }
    assert clock_skew.suspects(job([0, 0], late=late)) == {}
    # AND one that is scheduled late, beside one that jitters
    late = {"log_prob": lambda _: (150, 150), "ref": others.__getitem__}
    lanes = [lane for lane in job([0, 0], late=late) if lane[2][0][0] != "update"]
    assert clock_skew.suspects(lanes) == {}


def test_rollouts_tell_nothing_of_clocks() -> None:
    # GIVEN a host with rollouts alone, and engines' rollouts that are driven one after the other
    for role in ("agent_loop_rollout", "rollout_generate", "reward_model/agent_loop_rollout"):
        rollouts = [(role, start, end) for _, start, end in run(0, 0)]
        late = [(role, start, end) for _, start, end in run(9_000, 9_000)]
        lanes = [("a", run(0, 0)), ("a", rollouts), ("b", run(0, 0)), ("c", late)]
        assert suspects(lanes) == {}


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
        "the stages of node-8 come 7.000 s after those of node-0: their clocks may differ"
    )


def test_an_engine_of_any_name_is_not_asked_since_it_tells_its_replica() -> None:
    # GIVEN two replicas whose stages last 8 s, the second always driven 2 s later
    lanes = []
    for replica in (0, 1):
        one = str(replica)
        own = {"lane_id": one, "source_id": one, "rank_id": 0, "replica": replica, "clock": "utc"}
        times = {"capture_start_ns": EPOCH, "capture_end_ns": EPOCH + 600 * SECOND}
        lanes.append({**dict.fromkeys(LANES.names), **own, **times, "host": f"node-{replica}"})
    windows = {"0": run(0, 0), "1": run(2_000, 2_000)}
    paths = {"0": "a.json", "1": "b.json"}
    settled = settle_lanes(
        lanes, paths, {}, MergeOptions(compile_rules([]), Filters(), ""), windows
    )
    assert [row["doubts"] for row in settled.lanes] == [[], []]
