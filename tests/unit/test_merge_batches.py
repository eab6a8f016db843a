"""Merges whose units are completed a few at a time give the same tables, to the byte."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rl_insight import table_writer, tables
from rl_insight.data.identity import compile_rules
from rl_insight.data.tree import scan
from rl_insight.errors import CacheError
from rl_insight.pipeline import layout, manifest, merge_batch
from rl_insight.pipeline.discovery import Filters, discover
from rl_insight.pipeline.merge import merge
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.parse import parse_unit
from rl_insight.table_names import TIMELINE_TABLES
from rl_insight.visualizers import timeline_data
from tests.made_up_parser import NoteParser, write_note

Row = dict[str, Any]
Rows = list[Row]

_SPANS = 5


@pytest.fixture(autouse=True)
def _registered(notes: NoteParser) -> None:
    pass


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two units are completed together, and a row group holds 4 rows."""
    monkeypatch.setattr(merge_batch, "BATCH_UNITS", 2)
    monkeypatch.setattr(table_writer, "ROW_GROUP", 4)


def note(number: int) -> Row:
    """A capture of a whole step with two stages, by number: rank, host, step and clock differ."""
    start = 1_000_000 * (number + 1)
    lane = {
        "role": "e2e",
        "rank_id": number % 3,
        "step": number // 3,
        "host": f"node-{number % 2}",
        "pid": number,
        "capture_start_ns": start,
        "capture_end_ns": start + 900,
        "clock": "relative" if number == 4 else "utc",
    }
    roles = ("actor_update", "actor_update", None, "reward", None)
    spans = [
        {
            "span_id": f"{{source}}-0-{at}",
            "role": roles[at],
            "name": None if at == 0 else f"name {number % 4}{at}",
            "kind": "stage" if at in (0, 3) else "range",
            "depth": at,
            "start_ns": start + at,
            "duration_ns": 10 + at,
        }
        for at in range(_SPANS)
    ]
    on = [f"{{source}}-0-{at}" for at in range(_SPANS)]
    return {
        "lanes": [lane],
        "spans": spans,
        "breakdown": [
            {
                "span_id": on[0],
                "window_ns": 10,
                "device_start_ns": start,
                "device_end_ns": start + 3,
            },
            {"span_id": on[3], "window_ns": 13},
        ],
        "activity": [
            {"category": "computing", "start_ns": start + at, "duration_ns": 1} for at in range(9)
        ],
        "collectives": [
            {"span_id": on[1], "op": "all_gather", "start_ns": start + 1, "duration_ns": 2},
            {"span_id": None, "op": "barrier", "start_ns": start + 2, "duration_ns": 2},
            {"span_id": on[3], "op": f"op {number}", "start_ns": start + 3, "duration_ns": 2},
        ],
        "ops": [{"span_id": on[at], "name": f"gemm {at}", "count": number} for at in (0, 2, 3)],
    }


def parsed(root: Path, per_job: int) -> list[Path]:
    """The cache folders of eleven captures, of an input that gave nothing and of a damaged one."""
    for number in range(11):
        write_note(root / f"part{number % 4}" / f"{number:02}.note", **note(number))
    write_note(root / "part0" / "nothing.note", status="empty")
    write_note(root / "part9" / "broken.note", unreadable="it ends too early")
    tree = scan(root)
    output = root.parent / "cache"
    found = discover(tree, ["notes"], compile_rules([]), Filters())
    units = manifest.update(output, tree, found, {"notes": per_job}).units
    folders = [output / layout.unit_folder(unit.parser, unit.name) for unit in units]
    for unit, folder in zip(units, folders, strict=True):
        parse_unit(output / layout.unit_file(unit.parser, unit.name), root, folder, {})
    return folders


def joined(folders: list[Path], tables_folder: Path, **chosen: frozenset[Any]) -> dict[str, bytes]:
    """Merge `folders` into `tables_folder`; gives the bytes of each table."""
    skipped = folders[0].parents[2] / layout.SKIPPED
    merge(folders, skipped, tables_folder, MergeOptions(compile_rules([]), Filters(**chosen), "in"))
    return {path.stem: path.read_bytes() for path in tables_folder.iterdir()}


def test_the_order_of_the_folders_and_another_run_change_no_byte(
    tmp_path: Path, few_rows: None
) -> None:
    folders = parsed(tmp_path / "in", per_job=1)
    assert len(folders) == 13
    first = joined(folders, tmp_path / "first")
    assert set(first) == {"sources", *TIMELINE_TABLES}
    shuffled = random.Random(3).sample(folders, len(folders))
    assert shuffled != folders
    assert joined(shuffled, tmp_path / "shuffled") == first
    assert joined(folders[::-1], tmp_path / "first") == first


def raw_rows(folders: list[Path], name: str) -> Iterator[Row]:
    """The rows that parse jobs left, unit after unit by name; what a file lacks is not a key."""
    for folder in sorted(folders):
        yield from pq.read_table(folder / f"{name}.parquet").to_pylist()


