"""Captures are found by what is in their folders, whatever these are called."""

from pathlib import Path

import pytest

from rl_insight.data.ascend_captures import captures
from rl_insight.data.tree import Tree, scan
from rl_insight.parsers import Found
from rl_insight.parsers.mstx import PARSER

INFO = "profiler_info_0.json"
TRACE = "ASCEND_PROFILER_OUTPUT/trace_view.json"
DATABASE = "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db"


def tree(root: Path, *paths: str) -> Tree:
    """A listing of these files; a path that ends with a slash is an empty folder."""
    for path in paths:
        if path.endswith("/"):
            (root / path).mkdir(parents=True)
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("x")
    return scan(root)


def claims(root: Path, *paths: str) -> dict[str, tuple[str, ...]]:
    return {found.path: found.files for found in PARSER.discover(tree(root, *paths))}


@pytest.mark.parametrize("folder", ["a_ascend_pt", "renamed", "x/y/z/a_ascend_pt", "actor update"])
def test_a_capture_is_its_folder_and_the_files_that_are_read(tmp_path: Path, folder: str) -> None:
    paths = [f"{folder}/{name}" for name in (TRACE, INFO, "profiler_metadata.json")]
    others = [f"{folder}/ASCEND_PROFILER_OUTPUT/kernel_details.csv", f"{folder}/logs/x.log"]

    assert claims(tmp_path, *paths, *others) == {folder: tuple(paths)}


def test_of_both_forms_the_database_comes_first(tmp_path: Path) -> None:
    assert claims(tmp_path, f"a/{TRACE}", f"a/{DATABASE}", f"a/{INFO}") == {
        "a": (f"a/{DATABASE}", f"a/{TRACE}", f"a/{INFO}")
    }


def test_other_databases_are_none_of_a_capture(tmp_path: Path) -> None:
    found = claims(
        tmp_path,
        f"a/{DATABASE}",
        "a/ASCEND_PROFILER_OUTPUT/analysis.db",
        "a/PROF_000001_20260312_AB/msprof_20260312.db",
        "cluster_analysis.db",
    )
    assert found == {"a": (f"a/{DATABASE}",)}


def test_a_result_beside_its_folder_belongs_to_the_capture(tmp_path: Path) -> None:
    paths = ("a_ascend_pt/trace_view.json", f"a_ascend_pt/{INFO}")
    assert claims(tmp_path, *paths) == {"a_ascend_pt": paths}


def test_a_capture_without_a_result_is_claimed_with_a_few_of_its_files(tmp_path: Path) -> None:
    raw = [f"a/PROF_000001_20260312_AB/host/{number}.slice" for number in range(9)]
    found = claims(tmp_path, *raw, "b/FRAMEWORK/torch.op_range", f"b/{INFO}")
    assert found == {"a": tuple(raw[:3]), "b": (f"b/{INFO}",)}


def test_a_capture_of_empty_folders_is_claimed_without_files(tmp_path: Path) -> None:
    found = claims(tmp_path, "a/ASCEND_PROFILER_OUTPUT/", "b_ascend_pt/", "c/FRAMEWORK/", "d/")
    assert found == {"a": (), "b_ascend_pt": (), "c": ()}


def test_an_unfinished_analysis_is_no_result(tmp_path: Path) -> None:
    left = "a_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view_temp.json"
    ((capture,), strays) = captures(tree(tmp_path, left))
    assert (capture.traces, capture.output, capture.raw, strays) == ([], True, False, [])


def test_the_input_itself_may_be_the_capture(tmp_path: Path) -> None:
    root = tmp_path / "rank0_ascend_pt"
    metadata = "profiler_metadata.json"
    other = "notes/profiler_metadata.json"
    assert claims(root, TRACE, INFO, metadata, other) == {TRACE: (TRACE, INFO, metadata)}


def test_one_file_may_be_the_input(tmp_path: Path) -> None:
    tree(tmp_path, DATABASE, TRACE)
    for path in (DATABASE, TRACE):
        name = path.rpartition("/")[2]
        assert list(PARSER.discover(scan(tmp_path / path))) == [Found(name, (name,))]


@pytest.mark.parametrize(
    "name",
    ["trace_view.json", "trace_view.json.gz", "rank3_trace_view.json", "trace_view_0.json"],
)
def test_a_trace_outside_of_any_capture_is_claimed(tmp_path: Path, name: str) -> None:
    path = f"actor_update/{name}"
    assert claims(tmp_path, path) == {path: (path,)}


def test_databases_outside_of_any_capture_are_claimed_one_by_one(tmp_path: Path) -> None:
    paths = [f"all/ascend_pytorch_profiler_{rank}.db" for rank in (0, 1)]
    assert claims(tmp_path, *paths) == {path: (path,) for path in paths}


def test_a_second_database_of_a_capture_is_an_input_of_its_own(tmp_path: Path) -> None:
    second = "a/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_1.db"
    assert claims(tmp_path, f"a/{DATABASE}", second) == {
        "a": (f"a/{DATABASE}",),
        second: (second,),
    }


def test_a_trace_and_its_gzip_are_one(tmp_path: Path) -> None:
    assert claims(tmp_path, f"a/{TRACE}", f"a/{TRACE}.gz") == {"a": (f"a/{TRACE}",)}


def test_a_folder_of_captures_that_is_called_like_one_is_none(tmp_path: Path) -> None:
    folders = [f"all_ascend_pt/r{rank}_ascend_pt" for rank in (0, 1)]
    paths = [f"{folder}/{TRACE}" for folder in folders]
    assert list(claims(tmp_path, *paths, "all_ascend_pt/README")) == folders


def test_other_files_are_not_claimed(tmp_path: Path) -> None:
    assert claims(tmp_path, "x.json", "y/trace.json", "z/profiler.db", "PROF_notes/x.txt") == {}


def test_where_the_result_may_be_hidden_nothing_is_said_about_the_capture(tmp_path: Path) -> None:
    listing = tree(tmp_path, f"a_ascend_pt/{INFO}")
    listing.unreadable.append(("a_ascend_pt/ASCEND_PROFILER_OUTPUT", "Permission denied"))
    assert list(PARSER.discover(listing)) == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"rank_id": 3}', {"rank_id": 3}),
        ('{"rank_id": "3"}', {"rank_id": 3}),
        ('{"rank_id": "abc"}', {}),
        ("{}", {}),
        ("no JSON", {}),
    ],
)
def test_the_rank_is_known_without_reading_the_capture(
    tmp_path: Path, content: str, told: dict[str, object]
) -> None:
    tree(tmp_path, f"a/{DATABASE}", f"a/{INFO}")
    (tmp_path / "a" / INFO).write_text(content)
    (found,) = PARSER.discover(scan(tmp_path))
    assert found.peek is not None
    assert found.peek() == told
