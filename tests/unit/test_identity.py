import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_insight.data.identity import Identity, certain, compile_rules, path_role, resolve
from rl_insight.data.roles import STAGES, WHOLE_STEP
from rl_insight.errors import ConfigError

NO_RULES = compile_rules(None)
NS = 1771730291744166997
STAMP = 20260814122731089
FLAT = f"actor-rollout-ref_actor-update_step1_rank0-of-16_tp0-pp0-dp0_pid10256_{STAMP}.json.gz"


def who(path: str, root: str = "save", **metadata: object) -> Identity:
    return resolve(path, metadata, NO_RULES, root)


# -- what the sources tell together ------------------------------------------------------------


def test_a_flat_verl_file_is_known_by_its_name_and_not_by_its_save_path() -> None:
    assert who(f"save/{FLAT}", "up", rank_id=0, world_size=16) == Identity(
        role="actor_update",
        rank_id=0,
        global_rank=0,
        world_size=16,
        tp=0,
        pp=0,
        dp=0,
        pid=10256,
        step=1,
        step_source="name",
        order=(STAMP,),
    )


def test_an_older_verl_file_is_known_by_its_folder_and_its_metadata() -> None:
    path = "actor_update/prof_rank-1_031904.json.gz"
    assert who(path, rank_id=1, world_size=2) == Identity(
        role="actor_update", rank_id=1, global_rank=1, world_size=2, order=(31904,)
    )


def test_a_replica_engine_is_a_lane_of_its_own_with_ranks_of_its_own() -> None:
    path = f"agent_loop_rollout_replica_3/huawei_372640.{NS}.pt.trace.json.gz"
    assert who(path, rank_id=1, world_size=2) == Identity(
        role="agent_loop_rollout",
        replica=3,
        rank_id=1,
        global_rank=7,
        world_size=2,
        host="huawei",
        pid=372640,
        order=(NS,),
    )


def test_a_relocated_engine_file_keeps_both_of_its_ranks_without_a_conflict() -> None:
    path = f"rollout-replica4-globalrank8_vllm-2f9c1-rank-0.{NS}.pt.trace.json.gz"
    found = who(path, rank_id=0, world_size=2)
    assert (found.role, found.replica) == ("agent_loop_rollout", 4)
    assert (found.rank_id, found.global_rank) == (0, 8)
    assert found.conflicts == ()


def test_an_ascend_rank_may_stand_as_text() -> None:
    assert who("actor_update/xxx_ascend_pt", rank_id="3").rank_id == 3


def test_a_capture_that_nothing_names_is_still_an_identity() -> None:
    assert who("rank_not_found.json.gz") == Identity(order=(0,))


@pytest.mark.parametrize("junk", [-1, "-1", "x", "", True, 2.5, None, 2**31, "9" * 5000, [0]])
def test_a_rank_in_the_metadata_that_is_no_rank_counts_as_unknown(junk: object) -> None:
    assert who("actor_update/trace.json", rank_id=junk).rank_id is None
    assert who("actor_update/rank5.json", rank_id=junk).rank_id == 5


def test_the_role_in_the_metadata_wins_over_the_folder() -> None:
    found = who("step_2/actor_update/xxx_ascend_pt", role="rollout_generate", rank_id=0)
    assert (found.role, found.step) == ("rollout_generate", 2)
    assert found.conflicts == (
        "role rollout_generate in the file's metadata, actor_update in its folders; "
        "the metadata is used",
    )


def test_a_folder_of_unknown_meaning_is_no_reason_to_doubt_the_metadata() -> None:
    found = who("run_7/xxx_ascend_pt", role="update_actor")
    assert (found.role, found.conflicts) == ("actor_update", ())


def test_two_spellings_of_one_role_are_no_conflict() -> None:
    found = who("actor_update/x.json", role="ActorRolloutHybrid.update_actor")
    assert (found.role, found.conflicts) == ("actor_update", ())


def test_the_role_in_the_metadata_may_name_the_replica() -> None:
    found = who("x.json", role="agent_loop_rollout_replica_2")
    assert (found.role, found.replica) == ("agent_loop_rollout", 2)


