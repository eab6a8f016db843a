"""Who each lane is, in which order, and which lanes a filter keeps: decided with all at hand."""

from collections import Counter
from typing import Any

import pytest

from rl_insight.data.identity import compile_rules
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.same_identity import simultaneous
from rl_insight.pipeline.settle import (
    MergeOptions,
    Row,
    Settled,
    excluded,
    settle_lanes,
)
from rl_insight.schema import LANES

NONE: frozenset[str] = frozenset()


def options(rules: tuple[str, ...] = (), root_name: str = "", **filters: Any) -> MergeOptions:
    chosen = {name: frozenset(values) for name, values in filters.items()}
    return MergeOptions(compile_rules(list(rules)), Filters(**chosen), root_name)


def lane(source: str, start: int | None = 100, end: int | None = 200, **told: Any) -> Row:
    """A lane as its parse job left it: only what the file itself says."""
    own = {"lane_id": f"{source}-0", "source_id": source, "clock": "utc"}
    times = {"capture_start_ns": start, "capture_end_ns": end}
    return {**dict.fromkeys(LANES.names), **own, **times, **told}


def settled(
    paths: dict[str, Row],
    chosen: MergeOptions | None = None,
    stages: dict[str, frozenset[str]] | None = None,
) -> Settled:
    """Settle one lane per path."""
    ids = {str(row["source_id"]): path for path, row in paths.items()}
    return settle_lanes(list(paths.values()), ids, stages or {}, chosen or options())


def by_source(result: Settled) -> dict[str, Row]:
    return {str(row["source_id"]): row for row in result.lanes}


def test_a_lane_is_completed_from_its_file_its_name_and_its_folders() -> None:
    # GIVEN metadata that tell the rank, and a replica's folder
    path = (
        "agent_loop_rollout_replica_3/dp0_pp0_tp1_dcp0_ep0_rank1.1796029543122563233.pt.trace.json"
    )
    row = lane("a", rank_id=1, world_size=2, host="node-7")
    # WHEN it is settled
    (found,) = settled({path: row}).lanes
    # THEN it is (role, replica, rank)
    assert (found["role"], found["replica"], found["rank_id"]) == ("agent_loop_rollout", 3, 1)
    assert (found["host"], found["world_size"], found["tp"]) == ("node-7", 2, 1)
    # verl: replica * world size + rank
    assert found["global_rank"] == 7
    assert found["identity_conflicts"] == []


def test_the_input_folders_own_name_may_be_the_role() -> None:
    (found,) = settled({"rank0.json": lane("a")}, options(root_name="actor_update")).lanes
    assert found["role"] == "actor_update"


def test_a_capture_whose_only_stage_names_itself_is_of_that_role() -> None:
    (found,) = settled({"x.json": lane("a")}, stages={"a-0": frozenset({"actor_update"})}).lanes
    assert found["role"] == "actor_update"
    (found,) = settled({"x.json": lane("a")}, stages={"a-0": frozenset({"a", "b"})}).lanes
    assert found["role"] is None


def test_sources_that_disagree_are_told_in_the_lane() -> None:
    (found,) = settled({"actor_update/prof_rank-5.json.gz": lane("a", rank_id=0)}).lanes
    assert found["rank_id"] == 0
    assert found["identity_conflicts"] == [
        "rank 0 in the file's metadata, 5 in its name; the metadata is used"
    ]


def test_lanes_without_a_rank_are_kept() -> None:
    result = settled({"a.json": lane("a"), "b.json": lane("b")})
    assert [row["rank_id"] for row in result.lanes] == [None, None]
    assert result.filtered == {}


def test_captures_of_one_role_replica_and_rank_are_counted_in_the_order_of_time() -> None:
    result = settled(
        {
            "actor_update/prof_rank-0_031904.json.gz": lane("late", 500, 600),
            "actor_update/prof_rank-0_031847.json.gz": lane("early", 100, 200),
            "actor_update/prof_rank-1_031847.json.gz": lane("other", 50, 90),
            "agent_loop_rollout_replica_0/x-rank-0.1796029543122563233.pt.trace.json": lane("r0"),
            "agent_loop_rollout_replica_1/x-rank-0.1796029543122563233.pt.trace.json": lane("r1"),
        }
    )
    assert {key: row["step_index"] for key, row in by_source(result).items()} == {
        "early": 0,
        "late": 1,
        "other": 0,
        "r0": 0,
        "r1": 0,
    }


