"""Every input has its row: whose it is, what became of it, and what the merge noticed."""

from pathlib import Path
from typing import Any

import pytest

from rl_insight import tables
from rl_insight.data.identity import compile_rules
from rl_insight.parsers import PARSERS
from rl_insight.pipeline.discovery import Filters, Skipped
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.settle import Row, Settled, settle_lanes
from rl_insight.pipeline.source_rows import other_rows, skipped_rows, source_rows
from rl_insight.pipeline.units import source_id
from rl_insight.problems import Problem
from rl_insight.schema import LANES, SOURCES
from tests.made_up_parser import NoteParser


def options(rules: tuple[str, ...] = (), **filters: Any) -> MergeOptions:
    chosen = {name: frozenset(values) for name, values in filters.items()}
    return MergeOptions(compile_rules(list(rules)), Filters(**chosen), "")


def parsed(path: str, status: str = "ok", detail: str | None = None) -> Row:
    """A row as a parse job left it."""
    return {
        **dict.fromkeys(SOURCES.names),
        "source_id": source_id(path),
        "path": path,
        "parser": "torch",
        "status": status,
        "detail": detail,
        "problems": [],
    }


def lane(path: str, number: int = 0, **told: Any) -> Row:
    own = {"lane_id": f"{source_id(path)}-{number}", "source_id": source_id(path), "clock": "utc"}
    times = {"capture_start_ns": 100, "capture_end_ns": 200}
    return {**dict.fromkeys(LANES.names), **own, **times, **told}


def rows(sources: list[Row], lanes: list[Row], chosen: MergeOptions | None = None) -> list[Row]:
    """The rows of `sources` after a merge of these."""
    chosen = chosen or options()
    paths = {str(row["source_id"]): str(row["path"]) for row in sources}
    return source_rows(sources, settle_lanes(lanes, paths, {}, chosen), chosen)


def problems(row: Row) -> list[Problem]:
    """The problems of a row, also those that a parse job wrote."""
    found: Any = row["problems"]
    return [Problem(**one) if isinstance(one, dict) else one for one in found]


def codes(row: Row) -> list[str]:
    return [problem.code for problem in problems(row)]


def test_a_source_is_whose_its_lane_is() -> None:
    path = "actor_update/x.json"
    (row,) = rows([parsed(path)], [lane(path, rank_id=3, step=7)])
    assert (row["role"], row["rank_id"], row["step"]) == ("actor_update", 3, 7)
    assert row["status"] == "ok"
    assert codes(row) == []


def test_of_several_lanes_a_source_has_what_they_share() -> None:
    path = "actor_update/x.json"
    (row,) = rows([parsed(path)], [lane(path, n, rank_id=n, step=7) for n in (0, 1)])
    assert (row["role"], row["rank_id"], row["step"]) == ("actor_update", None, 7)


def test_a_source_without_lanes_is_whose_its_path_says() -> None:
    path = "actor_update/actor_actor-update_step2_rank3-of-4_pid9_20261130090544369.json.gz"
    (row,) = rows([parsed(path, "failed", "cut at byte 17")], [])
    assert (row["role"], row["rank_id"], row["step"]) == ("actor_update", 3, 2)
    assert (row["status"], row["detail"]) == ("failed", "cut at byte 17")


def test_a_source_whose_lanes_are_all_filtered_away_is_skipped_with_the_reason() -> None:
    path = "actor_update/x.json"
    (row,) = rows([parsed(path)], [lane(path, rank_id=3)], options(ranks={0}))
    assert (row["status"], row["detail"]) == ("skipped", "rank 3 is not in input.rank_list")


def test_a_source_of_which_one_lane_stays_is_not_skipped() -> None:
    path = "actor_update/x.json"
    lanes = [lane(path, n, rank_id=n) for n in (0, 1)]
    (row,) = rows([parsed(path)], lanes, options(ranks={1}))
    assert (row["status"], row["rank_id"]) == ("ok", 1)


@pytest.mark.parametrize("status", ["failed", "empty", "salvaged"])
def test_a_damaged_source_that_a_filter_does_not_want_is_skipped_by_its_name(status: str) -> None:
    path = "actor_update/prof_rank-3.json.gz"
    (row,) = rows([parsed(path, status, "cut at byte 17")], [], options(ranks={0}))
    assert row["status"] == "skipped"
    assert row["detail"] == "rank 3 is not in input.rank_list (by its name; cut at byte 17)"
    (row,) = rows([parsed(path, status)], [], options(ranks={0}))
    assert row["detail"] == "rank 3 is not in input.rank_list (by its name)"


@pytest.mark.parametrize("chosen", [{"ranks": {0}}, {"steps": {1}}, {"roles": {"actor_update"}}])
def test_a_failed_source_that_may_be_wanted_stays_failed(chosen: dict[str, Any]) -> None:
    # GIVEN a broken file whose name tells neither rank nor step nor role
    (row,) = rows([parsed("x.json", "failed", "no JSON")], [], options(**chosen))
    # WHEN something is filtered THEN the filter does not hide that it failed
    assert (row["status"], row["detail"]) == ("failed", "no JSON")


