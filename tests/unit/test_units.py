"""Sources are packed into parse jobs under names that never change."""

import os
import re

import pytest

from rl_insight.pipeline.units import MAX_JOBS, Unit, assign, source_id

NAME = re.compile(r"[A-Za-z0-9_-]+")


def paths(count: int, folder: str = "actor_update") -> list[str]:
    return [f"{folder}/rank{n:05}.json.gz" for n in range(count)]


def remembered(units: list[Unit]) -> dict[str, str]:
    """What a manifest knows after a run with these units."""
    return {path: unit.name for unit in units for path in unit.sources}


def contents(units: list[Unit]) -> dict[str, tuple[str, ...]]:
    found = {unit.name: unit.sources for unit in units}
    assert len(found) == len(units)
    return found


def test_one_rank_file_is_one_job_by_default() -> None:
    units = assign("torch", reversed(paths(3)), 1, {})
    assert sorted(unit.sources for unit in units) == [(path,) for path in paths(3)]
    assert {unit.parser for unit in units} == {"torch"}


def test_files_are_packed_by_folder_in_their_order() -> None:
    units = assign("gmm", [*paths(5, "a"), *paths(2, "b")], 2, {})
    assert sorted(unit.sources for unit in units) == [
        tuple(paths(5, "a")[0:2]),
        tuple(paths(5, "a")[2:4]),
        tuple(paths(5, "a")[4:5]),
        tuple(paths(2, "b")),
    ]


def test_no_files_are_no_jobs() -> None:
    assert assign("torch", [], 64, {"gone.json": "gone-1"}) == []


@pytest.mark.parametrize(
    "path",
    [
        "a b/c.json",
        "a\nb",
        os.fsdecode(b"\xff\xfe"),
        "-x/-y",
        "{unit}",
        "*?[a]",
        "数据/档案",
        "..",
        "x" * 4_000,
        "___",
    ],
)
def test_a_unit_is_called_so_that_every_file_system_and_snakemake_take_it(path: str) -> None:
    (unit,) = assign("torch", [path], 1, {})
    assert NAME.fullmatch(unit.name)
    assert not unit.name.startswith("-")
    assert len(unit.name) < 100


def test_names_that_differ_only_in_what_is_not_readable_have_units_of_their_own() -> None:
    alike = ["a b.json", "a_b.json", "a-b.json", os.fsdecode(b"a\xffb.json"), "a\nb.json"]
    assert len(contents(assign("torch", alike, 1, {}))) == 5


def test_units_whose_paths_differ_in_case_only_do_not_meet_where_case_does_not_count() -> None:
    units = assign("torch", ["Rank0.json", "rank0.json", "RANK0.json"], 1, {})
    assert len({unit.name.lower() for unit in units}) == 3


def test_a_unit_name_does_not_depend_on_the_machine_or_the_day() -> None:
    # Worked out with `printf 'actor_update/rank0.json' | b2sum -l 40`.
    (unit,) = assign("torch", ["actor_update/rank0.json"], 1, {})
    assert unit.name == "actor_update_rank0_json-2579ef579d"


def test_a_source_id_does_not_depend_on_the_machine_or_the_day() -> None:
    # Worked out with `printf 'actor_update/rank0.json' | b2sum -l 64`.
    assert source_id("actor_update/rank0.json") == "65824548c30f73a1"
    assert source_id(os.fsdecode(b"\xff")) != source_id(os.fsdecode(b"\xfe"))


def test_new_files_never_move_old_ones() -> None:
    # GIVEN a folder packed by 64, whose last unit is not full
    first = assign("gmm", paths(100), 64, {})
    # WHEN files come before, between and after the old ones
    new = ["actor_update/aaa.json", "actor_update/rank00050b.json", "actor_update/zzz.json"]
    second = assign("gmm", paths(100) + new, 64, remembered(first))
    # THEN the old units are what they were, and the new files have one of their own
    assert contents(first).items() <= contents(second).items()
    assert [unit.sources for unit in second if unit not in first] == [tuple(new)]


def test_a_removed_file_changes_only_its_own_unit() -> None:
    first = assign("gmm", paths(10), 2, {})
    second = assign("gmm", paths(10)[:3] + paths(10)[4:], 2, remembered(first))
    changed = [unit for unit in second if unit not in first]
    assert [unit.sources for unit in changed] == [(paths(10)[2],)]
    assert len(second) == 5


def test_a_removed_file_that_comes_back_comes_back_to_its_unit() -> None:
    first = assign("gmm", paths(10), 2, {})
    assert assign("gmm", paths(10), 2, remembered(first)) == first


def test_packing_otherwise_moves_nothing_that_is_packed() -> None:
    first = assign("gmm", paths(10), 5, {})
    assert assign("gmm", paths(10), 1, remembered(first)) == first
    mixed = assign("gmm", paths(12), 1, remembered(first))
    assert contents(first).items() <= contents(mixed).items()
    assert len(mixed) == 4


def test_a_filter_that_narrows_leaves_the_units_that_it_keeps_as_they_were() -> None:
    # GIVEN two units of two ranks each
    first = assign("gmm", paths(4), 2, {})
    # WHEN only rank 1 is wanted now
    second = assign(
        "gmm", paths(4)[1:2], 2, remembered(first), unwanted=paths(4)[:1] + paths(4)[2:]
    )
    # THEN its unit still holds both, and the other unit is none of this run
    assert [unit.sources for unit in second] == [tuple(paths(4)[:2])]


def test_a_filter_that_widens_parses_only_what_is_new() -> None:
    first = assign("gmm", paths(4)[1:2], 2, {}, unwanted=paths(4)[:1] + paths(4)[2:])
    assert [unit.sources for unit in first] == [tuple(paths(4)[1:2])]
    second = assign("gmm", paths(4), 2, remembered(first))
    assert contents(first).items() <= contents(second).items()


