"""What a person packed in a form that is not read is said to be lost, whoever recorded it.

Each input lies beside a sound one of its kind where that could hide it. Checked is what a person
sees of it: status, sentence, whose it is; and that `rl-insight check` takes it for lost too.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rl_insight import tables
from rl_insight.data.identity import compile_rules
from rl_insight.data.tree import scan
from rl_insight.errors import InputError
from rl_insight.parsers import PARSERS
from rl_insight.pipeline import layout
from rl_insight.pipeline.check import take_census
from rl_insight.pipeline.discovery import AUTO, Filters, parser_names
from rl_insight.pipeline.merge import merge
from rl_insight.pipeline.merge_options import MergeOptions
from rl_insight.pipeline.preprocess_ascend import ASCEND
from rl_insight.pipeline.preprocess_nsys import NSYS
from tests.ascend_captures import ANALYSIS, info, mstx, overlap, write_text
from tests.group_lists import name as list_name
from tests.group_lists import write_dump
from tests.merged_runs import parse_all
from tests.nvtx_exports import (
    details,
    string,
    text_range,
    write_database,
    write_folder,
    write_lines,
)

UNPACK = "which is not read: unpack it"
PACKINGS = (".gz", ".zst", ".zip", ".tar.gz", ".7z", ".xz")
# Of a size that is read as a whole, and of one of which only the ends are.
SIZES = pytest.mark.parametrize("size", [300, 200_000])

Row = dict[str, Any]


def write(root: Path, path: str, size: int = 300) -> None:
    """Write a file of `size` bytes that are nothing in particular."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes((bytes([7, 200, 131]) * size)[:size])


def seen(root: Path, output: Path, preset: str = "timeline") -> dict[str, Row]:
    """The rows of `sources` of a run over `root`, by path; a check must say the same of each."""
    folders = parse_all(root, output, parser_names(AUTO, preset))
    options = MergeOptions(compile_rules(None), Filters(), root.name, presets=(preset,))
    loads = output / "loads.parquet"
    merge(
        folders,
        output / layout.SKIPPED,
        output / layout.TABLES,
        options,
        **({"loads": loads} if preset == "heatmap" else {}),
    )
    rows = tables.read(layout.table(output / layout.TABLES, "sources")).to_pylist()
    found = take_census(root, {preset: parser_names(AUTO, preset)}, compile_rules([]))
    checked = {one.path: one.gives for one in found.inputs}
    checked |= dict.fromkeys((row.path for row in found.skipped), None)
    assert checked == {
        row["path"]: None if row["status"] == "skipped" else row["status"] in ("ok", "salvaged")
        for row in rows
    }
    for one in found.inputs:
        (row,) = [row for row in rows if row["path"] == one.path]
        assert (one.state == "whole") == (row["status"] == "ok"), one.ailments
        if row["status"] == "failed":
            whose = (one.who.role, one.who.rank_id, one.who.step)
            assert whose == (row["role"], row["rank_id"], row["step"])
    return {row["path"]: row for row in rows}


def said(rows: dict[str, Row]) -> dict[str, tuple[str, str | None]]:
    return {path: (row["status"], row["detail"]) for path, row in rows.items()}


def claimed(root: Path, parser: str) -> dict[str, str | None]:
    return {one.path: one.skip for one in PARSERS.get(parser).discover(scan(root))}


# -- Ascend --------------------------------------------------------------------------------------

OUTPUT = "ASCEND_PROFILER_OUTPUT"
TRACE = [*ANALYSIS, overlap("Computing", 100, 30), mstx("update_actor", 0, 1_000)]


@SIZES
@pytest.mark.parametrize("packing", [".tar.gz", ".zip", ".tar", ".tgz", ".tar.zst", ".7z"])
def test_a_packed_ascend_capture_is_lost(tmp_path: Path, packing: str, size: int) -> None:
    root = tmp_path / "run"
    folder = "node-3_4711_20260812094501123_ascend_pt"
    write(root, f"actor_update/{folder}{packing}", size)
    (row,) = seen(root, tmp_path / "out").values()
    assert (row["parser"], row["status"]) == ("mstx", "failed")
    assert row["detail"] == f"packed as {packing}, {UNPACK}"
    assert row["role"] == "actor_update"


