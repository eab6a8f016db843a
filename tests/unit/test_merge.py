"""From an input folder to the merged tables, through real units and Parquet, without Snakemake."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rl_insight import presets, selection, tables
from rl_insight.data.identity import compile_rules
from rl_insight.data.tree import scan
from rl_insight.errors import CacheError
from rl_insight.parsers import Parser
from rl_insight.pipeline import layout, manifest
from rl_insight.pipeline.discovery import Filters, Skipped, discover
from rl_insight.pipeline.growing import Growing
from rl_insight.pipeline.merge import merge
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.parse import parse_unit
from rl_insight.pipeline.units import source_id
from rl_insight.schema import SCHEMAS, SOURCES
from rl_insight.selection import Selection
from rl_insight.table_names import TIMELINE_TABLES
from rl_insight.table_parts import write_part
from tests.made_up_parser import NoteParser, capture, write_note

Rows = list[dict[str, Any]]
Register = Callable[[Parser], None]


@pytest.fixture(autouse=True)
def _registered(notes: NoteParser) -> None:
    pass


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def run(
    root: Path,
    *,
    per_job: int = 1,
    parser: str = "notes",
    rules: tuple[str, ...] = (),
    growing: tuple[str, ...] = (),
    **chosen: Any,
) -> dict[str, Rows]:
    """Look, parse what has no cache and merge, as the workflow does; give the merged rows."""
    output = root.parent / "out"
    compiled = compile_rules(list(rules))
    filters = Filters(**{name: frozenset(values) for name, values in chosen.items()})
    tree = scan(root)
    found = discover(tree, [parser], compiled, filters)
    grows = Growing.of(growing)
    units = manifest.update(output, tree, found, {parser: per_job}, grows).units
    folders = [output / layout.unit_folder(unit.parser, unit.name) for unit in units]
    for unit, folder in zip(units, folders, strict=True):
        if not folder.exists():
            unit_file = output / layout.unit_file(unit.parser, unit.name)
            parse_unit(unit_file, output / layout.INPUT_LINK, folder, {})
    options = MergeOptions(compiled, filters, root.name)
    skipped, growing_file = output / layout.SKIPPED, output / layout.GROWING
    merge(folders, skipped, output / layout.TABLES, options, growing_file)
    return merged(output)


def merged(output: Path) -> dict[str, Rows]:
    found = {path.stem: tables.read(path) for path in (output / "tables").iterdir()}
    assert set(found) == {"sources", *TIMELINE_TABLES}
    for name, table in found.items():
        table.validate(full=True)
        assert table.schema.equals(SCHEMAS[name]), name
    return {name: table.to_pylist() for name, table in found.items()}


def column(rows: Rows, *names: str) -> list[Any]:
    found = [tuple(row[name] for name in names) for row in rows]
    return [one[0] for one in found] if len(names) == 1 else found


def whole_step(**lane: Any) -> dict[str, Any]:
    """A capture of a whole step: a log-prob stage, an update with one range, and a loose range."""

    def span(number: int, parent: int | None, role: str | None, **more: Any) -> dict[str, Any]:
        return {
            "span_id": f"{{source}}-0-{number}",
            "parent_id": None if parent is None else f"{{source}}-0-{parent}",
            "role": role,
            "start_ns": 1_000 + number,
            "duration_ns": 10,
            **more,
        }

    return {
        "lanes": [
            {"capture_start_ns": 1_000, "capture_end_ns": 2_000, "clock": "utc", **lane},
        ],
        "spans": [
            span(0, None, "actor_compute_log_prob", kind="stage", depth=0),
            span(1, None, "actor_update", kind="stage", depth=0, name="actor_update"),
            span(2, 1, "actor_update", kind="range", depth=1, name="micro_batch", micro_batch=0),
            span(3, None, None, kind="range", depth=1, name="loose"),
        ],
        "collectives": [
            {"span_id": "{source}-0-0", "op": "all_reduce", "start_ns": 1_001, "duration_ns": 5},
            {"span_id": "{source}-0-1", "op": "all_gather", "start_ns": 1_002, "duration_ns": 5},
            {"span_id": None, "op": "barrier", "start_ns": 1_003, "duration_ns": 5},
        ],
        "ops": [
            {"span_id": "{source}-0-0", "category": "computing", "name": "gemm", "count": 1},
            {"span_id": "{source}-0-1", "category": "computing", "name": "gemm", "count": 2},
        ],
        "breakdown": [
            {"span_id": f"{{source}}-0-{number}", "window_ns": 10, "device_start_ns": 1_002}
            for number in (0, 1)
        ],
        "activity": [
            {"category": "computing", "start_ns": 1_005, "duration_ns": 3, "joined_gap_ns": 0}
        ],
    }


def test_ranks_of_several_jobs_become_one_set_of_tables(root: Path) -> None:
    for rank in range(3):
        note = capture(1_000 * rank, 1_000 * rank + 500, rank_id=rank, host="node-1", step=4)
        write_note(root / "actor_update" / f"r{rank}.note", **note, events=10 + rank)

    found = run(root)

    assert column(found["sources"], "path", "status", "role", "rank_id", "step", "events") == [
        (f"actor_update/r{rank}.note", "ok", "actor_update", rank, 4, 10 + rank)
        for rank in range(3)
    ]
    lanes = sorted(found["lanes"], key=lambda row: row["rank_id"])
    assert column(lanes, "role", "rank_id", "step", "step_source") == [
        ("actor_update", rank, 4, "metadata") for rank in range(3)
    ]
    spans = sorted(found["spans"], key=lambda row: row["rank_id"])
    assert column(spans, "role", "name", "rank_id", "step", "host", "start_ns") == [
        ("actor_update", "actor_update", rank, 4, "node-1", 1_000 * rank) for rank in range(3)
    ]


def test_a_span_keeps_everything_else_that_its_parser_wrote(root: Path) -> None:
    note = capture()
    span = {
        "raw_name": "update_actor",
        "name": "update",
        "domain": "nccl",
        "mini_batch": 1,
        "micro_batch": 2,
        "truncated": True,
        "tid": "stream 7",
    }
    note["spans"] = [{**note["spans"][0], **span}]  # type: ignore[index]
    write_note(root / "actor_update" / "a.note", **note)
    (row,) = run(root)["spans"]
    assert {name: row[name] for name in span} == span
    assert row["lane_id"] == f"{source_id('actor_update/a.note')}-0"


def test_a_whole_step_keeps_the_stages_own_roles(root: Path) -> None:
    write_note(root / "train" / "a.note", **whole_step(rank_id=0))
    found = run(root)
    assert column(found["lanes"], "role") == ["train"]
    assert column(found["spans"], "role", "name") == [
        ("actor_compute_log_prob", "actor_compute_log_prob"),
        ("actor_update", "actor_update"),
        ("actor_update", "micro_batch"),
        ("train", "loose"),
    ]
    assert column(found["breakdown"], "role", "rank_id", "window_ns") == [
        ("actor_compute_log_prob", 0, 10),
        ("actor_update", 0, 10),
    ]


def test_a_capture_of_one_stage_gives_its_role_to_all_its_spans(root: Path) -> None:
    write_note(root / "reward" / "a.note", **whole_step(rank_id=0))
    found = run(root)
    assert set(column(found["spans"], "role")) == {"reward"}
    assert set(column(found["breakdown"], "role")) == {"reward"}


def test_a_role_filter_keeps_of_a_whole_step_only_what_belongs_to_the_role(root: Path) -> None:
    write_note(root / "train" / "a.note", **whole_step(rank_id=0))
    found = run(root, roles={"actor_update"})
    assert column(found["lanes"], "role") == ["train"]
    assert column(found["spans"], "name") == ["actor_update", "micro_batch"]
    assert column(found["breakdown"], "role") == ["actor_update"]
    assert column(found["ops"], "count") == [2]
    assert column(found["collectives"], "op") == ["all_gather", "barrier"]


def test_a_role_filter_for_the_whole_step_keeps_all_its_stages(root: Path) -> None:
    write_note(root / "train" / "a.note", **whole_step(rank_id=0))
    write_note(root / "reward" / "b.note", **whole_step(rank_id=0))
    found = run(root, roles={"train"})
    assert column(found["lanes"], "role") == ["train"]
    assert len(found["spans"]) == 4
    assert column(found["sources"], "path", "status") == [
        ("reward/b.note", "skipped"),
        ("train/a.note", "ok"),
    ]


def test_replicas_are_filtered_by_the_names_of_their_folders(root: Path) -> None:
    for replica in (0, 1, 2):
        path = root / f"agent_loop_rollout_replica_{replica}" / "a.note"
        write_note(path, **capture(rank_id=0))
    write_note(root / "actor_update" / "a.note", **capture(rank_id=0))

    everything = run(root)
    assert sorted(column(everything["lanes"], "role", "replica"), key=str) == [
        ("actor_update", None),
        ("agent_loop_rollout", 0),
        ("agent_loop_rollout", 1),
        ("agent_loop_rollout", 2),
    ]

    one = run(root, roles={"agent_loop_rollout_replica_1"})
    assert column(one["lanes"], "role", "replica") == [("agent_loop_rollout", 1)]
    assert column(one["spans"], "role", "replica") == [("agent_loop_rollout", 1)]

    assert sorted(column(run(root, roles={"agent_loop_rollout"})["spans"], "replica")) == [0, 1, 2]


def test_filters_take_away_lanes_with_all_that_belongs_to_them(root: Path) -> None:
    for rank in (0, 1):
        write_note(root / "train" / f"r{rank}.note", **whole_step(rank_id=rank, step=rank + 10))

    by_rank = run(root, ranks={1})
    by_step = run(root, steps={11})

    for found in (by_rank, by_step):
        assert column(found["lanes"], "rank_id") == [1]
        lane_id = found["lanes"][0]["lane_id"]
        for name in ("spans", "breakdown", "activity", "collectives"):
            assert set(column(found[name], "lane_id")) == {lane_id}, name
        assert all(row["span_id"].startswith(lane_id) for row in found["ops"])
    assert column(by_rank["sources"], "rank_id", "status", "detail") == [
        (None, "skipped", "rank 0 is not in input.rank_list"),
        (1, "ok", None),
    ]


def test_the_captures_tell_what_was_asked_for(root: Path) -> None:
    write_note(root / "train" / "r1.note", **whole_step(rank_id=1, step=11))
    lanes = layout.table(root.parent / "out" / "tables", "lanes")

    run(root, ranks={1, 2}, roles={"train"})
    chosen = selection.of(tables.read(lanes).schema)
    run(root)

    assert chosen == Selection(frozenset({1, 2}), None, frozenset({"train"}))
    assert selection.of(tables.read(lanes).schema) == Selection()


def test_a_filter_that_widens_again_gives_back_the_same_tables(root: Path) -> None:
    for rank in range(4):
        write_note(root / "train" / f"rank{rank}.note", **whole_step(rank_id=rank))
    rules = (r"rank(?P<rank>\d+)",)
    before = run(root, per_job=2, rules=rules)
    parsed = root.parent / "out" / "parsed" / "notes"
    caches = {path.name: path.stat().st_ino for path in parsed.iterdir()}

    narrow = run(root, per_job=2, rules=rules, ranks={1})
    assert column(narrow["lanes"], "rank_id") == [1]
    assert column(narrow["sources"], "rank_id", "status") == [
        (0, "skipped"),
        (1, "ok"),
        (2, "skipped"),
        (3, "skipped"),
    ]

    assert run(root, per_job=2, rules=rules) == before
    assert {path.name: path.stat().st_ino for path in parsed.iterdir()} == caches


def test_a_failed_source_is_a_row_and_the_others_are_drawn(root: Path) -> None:
    write_note(root / "actor_update" / "prof_rank-0.note", **capture())
    write_note(root / "actor_update" / "prof_rank-1.note", unreadable="cut at byte 17")
    found = run(root)
    assert column(found["sources"], "status", "rank_id", "detail") == [
        ("ok", 0, None),
        ("failed", 1, "cut at byte 17"),
    ]
    assert len(found["lanes"]) == len(found["spans"]) == 1


def test_a_failed_source_that_the_filter_does_not_want_is_skipped(root: Path) -> None:
    write_note(root / "actor_update" / "prof_rank-0.note", **capture())
    write_note(root / "actor_update" / "prof_rank-1.note", unreadable="cut at byte 17")
    assert column(run(root, ranks={0})["sources"], "status") == ["ok", "skipped"]


def test_a_lane_without_a_rank_is_drawn_and_leaves_under_a_rank_filter(root: Path) -> None:
    write_note(root / "actor_update" / "x.note", **capture())
    found = run(root)
    assert column(found["spans"], "role", "rank_id") == [("actor_update", None)]
    filtered = run(root, ranks={0})
    assert filtered["lanes"] == filtered["spans"] == []
    assert column(filtered["sources"], "status", "detail") == [
        ("skipped", "rank unknown is not in input.rank_list")
    ]


def test_undated_captures_are_shifted_with_all_that_belongs_to_them(root: Path) -> None:
    # GIVEN a capture that begins at 1,000 of an unknown clock and one at 51,000 of Unix time
    write_note(root / "train" / "a.note", **whole_step(rank_id=0, clock="relative"))
    write_note(root / "actor_update" / "b.note", **capture(51_000, 52_000, rank_id=1))
    # WHEN they are merged
    found = run(root)
    # THEN all times of the first are 50,000 later
    lane = next(row for row in found["lanes"] if row["rank_id"] == 0)
    assert (lane["capture_start_ns"], lane["capture_end_ns"]) == (51_000, 52_000)
    assert lane["clock_offset_ns"] == 50_000
    own = [row for row in found["spans"] if row["rank_id"] == 0]
    assert column(own, "start_ns") == [51_000, 51_001, 51_002, 51_003]
    assert column(found["breakdown"], "device_start_ns", "device_end_ns") == [(51_002, None)] * 2
    assert column(found["activity"], "start_ns") == [51_005]
    assert column(found["collectives"], "start_ns") == [51_001, 51_002, 51_003]
    other = next(row for row in found["spans"] if row["rank_id"] == 1)
    assert other["start_ns"] == 51_000


def test_two_captures_of_one_identity_at_one_time_are_both_drawn_and_told(root: Path) -> None:
    for name in ("a", "b"):
        write_note(root / "actor_update" / f"{name}.note", **capture(rank_id=0))
    found = run(root)
    assert len(found["lanes"]) == len(found["spans"]) == 2
    assert sorted(column(found["lanes"], "step_index")) == [0, 1]
    for row in found["sources"]:
        assert [problem["code"] for problem in row["problems"]] == ["same_identity"]


def test_conflicting_identities_are_told_in_lane_and_source(root: Path) -> None:
    write_note(root / "actor_update" / "prof_rank-5.json.note", **capture(rank_id=0))
    found = run(root)
    (conflict,) = found["lanes"][0]["identity_conflicts"]
    assert "rank 0 in the file's metadata, 5 in its name" in conflict
    (problem,) = found["sources"][0]["problems"]
    assert (problem["code"], problem["example"]) == ("identity_conflict", conflict)


def test_everything_filtered_away_still_writes_all_tables(root: Path) -> None:
    write_note(root / "rank0.note", **capture())
    found = run(root, rules=(r"rank(?P<rank>\d+)",), ranks={7})
    assert {name: len(rows) for name, rows in found.items() if rows} == {"sources": 1}
    found = run(root, ranks={7})
    assert {name: len(rows) for name, rows in found.items() if rows} == {"sources": 1}


def test_only_broken_sources_still_write_all_tables(root: Path) -> None:
    write_note(root / "a.note", unreadable="no JSON")
    write_note(root / "b.note", status="empty", detail="nothing timed inside")
    found = run(root)
    assert {name: len(rows) for name, rows in found.items() if rows} == {"sources": 2}


def test_no_units_at_all_still_write_all_tables(tmp_path: Path) -> None:
    manifest.write_if_changed(tmp_path / "skipped.json", "[]")
    options = MergeOptions(compile_rules([]), Filters(), "")
    merge([], tmp_path / "skipped.json", tmp_path / "out" / "tables", options)
    assert not any(merged(tmp_path / "out").values())
    only_roles = MergeOptions(compile_rules([]), Filters(roles=frozenset({"x"})), "")
    merge([], tmp_path / "skipped.json", tmp_path / "out" / "tables", only_roles)
    assert not any(merged(tmp_path / "out").values())


def test_what_discovery_left_out_stands_among_the_sources_in_the_order_of_paths(root: Path) -> None:
    write_note(root / "b.note", **capture())
    write_note(root / "a.memo")
    write_note(root / "c.memo")
    (root / "actor_update").mkdir()
    assert column(run(root)["sources"], "path", "status", "detail") == [
        ("a.memo", "skipped", "a memo holds no capture"),
        ("actor_update", "empty", "the folder is empty: nothing was recorded"),
        ("b.note", "ok", None),
        ("c.memo", "skipped", "a memo holds no capture"),
    ]


def test_the_sources_of_a_run_of_another_kind_are_kept(
    root: Path, register_parser: Register
) -> None:
    # GIVEN a folder with the table of a heatmap run
    register_parser(NoteParser(name="loads", preset="heatmap", suffix=".load"))
    write_note(root / "a.note", **capture())
    path = root.parent / "out" / "tables" / "sources.parquet"
    path.parent.mkdir(parents=True)
    load = {
        "source_id": "1",
        "path": "x.load",
        "parser": "loads",
        "status": "salvaged",
        "problems": [{"code": "odd", "severity": "warning", "count": 1}],
    }
    tables.write(path, tables.from_rows(SOURCES, [load, {"path": "old.note", "parser": "notes"}]))
    # WHEN a timeline run merges, twice
    for _ in range(2):
        found = run(root)
        # THEN its own rows are replaced, and the other's are there as they were
        assert column(found["sources"], "path", "parser") == [
            ("a.note", "notes"),
            ("x.load", "loads"),
        ]
        assert found["sources"][1]["problems"][0]["code"] == "odd"


def test_the_sources_tell_which_preset_each_parser_feeds(
    root: Path, register_parser: Register
) -> None:
    register_parser(NoteParser(name="loads", preset="heatmap", suffix=".load"))
    write_note(root / "a.note", **capture())
    path = root.parent / "out" / "tables" / "sources.parquet"
    path.parent.mkdir(parents=True)
    tables.write(path, tables.from_rows(SOURCES, [{"path": "x.load", "parser": "loads"}]))
    run(root)
    assert presets.of(tables.read(path).schema) == {"loads": "heatmap", "notes": "timeline"}


def test_a_parser_that_fills_few_tables_is_merged_with_those_that_fill_all(
    root: Path, register_parser: Register
) -> None:
    register_parser(NoteParser(name="few", tables=("lanes",)))
    write_note(root / "a.note", **capture(rank_id=0))
    found = run(root, parser="few")
    assert len(found["lanes"]) == 1
    assert found["spans"] == []


@pytest.mark.parametrize("table", ["sources", "lanes", "spans", "ops"])
@pytest.mark.parametrize("damage", ["missing", "cut", "empty", "other columns"])
def test_an_incomplete_cache_names_the_folder_to_delete(
    root: Path, table: str, damage: str
) -> None:
    write_note(root / "a.note", **capture())
    write_note(root / "b.note", **capture())
    run(root)
    folder = next(
        path for path in (root.parent / "out" / "parsed" / "notes").iterdir() if path.is_dir()
    )
    path = folder / f"{table}.parquet"
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        write_part(path, pa.table({"unheard_of": [1]}))
    with pytest.raises(CacheError) as refused:
        run(root)
    assert f"({table}: " in str(refused.value)
    assert str(refused.value).endswith(f": delete the folder {folder} and run again")
    # WHEN that is done THEN it runs
    shutil.rmtree(folder)
    assert column(run(root)["sources"], "status") == ["ok", "ok"]


def test_a_cache_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    manifest.write_if_changed(tmp_path / "skipped.json", "[]")
    options = MergeOptions(compile_rules([]), Filters(), "")
    gone = tmp_path / "parsed" / "notes" / "gone-1"
    with pytest.raises(CacheError, match=r"delete the folder .*gone-1 and run again"):
        merge([gone], tmp_path / "skipped.json", tmp_path / "tables", options)
    assert not (tmp_path / "tables").exists()


def test_a_merge_that_fails_leaves_the_tables_of_the_last_one(root: Path) -> None:
    write_note(root / "a.note", **capture())
    before = run(root)
    for path in (root.parent / "out" / "parsed").rglob("spans.parquet"):
        path.unlink()
    with pytest.raises(CacheError):
        run(root)
    assert merged(root.parent / "out") == before


def test_hostile_names_and_texts_go_through_as_they_are(root: Path) -> None:
    role = '<script>alert("x")<script>'
    note = capture(rank_id=0)
    note["spans"][0]["raw_name"] = "\0\u202e" + "x" * 5_000  # type: ignore[index]
    write_note(root / role / "a b\n.note", **note)
    found = run(root)
    assert column(found["spans"], "role") == [role]
    assert column(found["sources"], "path") == [f"{role}/a b\n.note"]
    assert found["spans"][0]["raw_name"] == "\0\u202e" + "x" * 5_000


def test_the_skipped_list_of_the_merge_may_hold_what_no_parser_is_known_for(
    tmp_path: Path,
) -> None:
    row = Skipped("a", "uninstalled", "a reason")
    text = f'[{{"path": "{row.path}", "parser": "{row.parser}", "reason": "{row.reason}"}}]'
    manifest.write_if_changed(tmp_path / "skipped.json", text)
    options = MergeOptions(compile_rules([]), Filters(), "")
    merge([], tmp_path / "skipped.json", tmp_path / "out" / "tables", options)
    assert column(merged(tmp_path / "out")["sources"], "path", "status") == [("a", "skipped")]


def test_what_is_still_being_written_is_drawn_and_says_so(root: Path) -> None:
    # GIVEN two captures, one of which somebody is writing to, and one that a filter leaves out
    for rank in (0, 1, 2):
        write_note(root / f"actor_update/rank{rank}.note", **capture())
    names = tuple(f"actor_update/rank{rank}.note" for rank in (1, 2))

    # WHEN they are merged
    found = run(root, growing=names, ranks={0, 1}, rules=(r"rank(?P<rank>\d+)",))

    # THEN both are drawn, and the one that grows says so
    problems = {row["path"]: row["problems"] for row in found["sources"]}
    assert {row["rank_id"] for row in found["spans"]} == {0, 1}
    assert problems["actor_update/rank0.note"] == problems["actor_update/rank2.note"] == []
    (problem,) = problems["actor_update/rank1.note"]
    assert (problem["code"], problem["severity"], problem["count"]) == (
        "still_growing",
        "warning",
        1,
    )
    # Nothing says so any more once it is complete.
    after = run(root, ranks={0, 1}, rules=(r"rank(?P<rank>\d+)",))
    assert all(row["problems"] == [] for row in after["sources"])


def test_a_damaged_list_of_what_grows_is_named(root: Path) -> None:
    write_note(root / "rank0.note", **capture())
    run(root)
    listed = root.parent / "out" / layout.GROWING
    listed.write_text("[1")
    with pytest.raises(CacheError, match=r"growing\.json: damaged"):
        manifest.read_growing(listed)
