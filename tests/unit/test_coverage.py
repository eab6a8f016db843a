"""Which captures are missing, and when nothing may be said about that."""

import random
from itertools import product

from rl_insight.data.coverage import Cell, Recorded, coverage, recorded_by
from rl_insight.data.coverage_words import ranges, sentences


def grid(role, ranks, steps, without=(), world=None, replica=None):
    """A capture for each rank and step but those in `without` (pairs of rank and step)."""
    return [
        Recorded(role, replica, rank, step, world)
        for rank, step in product(ranks, steps)
        if (rank, step) not in without
    ]


def told(recorded, **filters):
    return sentences(coverage(recorded, **filters))


def test_a_full_grid_misses_nothing():
    found = coverage(grid("actor_update", range(4), [1, 2, 5], world=4))
    assert (found.expected, found.present, found.missing) == (12, 12, [])
    assert (found.ranks_expected, found.ranks_present, sentences(found)) == (4, 4, [])


def test_a_rank_that_lacks_in_one_step_is_missing_there():
    found = coverage(grid("actor_update", range(4), [1, 2], without={(1, 2)}))
    assert found.missing == [Cell("actor_update", None, 2, 1)]
    assert (found.expected, found.present, found.ranks_present) == (8, 7, 4)
    assert sentences(found) == ["actor_update step 2: 3 of 4 ranks, rank 1 missing"]


def test_a_rank_that_was_never_seen_is_told_by_the_world_size():
    found = coverage(grid("actor_update", [0, 2, 3], [1], world=4))
    assert found.missing == [Cell("actor_update", None, 1, 1)]
    assert (found.ranks_expected, found.ranks_present) == (4, 3)


def test_a_lost_node_and_steps_alike_make_one_line():
    assert told(grid("actor_update", range(8), range(1, 6), world=16)) == [
        "actor_update steps 1-5: 8 of 16 ranks, ranks 8-15 missing"
    ]


def test_who_profiles_chosen_ranks_misses_no_others():
    for ranks, world in (([0], 2), ([0], 16), ([0, 8], 32), ([3, 4, 5], 7)):
        assert told(grid("actor_update", ranks, [1, 2], world=world)) == []


def test_captures_that_disagree_about_the_world_size_tell_nothing_by_it():
    captures = grid("a", range(3), [1], world=4) + grid("a", range(3), [2], world=5)
    assert told(captures) == []
    assert told(grid("a", range(5), [1], world=4)) == []  # nor one that is too small


def test_replicas_are_apart():
    captures = grid("agent_loop_rollout", range(2), [1], world=2, replica=0)
    captures += grid("agent_loop_rollout", [1], [1], world=2, replica=3)
    found = coverage(captures)
    assert sentences(found) == ["agent_loop_rollout_replica_3 step 1: 1 of 2 ranks, rank 0 missing"]
    assert (found.ranks_expected, found.ranks_present) == (4, 3)


def test_a_role_is_not_missing_in_steps_in_which_it_may_not_run():
    captures = grid("critic_update", range(2), range(1, 11))
    captures += grid("actor_update", range(2), range(4, 11))  # the critic was warmed up
    captures += grid("validation", range(2), [5, 10])  # every fifth step
    assert told(captures) == []


def test_a_role_that_stands_in_most_steps_is_missing_in_the_others():
    captures = grid("ref_compute_log_prob", range(2), [1, 2, 3, 4])
    captures += grid("actor_update", range(2), [1, 2])  # killed in step 3
    assert told(captures) == []
    captures += grid("actor_update", range(2), [3])
    found = coverage(captures)
    assert sentences(found) == ["actor_update step 4: none of 2 ranks"]
    assert found.missing == [Cell("actor_update", None, 4, 0), Cell("actor_update", None, 4, 1)]


def test_a_capture_of_unknown_step_may_be_the_missing_one():
    captures = grid("agent_loop_rollout", range(2), [1, 2, 3], without={(1, 2)}, replica=0)
    assert told(captures) != []
    assert told([*captures, Recorded("agent_loop_rollout", 0, 1, None)]) == []
    lost = Recorded("agent_loop_rollout", 0, 1, None, gave=False)
    assert told([*captures, lost]) != []


def test_captures_of_unknown_rank_may_be_the_missing_ones_when_they_are_enough():
    captures = grid("actor_update", range(4), [1, 2], without={(1, 2), (3, 2)})
    unknown = Recorded("actor_update", None, None, 2)
    assert told([*captures, unknown]) == ["actor_update step 2: 2 of 4 ranks, ranks 1, 3 missing"]
    assert told([*captures, unknown, unknown]) == []


def test_a_capture_that_gave_nothing_is_said_to_be_there():
    captures = grid("actor_update", [0, 2, 3], [1], world=5)
    captures.append(Recorded("actor_update", None, 1, 1, gave=False))
    found = coverage(captures)
    assert sentences(found) == [
        "actor_update step 1: 3 of 5 ranks, rank 4 missing, rank 1 gave nothing"
    ]
    assert found.missing == [
        Cell("actor_update", None, 1, 1, lost=True),
        Cell("actor_update", None, 1, 4),
    ]
    # A second capture of the same rank and step that is good makes up for it.
    assert coverage([*captures, Recorded("actor_update", None, 1, 1)]).missing == [
        Cell("actor_update", None, 1, 4)
    ]