def test_three_thousand_files_are_at_most_two_thousand_jobs() -> None:
    units = assign("torch", paths(3_000), 1, {})
    assert len(units) == 1_500
    assert {len(unit.sources) for unit in units} == {2}


def test_three_thousand_folders_of_one_file_are_at_most_two_thousand_jobs() -> None:
    found = [f"rank{n:04}/trace.json" for n in range(3_000)]
    units = assign("torch", found, 1, {})
    assert len(units) == 1_500
    assert sorted(path for unit in units for path in unit.sources) == found
    # Neighbours are together.
    assert ("rank0000/trace.json", "rank0001/trace.json") in {unit.sources for unit in units}


def test_a_job_count_at_the_limit_is_left_alone() -> None:
    found = [f"rank{n:04}/trace.json" for n in range(MAX_JOBS)]
    assert {len(unit.sources) for unit in assign("torch", found, 1, {})} == {1}


def test_new_files_beside_very_many_old_jobs_share_a_few_more() -> None:
    # GIVEN a run that has all the jobs it may have
    first = assign("torch", paths(MAX_JOBS), 1, {})
    assert len(first) == MAX_JOBS
    # WHEN a step of a hundred files comes
    second = assign("torch", paths(MAX_JOBS) + paths(100, "step2"), 1, remembered(first))
    # THEN the old ones stay, and the new ones still run side by side
    assert contents(first).items() <= contents(second).items()
    assert [len(unit.sources) for unit in second if unit not in first] == [5] * 20


def test_jobs_filtered_away_count_as_well() -> None:
    # GIVEN that many jobs, all of another step than the one that is wanted now
    first = assign("torch", paths(MAX_JOBS), 1, {})
    second = assign("torch", paths(100, "step2"), 1, remembered(first), unwanted=paths(MAX_JOBS))
    assert len(second) == 20


def test_assignment_is_the_same_whatever_the_order_of_the_paths() -> None:
    found = [*paths(70, "b"), *paths(70, "a")]
    known = {found[3]: "old-1", found[80]: "old-1"}
    assert assign("gmm", found, 8, known) == assign("gmm", found[::-1], 8, known)


def sized(sizes: dict[str, int], known: dict[str, str] | None = None) -> list[Unit]:
    return assign("torch", sizes, None, known or {}, sizes=sizes)


def test_a_few_new_files_are_a_job_each_however_small_they_are() -> None:
    assert {len(unit.sources) for unit in sized(dict.fromkeys(paths(64), 100))} == {1}


def test_many_small_files_share_jobs_by_count_and_large_ones_do_not() -> None:
    small = sized(dict.fromkeys(paths(1_000), 100))
    assert sorted(len(unit.sources) for unit in small) == [40] + [64] * 15
    large = sized(dict.fromkeys(paths(1_000), 300_000_000))
    assert {len(unit.sources) for unit in large} == {1}


def test_files_are_packed_until_a_job_has_enough_to_read() -> None:
    # Three of 2.5 MB are 7.5 MB; a fourth would be too much for 8 MB. The large one stays alone.
    sizes = dict.fromkeys(paths(90), 2_500_000)
    sizes[paths(90)[30]] = 50_000_000
    units = sized(sizes)
    assert all(len(unit.sources) <= 3 for unit in units)
    assert (paths(90)[30],) in {unit.sources for unit in units}
    assert sum(len(unit.sources) == 3 for unit in units) == 10 + 19


def test_small_folders_share_a_job_and_are_not_cut() -> None:
    # Eight folders of eight are 64; the ninth begins a new job.
    found = [f"step_{n:03}/rank{rank}.json" for n in range(100) for rank in range(8)]
    units = sized(dict.fromkeys(found, 100))
    assert len(units) == 13
    for unit in units:
        folders = [path.partition("/")[0] for path in unit.sources]
        assert {folders.count(folder) for folder in folders} == {8}


def test_packing_by_size_moves_nothing_when_folders_grow() -> None:
    first = sized(dict.fromkeys(paths(100), 100))
    more = [*paths(100), *paths(8, "step2")]
    second = sized(dict.fromkeys(more, 900_000_000), remembered(first))
    assert contents(first).items() <= contents(second).items()
    assert sorted(unit.sources for unit in second if unit not in first) == [
        (path,) for path in paths(8, "step2")
    ]


def test_large_files_beyond_the_limit_of_jobs_share_them_all_the_same() -> None:
    units = sized(dict.fromkeys(paths(10_000), 300_000_000))
    assert len(units) == MAX_JOBS
    assert {len(unit.sources) for unit in units} == {5}


def test_a_run_of_many_steps_hardly_outgrows_what_snakemake_plans() -> None:
    # GIVEN 16 ranks that leave a step each hour for ten days, and a run after each
    seen: list[str] = []
    known: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for step in range(240):
        new = [f"step{step}/rank{rank}.json" for rank in range(16)]
        seen += new
        sizes |= dict.fromkeys(new, 10_000_000)
        units = assign("torch", seen, None, known, sizes=sizes)
        for unit in units:
            known.update(dict.fromkeys(unit.sources, unit.name))
    # THEN each capture has its one job, and there are hardly more jobs than at once
    assert sorted(path for unit in units for path in unit.sources) == sorted(seen)
    # 125 runs with 16 jobs make 2,000. Then there is room for 20 jobs, 10, 5, 2 and 1: 7 runs have
    # 16, 11 have 8, 25 have 4, 50 have 2, and those that are left have one.
    assert len(units) == MAX_JOBS + 7 * 16 + 11 * 8 + 25 * 4 + 50 * 2 + 22
