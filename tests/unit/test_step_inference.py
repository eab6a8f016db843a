"""A rollout belongs to the step whose training follows it, where time alone makes that clear."""

import pytest

from rl_insight.pipeline.step_inference import Row, infer_steps
from rl_insight.schema import LANES

SECOND = 10**9


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
        (155, 175, 2),  # over long before its training, but after that of the step before
        (145, 290, 2),  # begins within the training of step 1 by clocks that differ a little
        (200, 310, 2),  # ends within that of step 2 by such clocks
        (110, 250, 2),  # one step off: goes along with the training of step 1
        (110, 140, 2),  # one step off, and done before that training
        (310, 340, None),  # too late for step 2, and nothing follows
        (280, 320, None),  # overlaps the beginning of a step
        (360, 420, None),  # nothing follows it
        (-900, -890, None),  # an old dump, long before
    ],
)
def test_a_rollout_belongs_to_the_step_whose_training_follows_it(
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


def test_a_replica_that_is_done_early_belongs_to_the_step_of_the_one_with_the_long_tail() -> None:
    short, long = rollout(155, 190), rollout(155, 295, replica=1)
    infer_steps([*TRAINING, short, long])
    assert (short["step"], long["step"]) == (2, 2)


def test_before_the_first_step_a_short_rollout_is_near_if_another_replica_goes_on_until_then() -> (
    None
):
    # 200 ns lie between the short one and the training, more than either lasts (50 ns).
    alone = rollout(-150, -100)
    infer_steps([*TRAINING, alone])
    assert alone["step"] is None

    short, long = rollout(-150, -100), rollout(-148, 95, replica=1)
    infer_steps([*TRAINING, short, long])
    assert (short["step"], long["step"]) == (1, 1)


@pytest.mark.parametrize("late", [-3, 0, 3])
def test_hosts_whose_clocks_differ_by_seconds(late: int) -> None:
    """Each step: rollouts of 9 s and (on ranks 1) 2 s, 1 s of rest, 9 s of training, 1 s of rest.

    The trainer is on hosts a and b, and host c has rollouts alone. Clocks of b and c are off.
    """
    rows, expected = [], []
    for step in (1, 2, 3):
        at = 20 * SECOND * step
        for host, off in (("a", 0), ("b", late * SECOND), ("c", late * SECOND)):
            own = {"host": host, "replica": ord(host)}
            rows.append(rollout(at - 10 * SECOND + off, at - SECOND + off, **own))
            expected.append(step)
            if host != "c":
                short = rollout(at - 3 * SECOND + off, at - SECOND + off, **own, rank_id=1)
                rows.append(short)
                expected.append(step)
                rows.append(lane("actor_update", at + off, at + 9 * SECOND + off, step, host=host))
                expected.append(step)
    infer_steps(rows)
    assert [row["step"] for row in rows] == expected


def test_back_to_back_training_with_rollouts_one_step_ahead() -> None:
    training = [lane("actor_update", 50 * n, 50 * n + 50, n) for n in (1, 2, 3)]
    rows = [rollout(52, 90), rollout(101, 148), rollout(152, 190)]
    infer_steps([*training, *rows])
    assert [row["step"] for row in rows] == [2, 3, None]


def test_where_steps_between_were_not_captured_a_rollout_must_be_near() -> None:
    training = (lane("actor_update", 100, 150, 1), lane("actor_update", 1000, 1050, 5))
    # Of step 2, which ran along with the training of 1; of 2, 3 or 4; and two of step 5.
    rows = [rollout(110, 148), rollout(400, 450), rollout(900, 920, replica=1)]
    rows += [rollout(900, 990, replica=2)]
    infer_steps([*training, *rows])
    assert [row["step"] for row in rows] == [None, None, 5, 5]


def test_a_rollout_beside_the_training_before_a_step_that_was_not_captured_is_not_of_the_next() -> (
    None
):
    # GIVEN steps 1 and 3; one step off, the rollout of step 2 goes along with the training of 1
    row = rollout(110, 145)
    infer_steps([lane("actor_update", 100, 150, 1), lane("actor_update", 170, 230, 3), row])
    assert row["step"] is None


def test_a_capture_of_the_whole_step_holds_its_rollout_until_its_stages_tell_otherwise() -> None:
    whole = [lane("train", 100, 200, 1), lane("train", 200, 300, 2)]
    row = rollout(105, 150)
    infer_steps([*whole, row])
    assert row["step"] == 1

    for begun, step in ((155, 1), (101, 2)):
        row = rollout(105, 150)
        stages = [("rollout_generate", 101, 154), ("actor_update", begun, 200)]
        infer_steps([*whole, row], [stages, [("actor_update", begun + 100, 300)], []])
        assert row["step"] == step


def test_the_rollout_of_a_reward_model_runs_between_the_stages_of_its_step() -> None:
    row = lane("reward_model/agent_loop_rollout", 120, 130)
    first = lane("actor_compute_log_prob", 100, 115, 1)
    infer_steps([first, lane("actor_update", 140, 190, 1), TRAINING[1], row])
    assert row["step"] == 1


def test_what_was_inferred_and_what_could_not_be_is_said() -> None:
    rows = [rollout(160, 200), rollout(210, 290), rollout(280, 320, replica=1)]
    infer_steps([*TRAINING, *rows, lane("actor_update", 500, 550, 3)])
    assert [row["doubts"] for row in rows] == [
        [
            (
                "step_unknown",
                "warning",
                "its step is unknown: a later one of its process comes before the same training",
            )
        ],
        [("step_inferred", "info", "step 2, from the training that follows it")],
        [
            (
                "step_unknown",
                "warning",
                "its step is unknown: its time does not tell which training takes its samples",
            )
        ],
    ]

    after = rollout(360, 420, doubts=[("clock_skew", "warning", "late")])
    infer_steps([*TRAINING, after])
    assert after["doubts"] == [
        ("clock_skew", "warning", "late"),
        (
            "step_unknown",
            "warning",
            "its step is unknown: no training that carries a step begins after it",
        ),
    ]


def test_a_run_whose_trainer_tells_no_step_is_not_blamed() -> None:
    row = rollout(160, 290, doubts=[])
    infer_steps([lane("actor_update", 300, 350), row])
    assert (row["step"], row["doubts"]) == (None, [])


def test_nothing_is_inferred_for_other_roles_other_clocks_or_overlapping_steps() -> None:
    other = lane("ref_compute_log_prob", 160, 290)
    undated = rollout(160, 290, clock="relative")
    infer_steps([*TRAINING, other, undated])
    assert (other["step"], undated["step"]) == (None, None)

    row = rollout(160, 290)
    infer_steps([lane("actor_update", 100, 320, 1), lane("actor_update", 300, 350, 2), row])
    assert row["step"] is None