def test_a_parent_that_tells_two_replicas_apart_stays_whatever_else_names_the_role() -> None:
    path = "reward_model/agent_loop_rollout_replica_0/x.json"
    for metadata in ({}, {"role": "agent_loop_rollout_replica_0"}):
        found = who(path, **metadata)
        assert (found.role, found.replica) == ("reward_model/agent_loop_rollout", 0)
        assert found.conflicts == ()


@pytest.mark.parametrize(
    ("path", "root", "role"),
    [
        # The worker's name serves where a flat name has no scope …
        (f"ref_step7_rank0-of-8_pid1_{STAMP}.json.gz", "save", "ref"),
        (f"save/ref_step7_rank0-of-8_pid1_{STAMP}.json.gz", "up", "ref"),
        (f"value-model_rank0-of-8_pid1_{STAMP}.json.gz", "save", "value_model"),
        ("actor_node3_worker_process_7.1.jsonl", "save", "actor"),
        ("ref_prof_rank-0.json.gz", "save", "ref"),
        # … but not where a folder is the role.
        ("my_stage/ref_prof_rank-0.json.gz", "save", "my_stage"),
        (f"actor_update/actor_rank0_pid1_{STAMP}.json.gz", "save", "actor_update"),
        (f"e2e/actor_rank0_pid1_{STAMP}.json.gz", "save", "e2e"),
        # A prefix of an engine is no worker.
        (f"my_run_dp0_pp0_tp0_dcp0_ep0_rank0.{NS}.pt.trace.json.gz", "save", None),
        (f"actor_train_step7_rank0-of-8_pid1_{STAMP}.json.gz", "save", "train"),
        ("prof_rank-0.json.gz", "critic_update", "critic_update"),
        ("prof_rank-0.json.gz", "save", None),
        ("trace_filter/sampled_rank-0.json.gz", "hta", "trace_filter"),
        ("torch_profile/sampled_rank-0.json.gz", "hta", None),
    ],
)
def test_the_role_comes_from_the_name_or_the_folders(
    path: str, root: str, role: str | None
) -> None:
    assert who(path, root).role == role
    assert path_role(path, root) == role


# -- disagreement ------------------------------------------------------------------------------


def test_a_rank_in_a_colliding_name_yields_to_the_metadata_and_is_reported() -> None:
    found = who("actor_update/prof_rank-0.json.gz", rank_id=3)
    assert found.rank_id == 3
    assert found.conflicts == (
        "rank 3 in the file's metadata, 0 in its name; the metadata is used",
    )


def test_all_that_disagree_are_named() -> None:
    found = who(f"step_9/actor_rank1-of-8_pid1_{STAMP}.json", step=3, world_size=4, rank_id=1)
    assert (found.step, found.step_source) == (3, "metadata")
    assert found.conflicts == (
        "step 3 in the file's metadata, 9 in its folders; the metadata is used",
        "world size 4 in the file's metadata, 8 in its name; the metadata is used",
    )


def test_a_name_wins_over_a_folder() -> None:
    found = who(f"step_9/actor-update_step2_rank1_pid1_{STAMP}.json")
    assert (found.step, found.step_source) == (2, "name")
    assert found.conflicts == ("step 2 in its name, 9 in its folders; the name is used",)


@pytest.mark.parametrize(
    "name",
    [
        f"dp1_pp0_tp0_dcp0_ep0_rank0.{NS}.pt.trace.json.gz",
        f"dp0_pp1_tp0_dcp0_ep0_rank0.{NS}.pt.trace.json.gz",
        "1771730291.5-TP-0-EP-1.trace.json.gz",
        "1771730291.5-TP-0-DP-1.trace.json.gz",
    ],
)
def test_a_rank_within_one_parallel_group_is_not_compared_with_the_engine_rank(name: str) -> None:
    found = who(f"agent_loop_rollout_replica_0/{name}", rank_id=2, world_size=4)
    assert (found.rank_id, found.conflicts) == (2, ())