def test_what_a_parser_passed_over_keeps_its_reason_under_a_filter() -> None:
    path = "actor_update/prof_rank-3.json.gz"
    (row,) = rows([parsed(path, "skipped", "JSON of another kind")], [], options(ranks={0}))
    assert (row["status"], row["detail"]) == ("skipped", "JSON of another kind")


def test_identity_conflicts_become_a_problem_beside_those_of_the_parser() -> None:
    path = "actor_update/prof_rank-5.json.gz"
    before = {"code": "odd", "severity": "info", "count": 2, "offset": 1, "example": "x"}
    (row,) = rows([{**parsed(path), "problems": [before]}], [lane(path, rank_id=0)])
    assert codes(row) == ["odd", "identity_conflict"]
    (_, conflict) = problems(row)
    assert conflict.severity == "warning"
    assert conflict.count == 1
    assert conflict.example == "rank 0 in the file's metadata, 5 in its name; the metadata is used"


def test_a_clock_that_does_not_tell_the_date_is_told_also_when_nothing_was_shifted() -> None:
    alone = rows([parsed("a.json")], [lane("a.json", clock="relative")])
    (problem,) = problems(alone[0])
    assert (problem.code, problem.example) == (
        "clock_unknown",
        "its clock does not tell the date",
    )
    beside = rows(
        [parsed("a.json"), parsed("b.json")],
        [lane("a.json", clock="relative"), lane("b.json", capture_start_ns=5_000)],
    )
    (problem,) = problems(beside[0])
    assert problem.example == (
        "its clock does not tell the date: shifted to begin with the first capture"
    )
    assert codes(beside[1]) == []


def test_two_files_of_one_role_replica_and_rank_at_one_time_are_both_told() -> None:
    # GIVEN two copies of a capture in folders that do not tell them apart
    paths = ["actor_update/a.json", "actor_update/b.json", "actor_update/c.json"]
    lanes = [lane(path, rank_id=0) for path in paths[:2]] + [lane(paths[2], rank_id=1)]
    found = rows([parsed(path) for path in paths], lanes)
    assert [codes(row) for row in found] == [["same_identity"], ["same_identity"], []]


def test_what_discovery_left_out_has_its_row_with_whose_it_is() -> None:
    path = "actor_update/prof_rank-3.json.gz"
    assert skipped_rows(
        [Skipped(path, "torch", "step 1 is not among the chosen steps")], options()
    ) == [
        {
            "source_id": source_id(path),
            "path": path,
            "parser": "torch",
            "role": "actor_update",
            "replica": None,
            "rank_id": 3,
            "step": None,
            "status": "skipped",
            "detail": "step 1 is not among the chosen steps",
            "problems": [],
            "events": 0,
        }
    ]


def test_a_folder_that_could_not_be_listed_has_failed_unless_a_filter_does_not_want_it() -> None:
    closed = Skipped("x/rank3", "torch", "cannot be read: Permission denied", "failed")
    empty = Skipped("reward", "torch", "the folder is empty: nothing was recorded", "empty")
    found = skipped_rows([closed, empty], options())
    assert [(row["status"], row["role"]) for row in found] == [("failed", "x"), ("empty", "reward")]
    found = skipped_rows([closed, empty], options(roles={"x"}))
    assert [row["status"] for row in found] == ["failed", "skipped"]


@pytest.fixture
def sources_table(tmp_path: Path) -> Path:
    path = tmp_path / "sources.parquet"
    found = [
        {**parsed("a.json"), "parser": "torch"},
        {**parsed("b.load"), "parser": "loads", "problems": [{"code": "odd", "count": 3}]},
        {**parsed("c.txt"), "parser": "uninstalled"},
        {**parsed("d.txt"), "parser": None},
    ]
    tables.write(path, tables.from_rows(SOURCES, found))
    return path


def test_the_rows_of_a_run_of_another_kind_are_kept_whole(
    sources_table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PARSERS, "_known", dict(PARSERS._known))
    PARSERS.register("loads", NoteParser(name="loads", preset="heatmap"))
    (kept,) = other_rows(sources_table, ["timeline"])
    assert kept["path"] == "b.load"
    again = tables.from_rows(SOURCES, [kept])["problems"].to_pylist()
    assert again[0][0]["count"] == 3
    assert [row["path"] for row in other_rows(sources_table, ["heatmap"])] == ["a.json"]


def test_a_broken_parser_of_somebody_else_costs_only_its_own_rows(
    sources_table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PARSERS, "_known", dict(PARSERS._known))
    PARSERS.register("loads", "no_such_module_at_all:PARSER")
    assert other_rows(sources_table, ["timeline"]) == []


def test_no_earlier_table_or_a_damaged_one_has_no_rows(tmp_path: Path) -> None:
    assert other_rows(tmp_path / "sources.parquet", ["timeline"]) == []
    (tmp_path / "sources.parquet").write_bytes(b"PAR1 cut")
    assert other_rows(tmp_path / "sources.parquet", ["timeline"]) == []


def test_nothing_gives_no_rows() -> None:
    assert source_rows([], Settled(), options()) == []
    assert skipped_rows([], options()) == []