def slowly(folders: list[Path], lanes: Rows, roles: set[str] | None) -> dict[str, Rows]:
    """Every table but `lanes` and `sources`, row after row, out of the settled `lanes`.

    Only the columns that the merge completes or that tell rows apart.
    """
    by_id = {lane["lane_id"]: lane for lane in lanes}
    found: dict[str, Rows] = {name: [] for name in TIMELINE_TABLES if name != "lanes"}
    spans: dict[str, Row] = {}
    for row in raw_rows(folders, "spans"):
        lane = by_id.get(row["lane_id"])
        if lane is None:
            continue
        role = row.get("role") or lane["role"]
        if roles is not None and role not in roles and lane["role"] not in roles:
            continue
        whose = {name: lane[name] for name in ("rank_id", "replica", "step", "host")}
        spans[row["span_id"]] = {
            **whose,
            "span_id": row["span_id"],
            "role": role,
            "name": row.get("name") or role,
            "start_ns": row["start_ns"] + lane["clock_offset_ns"],
            "duration_ns": row["duration_ns"],
        }
    found["spans"] = list(spans.values())
    for row in raw_rows(folders, "breakdown"):
        if row["span_id"] in spans:
            span, shift = spans[row["span_id"]], by_id[row["lane_id"]]["clock_offset_ns"]
            times = {name: row.get(name) for name in ("device_start_ns", "device_end_ns")}
            found["breakdown"].append(
                {
                    **{name: span[name] for name in ("role", "rank_id", "replica", "step")},
                    **{name: None if at is None else at + shift for name, at in times.items()},
                    "span_id": row["span_id"],
                    "window_ns": row["window_ns"],
                }
            )
    for name, told in (("activity", "category"), ("collectives", "op")):
        for row in raw_rows(folders, name):
            lane, on = by_id.get(row["lane_id"]), row.get("span_id")
            if lane is not None and (on is None or on in spans):
                start = row["start_ns"] + lane["clock_offset_ns"]
                found[name].append({"lane_id": row["lane_id"], told: row[told], "start_ns": start})
    for row in raw_rows(folders, "ops"):
        if row["span_id"] in spans:
            found["ops"].append({name: row[name] for name in ("span_id", "name", "count")})
    return found


@pytest.mark.parametrize("per_job", [1, 4])
@pytest.mark.parametrize(
    ("chosen", "spans"),
    [
        ({}, 55),
        ({"ranks": frozenset({0, 2})}, 35),
        ({"steps": frozenset({1, 2}), "ranks": frozenset({1})}, 10),
        ({"roles": frozenset({"reward"})}, 11),
        ({"roles": frozenset({"e2e"})}, 55),
        ({"steps": frozenset({99})}, 0),
    ],
)
def test_rows_are_those_of_a_join_row_by_row(
    tmp_path: Path, few_rows: None, per_job: int, chosen: dict[str, Any], spans: int
) -> None:
    folders = parsed(tmp_path / "in", per_job)
    joined(folders, tmp_path / "out", **chosen)
    found = {name: tables.read(tmp_path / "out" / f"{name}.parquet") for name in TIMELINE_TABLES}
    expected = slowly(folders, found["lanes"].to_pylist(), chosen.get("roles"))
    assert len(expected["spans"]) == spans
    for name, rows in expected.items():
        found[name].validate(full=True)
        own = found[name].select(list(rows[0])) if rows else found[name]
        assert own.to_pylist() == rows, name


def test_many_row_groups_are_drawn_like_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = parsed(tmp_path / "in", per_job=2)
    joined(folders, tmp_path / "one")
    monkeypatch.setattr(merge_batch, "BATCH_UNITS", 2)
    monkeypatch.setattr(table_writer, "ROW_GROUP", 4)
    joined(folders, tmp_path / "many")
    groups = [pq.read_metadata(tmp_path / name / "spans.parquet") for name in ("one", "many")]
    assert [group.num_row_groups for group in groups] == [1, 14]
    for name in ("sources", *TIMELINE_TABLES):
        one, many = (tables.read(tmp_path / run / f"{name}.parquet") for run in ("one", "many"))
        assert many.to_pylist() == one.to_pylist(), name
        assert many.schema.equals(one.schema, check_metadata=True), name
    spans = tables.read(tmp_path / "many" / "spans.parquet")
    counted = spans.group_by(["role"]).aggregate([("span_id", "count")]).to_pylist()
    assert {row["role"]: row["span_id_count"] for row in counted} == {
        "actor_update": 22,
        "e2e": 22,
        "reward": 11,
    }
    one, many = (timeline_data.load(tmp_path / run) for run in ("one", "many"))
    assert many.lanes == one.lanes
    assert many.breakdown == one.breakdown
    assert many.spans.start_ns.tolist() == one.spans.start_ns.tolist()
    assert len(many.spans) == 55


@pytest.mark.parametrize("table", ["breakdown", "activity", "collectives", "ops"])
def test_a_unit_found_incomplete_on_the_way_leaves_what_was_there(
    tmp_path: Path, few_rows: None, table: str
) -> None:
    folders = parsed(tmp_path / "in", per_job=1)
    before = joined(folders, tmp_path / "out")
    last = max(folder for folder in folders if "10_note" in folder.name)
    (last / f"{table}.parquet").unlink()
    with pytest.raises(CacheError, match=rf"\({table}: .*delete the folder .*{last.name} and run"):
        joined(folders, tmp_path / "out")
    assert {path.stem: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_what_the_filters_leave_out_is_not_read(tmp_path: Path, few_rows: None) -> None:
    folders = parsed(tmp_path / "in", per_job=1)
    for folder in folders:
        if "10_note" in folder.name:
            (folder / "ops.parquet").write_bytes(b"")
    # Of rank 1.
    joined(folders, tmp_path / "out", ranks=frozenset({0}))
    assert tables.read(tmp_path / "out" / "lanes.parquet").num_rows == 4
    with pytest.raises(CacheError):
        joined(folders, tmp_path / "out", ranks=frozenset({1}))