def test_ranks_of_an_engine_without_other_groups_are_compared() -> None:
    found = who("agent_loop_rollout_replica_0/1771730291.5-TP-0.trace.json.gz", rank_id=1)
    assert found.rank_id == 1
    assert found.conflicts == (
        "rank 1 in the file's metadata, 0 in its name; the metadata is used",
    )


def test_an_engine_rank_in_a_group_serves_where_the_file_tells_none() -> None:
    path = f"agent_loop_rollout_replica_0/dp1_pp0_tp0_dcp0_ep0_rank0.{NS}.pt.trace.json.gz"
    assert who(path).rank_id == 0


# -- ranks of the whole job --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "metadata", "expected"),
    [
        ("actor_update/x.json", {"rank_id": 5}, 5),
        ("actor_update/x.json", {}, None),
        ("agent_loop_rollout_replica_3/x.json", {"rank_id": 1, "world_size": 4}, 13),
        ("agent_loop_rollout_replica_3/x.json", {"rank_id": 1}, None),
        ("agent_loop_rollout_replica_3/x.json", {"rank_id": 4, "world_size": 4}, None),
        ("agent_loop_rollout_replica_3/x.json", {"rank_id": 1, "global_rank": 9}, 9),
        (
            "reward_model/agent_loop_rollout_replica_3/x.json",
            {"rank_id": 1, "world_size": 4},
            None,
        ),
        (f"dp0_pp0_tp1_dcp0_ep0_rank1.{NS}.pt.trace.json.gz", {"world_size": 4}, None),
        (
            "agent_loop_rollout_replica_2000000000/x.json",
            {"rank_id": 1, "world_size": 2000000000},
            None,
        ),
    ],
)
def test_the_global_rank_is_told_only_where_it_is_known(
    path: str, metadata: dict[str, object], expected: int | None
) -> None:
    assert who(path, **metadata).global_rank == expected


# -- order of the captures of one lane ---------------------------------------------------------


def _sorted(names: list[str]) -> list[str]:
    return sorted(names, key=lambda name: who(name).order)


def test_captures_of_one_lane_sort_as_they_were_taken() -> None:
    stem = "actor_actor-update_step1_rank0_pid1"
    names = [
        f"{stem}_{STAMP}.json.gz",
        f"{stem}_{STAMP}_part1.json.gz",
        f"{stem}_{STAMP}_part2.json.gz",
        f"{stem}_{STAMP}_part10.json.gz",
        f"{stem}_{STAMP + 5}_mb0-3.json.gz",
        f"{stem}_{STAMP + 5}_mb4-7.json.gz",
        f"{stem}_{STAMP + 5}_mb12.json.gz",
    ]
    assert _sorted(names[::-1]) == names


@pytest.mark.parametrize(
    ("folder", "role"),
    [
        ("node1", None),
        ("gathered", None),
        ("tuesday/gpu-node0.cluster.local", None),
        ("actor_update", "actor_update"),
        ("actor_update/node1", "actor_update"),
        ("train", "train"),
        ("critic", "critic"),
        ("agent_loop_rollout_replica_1/node1", "agent_loop_rollout"),
    ],
)
def test_a_folder_of_unknown_meaning_is_no_role_of_an_nsys_report(
    folder: str, role: str | None
) -> None:
    for name in ("worker_process_7.1.sqlite", "worker_process_7.1.nsys-rep"):
        assert who(f"{folder}/{name}").role == role
        assert path_role(f"{folder}/{name}", "save") == role


def test_an_expression_makes_any_folder_the_role_of_an_nsys_report() -> None:
    rules = compile_rules([r"^(?P<role>[^/]+)/worker_process"])
    assert resolve("mine/worker_process_7.1.sqlite", {}, rules).role == "mine"


def test_ranges_of_one_nsys_process_sort_by_number() -> None:
    names = [f"worker_process_7.{number}.jsonl" for number in (1, 2, 10)]
    assert _sorted(names[::-1]) == names


# -- the user's own expressions ----------------------------------------------------------------


