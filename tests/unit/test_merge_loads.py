"""Dumps of many jobs become one file of expert loads, step by step, and a row of `sources` each."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rl_insight import notes, tables
from rl_insight.analysis.expert_load import StructureOptions
from rl_insight.data.identity import compile_rules
from rl_insight.data.tree import scan
from rl_insight.errors import CacheError
from rl_insight.pipeline import layout, manifest
from rl_insight.pipeline.discovery import Filters, discover
from rl_insight.pipeline.merge import merge
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.parse import parse_unit
from rl_insight.pipeline.structure import structure
from tests.group_lists import write_dump

Row = dict[str, object]


def merged(
    root: Path, per_job: int = 64, rules: tuple[str, ...] = (), **chosen: set[int] | set[str]
) -> tuple[Path, list[Row]]:
    """Parse and merge all dumps below `root`; gives the output folder and the merged loads."""
    output = root.parent / "out"
    compiled = compile_rules(list(rules))
    filters = Filters(**{name: frozenset(values) for name, values in chosen.items()})
    found = discover(scan(root), ["gmm"], compiled, filters)
    units = manifest.update(output, scan(root), found, {"gmm": per_job}).units
    folders = [output / layout.unit_folder(unit.parser, unit.name) for unit in units]
    for unit, folder in zip(units, folders, strict=True):
        unit_file = output / layout.unit_file(unit.parser, unit.name)
        parse_unit(unit_file, output / layout.INPUT_LINK, folder, {})
    options = MergeOptions(compiled, Filters(), root.name, filters, ("heatmap",))
    loads = output / layout.LOADS
    merge(folders, output / layout.SKIPPED, output / layout.TABLES, options, loads=loads)
    return output, tables.read(loads).to_pylist()


def sources(output: Path) -> list[Row]:
    rows: list[Row] = tables.read(output / "tables" / "sources.parquet").to_pylist()
    return rows


@pytest.mark.parametrize("per_job", [1, 64])
def test_loads_are_sorted_by_step_role_rank_and_call_however_they_were_packed(
    tmp_path: Path, per_job: int
) -> None:
    root = tmp_path / "dump"
    for step in (10, 2):
        for role in ("actor_update", "actor_compute_log_prob"):
            for rank in (1, 0):
                calls = [[step, rank, call, 7] for call in range(3)]
                write_dump(root, step, role, rank, calls)
    output, loads = merged(root, per_job)
    assert [
        (row["step"], row["role"], row["rank_id"], row["op_index"], row["load"]) for row in loads
    ] == [
        (step, role, rank, call, [step, rank, call, 7])
        for step in (2, 10)
        for role in ("actor_compute_log_prob", "actor_update")
        for rank in (0, 1)
        for call in range(3)
    ]
    with pq.ParquetFile(output / layout.LOADS) as file:
        assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == [
            12,
            12,
        ]
    assert len([p for p in (output / "parsed" / "gmm").iterdir() if p.is_dir()]) == (
        8 if per_job == 1 else 2
    )
    assert {row["status"] for row in sources(output)} == {"ok"}


def test_the_filters_leave_out_dumps_and_say_so(tmp_path: Path) -> None:
    root = tmp_path / "dump"
    for step in (1, 2):
        for rank in (0, 1):
            write_dump(root, step, "actor_update", rank, [[step, rank]])
    write_dump(root, "unknown", "actor_update", 0, [[9, 9]])
    output, loads = merged(root, ranks={1}, steps={2})
    assert [row["load"] for row in loads] == [[2, 1]]
    kept = {row["path"]: row["status"] for row in sources(output)}
    assert list(kept.values()).count("skipped") == 4
    assert kept["step_2/actor_update/step0/rank1/dump_tensor_data"] == "ok"


def test_a_dump_of_unknown_step_and_rank_comes_last_and_stays_unknown(tmp_path: Path) -> None:
    root = tmp_path / "dump"
    write_dump(root, "unknown", "actor_update", "", [[3, 4]])
    write_dump(root, 5, "actor_update", 2, [[1, 2]])
    _, loads = merged(root)
    assert [(row["step"], row["rank_id"], row["load"]) for row in loads] == [
        (5, 2, [1, 2]),
        (None, None, [3, 4]),
    ]


def test_an_expression_of_the_user_says_whose_a_dump_is(tmp_path: Path) -> None:
    root = tmp_path / "dump"
    write_dump(root, 1, "actor_update", 0, [[1, 2]])
    _, loads = merged(root, rules=(r"rank(?P<rank>\d)(?P<step>)", r"/step(?P<step>\d+)/"))
    assert [(row["step"], row["rank_id"]) for row in loads] == [(0, 0)]


def test_a_job_that_left_nothing_is_named(tmp_path: Path) -> None:
    root = tmp_path / "dump"
    write_dump(root, 1, "actor_update", 0, [[1, 2]])
    output, _ = merged(root)
    (folder,) = (path for path in (output / "parsed" / "gmm").iterdir() if path.is_dir())
    (folder / "expert_load.parquet").unlink()
    options = MergeOptions(compile_rules([]), Filters(), root.name, Filters(), ("heatmap",))
    with pytest.raises(CacheError, match=folder.name):
        merge(
            [folder],
            output / layout.SKIPPED,
            output / layout.TABLES,
            options,
            loads=output / layout.LOADS,
        )


def test_the_structure_step_makes_tables_of_every_step_with_what_is_doubtful(
    tmp_path: Path,
) -> None:
    # GIVEN two steps of two layers, whose dump says sums where the user says counts
    root = tmp_path / "dump"
    for step in (1, 2):
        layers = [[2, 5, 9, 12], [1, 3, 3, 12]]
        calls = [layer for layer in layers for _ in range(3)]
        write_dump(root, step, "actor_compute_log_prob", 0, calls, group_list_type="default")
    output, _ = merged(root)
    # WHEN the numbers are told by the dump
    structure(output / layout.LOADS, output / "tables", StructureOptions())
    # THEN the loads are the differences, and layers are told
    load = tables.read(output / "tables" / "expert_load.parquet")
    rows = load.to_pylist()
    assert [row["layer"] for row in rows] == [0, 0, 0, 1, 1, 1] * 2
    assert {row["load_kind_from"] for row in rows} == {"dump.json"}
    assert rows[0]["load"] == [2, 3, 4, 3]
    assert rows[3]["load"] == [1, 2, 0, 9]
    balance = tables.read(output / "tables" / "expert_balance.parquet").to_pylist()
    (own,) = (row for row in balance if (row["step"], row["rank_id"], row["layer"]) == (2, 0, 1))
    assert (own["total"], own["max"], own["argmax"], own["max_over_mean"]) == (12, 9, 3, 3.0)
    # WHEN the user says otherwise
    options = StructureOptions(group_list_type="counts")
    structure(output / layout.LOADS, output / "tables", options)
    # THEN that counts, and both tables carry the doubt, once for all steps
    again = tables.read(output / "tables" / "expert_load.parquet")
    assert again.to_pylist()[0]["load"] == [2, 5, 9, 12]
    noted = {note.code: note for note in notes.of(again.schema)}
    assert noted
    assert notes.of(tables.read(output / "tables" / "expert_balance.parquet").schema)


def test_damaged_loads_are_named(tmp_path: Path) -> None:
    (tmp_path / "loads.parquet").write_bytes(b"PAR1")
    with pytest.raises(CacheError, match=r"loads\.parquet: damaged"):
        structure(tmp_path / "loads.parquet", tmp_path / "tables", StructureOptions())
    assert not any((tmp_path / "tables").iterdir())
