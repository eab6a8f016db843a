"""A rollout belongs to the step whose training it opens, where time alone makes that clear."""

import pytest

from rl_insight.pipeline.step_inference import Row, infer_steps
from rl_insight.schema import LANES


def lane(role: str, start: int, end: int, step: int | None = None, **more: object) -> Row:
    told = {
        "role": role,
        "capture_start_ns": start,
        "capture_end_ns": end,
        "step": step,
        "rank_id": 0,
        "clock": "utc",
        "source_id": f"{role}-{start}",
    }
    return {**dict.fromkeys(LANES.names), **told, **more}


def rollout(start: int, end: int, **more: object) -> Row:
    return lane("agent_loop_rollout", start, end, **{"replica": 0, **more})


TRAINING = (lane("actor_update", 100, 150, 1), lane("actor_update", 300, 350, 2))


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        (20, 95, 1),  # just before the training of step 1
        (160, 290, 2),  # between the two
        (310, 340, 2),  # inside the training of step 2
        (110, 250, None),  # reaches from one step into the next gap
        (280, 320, None),  # overlaps the beginning of a step
        (360, 420, None),  # nothing follows it
        (-900, -890, None),  # an old dump, long before
    ],
)
def test_a_rollout_belongs_to_the_step_that_it_opens(
    start: int, end: int, step: int | None
) -> None:
    row = rollout(start, end)
    infer_steps([*TRAINING, row])
    assert row["step"] == step
    assert row["step_source"] == ("inferred" if step else None)


def test_of_two_rollouts_before_a_step_only_the_last_is_its_own() -> None:
    first, second = rollout(160, 200), rollout(210, 290)
    infer_steps([*TRAINING, first, second])
    assert (first["step"], second["step"]) == (None, 2)


def test_each_replica_and_rank_has_its_own_rollout() -> None:
    rows = [rollout(160, 290), rollout(160, 250, rank_id=1), rollout(165, 280, replica=1)]
    infer_steps([*TRAINING, *rows])
    assert [row["step"] for row in rows] == [2, 2, 2]


def test_nothing_is_inferred_for_other_roles_other_clocks_or_overlapping_steps() -> None:
    other = lane("ref_compute_log_prob", 160, 290)
    undated = rollout(160, 290, clock="relative")
    infer_steps([*TRAINING, other, undated])
    assert (other["step"], undated["step"]) == (None, None)

    row = rollout(160, 290)
    infer_steps([lane("actor_update", 100, 320, 1), lane("actor_update", 300, 350, 2), row])
    assert row["step"] is None