def test_the_name_of_a_packed_engine_capture_tells_its_rank(tmp_path: Path) -> None:
    write(tmp_path / "run", "step_3/rollout/dp0_pp0_tp1_dcp0_ep1_rank5_7_1_ascend_pt.zip")
    (row,) = seen(tmp_path / "run", tmp_path / "out").values()
    assert (row["status"], row["rank_id"], row["step"]) == ("failed", 5, 3)


@SIZES
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_packed_ascend_database_outside_a_capture_is_lost(
    tmp_path: Path, packing: str, size: int
) -> None:
    path = f"actor_update/ascend_pytorch_profiler_6.db{packing}"
    write(tmp_path / "run", path, size)
    (row,) = seen(tmp_path / "run", tmp_path / "out").values()
    assert (row["parser"], row["status"]) == ("mstx", "failed")
    assert row["detail"] == f"packed as {packing}, {UNPACK}"
    assert (row["role"], row["rank_id"]) == ("actor_update", 6)


@SIZES
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize(
    ("result", "instead"),
    [
        ("trace_view.json.zst", ", or pack it with gzip"),
        ("trace_view.json.gz.zip", ", or pack it with gzip"),
        ("ascend_pytorch_profiler_0.db.gz", ""),
        ("ascend_pytorch_profiler.db.xz", ""),
    ],
)
def test_a_capture_whose_result_is_packed_says_so_and_not_that_it_was_never_analysed(
    tmp_path: Path, result: str, instead: str, raw: bool, size: int
) -> None:
    root = tmp_path / "run"
    capture = root / "actor_update/a_ascend_pt"
    write(capture, f"{OUTPUT}/{result}", size)
    write(capture, f"{OUTPUT}/kernel_details.csv")
    (capture / "profiler_info_2.json").write_text(json.dumps(info(2)))
    if raw:
        write(capture, "FRAMEWORK/torch.op_range")
    (row,) = seen(root, tmp_path / "out").values()
    packing = result[result.index(".zip") if ".zip" in result else result.rindex(".") :]
    assert (row["status"], row["detail"]) == (
        "failed",
        f"its result, {result}, is packed as {packing}, {UNPACK}{instead}",
    )
    assert (row["role"], row["rank_id"]) == ("actor_update", 2)
    # To analyse it anew would throw away what is packed.
    (look,) = ASCEND.look(scan(root))
    assert (look.state, look.why) == ("packed", row["detail"])


@pytest.mark.parametrize("folder", [f"a_ascend_pt/{OUTPUT}", "copied"])
def test_an_empty_trace_does_not_hide_the_packed_one(tmp_path: Path, folder: str) -> None:
    write(tmp_path, f"{folder}/trace_view.json", 0)
    write(tmp_path, f"{folder}/trace_view.json.zst")
    write(tmp_path, f"{folder.partition('/')[0]}.tar.gz")
    assert set(claimed(tmp_path, "mstx").values()) == {None}


@pytest.mark.parametrize("folder", [f"a_ascend_pt/{OUTPUT}", "copied"])
def test_of_two_packings_of_a_database_none_is_called_the_other_unpacked(
    tmp_path: Path, folder: str
) -> None:
    for packing in (".gz", ".zip"):
        write(tmp_path, f"{folder}/ascend_pytorch_profiler_3.db{packing}")
    assert set(claimed(tmp_path, "mstx").values()) == {None}


def test_the_folder_of_results_may_be_packed(tmp_path: Path) -> None:
    write(tmp_path / "run", f"a_ascend_pt/{OUTPUT}.zip")
    write(tmp_path / "run", "a_ascend_pt/PROF_000001_20260312_AB/host/start_info")
    assert said(seen(tmp_path / "run", tmp_path / "out")) == {
        "a_ascend_pt": ("failed", f"its result, {OUTPUT}.zip, is packed as .zip, {UNPACK}")
    }