def test_where_no_step_is_known_captures_are_counted():
    captures = grid("actor_update", range(4), [None, None, None])
    assert told(captures) == []
    found = coverage(captures[:-1])
    assert sentences(found) == ["actor_update capture 3: 3 of 4 ranks, rank 3 missing"]
    assert found.missing == [Cell("actor_update", None, None, 3, capture=2)]
    # One rank that has more than all the others is no reason to miss theirs.
    assert told([*captures, captures[0]]) == []
    single = grid("actor_update", [0, 1, 3], [None], world=4)
    assert told(single) == ["actor_update: 3 of 4 ranks, rank 2 missing"]


def test_filters_shrink_what_is_expected():
    captures = grid("actor_update", range(4), [1, 2], without={(1, 2)}, world=4)
    captures += grid("ref_compute_log_prob", range(4), [1, 2], without={(2, 1)})
    assert told(captures, ranks={0, 3}) == []
    assert told(captures, steps={1}) == [
        "ref_compute_log_prob step 1: 3 of 4 ranks, rank 2 missing"
    ]
    assert told(captures, wanted={"update_actor"}) == [
        "actor_update step 2: 3 of 4 ranks, rank 1 missing"
    ]


def test_ranks_that_were_recorded_in_turn_make_no_grid():
    captures = [Recorded("actor_update", None, rank, rank) for rank in range(100_000)]
    found = coverage(captures)
    assert (found.missing, found.expected, found.present) == ([], 100_000, 100_000)
    assert found.scattered == ("actor_update",)
    assert len(sentences(found)) == 1


def test_a_world_size_beyond_reason_is_not_believed():
    assert told(grid("actor_update", range(2), [1], world=2**31 - 1)) == []


def test_what_cannot_be_placed_is_no_part_of_it():
    empty_folder = Recorded("critic_update", None, None, None, gave=False)
    assert coverage([Recorded(None, None, 0, 1), empty_folder]).expected == 0


def test_long_lists_of_ranks_are_short():
    assert ranges([3, 1, 2, 9, 2]) == "1-3, 9"
    assert ranges(range(0, 40, 2), most=3) == "0, 2, 4 and 17 more"
    captures = grid("actor_update", range(1024), [1, 2], {(n, 2) for n in range(512, 1022)})
    assert told(captures) == ["actor_update step 2: 514 of 1,024 ranks, ranks 512-1021 missing"]


def lane(source, role, rank, step=1, world=None):
    row = {"lane_id": f"{source}-lane", "source_id": source, "role": role, "replica": None}
    return {**row, "rank_id": rank, "step": step, "world_size": world}


def source(name, status, role=None, rank=None, step=None):
    row = {"source_id": name, "path": name, "status": status}
    return {**row, "role": role, "rank_id": rank, "step": step}


def test_tables_tell_what_was_recorded():
    lanes = [
        lane("a", "actor_update", 0, world=3),
        lane("b", "train", 1),
        lane("hollow", "actor_update", 3),
    ]
    sources = [
        source("a", "ok", "actor_update", 0, 1),
        source("b", "salvaged", "train", 1, 1),
        source("c", "failed", "actor_update", 2, 1),
        source("hollow", "empty", "actor_update", 3, 1),
        source("d", "skipped", "actor_update", 7, 1),
        source("dump", "ok", "actor_update", 5, 1),
        source("agent_loop_rollout_replica_3/rank0.json", "failed", "agent_loop_rollout", 0),
    ]
    assert list(recorded_by(lanes, sources, {"b-lane": ["critic_update", "reward"]})) == [
        Recorded("actor_update", None, 0, 1, 3),
        Recorded("critic_update", None, 1, 1),
        Recorded("reward", None, 1, 1),
        Recorded("actor_update", None, 3, 1, gave=False),
        Recorded("actor_update", None, 2, 1, gave=False),
        Recorded("actor_update", None, 5, 1),
        Recorded("agent_loop_rollout", 3, 0, None, gave=False),
    ]


def test_whatever_is_recorded_every_expected_cell_is_there_or_missing():
    dice = random.Random(5)

    def one_of(*values):
        return dice.choice(values)

    for _ in range(300):
        captures = [
            Recorded(
                one_of("actor_update", "reward", None),
                one_of(None, None, 0, 1),
                one_of(None, *range(5)),
                one_of(None, 1, 2, 3),
                one_of(None, 4, 5),
                gave=dice.random() < 0.9,
            )
            for _ in range(dice.randrange(40))
        ]
        found = coverage(captures)
        cells = found.missing
        assert len(set(cells)) == len(cells)
        assert found.expected == found.present + len(cells)
        assert found.ranks_present <= found.ranks_expected
        there = {(one.role, one.replica, one.step, one.rank_id) for one in captures if one.gave}
        assert not any(
            (cell.role, cell.replica, cell.step, cell.rank_id) in there
            for cell in cells
            if cell.step is not None
        )
        lost = {(one.role, one.replica, one.rank_id) for one in captures if not one.gave}
        assert {(one.role, one.replica, one.rank_id) for one in cells if one.lost} <= lost
        assert len(sentences(found)) <= len(found.columns) + len(found.scattered)
