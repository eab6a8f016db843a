"""Which rank the closing summary names, among the others of its role and step."""

from pathlib import Path

import pytest

from rl_insight.pipeline.stage_summary import stage_lines, summarise_stages
from tests.timeline_tables import MS, Tables


def add(
    made: Tables,
    rank: int,
    seconds: float,
    computing: float | None = None,
    step: int | None = 3,
    role: str = "actor_update",
    **more: object,
) -> None:
    """A stage of a rank, and what of it the device computed, in seconds."""
    whose = {"role": role, "rank_id": rank, "step": step, **more}
    span = made.span(f"lane-{len(made.spans)}", 0, seconds * 1_000, **whose)
    whose.pop("truncated", None)
    nanoseconds = None if computing is None else round(computing * 1_000 * MS)
    made.breakdown.append({"span_id": span, "computing_ns": nanoseconds, **whose})


def said(made: Tables, tmp_path: Path) -> list[str]:
    made.write(tmp_path / "tables")
    return list(stage_lines(summarise_stages(tmp_path)))


def test_who_computes_most_is_named_where_all_wait_for_each_other(tmp_path: Path) -> None:
    # GIVEN five ranks whose stages last equally long; the fourth computes 5.4 s, the median is 4
    made = Tables()
    for rank, computing in enumerate((4.0, 3.9, 4.1, 5.4, 4.0)):
        add(made, rank, 6.0, computing)
    # WHEN the run is summed up, THEN only the computing tells: 5.4 / 4.0
    assert said(made, tmp_path) == [
        "  most computing: actor_update rank 3 in step 3: 5.40 s, 1.35 times the median of 5 ranks"
    ]


def test_a_replica_with_a_long_tail_is_named_with_its_step(tmp_path: Path) -> None:
    # GIVEN three replicas, in two steps; of the second step one takes 20 s and the others 8
    made = Tables()
    for step in (1, 2):
        for replica in range(3):
            seconds = 20.0 if (step, replica) == (2, 1) else 8.0
            add(made, 0, seconds, step=step, role="agent_loop_rollout", replica=replica)
    assert said(made, tmp_path) == [
        "  longest: agent_loop_rollout replica 1 rank 0 in step 2: 20.0 s, "
        "2.50 times the median of 3 ranks"
    ]


def test_who_lasts_longer_is_not_told_again_for_computing_longer(tmp_path: Path) -> None:
    # GIVEN a rollout with a long tail, and an update in which one rank computes a second more
    made = Tables()
    for rank, (tail, work) in enumerate(((8, 4.0), (8, 4.0), (20, 5.0))):
        add(made, rank, tail, tail - 1, role="agent_loop_rollout")
        add(made, rank, 6.0, work)
    # THEN each is named for what makes the others wait
    assert [line.partition(":")[2].partition(",")[0] for line in said(made, tmp_path)] == [
        " agent_loop_rollout rank 2 in step 3: 20.0 s",
        " actor_update rank 2 in step 3: 5.00 s",
    ]


def test_what_costs_most_time_is_told_and_not_the_highest_ratio(tmp_path: Path) -> None:
    made = Tables()
    for rank, (short, long) in enumerate(((10, 1_000), (10, 1_000), (30, 1_300))):
        add(made, rank, short / 1_000, role="ref_compute_log_prob")
        add(made, rank, long / 1_000)
    (line,) = said(made, tmp_path)
    assert line.endswith("actor_update rank 2 in step 3: 1.30 s, 1.30 times the median of 3 ranks")


@pytest.mark.parametrize(
    ("stages", "why"),
    [
        ([(0, 4.0, {}), (1, 4.3, {}), (2, 4.0, {})], "less than a tenth above the median"),
        ([(0, 4.0, {})], "nobody to compare with"),
        ([(0, 4.0, {}), (1, 9.0, {"truncated": True})], "it broke off"),
        ([(0, 4.0, {}), (1, 4.0, {}), (1, 4.0, {})], "recorded twice"),
        ([(0, 4.0, {"step": 1}), (1, 9.0, {"step": 2})], "of other steps"),
        ([(n % 2, 4.0 + 4 * n, {"step": None}) for n in range(4)], "of which steps is not known"),
        ([(0, 0.0, {}), (1, 0.0, {}), (2, 9.0, {})], "no median to compare with"),
        ([(0, 4.0, {"rank_id": None}), (1, 9.0, {"rank_id": None})], "ranks unknown"),
        ([], "nothing was drawn"),
    ],
)
def test_nobody_is_named_without_reason(
    tmp_path: Path, stages: list[tuple[int, float, dict[str, object]]], why: str
) -> None:
    made = Tables()
    for rank, seconds, more in stages:
        add(made, **{"rank": rank, "seconds": seconds, **more})  # type: ignore[arg-type]
        made.spans[-1] = {**made.spans[-1], **more}
    assert said(made, tmp_path) == [], why


def test_one_capture_of_each_rank_is_compared_without_steps(tmp_path: Path) -> None:
    made = Tables()
    for rank, milliseconds in enumerate((400, 410, 640)):
        add(made, rank, milliseconds / 1_000, step=None)
    assert said(made, tmp_path) == [
        "  longest: actor_update rank 2: 640 ms, 1.56 times the median of 3 ranks"
    ]