def test_what_is_packed_beside_a_result_that_is_read_costs_nothing(tmp_path: Path) -> None:
    root = tmp_path / "run"
    write_text(root / "e2e/a_ascend_pt", TRACE, told=info(0))
    write(root, f"e2e/a_ascend_pt/{OUTPUT}/trace_view.json.zst")
    write(root, f"e2e/a_ascend_pt/{OUTPUT}/ascend_pytorch_profiler_0.db.gz")
    write(root, "e2e/a_ascend_pt.tar.gz")
    there = "the same capture is there as {}"
    assert said(seen(root, tmp_path / "out")) == {
        "e2e/a_ascend_pt": ("ok", None),
        "e2e/a_ascend_pt.tar.gz": ("skipped", there.format("a_ascend_pt")),
        **dict.fromkeys(
            (
                f"e2e/a_ascend_pt/{OUTPUT}/trace_view.json.zst",
                f"e2e/a_ascend_pt/{OUTPUT}/ascend_pytorch_profiler_0.db.gz",
            ),
            ("skipped", there.format("trace_view.json")),
        ),
    }


def test_of_two_ranks_in_one_folder_the_packed_one_is_lost(tmp_path: Path) -> None:
    for name in (".db", ".db.gz"):
        write(tmp_path, f"a_ascend_pt/{OUTPUT}/ascend_pytorch_profiler_0{name}")
    write(tmp_path, f"a_ascend_pt/{OUTPUT}/ascend_pytorch_profiler_1.db.gz")
    assert claimed(tmp_path, "mstx") == {
        "a_ascend_pt": None,
        f"a_ascend_pt/{OUTPUT}/ascend_pytorch_profiler_0.db.gz": (
            "the same capture is there as ascend_pytorch_profiler_0.db"
        ),
        f"a_ascend_pt/{OUTPUT}/ascend_pytorch_profiler_1.db.gz": None,
    }


def test_an_archive_in_the_folder_of_its_name_is_the_capture(tmp_path: Path) -> None:
    write(tmp_path, "a_ascend_pt/a_ascend_pt.zip")
    assert claimed(tmp_path, "mstx") == {"a_ascend_pt/a_ascend_pt.zip": None}


# -- nsys ----------------------------------------------------------------------------------------

NAME = "worker_process_111.1"
ROWS = [string(1, "a"), details(), text_range(1, 2, "update_actor")]


@SIZES
@pytest.mark.parametrize("stem", [NAME, "actor_node-1.local_worker_process_111.3", "report2"])
@pytest.mark.parametrize(
    ("suffix", "packing", "instead"),
    [
        (".sqlite", ".gz", ""),
        (".sqlite3", ".zst", ""),
        (".db", ".zip", ""),
        (".db3", ".gz", ""),
        (".jsonl", ".zst", ", or pack it with gzip"),
        (".ndjson", ".xz", ", or pack it with gzip"),
        (".jsonlines", ".tar.gz", ", or pack it with gzip"),
        ("_pqtdir", ".tar.gz", ""),
        ("_arwdir", ".zip", ""),
    ],
)
def test_a_packed_export_of_nsys_is_lost(
    tmp_path: Path, stem: str, suffix: str, packing: str, instead: str, size: int
) -> None:
    path = f"x/{stem}{suffix}{packing}"
    write(tmp_path / "run", path, size)
    assert said(seen(tmp_path / "run", tmp_path / "out")) == {
        path: ("failed", f"packed as {packing}, {UNPACK}{instead}")
    }


def test_an_archiver_may_have_replaced_the_suffix_of_rays_name(tmp_path: Path) -> None:
    write(tmp_path, f"{NAME}.zip")
    write(tmp_path, "worker_process_111.log.gz")
    write(tmp_path, "report1.zip")
    assert claimed(tmp_path, "nvtx") == {f"{NAME}.zip": None}


