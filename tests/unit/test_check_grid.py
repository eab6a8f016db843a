"""The grid of roles, steps and ranks as a table."""

from rl_insight.data.coverage import Recorded, coverage
from rl_insight.pipeline.check_grid import grid_lines


def table(recorded):
    return grid_lines(recorded, coverage(recorded))


def test_steps_that_look_alike_share_a_column():
    recorded = [
        Recorded("actor_update", None, rank, step)
        for rank in (0, 1, 2)
        for step in (1, 2, 3, 4, 9)
        if (rank, step) != (1, 3)
    ]
    recorded += [Recorded("agent_loop_rollout", 2, rank, None) for rank in (0, 1)]
    recorded += [Recorded(None, None, None, 1), Recorded(None, None, None, 1)]
    assert table(recorded) == [
        "role                          ranks  step 1       steps 2, 4, 9  step 3  step ?",
        "unknown role                  ?      2 of rank ?  -              -       -",
        "actor_update                  0-2    3/3          3/3            2/3     -",
        "agent_loop_rollout_replica_2  0-1    -            -              -       2/2",
    ]


def test_it_never_outgrows_a_screen():
    # Each step lacks another rank, so that no two look alike.
    recorded = [
        Recorded(f"role{number}", None, rank, step)
        for number in range(60)
        for rank in range(30)
        for step in range(30)
        if rank != step
    ]
    recorded += [Recorded(f"stage{step}", None, 0, step) for step in range(30)]
    lines = table(recorded)
    assert len(lines) == 1 + 40 + 2
    assert lines[-2:] == ["and steps 8-29", "and 50 more roles and replicas"]
    assert max(map(len, lines)) < 160


def test_names_stay_on_their_line():
    lines = table([Recorded("a\nb\x1b[31m" + "c" * 500, None, 0, 1)])
    assert len(lines) == 2
    assert lines[1].isprintable()
    assert len(lines[1]) < 100