def test_captures_without_a_rank_are_not_taken_for_one_process() -> None:
    result = settled({"a.json": lane("a", 100), "b.json": lane("b", 50)})
    assert [row["step_index"] for row in result.lanes] == [0, 0]


def test_captures_whose_clock_starts_anew_are_ordered_by_their_names() -> None:
    # GIVEN two captures of a rank, each counting from its own start
    name = "actor_update/actor_actor-update_rank0-of-4_pid9_2026113009054{}369.json.gz"
    first = lane("first", 900, 950, clock="relative")
    second = lane("second", 0, 50, clock="relative")
    # WHEN the later one begins at an earlier count THEN the time in its name decides
    result = by_source(settled({name.format(9): second, name.format(4): first}))
    assert (result["first"]["step_index"], result["second"]["step_index"]) == (0, 1)


def test_relative_clocks_are_shifted_to_the_first_capture_that_tells_the_date() -> None:
    result = by_source(
        settled(
            {
                "a.json": lane("a", 1_000, 1_100),
                "b.json": lane("b", 10, None, clock="relative"),
                "c.json": lane("c", None, 15, clock="relative"),
            }
        )
    )
    times = ("clock_offset_ns", "capture_start_ns", "capture_end_ns")
    assert [result["a"][name] for name in times] == [0, 1_000, 1_100]
    assert [result["b"][name] for name in times] == [990, 1_000, None]
    assert [result["c"][name] for name in times] == [990, None, 1_005]


def test_filtered_lanes_go_with_their_reason() -> None:
    result = settled(
        {
            "actor_update/prof_rank-0.json.gz": lane("a"),
            "actor_update/prof_rank-1.json.gz": lane("b"),
            "actor_update/x.json.gz": lane("c"),
        },
        options(ranks={1}),
    )
    assert [row["source_id"] for row in result.lanes] == ["b"]
    assert result.filtered == {
        "a": ["rank 0 is not in input.rank_list"],
        "c": ["rank unknown is not in input.rank_list"],
    }


@pytest.mark.parametrize(
    ("who", "stages", "filters", "reason"),
    [
        ((None, None, 3, 1), NONE, Filters(), None),
        ((None, None, 3, 1), NONE, Filters(ranks=frozenset({3})), None),
        ((None, None, 3, 1), NONE, Filters(ranks=frozenset({1})), "rank 3 is not in"),
        ((None, None, None, 1), NONE, Filters(ranks=frozenset({0})), "rank unknown is not"),
        ((None, None, 3, 0), NONE, Filters(steps=frozenset({0})), None),
        ((None, None, 3, 1), NONE, Filters(steps=frozenset({2})), "step 1 is not among"),
        ((None, None, 3, None), NONE, Filters(steps=frozenset({2})), "step unknown is not"),
        (("actor_update", None, 0, 1), NONE, Filters(roles=frozenset({"update_actor"})), None),
        (("actor_update", None, 0, 1), NONE, Filters(roles=frozenset({"ref"})), "role actor_up"),
        ((None, None, 0, 1), NONE, Filters(roles=frozenset({"ref"})), "role unknown is not"),
        # A replica by the name of its folder, and all replicas by that of the stage.
        (
            ("agent_loop_rollout", 1, 0, 1),
            NONE,
            Filters(roles=frozenset({"agent_loop_rollout_replica_1"})),
            None,
        ),
        (
            ("agent_loop_rollout", 1, 0, 1),
            NONE,
            Filters(roles=frozenset({"agent_loop_rollout_replica_2"})),
            "role agent_loop_rollout is not",
        ),
        (
            ("agent_loop_rollout", 1, 0, 1),
            NONE,
            Filters(roles=frozenset({"agent_loop_rollout"})),
            None,
        ),
        # A whole step passes by its own label and by any stage inside.
        (
            ("train", None, 0, 1),
            frozenset({"actor_update", "ref_compute_log_prob"}),
            Filters(roles=frozenset({"actor_update"})),
            None,
        ),
        (
            ("train", None, 0, 1),
            frozenset({"actor_update"}),
            Filters(roles=frozenset({"train"})),
            None,
        ),
        (
            ("train", None, 0, 1),
            frozenset({"actor_update"}),
            Filters(roles=frozenset({"reward"})),
            "roles actor_update, train are not",
        ),
    ],
)
def test_what_the_filters_leave_out(
    who: tuple[str | None, int | None, int | None, int | None],
    stages: frozenset[str],
    filters: Filters,
    reason: str | None,
) -> None:
    row: Row = dict(zip(("role", "replica", "rank_id", "step"), who, strict=True))
    found = excluded(row, stages, filters)
    assert found is None if reason is None else str(found).startswith(reason)