@pytest.mark.parametrize("name", [f"{NAME}.nsys-rep", "any.nsys-rep", "old.qdrep"])
@pytest.mark.parametrize("packing", [".gz", ".zst", ".zip"])
def test_a_packed_report_is_to_be_unpacked_and_exported(
    tmp_path: Path, name: str, packing: str
) -> None:
    root = tmp_path / "run"
    write(root, name + packing)
    why = (
        f"a report packed as {packing}, {UNPACK}, and run rl-insight preprocess on the input folder"
    )
    assert said(seen(root, tmp_path / "out")) == {name + packing: ("failed", why)}
    (one,) = take_census(root, {"timeline": ["nvtx"]}, compile_rules([])).inputs
    assert [ailment.text for _, ailment in one.ailments] == [why]
    (look,) = NSYS.look(scan(root))
    assert (look.path, look.state, look.why) == (name + packing, "packed", why)
    write(root, name)
    (look,) = NSYS.look(scan(root))
    assert (look.path, look.state) == (name, "raw")


@pytest.mark.parametrize("form", ["database", "lines", "folder"])
@pytest.mark.parametrize("suffix", [".sqlite.gz", ".jsonl.zst", "_pqtdir.tar.gz", ".nsys-rep.zst"])
def test_what_is_packed_beside_another_form_that_is_read_is_skipped(
    tmp_path: Path, form: str, suffix: str
) -> None:
    root = tmp_path / "run"
    root.mkdir()
    write(root, f"{NAME}{suffix}")
    if form == "database":
        read = write_database(root / f"{NAME}.sqlite", ROWS).name
    elif form == "lines":
        read = write_lines(root / f"{NAME}.jsonl", ROWS).name
    else:
        read = write_folder(root / f"{NAME}_pqtdir", ROWS).name
    assert said(seen(root, tmp_path / "out")) == {
        read: ("ok", None),
        f"{NAME}{suffix}": ("skipped", f"the same capture was exported as {read}, which is read"),
    }


def test_beside_a_form_that_cannot_be_read_the_packed_one_is_lost(tmp_path: Path) -> None:
    root = tmp_path / "run"
    write(root, f"{NAME}.sqlite.gz")
    write(root, f"{NAME}.nsys-rep")
    assert said(seen(root, tmp_path / "out")) == {
        f"{NAME}.sqlite.gz": ("failed", f"packed as .gz, {UNPACK}"),
        f"{NAME}.nsys-rep": (
            "skipped",
            f"the same capture is there as {NAME}.sqlite.gz, of which another row says what to do",
        ),
    }
    write(root, f"{NAME}.sqlite", 0)
    found = said(seen(root, tmp_path / "again"))
    assert found[f"{NAME}.sqlite"] == ("empty", "the file is empty")
    assert found[f"{NAME}.sqlite.gz"] == ("failed", f"packed as .gz, {UNPACK}")


def test_a_packed_report_beside_a_broken_export_is_lost_too(tmp_path: Path) -> None:
    root = tmp_path / "run"
    write(root, f"{NAME}.nsys-rep.gz")
    write(root, f"{NAME}.sqlite", 0)
    found = said(seen(root, tmp_path / "out"))
    assert [found[f"{NAME}{suffix}"][0] for suffix in (".sqlite", ".nsys-rep.gz")] == [
        "empty",
        "failed",
    ]


def test_of_two_packings_of_a_report_one_is_told_and_none_is_called_read(tmp_path: Path) -> None:
    for packing in (".gz", ".zip"):
        write(tmp_path, f"{NAME}.nsys-rep{packing}")
    assert claimed(tmp_path, "nvtx") == {
        f"{NAME}.nsys-rep.gz": None,
        f"{NAME}.nsys-rep.zip": (
            f"the same capture is there as {NAME}.nsys-rep.gz, of which another row says what to do"
        ),
    }


