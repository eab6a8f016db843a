import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_insight.data import roles


@pytest.mark.parametrize(
    "raw",
    ["update_actor", "actor_update", "actor-update", "ActorRolloutHybrid.update_actor"],
)
def test_every_spelling_of_the_actor_update_is_one_role(raw: str) -> None:
    assert roles.canonical(raw) == "actor_update"


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("generate_sequences", "rollout_generate"),
        ("ActorHybridWorkerBase.generate_sequences", "rollout_generate"),
        ("rollout-generate", "rollout_generate"),
        ("compute_log_prob", "actor_compute_log_prob"),
        ("IntegratedWorker.compute_log_prob", "actor_compute_log_prob"),
        ("actor-compute-log-prob", "actor_compute_log_prob"),
        ("compute_ref_log_prob", "ref_compute_log_prob"),
        ("IntegratedWorker.compute_ref_log_prob", "ref_compute_log_prob"),
        ("ref-compute-log-prob", "ref_compute_log_prob"),
        ("compute_values", "critic_compute_values"),
        ("compute-values", "critic_compute_values"),
        ("update_critic", "critic_update"),
        ("critic-update", "critic_update"),
        ("compute_rm_score", "reward"),
        ("Reward.compute_rm_score", "reward"),
        ("train-batch", "train_batch"),
        ("forward-backward", "forward_backward"),
        ("actor_train", "actor_train"),
        ("value-model", "value_model"),
        ("actor-rollout-ref", "actor_rollout_ref"),
        ("train", "train"),
        ("e2e", "e2e"),
    ],
)
def test_function_names_labels_and_file_name_labels_give_the_role(raw: str, name: str) -> None:
    assert roles.canonical(raw) == name


@pytest.mark.parametrize(
    "raw", ["env-reset", "env_step", "My.Stage", "<script>", "", "actor update", "foo_replica_2"]
)
def test_an_unknown_role_comes_back_as_it_is(raw: str) -> None:
    assert roles.canonical(raw) == raw
    assert not roles.is_stage(raw)


@pytest.mark.parametrize(
    ("raw", "role", "replica"),
    [
        ("agent_loop_rollout_replica_0", "agent_loop_rollout", 0),
        ("agent_loop_rollout_replica_31", "agent_loop_rollout", 31),
        ("agent-loop-rollout-replica-3", "agent_loop_rollout", 3),
        ("rollout-replica4", "agent_loop_rollout", 4),
        ("rollout_replica_4", "agent_loop_rollout", 4),
        ("teacher_rollout_replica_1", "teacher_rollout", 1),
        ("reward_model/agent_loop_rollout_replica_0", "reward_model/agent_loop_rollout", 0),
        ("agent_loop_rollout", "agent_loop_rollout", None),
        ("update_actor", "actor_update", None),
        ("agent_loop_rollout_replica_99999999999", "agent_loop_rollout_replica_99999999999", None),
        ("agent_loop_rollout_replica_4294967296", "agent_loop_rollout_replica_4294967296", None),
    ],
)
def test_a_replica_folder_or_prefix_gives_the_role_and_the_number(
    raw: str, role: str, replica: int | None
) -> None:
    assert roles.split_replica(raw) == (role, replica)
    assert roles.canonical(raw) == role


def test_whole_steps_and_workers_are_no_stages() -> None:
    assert not any(map(roles.is_stage, roles.WHOLE_STEP | roles.WORKERS))


def test_rollouts_are_known_and_workers_that_also_train_are_none() -> None:
    assert all(map(roles.is_rollout, ("agent_loop_rollout", "rollout_generate", "rollout")))
    assert roles.is_rollout("reward_model/agent_loop_rollout")
    assert not any(map(roles.is_rollout, ("actor_rollout", "actor_rollout_ref", "actor_update")))


def test_stages_are_known_in_every_spelling() -> None:
    assert roles.is_stage("update_actor")
    assert roles.is_stage("ref-compute-log-prob")
    assert roles.is_stage("agent_loop_rollout_replica_2")
    assert roles.is_stage("reward_model/agent_loop_rollout")