def test_a_user_expression_beats_everything_else_in_silence() -> None:
    rules = compile_rules(r"(?P<host>node\d+)/s(?P<step>\d+)-r(?P<rank>\d+)-(?P<role>\w+)\.json")
    metadata = {"rank_id": 1, "role": "actor_update", "step": 2, "host": "other"}
    found = resolve("step_7/node3/s4-r5-my_role.json", metadata, rules, "save")
    assert (found.role, found.rank_id, found.step, found.host) == ("my_role", 5, 4, "node3")
    assert found.step_source == "user"
    assert found.conflicts == ()


def test_a_user_expression_tells_only_what_it_finds() -> None:
    rules = compile_rules(r"replica-(?P<replica>\d+)|^(?P<role>x)$")
    found = resolve("replica-2/rank3.json", {}, rules, "save")
    assert (found.replica, found.rank_id, found.role) == (2, 3, "replica-2")


def test_an_empty_find_of_a_user_expression_tells_nothing() -> None:
    rules = compile_rules(r"^(?P<role>\d*)(?P<host>\d*)")
    found = resolve("actor_update/x.json", {"host": "node3"}, rules, "save")
    assert (found.role, found.host) == ("actor_update", "node3")


def test_of_several_expressions_the_first_that_finds_a_field_counts() -> None:
    rules = compile_rules([r"r(?P<rank>\d)", r"q(?P<rank>\d)-(?P<step>\d)"])
    assert resolve("q1-2", {}, rules, "").rank_id == 1
    found = resolve("q1-2_r3", {}, rules, "")
    assert (found.rank_id, found.step) == (3, 2)


def test_a_user_role_is_made_canonical_and_may_hold_the_replica() -> None:
    rules = compile_rules(r"(?P<role>[\w-]+)\.json")
    assert resolve("update_actor.json", {}, rules, "").role == "actor_update"
    found = resolve("rollout-replica3.json", {}, rules, "")
    assert (found.role, found.replica) == ("agent_loop_rollout", 3)


def test_a_user_expression_that_finds_no_number_is_reported_and_passed_over() -> None:
    rules = compile_rules(r"rank(?P<rank>\w+)")
    found = resolve("prof_rank-4_rankfour.json", {"rank_id": 4}, rules, "")
    assert found.rank_id == 4
    assert found.conflicts == (
        "input.identity finds the rank 'four', which is no number that fits; it is passed over",
    )


@pytest.mark.parametrize("nothing", [None, "", [], ()])
def test_without_expressions_there_are_no_rules(nothing: str | list[str] | None) -> None:
    assert compile_rules(nothing).patterns == ()


@pytest.mark.parametrize(
    ("expressions", "reason"),
    [
        (
            "(?P<rank>",
            "input.identity: '(?P<rank>' is not a regular expression: "
            "missing ), unterminated subpattern at position 0",
        ),
        (
            [r"(?P<rank>\d+)", r"rank(\d+)"],
            r"input.identity: 'rank(\\d+)' has no named group, such as (?P<rank>\d+); "
            "allowed are role, rank, step, replica, host",
        ),
        (
            r"(?P<ranks>\d+)",
            r"input.identity: '(?P<ranks>\\d+)' names the group 'ranks'; "
            "allowed are role, rank, step, replica, host",
        ),
        ([7], "input.identity: 7 is not a regular expression"),
    ],
)
def test_an_expression_that_cannot_serve_is_refused_with_key_expression_and_reason(
    expressions: object, reason: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(reason)}$"):
        compile_rules(expressions)  # type: ignore[arg-type]


# -- what is certain without opening the file --------------------------------------------------


def test_a_flat_verl_name_is_certain_about_stage_and_step_but_not_about_the_rank() -> None:
    assert certain(FLAT, NO_RULES) == Identity(role="actor_update", step=1, step_source="name")


@pytest.mark.parametrize(
    "name",
    [
        f"actor_train_step1_rank0_pid1_{STAMP}.json.gz",
        f"actor_e2e_step1_rank0_pid1_{STAMP}.json.gz",
        f"ref_step1_rank0_pid1_{STAMP}.json.gz",
        f"something-else_step1_rank0_pid1_{STAMP}.json.gz",
    ],
)
def test_a_capture_that_may_hold_other_stages_has_no_certain_role(name: str) -> None:
    assert certain(name, NO_RULES) == Identity(step=1, step_source="name")


