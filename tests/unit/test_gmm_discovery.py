"""Which folders of an input are dumps of group lists, and what belongs to each."""

import shutil
from pathlib import Path, PurePosixPath

import pytest

from rl_insight.data.identity import compile_rules
from rl_insight.data.tree import File, Tree, scan
from rl_insight.parsers import PARSERS, Found
from rl_insight.parsers.gmm_discovery import claims
from rl_insight.pipeline.discovery import Filters, discover
from tests.group_lists import name, write_dump, write_dump_json

NO_RULES = compile_rules([])


def found(*paths: str) -> list[Found]:
    """The sources in a listing of these files; nothing stands on disk, so nothing can be opened."""
    files = sorted((File(path, 1, 1) for path in paths), key=lambda file: file.path)
    return list(claims(Tree(Path("/nowhere"), files)))


def test_the_folder_of_a_ranks_tensors_is_one_source_with_what_stands_beside_it() -> None:
    rank = "step_1/actor_update/step0/rank3"
    data = f"{rank}/dump_tensor_data"
    files = [f"{data}/{name(0)}", f"{data}/{name(1)}", f"{rank}/dump.json", f"{rank}/stack.json"]
    others = [
        f"{data}/NPU.npu_grouped_matmul.0.forward.input.0.0.pt",
        f"{data}/NPU.npu_grouped_matmul.0.forward.kwargs.group_list_type.pt",
        f"{rank}/construct.json",
        f"{rank}/debug.json",
        "notes.json",
    ]
    (source,) = found(*files, *others)
    assert source.path == data
    assert source.files == tuple(files)
    assert source.pack == "step_1"
    assert source.skip is None


@pytest.mark.parametrize(
    ("folder", "path", "pack"),
    [
        ("step_1/ref/rank0/dump_tensor_data", None, "step_1"),
        ("step_1/ref/step0/rank/dump_tensor_data", None, "step_1"),
        ("step_unknown/ref/step0/rank7/dump_tensor_data", None, "step_unknown"),
        ("ref/rank3/dump_tensor_data", None, "ref"),
        ("step5/proc4711/dump_tensor_data", None, "step5"),
        ("step5/rank1/dump_tensor_data", None, "step5"),
        ("rank1/dump_tensor_data", None, ""),
        ("dump_tensor_data", None, ""),
        ("", ".", ""),
        ("somewhere/else", None, "somewhere/else"),
        ("step_1/ref/rank0", None, "step_1"),
        ("a/step_1\\ref\\rank0\\dump_tensor_data", "a/step_1/ref/rank0/dump_tensor_data", None),
    ],
)
def test_group_lists_are_found_wherever_they_lie(
    folder: str, path: str | None, pack: str | None
) -> None:
    # [75]
    (source,) = found(f"{folder}/{name(0)}" if folder else name(0))
    assert source.path == (folder if path is None else path)
    assert source.pack == ("a/step_1" if pack is None else pack)


def test_a_copy_from_windows_may_have_its_paths_in_the_names_of_files() -> None:
    folder = "step_1\\actor_update\\step0\\rank0\\dump_tensor_data"
    beside = "step_1\\actor_update\\step0\\rank0\\dump.json"
    files = (f"{folder}\\{name(0)}", f"{folder}\\{name(1)}", beside)
    (source,) = found(*files)
    assert source.path == "step_1/actor_update/step0/rank0/dump_tensor_data"
    assert source.files == files


def test_what_a_killed_writer_left_belongs_to_the_source() -> None:
    (source,) = found(f"rank0/dump_tensor_data/{name(0)}.tmp")
    assert source.files == (f"rank0/dump_tensor_data/{name(0)}.tmp",)


def test_numpy_files_count_as_well() -> None:
    (source,) = found(f"rank0/dump_tensor_data/{name(0, 'Mint.grouped_matmul', 'npy')}")
    assert len(source.files) == 1


@pytest.mark.parametrize("beside", ["rank0/stack.json", "rank0/construct.json", None])
def test_a_dump_without_group_lists_is_a_source_of_the_same_name(beside: str | None) -> None:
    folder = "step_1/ref/rank0" if beside is None else "step_1/ref/mine"
    files = [f"{folder}/dump.json"]
    if beside is not None:
        files.append(beside.replace("rank0", folder))
    (source,) = found(*files, f"{folder}/dump_tensor_data/Tensor.add.0.forward.output.0.pt")
    assert source.path == f"{folder}/dump_tensor_data"
    assert source.files[0] == f"{folder}/dump.json"


def test_a_dump_json_of_somebody_else_is_passed_over() -> None:
    assert found("backup/dump.json", "backup/other.json") == []


def test_profiler_metadata_beside_or_above_tells_about_the_ranks_below() -> None:
    sources = found(
        "step_1/profiler_metadata.json",
        f"step_1/ref/rank0/dump_tensor_data/{name(0)}",
        f"step_1/ref/rank1/dump_tensor_data/{name(0)}",
        "step_1/ref/rank1/profiler_metadata.json",
        f"step_2/ref/rank1/dump_tensor_data/{name(0)}",
    )
    told = [[path for path in one.files if path.endswith("metadata.json")] for one in sources]
    assert told == [
        ["step_1/profiler_metadata.json"],
        ["step_1/ref/rank1/profiler_metadata.json"],
        [],
    ]


def test_ranks_that_share_a_file_are_all_found(tmp_path: Path) -> None:
    for rank in range(3):
        write_dump(tmp_path, rank=rank, calls=[[1, 2]])
    (tmp_path / "profiler_metadata.json").write_text("{}")
    result = discover(scan(tmp_path), ["gmm"], NO_RULES, Filters())
    assert len(result.found["gmm"]) == 3


def test_filters_leave_out_dumps_before_anything_is_read(tmp_path: Path) -> None:
    for step in (1, 2):
        for role in ("actor_update", "ref_compute_log_prob"):
            for rank in (0, 1):
                write_dump(tmp_path, step, role, rank, [[1, 2]])
    filters = Filters(frozenset({1}), frozenset({2}), frozenset({"actor_update"}))
    result = discover(scan(tmp_path), ["gmm"], NO_RULES, filters)
    (only,) = result.found["gmm"]
    assert only.path == "step_2/actor_update/step0/rank1/dump_tensor_data"
    assert len(result.filtered["gmm"]) == 7


def test_a_dump_of_statistics_alone_gives_one_row_although_its_folder_is_empty(
    tmp_path: Path,
) -> None:
    data = write_dump(tmp_path, calls=[[1, 2]], group_list_type=1)
    shutil.rmtree(data)
    data.mkdir()
    write_dump_json(data.parent, {}, task="statistics")
    result = discover(scan(tmp_path), ["gmm"], NO_RULES, Filters())
    (source,) = result.found["gmm"]
    assert source.path == str(PurePosixPath(data.relative_to(tmp_path)))
    assert result.skipped == []


def test_it_is_registered_for_the_heatmap() -> None:
    assert PARSERS.get("gmm").preset == "heatmap"