def test_a_folder_of_packed_and_unfinished_tables_hides_no_export(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    write_lines(root / f"{NAME}.jsonl", ROWS)
    write(root, f"{NAME}_pqtdir/NVTX_EVENTS.parquet.gz")
    write(root, f"{NAME}_pqtdir/NVTX_EVENTS.parquet.tmp")
    assert claimed(root, "nvtx") == {
        f"{NAME}.jsonl": None,
        f"{NAME}_pqtdir": f"the same capture was exported as {NAME}.jsonl, which is read",
    }


@SIZES
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_packed_tables_of_a_folder_are_told(tmp_path: Path, form: str, size: int) -> None:
    root = tmp_path / "run"
    folder = write_folder(root / f"{NAME}_pqtdir", ROWS, form)
    # GIVEN one table that is packed beside itself THEN nothing is lost
    write(folder, f"NVTX_EVENTS.{form}.zst", size)
    assert said(seen(root, tmp_path / "whole")) == {folder.name: ("ok", None)}
    # WHEN one is packed that is needed THEN that is said of the others
    write(folder, f"StringIds.{form}.zst", size)
    (folder / f"StringIds.{form}").unlink()
    rows = seen(root, tmp_path / "part")
    why = f"StringIds.{form}.zst is packed as .zst, {UNPACK}"
    assert rows[folder.name]["status"] == "salvaged"
    assert f"damaged: {why}; " in str(rows[folder.name]["detail"])
    counted = {
        one["code"]: (one["count"], one["severity"]) for one in rows[folder.name]["problems"]
    }
    assert counted["packed_otherwise"] == (1, "warning")
    # WHEN all are packed THEN the capture is lost
    for table in folder.glob(f"*.{form}"):
        table.rename(f"{table}.zst")
    why = f"ANALYSIS_DETAILS.{form}.zst is packed as .zst, {UNPACK}"
    assert said(seen(root, tmp_path / "none")) == {
        folder.name: ("failed", f"its tables are packed: {why}")
    }


# -- msprobe -------------------------------------------------------------------------------------

RANK = "step_1/actor_update/step0/rank0"
DATA = f"{RANK}/dump_tensor_data"
CALLS = [[1, 2, 3], [10, 25, 30], [4, 5, 6]]


def dump(root: Path, rank: int = 0) -> Path:
    return write_dump(root, rank=rank, calls=CALLS, group_list_type=1)


@SIZES
@pytest.mark.parametrize("packing", [".gz", ".zst", ".zip"])
@pytest.mark.parametrize("kind", ["pt", "npy"])
def test_a_packed_group_list_costs_only_itself(
    tmp_path: Path, packing: str, kind: str, size: int
) -> None:
    root = tmp_path / "run"
    (dump(root) / list_name(1)).unlink()
    packed = f"{list_name(1, suffix=kind)}{packing}"
    write(root, f"{DATA}/{packed}", size)
    rows = seen(root, tmp_path / "out", "heatmap")
    assert said(rows) == {
        DATA: (
            "salvaged",
            f"1 group list left out, the first {packed}: packed as {packing}, {UNPACK}; "
            "the other 2 are kept; 1 group list named in dump.json has no file",
        )
    }
    counted = {one["code"]: (one["count"], one["severity"]) for one in rows[DATA]["problems"]}
    assert counted == {"packed_otherwise": (1, "warning"), "group_list_missing": (1, "warning")}


@SIZES
def test_a_group_list_that_is_there_unpacked_too_is_read_once(tmp_path: Path, size: int) -> None:
    root = tmp_path / "run"
    dump(root)
    write(root, f"{DATA}/{list_name(1)}.zst", size)
    rows = seen(root, tmp_path / "out", "heatmap")
    assert said(rows) == {DATA: ("ok", None)}
    assert [(one["code"], one["severity"]) for one in rows[DATA]["problems"]] == [
        ("packed_otherwise", "info")
    ]


def test_only_what_is_lost_is_counted_as_lost(tmp_path: Path) -> None:
    root = tmp_path / "run"
    (dump(root) / list_name(2)).unlink()
    for number in range(3):
        write(root, f"{DATA}/{list_name(number)}.zst")
    (row,) = seen(root, tmp_path / "out", "heatmap").values()
    counted = {one["code"]: (one["count"], one["severity"]) for one in row["problems"]}
    assert counted["packed_otherwise"] == (1, "warning")
    assert str(row["detail"]).startswith(f"1 group list left out, the first {list_name(2)}.zst: ")


@SIZES
def test_where_all_group_lists_are_packed_the_rank_is_lost(tmp_path: Path, size: int) -> None:
    root = tmp_path / "run"
    for number in range(3):
        write(root, f"{DATA}/{list_name(number)}.gz", size)
    rows = seen(root, tmp_path / "out", "heatmap")
    assert said(rows) == {
        DATA: (
            "failed",
            f"nothing of it can be read: {list_name(0)}.gz: packed as .gz, {UNPACK}, "
            "the first of 3 such",
        )
    }
    row = rows[DATA]
    assert (row["role"], row["rank_id"], row["step"]) == ("actor_update", 0, 1)


@SIZES
@pytest.mark.parametrize("packing", [".tar.gz", ".zip", ".7z"])
@pytest.mark.parametrize("with_json", [False, True])
def test_a_packed_folder_of_tensors_is_lost_under_its_own_name(
    tmp_path: Path, packing: str, with_json: bool, size: int
) -> None:
    root = tmp_path / "run"
    if with_json:
        shutil.rmtree(dump(root))
    write(root, f"{DATA}{packing}", size)
    rows = seen(root, tmp_path / "out", "heatmap")
    (row,) = rows.values()
    assert (row["path"], row["status"]) == (DATA, "failed")
    assert row["detail"] == (
        f"nothing of it can be read: dump_tensor_data{packing}: packed as {packing}, {UNPACK}"
    )
    assert (row["role"], row["rank_id"], row["step"]) == ("actor_update", 0, 1)


@SIZES
@pytest.mark.parametrize("packing", [".tar.gz", ".zip", ".tar.zst"])
@pytest.mark.parametrize("beside", [False, True])
def test_a_packed_rank_of_a_dump_is_lost(
    tmp_path: Path, packing: str, beside: bool, size: int
) -> None:
    root = tmp_path / "run"
    if beside:
        dump(root, 1)
    path = f"{RANK}{packing}"
    write(root, path, size)
    row = seen(root, tmp_path / "out", "heatmap")[path]
    assert (row["status"], row["detail"]) == ("failed", f"packed as {packing}, {UNPACK}")
    assert (row["role"], row["rank_id"], row["step"]) == ("actor_update", 0, 1)


def test_what_of_a_dump_is_there_unpacked_too_is_skipped(tmp_path: Path) -> None:
    root = tmp_path / "run"
    dump(root)
    write(root, f"{DATA}.tar.gz")
    write(root, f"{RANK}.zip")
    there = "the same capture is there as {}"
    assert said(seen(root, tmp_path / "out", "heatmap")) == {
        DATA: ("ok", None),
        f"{DATA}.tar.gz": ("skipped", there.format("dump_tensor_data")),
        f"{RANK}.zip": ("skipped", there.format("rank0")),
    }


@pytest.mark.parametrize("place", ["step_1/ref/step0", "step_1/ref", "mine/step0"])
def test_packed_ranks_are_known_below_a_step_also_where_that_is_the_input(
    tmp_path: Path, place: str
) -> None:
    write(tmp_path, f"{place}/rank3.zip")
    assert claimed(tmp_path, "gmm") == {f"{place}/rank3.zip": None}
    assert claimed(tmp_path / place, "gmm") == {"rank3.zip": None}
    assert claimed(tmp_path / place / "rank3.zip", "gmm") == {"rank3.zip": None}


def test_a_packed_rank_beside_a_dump_without_steps_is_lost(tmp_path: Path) -> None:
    write(tmp_path, f"mine/rank0/dump_tensor_data/{list_name(0)}")
    write(tmp_path, "mine/rank1.zip")
    write(tmp_path, "other/rank1.zip")
    assert claimed(tmp_path, "gmm") == {
        "mine/rank0/dump_tensor_data": None,
        "mine/rank1.zip": None,
    }


@pytest.mark.parametrize(
    "neighbour",
    [
        "actor_update/prof_rank-0_031847.json.gz",
        "actor_update/prof_rank-0_031847.json.zst",
        "actor_update/worker_process_1.1.nsys-rep",
        f"actor_update/a_ascend_pt/{OUTPUT}/trace_view.json",
    ],
)
def test_an_archive_beside_what_others_recorded_is_no_rank_of_a_dump(
    tmp_path: Path, neighbour: str
) -> None:
    write(tmp_path, f"step_1/{neighbour}")
    for path in ("rank0.zip", "step_1/actor_update/rank0.zip", "step_1/rank0.tar.gz"):
        write(tmp_path, path)
    assert claimed(tmp_path, "gmm") == {}


@pytest.mark.parametrize(
    "neighbour", ["model.safetensors", "optimizer.pt", "rank0.log", "../../train.log"]
)
def test_an_archive_is_a_rank_of_a_dump_only_where_there_is_a_dump_or_nothing_else(
    tmp_path: Path, neighbour: str
) -> None:
    archive = "ckpt/step_1/rank0.zip"
    write(tmp_path, archive)
    assert claimed(tmp_path, "gmm") == {archive: None}
    write(tmp_path, f"ckpt/step_1/{neighbour}")
    assert claimed(tmp_path, "gmm") == {}


@pytest.mark.parametrize("name", ["code.zip", "rank.zip", "rank0.log.gz", "group_lists.pt.gz"])
def test_other_archives_below_a_step_are_nobodys(tmp_path: Path, name: str) -> None:
    write(tmp_path, f"step_1/ref/{name}")
    assert claimed(tmp_path, "gmm") == {}


# -- SGLang --------------------------------------------------------------------------------------

RECORD = "expert_distribution_recorder_1773285904.123456_3"


@SIZES
@pytest.mark.parametrize("name", [f"{RECORD}.pt.gz", f"{RECORD}.pt.zst", f"{RECORD}.zip"])
def test_a_packed_record_of_sglang_is_lost(tmp_path: Path, name: str, size: int) -> None:
    root = tmp_path / "run"
    write(root, name, size)
    (row,) = seen(root, tmp_path / "out", "heatmap").values()
    packing = name[name.rindex(".") :]
    assert (row["parser"], row["status"]) == ("sglang", "failed")
    assert (row["detail"], row["rank_id"]) == (f"packed as {packing}, {UNPACK}", 3)


def test_a_record_of_sglang_that_is_there_unpacked_too_is_read_once(tmp_path: Path) -> None:
    for suffix in (".pt", ".pt.gz", ".zip"):
        write(tmp_path, f"a/{RECORD}{suffix}")
    why = f"the same capture is there as {RECORD}.pt"
    assert claimed(tmp_path, "sglang") == {
        f"a/{RECORD}.pt": None,
        f"a/{RECORD}.pt.gz": why,
        f"a/{RECORD}.zip": why,
    }


def test_an_empty_record_does_not_hide_the_packed_one(tmp_path: Path) -> None:
    write(tmp_path, f"a/{RECORD}.pt", 0)
    write(tmp_path, f"a/{RECORD}.pt.gz")
    assert claimed(tmp_path, "sglang") == {f"a/{RECORD}.pt": None, f"a/{RECORD}.pt.gz": None}


# -- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["timeline", "heatmap"])
def test_archives_of_no_profiler_are_no_input(tmp_path: Path, preset: str) -> None:
    for name in (
        "code.zip",
        "logs.tar.gz",
        "rank0.zip",
        "model.pt.gz",
        "metrics.db.gz",
        "x.npy.xz",
    ):
        write(tmp_path / "run", name)
    with pytest.raises(InputError):
        parse_all(tmp_path / "run", tmp_path / "out", parser_names(AUTO, preset))