@pytest.mark.parametrize(
    "path",
    [
        "step3/rank0/dump_tensor_data",
        "actor_update/rank0/dump_tensor_data",
        "actor_update/prof_rank-0_7_20260301101112123.json.gz",
        f"agent_loop_rollout_replica_3/vllm-1-rank-0.{NS}.pt.trace.json.gz",
        f"rollout-replica0_actor-update_step1_rank0_pid1_{STAMP}.json.gz",
        "worker0_step_12.1694128201545.pt.trace.json",
    ],
)
def test_folders_and_other_names_are_certain_about_nothing(path: str) -> None:
    assert certain(path, NO_RULES) == Identity()


@pytest.mark.parametrize(
    ("path", "known"),
    [
        (
            "step_3/actor_update/step0/rank12/dump_tensor_data",
            Identity(role="actor_update", rank_id=12, step=3, step_source="folder"),
        ),
        # verl's own names of two more stages; a stage that nobody knows is no certain role
        ("save/step_3/compute_values/rank/dump_tensor_data", {"role": "critic_compute_values"}),
        ("step_3/my_stage/rank1/dump_tensor_data", {"rank_id": 1}),
        ("step_unknown/actor_update/step0/rank1/dump_tensor_data", {"role": "actor_update"}),
    ],
)
def test_the_folders_of_verls_msprobe_dumps_are_certain(
    path: str, known: Identity | dict[str, object]
) -> None:
    found = certain(path, NO_RULES)
    if isinstance(known, Identity):
        assert found == known
    else:
        assert {key: getattr(found, key) for key in known} == known
    whole = resolve(path, {}, NO_RULES)
    assert found.step in (None, whole.step)
    assert found.role in (None, whole.role)


@pytest.mark.parametrize(
    ("path", "root", "role", "step", "rank", "pid"),
    [
        ("step_1/actor_update/rank0/dump_tensor_data", "save", "actor_update", 1, 0, None),
        ("step_1/actor_update/step0/rank2/dump_tensor_data", "save", "actor_update", 1, 2, None),
        ("step_9/step_1/my_stage/step0/rank2/dump_tensor_data", "x", "my_stage", 1, 2, None),
        ("actor_update/step_1/my_stage/rank2/dump_tensor_data", "x", "my_stage", 1, 2, None),
        ("step_unknown/ref/step0/rank2/dump_tensor_data", "save", "ref", None, 2, None),
        ("step_1/actor_update/rank/dump_tensor_data", "save", "actor_update", 1, None, None),
        ("step_1/actor_update/proc77/dump_tensor_data", "save", "actor_update", 1, None, 77),
        ("step5/rank1/dump_tensor_data", "dump", None, 5, 1, None),
        ("step5/proc77/dump_tensor_data", "dump", None, 5, None, 77),
        ("step_1/actor_update/step0/rank2", "save", "actor_update", 1, 2, None),
        ("step_1/actor_update", "save", "actor_update", 1, None, None),
        # the input is a folder inside the dump
        ("actor_update/step0/rank2/dump_tensor_data", "step_4", "actor_update", 4, 2, None),
        ("step0/rank2/dump_tensor_data", "step_4/actor_update", "actor_update", 4, 2, None),
        ("step0/rank2/dump_tensor_data", "actor_update", "actor_update", None, 2, None),
        ("rank2/dump_tensor_data", "step_4/my_stage/step0", "my_stage", 4, 2, None),
        ("dump_tensor_data", "step_4/my_stage/step0/rank2", "my_stage", 4, 2, None),
        (".", "step_4/my_stage/step0/rank2/dump_tensor_data", "my_stage", 4, 2, None),
        (".", "step5/rank2/dump_tensor_data", None, 5, 2, None),
        ("dump_tensor_data", "rank2", None, None, 2, None),
    ],
)
def test_an_msprobe_dump_is_known_by_its_folders(
    path: str,
    root: str,
    role: str | None,
    step: int | None,
    rank: int | None,
    pid: int | None,
) -> None:
    found = resolve(path, {}, NO_RULES, root)
    assert (found.role, found.step, found.rank_id, found.pid) == (role, step, rank, pid)
    assert found.conflicts == ()