def test_every_stage_is_its_own_canonical_name() -> None:
    for name in roles.STAGES | roles.WHOLE_STEP | roles.WORKERS:
        assert roles.canonical(name) == name


@pytest.mark.parametrize(
    ("role", "replica", "label"),
    [
        ("agent_loop_rollout", 0, "agent_loop_rollout_replica_0"),
        (
            "reward_model/agent_loop_rollout",
            1,
            "reward_model/agent_loop_rollout_replica_1",
        ),
        ("actor_update", None, "actor_update"),
        (None, None, "unknown role"),
    ],
)
def test_a_replica_lane_is_called_like_its_folder(
    role: str | None, replica: int | None, label: str
) -> None:
    assert roles.lane_role_label(role, replica) == label


@pytest.mark.parametrize(
    ("role", "replica", "wanted", "passes"),
    [
        ("actor_update", None, {"actor_update"}, True),
        ("actor_update", None, {"update_actor"}, True),
        ("actor_update", None, {"actor-update"}, True),
        ("update_actor", None, {"actor_update"}, True),
        ("actor_update", None, {"critic_update"}, False),
        ("actor_update", None, {"critic_update", "update_actor"}, True),
        ("actor_update", None, {"update"}, False),
        ("agent_loop_rollout", 3, {"agent_loop_rollout"}, True),
        ("agent_loop_rollout", 3, {"agent_loop_rollout_replica_3"}, True),
        ("agent_loop_rollout", 3, {"rollout-replica3"}, True),
        ("agent_loop_rollout", 3, {"agent_loop_rollout_replica_2"}, False),
        ("agent_loop_rollout", None, {"agent_loop_rollout_replica_3"}, False),
        ("agent_loop_rollout_replica_3", None, {"agent_loop_rollout_replica_3"}, True),
        ("rollout_generate", 0, {"rollout_generate_replica_0"}, True),
        ("my_engine", 2, {"my_engine_replica_2"}, True),
        ("my_engine", 2, {"my_engine_replica_1"}, False),
        ("reward_model/agent_loop_rollout", 0, {"reward_model/agent_loop_rollout"}, True),
        ("reward_model/agent_loop_rollout", 0, {"reward_model/agent_loop_rollout_replica_0"}, True),
        ("reward_model/agent_loop_rollout", 0, {"agent_loop_rollout"}, True),
        ("reward_model/agent_loop_rollout", 0, {"critic/agent_loop_rollout"}, False),
        ("agent_loop_rollout", 0, {"reward_model/agent_loop_rollout"}, False),
        (None, None, {"actor_update"}, False),
        (None, None, set(), True),
        ("env_step", None, {"env_step"}, True),
    ],
)
def test_the_role_filter_takes_raw_names_canonical_names_and_lane_labels(
    role: str | None, replica: int | None, wanted: set[str], passes: bool
) -> None:
    assert roles.matches(role, replica, wanted) is passes


@settings(deadline=None)
@given(st.text(), st.none() | st.integers(0, 2**31 - 1))
def test_the_filter_knows_every_label_that_a_lane_may_show(role: str, replica: int | None) -> None:
    canonical = roles.canonical(role)
    assert roles.matches(canonical, replica, {roles.lane_role_label(canonical, replica)})


@settings(deadline=None)
@given(st.text(max_size=300))
def test_a_canonical_name_stays_what_it_is(raw: str) -> None:
    name = roles.canonical(raw)
    assert roles.canonical(name) == name


@pytest.mark.parametrize("piece", ["_replica_", "-", ".", "rollout-replica1", "0", "/"])
def test_a_role_of_a_megabyte_costs_no_time(piece: str) -> None:
    # Linear time is milliseconds here; quadratic time would hold up the tests for minutes.
    raw = piece * (1_000_000 // len(piece))
    assert isinstance(roles.canonical(raw), str)