def same_rank(source: str, start: int | None, end: int | None, **told: Any) -> Row:
    return {**lane(source, start, end), "role": "actor_update", "rank_id": 0, **told}


def test_two_sources_of_one_identity_at_the_same_time_are_noticed() -> None:
    assert simultaneous([same_rank("a", 0, 100), same_rank("b", 50, 150)]) == {"a": 1, "b": 1}


def test_captures_of_one_identity_one_after_the_other_are_as_they_should_be() -> None:
    rows = [same_rank("a", 0, 100), same_rank("b", 100, 150), same_rank("c", 150, 160)]
    assert simultaneous(rows) == Counter()


def test_a_long_capture_is_noticed_beside_several_short_ones() -> None:
    # GIVEN a capture during which two others of the same identity come and go
    rows = [same_rank("a", 0, 100), same_rank("b", 10, 20), same_rank("c", 30, 40)]
    # WHEN neighbours alone are compared, the last one shows nothing THEN it is noticed all the same
    assert simultaneous(rows) == {"a": 1, "b": 1, "c": 1}


def test_captures_of_one_file_may_overlap() -> None:
    assert simultaneous([same_rank("a", 0, 100), same_rank("a", 10, 20)]) == Counter()
    mixed = [same_rank("a", 0, 100), same_rank("a", 10, 20), same_rank("b", 15, 30)]
    assert simultaneous(mixed) == {"a": 2, "b": 1}
    later = [
        same_rank("b", 0, 50),
        same_rank("a", 0, 100),
        same_rank("a", 60, 70),
        same_rank("b", 80, 90),
    ]
    assert simultaneous(later) == {"a": 1, "b": 2}


def test_a_copy_of_a_capture_is_noticed_and_the_next_window_of_its_process_is_not() -> None:
    # GIVEN three windows of one process that touch a little, and a copy of the second
    windows = [
        same_rank(source, start, start + 100, host="h", pid=7)
        for source, start in (("a", 0), ("b", 95), ("c", 190))
    ]
    assert simultaneous(windows) == Counter()
    copy = same_rank("backup/b", 95, 195, host="h", pid=7)
    assert simultaneous([*windows, copy]) == {"b": 1, "backup/b": 1}


def test_captures_that_are_drawn_in_one_lane_are_of_one_identity_whatever_their_folders() -> None:
    # GIVEN the same stage of rank 0 on two hosts, whose folders were taken for roles
    stages = frozenset({"actor_update"})
    rows = [
        same_rank(host, 0, 100, role=host, pid=pid, stages=stages)
        for host, pid in (("hostA", 1), ("hostB", 2))
    ]
    assert simultaneous(rows) == {"hostA": 1, "hostB": 1}
    apart = [{**rows[0], "stages": frozenset()}, {**rows[1], "stages": frozenset()}]
    assert simultaneous(apart) == Counter()


def test_settled_lanes_carry_the_stages_that_tell_their_identity() -> None:
    captures = {f"host{which}/rank0.json": lane(which, pid=ord(which)) for which in "AB"}
    stages = {f"{which}-0": frozenset({"actor_update"}) for which in "AB"}
    lanes = settled(captures, stages=stages).lanes
    assert {row["role"] for row in lanes} == {"hostA", "hostB"}
    assert simultaneous(lanes) == {"A": 1, "B": 1}