def test_what_a_user_expression_tells_is_certain() -> None:
    rules = compile_rules(r"(?P<role>\w+)/r(?P<rank>\d+)s(?P<step>\d+)h(?P<host>\w+)")
    assert certain("update_actor/r1s2h3", rules) == Identity(
        role="actor_update", rank_id=1, step=2, step_source="user", host="3"
    )
    assert certain("train/r1s2h3", rules).role is None


def test_a_rollout_role_is_certain_only_with_its_replica() -> None:
    rules = compile_rules(r"(?P<role>agent_loop_rollout)(?:_replica_(?P<replica>\d+))?/")
    assert certain("agent_loop_rollout/x.json", rules) == Identity()
    assert certain("agent_loop_rollout_replica_2/x.json", rules) == Identity(
        role="agent_loop_rollout", replica=2
    )


# -- whatever comes ----------------------------------------------------------------------------

PATHS = st.text(max_size=100) | st.lists(
    st.sampled_from(
        [
            *("step_1", "actor_update", "agent_loop_rollout_replica_1", "rank0", "run", "7"),
            *("reward_model", "torch_profile", "train", FLAT, "x_ascend_pt"),
            f"rollout-replica4-globalrank8_vllm-rank-0.{NS}.pt.trace.json",
            f"dp1_pp0_tp0_dcp0_ep0_rank0.{NS}.pt.trace.json.gz",
        ]
    ),
    max_size=5,
).map("/".join)
KEYS = ["role", "rank_id", "world_size", "host", "pid", "step", "replica", "tp", "global_rank"]
VALUES = st.none() | st.integers() | st.text(max_size=20) | st.floats() | st.booleans()


@settings(deadline=None)
@given(PATHS, st.dictionaries(st.sampled_from(KEYS), VALUES), st.text(max_size=20))
def test_no_path_and_no_metadata_makes_it_fail_or_gives_what_no_table_can_hold(
    path: str, metadata: dict[str, object], root: str
) -> None:
    found = resolve(path, metadata, NO_RULES, root)
    for field in fields(found):
        value = getattr(found, field.name)
        if isinstance(value, int):
            wide = field.name in ("pid", "step")
            assert 0 <= value < (2**63 if wide else 2**31), field.name
    assert (found.step is None) == (found.step_source is None)


@settings(deadline=None)
@given(PATHS, st.text(max_size=20))
def test_what_is_certain_stays_so_when_the_file_adds_nothing(path: str, root: str) -> None:
    known, found = certain(path, NO_RULES), resolve(path, {}, NO_RULES, root)
    assert known.role in (None, found.role)
    assert known.role not in WHOLE_STEP
    assert known.role is None or known.role in STAGES
    assert known.step in (None, found.step)
    assert path_role(path, root) == found.role


@pytest.mark.parametrize(
    ("path", "step"),
    [
        ("iter12/actor_update/host_4711_20260312032448123_ascend_pt", 12),
        ("worker_process_70000.3.sqlite", 3),
        ("node0/host.dom_worker_process_70000.3_pqtdir", 3),
    ],
)
def test_the_documented_expressions_tell_the_steps_of_ascend_and_nsys(path: str, step: int) -> None:
    text = (Path(__file__).parents[2] / "docs/data.md").read_text("utf-8")
    expressions = re.findall(r"^    - '(.+\(\?P<step>.+)'$", text, re.MULTILINE)
    assert len(expressions) == 2
    assert resolve(path, {}, compile_rules(expressions)).step == step


@pytest.mark.parametrize(
    "name",
    [
        "step_2/actor_update/host_4711_20260312032448123_ascend_pt",
        "step_2/node0/worker_process_70000.3.sqlite",
    ],
)
def test_a_folder_of_a_step_needs_no_expression(name: str) -> None:
    assert who(name).step == 2
