"""Role names: one name for each RL stage, whatever its producer called it.

A role is an open set of strings. What VeRL, MindSpeed-RL and the documented samples write for the
stages that they share is mapped to one canonical name; any other role is kept as it stands.

Sources: the `annotate(role=...)` calls of verl (workers/engine_workers.py and its forerunners) name
the roles; up to v0.9 the ranges inside a trace carry the function's name instead; Ascend msinsight
(RLMstxConfigManager.cpp) lists MindSpeed-RL's class-qualified names.
"""

import re
from collections.abc import Collection
from functools import lru_cache

from rl_insight.data.name_facts import INT32

STAGES = frozenset(
    {
        "actor_compute_log_prob",
        "actor_train",
        "actor_update",
        "agent_loop_rollout",
        "critic_compute_values",
        "critic_update",
        "forward_backward",
        "ref_compute_log_prob",
        "reward",
        "rollout_generate",
        "train_batch",
    }
)
"""Canonical names of the known stages: a capture under one of them holds that stage alone."""

WHOLE_STEP = frozenset({"train", "e2e"})
"""Labels of a capture of a whole training step (`e2e` up to verl v0.9); the stages are inside."""

WORKERS = frozenset(
    {
        "actor",
        "actor_rollout",
        "actor_rollout_ref",
        "critic",
        "language_model",
        "ref",
        "reward_model",
        "rollout",
        "value_model",
    }
)
"""Prefixes that verl puts before its file names: they name the worker, not what it did."""

ROLLOUTS = frozenset({"agent_loop_rollout", "rollout_generate"})
"""The known stages that make samples; all others need those of their step."""

# Python function names, the in-trace labels up to verl v0.9 -> the role of the same stage.
_FUNCTIONS = {
    "generate_sequences": "rollout_generate",
    "compute_log_prob": "actor_compute_log_prob",
    "compute_ref_log_prob": "ref_compute_log_prob",
    "update_actor": "actor_update",
    "compute_values": "critic_compute_values",
    "update_critic": "critic_update",
    "compute_rm_score": "reward",
}
_KNOWN = {**{name: name for name in STAGES | WHOLE_STEP | WORKERS}, **_FUNCTIONS}

# verl: `agent_loop_rollout_replica_<n>` is the folder of a replica's engine, `rollout-replica<n>`
# the prefix of files that were moved out of it. Other engines' folders end alike.
_REPLICA = re.compile(r"[-_]replica[-_]?([0-9]{1,10})\Z")


def canonical(raw: str) -> str:
    """The one name of the stage that `raw` names; an unknown role comes back as it is.

    Known are function names, class-qualified function names, role labels, their hyphenated form in
    file names, and replica folders, whose number is dropped (`split_replica` gives both). A folder
    that was kept before the role (`reward_model/agent_loop_rollout`) stays before it.
    """
    return split_replica(raw)[0]


# A run has a few roles, and asks for each lane.
@lru_cache(maxsize=4096)
def split_replica(role: str) -> tuple[str, int | None]:
    """The canonical role and the replica number of a replica's folder or prefix.

    `agent_loop_rollout_replica_3` and `rollout-replica3` give ("agent_loop_rollout", 3); a role
    without a replica gives itself and None.
    """
    parent, slash, name = role.rpartition("/")
    match = _REPLICA.search(name)
    if match is not None and int(match[1]) <= INT32:
        engine = name[: match.start()]
        known = "agent_loop_rollout" if engine == "rollout" else _canonical(engine)
        # An unknown role may end in such a number for reasons of its own.
        if known in STAGES or known.endswith("rollout"):
            return f"{parent}{slash}{known}", int(match[1])
    return f"{parent}{slash}{_canonical(name)}", None


def lane_role_label(role: str | None, replica: int | None) -> str:
    """What the timeline calls a lane's role, with the replica as in verl's folder names."""
    if role is None:
        return "unknown role" if replica is None else f"unknown role, replica {replica}"
    return role if replica is None else f"{role}_replica_{replica}"


def is_stage(raw: str) -> bool:
    """Whether `raw`, in any of its spellings, names a known stage."""
    return bare(canonical(raw)) in STAGES


def is_rollout(role: str) -> bool:
    """Whether a canonical `role` is a rollout or that of a worker which does nothing else."""
    return bare(role) in ROLLOUTS | {"rollout"}


def bare(role: str) -> str:
    """`role` without the folder that was kept before it."""
    return role.rpartition("/")[2]


def matches(role: str | None, replica: int | None, wanted: Collection[str]) -> bool:
    """Whether the role filter `wanted` lets a lane or span of this role and replica pass.

    Each entry is a raw or canonical name, or a name with its replica (the lane's label). A role
    that was kept with its parent passes under its full name and under its last part alone: who
    asks for `agent_loop_rollout` wants those below `reward_model/` too. An empty filter lets
    everything pass; an unknown role passes no other.
    """
    if not wanted:
        return True
    if role is None:
        return False
    own, number = split_replica(role)
    number = replica if number is None else number
    label = lane_role_label(own, number)
    for entry in wanted:
        name, only = split_replica(entry)
        if entry == label or (name in (own, bare(own)) and only in (None, number)):
            return True
    return False


def _canonical(name: str) -> str:
    """`canonical` of one path part without a replica number."""
    # Files cannot tell a hyphen from an underscore: verl replaces `_`, its separator, by `-`.
    plain = name.replace("-", "_")
    if plain in _KNOWN:
        return _KNOWN[plain]
    # `ActorRolloutHybrid.update_actor`, or a whole module path before it.
    return _FUNCTIONS.get(plain.rpartition(".")[2], name)