def test_other_replicas_ranks_and_unknown_ones_are_no_doubles() -> None:
    rows = [
        same_rank("a", 0, 100),
        same_rank("b", 0, 100, replica=1),
        same_rank("c", 0, 100, rank_id=1),
        same_rank("d", 0, 100, rank_id=None),
        same_rank("e", 0, 100, rank_id=None),
        same_rank("f", 0, 100, role=None),
        same_rank("g", 0, 100, role=None),
        same_rank("h", None, 100),
        same_rank("i", 0, None),
    ]
    assert simultaneous(rows) == Counter()


def test_overlaps_equal_those_of_a_comparison_of_all_with_all() -> None:
    # GIVEN all ways to place three captures of two sources on a short line
    spans = [(start, end) for start in range(4) for end in range(start + 1, 5)]
    for first in spans:
        for second in spans:
            for third in spans:
                rows = [
                    same_rank(s, *t) for s, t in zip("aab", (first, second, third), strict=True)
                ]
                expected = Counter(
                    one["source_id"]
                    for one in rows
                    if any(
                        one["source_id"] != two["source_id"]
                        and one["capture_start_ns"] < two["capture_end_ns"]  # type: ignore[operator]
                        and two["capture_start_ns"] < one["capture_end_ns"]  # type: ignore[operator]
                        for two in rows
                    )
                )
                assert simultaneous(rows) == expected, (first, second, third)


def test_a_rollout_inside_a_whole_step_is_told_by_the_stages_of_that_step() -> None:
    lanes = [
        lane("t1", 1000, 1500, role="train", step=1),
        lane("t2", 1500, 2000, role="train", step=2),
        lane("r", 1010, 1300, role="agent_loop_rollout"),
    ]
    paths = {str(row["source_id"]): f"{row['source_id']}.json" for row in lanes}
    for begun, step in ((1310, 1), (1005, 2)):  # after the rollout, and as it begins
        windows = {
            "t1-0": [("rollout_generate", 1005, 1305), ("actor_update", begun, 1490)],
            "t2-0": [("actor_update", begun + 500, 1990)],
        }
        rollout = by_source(settle_lanes(lanes, paths, {}, options(), windows))["r"]
        assert (rollout["step"], rollout["step_source"]) == (step, "inferred")
        assert rollout["doubts"] == [
            ("step_inferred", "info", f"step {step}, from the training that follows it")
        ]


def test_no_lanes_are_settled_to_no_lanes() -> None:
    assert settled({}).lanes == []


def test_windows_that_one_process_wrote_one_after_the_other_are_not_two_of_one_identity() -> None:
    rows = [
        {**same_rank("a", 0, 100), "pid": 7, "host": "n1"},
        {**same_rank("b", 90, 150), "pid": 7, "host": "n1"},
    ]
    assert simultaneous(rows) == Counter()
    rows.append({**same_rank("c", 95, 99), "pid": 8, "host": "n1"})
    assert simultaneous(rows) == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize(
    "path",
    [
        "nsight/worker_process_4711.1.sqlite",
        "nvtx_profile/worker_process_4711.1.jsonl",
        "save/actor_rollout_ref_node-1_worker_process_4711.1.sqlite",
        "actor_node-1_worker_process_4711.1.sqlite",
    ],
)
def test_a_workers_capture_of_one_stage_is_of_that_stage(path: str) -> None:
    (found,) = settled({path: lane("a")}, stages={"a-0": frozenset({"actor_update"})}).lanes
    assert found["role"] == "actor_update"


def test_a_workers_capture_of_several_stages_is_the_workers() -> None:
    stages = {"a-0": frozenset({"actor_update", "actor_compute_log_prob"})}
    path = "actor_node-1_worker_process_4711.1.sqlite"
    (found,) = settled({path: lane("a")}, stages=stages).lanes
    assert found["role"] == "actor"


def test_a_role_that_the_user_gives_is_not_replaced_by_the_stage() -> None:
    rules = options((r"(?P<role>actor)_node",))
    paths = {"actor_node-1_worker_process_4711.1.sqlite": lane("a")}
    (found,) = settled(paths, rules, {"a-0": frozenset({"actor_update"})}).lanes
    assert found["role"] == "actor"
