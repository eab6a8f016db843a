"""Dumps of group lists from files to rows: what is kept, what is left out, and what is said."""

import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_insight.parsers import PARSERS, Source
from rl_insight.parsers.gmm_names import Call, call, call_of
from rl_insight.schema import EXPERT_LOAD
from tests.gmm_dumps import read_all, read_one
from tests.group_lists import API, entry, name, save, tensor, write_dump, write_dump_json


def test_each_call_is_a_row_with_its_own_numbers(tmp_path: Path) -> None:
    write_dump(tmp_path, calls=[[120, 48, 96], [45, 72, 18]])
    dump = read_one(tmp_path)
    assert dump.path == "step_1/actor_update/step0/rank0/dump_tensor_data"
    assert dump.said == ("ok", None)
    assert dump.loads == [[120, 48, 96], [45, 72, 18]]
    assert dump.column("op_index") == [0, 1]
    assert dump.column("api") == ["NPU.npu_grouped_matmul"] * 2
    assert dump.column("source_id") == ["source"] * 2
    assert dump.parsed.events == 2
    # Whose it is stands in the path, and what the structure step decides is open.
    for column in ("step", "role", "rank_id", "phase", "layer", "micro_batch", "pass_index"):
        assert dump.column(column) == [None, None], column
    for column in ("load_kind", "load_kind_from", "ep_rank", "ep_size", "expert_offset"):
        assert dump.column(column) == [None, None], column


def test_calls_come_in_the_order_of_their_numbers_not_of_their_names(tmp_path: Path) -> None:
    write_dump(tmp_path, calls=[[number, 1] for number in range(12)])
    dump = read_one(tmp_path)
    assert dump.column("op_index") == list(range(12))
    assert [load[0] for load in dump.loads] == list(range(12))


def test_a_large_dump_comes_in_tables_of_a_bounded_size(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[np.full(200_000, number) for number in range(7)])
    files = tuple(str(path.relative_to(tmp_path)) for path in sorted(data.iterdir()))
    parsed = PARSERS.get("gmm").parse(Source("s", "x", tmp_path, files), {})
    sizes = []
    for table in parsed.parts["expert_load"]:
        assert table.schema.equals(EXPERT_LOAD)
        sizes.append(table.num_rows)
        assert parsed.detail is None
    # 2 vectors are the first to pass a quarter of a million numbers.
    assert sizes == [2, 2, 2, 1]
    assert parsed.events == 7


def test_apis_are_numbered_apart(tmp_path: Path) -> None:
    write_dump(tmp_path, calls=[[1, 2], [3, 4]])
    write_dump(tmp_path, calls=[[5, 11]], api="MindSpeed.npu_gmm")
    write_dump(tmp_path, calls=[[6, 5]], api="MindSpeed.npu_gmm_v2")
    dump = read_one(tmp_path)
    told = sorted(zip(dump.column("api"), dump.column("op_index"), dump.loads, strict=True))
    assert told == [
        ("MindSpeed.npu_gmm", 0, [5, 11]),
        ("MindSpeed.npu_gmm_v2", 0, [6, 5]),
        ("NPU.npu_grouped_matmul", 0, [1, 2]),
        ("NPU.npu_grouped_matmul", 1, [3, 4]),
    ]
    kinds = {row["api"]: (row["load_kind"], row["load_kind_from"]) for row in dump.rows}
    assert kinds == {
        "MindSpeed.npu_gmm": ("cumsum", "format"),
        "MindSpeed.npu_gmm_v2": ("counts", "format"),
        "NPU.npu_grouped_matmul": (None, None),
    }


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("NPU.npu_grouped_matmul.17.forward.kwargs.group_list.pt", Call(API, 17)),
        (
            "NPU.npu_grouped_matmul.17.backward.kwargs.group_list.pt",
            Call(API, 17, backward=True),
        ),
        ("Mint.gmm.0.forward.input.3.npy", Call("Mint.gmm", 0)),
        (
            "Module.model.layers.3.experts.Gmm.forward.2.kwargs.group_list.pt",
            Call("Module.model.layers.3.experts.Gmm", 2),
        ),
        ("A.b.kwargs.c.1.forward.kwargs.group_list.pt", Call("A.b.kwargs.c", 1)),
        ("group_list.pt", None),
        ("NPU.npu_grouped_matmul.forward.kwargs.group_list.pt", None),
        (f"NPU.x.{'9' * 30}.forward.kwargs.group_list.pt", None),
        (".0.forward.kwargs.group_list.pt", None),
    ],
)
def test_the_name_of_a_file_tells_the_call(file: str, expected: Call | None) -> None:
    assert call_of(file) == expected


def test_keys_of_the_json_files_tell_the_call() -> None:
    assert call("NPU.npu_grouped_matmul.3.forward") == Call(API, 3)
    assert call("task") is None


def test_files_whose_names_tell_no_call_are_numbered_by_their_names(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[9, 9]])
    save(data / "b_group_list.pt", [3, 4])
    save(data / "a_group_list.pt", [1, 2])
    dump = read_one(tmp_path)
    assert dump.loads == [[9, 9], [1, 2], [3, 4]]
    assert dump.column("op_index") == [0, 0, 1]
    assert dump.column("api") == [API, None, None]
    assert dump.problems() == {"unnumbered_call": 2}
    assert dump.example("unnumbered_call") == "a_group_list.pt"


def test_a_call_that_was_saved_twice_counts_once(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2], [3, 4]])
    np.save(data / name(1, suffix="npy"), np.array([3, 4]))
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2], [3, 4]]
    assert dump.problems() == {"duplicate_call": 1}
    assert dump.said == ("ok", None)


def test_of_a_call_that_was_saved_twice_the_readable_one_counts(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2]])
    (data / name(0, suffix="npy")).write_bytes(b"broken")
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2]]
    assert dump.parsed.status == "salvaged"


def test_a_copy_from_windows_is_read(tmp_path: Path) -> None:
    made = write_dump(tmp_path / "made", calls=[[4, 5]], group_list_type=1)
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in (*made.iterdir(), made.parent / "dump.json"):
        flat = "\\".join(path.relative_to(tmp_path / "made").parts)
        (copy / flat).write_bytes(path.read_bytes())
    dump = read_one(copy)
    assert dump.path == "step_1/actor_update/step0/rank0/dump_tensor_data"
    assert dump.loads == [[4, 5]]
    assert dump.column("load_kind") == ["counts"]


# --- dump.json ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kind"), [(0, "cumsum"), ("default", "cumsum"), (1, "counts"), (2, None)]
)
def test_dump_json_tells_what_the_numbers_are(
    tmp_path: Path, given: int | str, kind: str | None
) -> None:
    write_dump(tmp_path, calls=[[10, 25, 30]], group_list_type=given)
    dump = read_one(tmp_path)
    assert dump.loads == [[10, 25, 30]], "the cache keeps the numbers of the file"
    assert dump.column("load_kind") == [kind]
    assert dump.column("load_kind_from") == [None if kind is None else "dump.json"]
    # 2 means pairs, which a plain list cannot be.
    assert ("kind_conflict" in dump.problems()) == (kind is None)


def test_a_kind_is_told_call_by_call(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2], [1, 2], [1, 2]])
    told = {0: 1, 1: "default"}
    vector = np.array([1, 2])
    entries = {f"{API}.{n}.forward": entry(vector, kind, n) for n, kind in told.items()}
    write_dump_json(data.parent, entries)
    dump = read_one(tmp_path)
    assert dump.column("load_kind") == ["counts", "cumsum", None]
    assert dump.problems() == {"not_in_dump": 1}


def test_another_api_without_the_argument_has_no_default(tmp_path: Path) -> None:
    write_dump(tmp_path, calls=[[1, 2]], api="VF.some_gmm", group_list_type="default")
    assert read_one(tmp_path).column("load_kind") == [None]


def test_an_unknown_group_list_type_is_told(tmp_path: Path) -> None:
    write_dump(tmp_path, calls=[[1, 2]], group_list_type=7)
    dump = read_one(tmp_path)
    assert dump.column("load_kind") == [None]
    assert "7" in str(dump.example("odd_group_list_type"))


def test_pairs_are_told_by_their_shape(tmp_path: Path) -> None:  # [71]
    write_dump(tmp_path, calls=[[[5, 100], [2, 7]]], group_list_type=2)
    dump = read_one(tmp_path)
    assert dump.loads == [[5, 100, 2, 7]]
    assert dump.column("load_kind") == ["pairs"]
    assert dump.column("load_kind_from") == ["format"]


def test_a_group_list_of_python_numbers_stands_in_dump_json_only(tmp_path: Path) -> None:  # [71]
    folder = tmp_path / "step_1/actor_update/rank0"
    entries: dict[str, Any] = {}
    for number, numbers in enumerate([[10, 25, 30], [5, 5, 9]]):
        one = entry(np.array(numbers), "default", number)
        one["input_kwargs"]["group_list"] = [  # type: ignore[index]
            {"type": "int", "value": value} for value in numbers
        ]
        entries[f"{API}.{number}.forward"] = one
    entries["Tensor.add.0.forward"] = {"input_args": [], "input_kwargs": {}, "output": []}
    write_dump_json(folder, entries)
    dump = read_one(tmp_path)
    assert dump.path == "step_1/actor_update/rank0/dump_tensor_data"
    assert dump.said == ("ok", None)
    assert dump.loads == [[10, 25, 30], [5, 5, 9]]
    assert dump.column("op_index") == [0, 1]
    assert dump.column("load_kind") == ["cumsum", "cumsum"]
    assert dump.column("load_kind_from") == ["dump.json", "dump.json"]


def test_a_dump_of_statistics_says_what_to_set(tmp_path: Path) -> None:
    folder = tmp_path / "step_1/actor_update/rank0"
    one = entry(np.array([1, 2]), 1)
    one["input_kwargs"]["group_list"] = tensor(np.array([1, 2]), None)  # type: ignore[index]
    write_dump_json(folder, {f"{API}.0.forward": one}, task="statistics")
    dump = read_one(tmp_path)
    assert dump.said == (
        "empty",
        'the dump has statistics only, not the group lists: set "task" to "tensor" in msprobe\'s '
        "configuration",
    )
    assert dump.rows == []


def test_a_dump_without_grouped_matmuls_says_so(tmp_path: Path) -> None:
    call = {"input_args": [], "input_kwargs": {}, "output": []}
    write_dump_json(tmp_path / "rank0", {f"Tensor.add.{n}.forward": call for n in range(3)})
    assert read_one(tmp_path).said == (
        "empty",
        "no grouped matmul with a group list is among the 3 calls in dump.json",
    )


def test_a_file_that_dump_json_names_and_that_is_gone_is_told(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2], [3, 4], [5, 6]], group_list_type=1)
    (data / name(1)).unlink()
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2], [5, 6]]
    assert dump.said == ("salvaged", "1 group list named in dump.json has no file")
    for number in (0, 2):
        (data / name(number)).unlink()
    assert read_one(tmp_path).said == (
        "failed",
        "3 group lists named in dump.json have no file",
    )


def test_json_of_python_with_nan_is_read(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2]], group_list_type=1)
    path = data.parent / "dump.json"
    text = (
        path.read_text()
        .replace('"Max": 0.0', '"Max": NaN')
        .replace('"Min": 0.0', '"Min": -Infinity')
    )
    assert "NaN" in text
    path.write_text(text)
    dump = read_one(tmp_path)
    assert dump.said == ("ok", None)
    assert dump.column("load_kind") == ["counts"]


@pytest.mark.parametrize("damage", ["cut", "empty", "binary", "list"])
def test_a_damaged_dump_json_costs_only_itself(tmp_path: Path, damage: str) -> None:
    data = write_dump(tmp_path, calls=[[1, 2], [3, 4]], group_list_type=1)
    path = data.parent / "dump.json"
    whole = path.read_bytes()
    cut = whole.index(b"npu_grouped_matmul.1.forward") + 200
    made = {"cut": whole[:cut], "empty": b"", "binary": b"\0\1\2" * 9, "list": b"[1]"}
    path.write_bytes(made[damage])
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2], [3, 4]]
    assert dump.column("load_kind") == ["counts" if damage == "cut" else None, None]
    assert dump.said == ("salvaged", "its damaged dump.json may not tell what they hold")
    assert "dump_damaged" in dump.problems()


def test_a_stale_dump_json_tells_nothing_about_other_calls(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2]])
    write_dump_json(data.parent, {"Tensor.add.0.forward": {"input_kwargs": {}}})
    dump = read_one(tmp_path)
    assert dump.column("load_kind") == [None]
    assert dump.parsed.status == "ok"


def test_call_numbers_beyond_reason_cost_no_memory(tmp_path: Path) -> None:
    data = write_dump(tmp_path)
    numbers = [5, 10**12, 2**63 - 1]
    for number in numbers:
        save(data / name(number), [number % 7, 1])
    entries = {f"{API}.{n}.forward": entry(np.array([1, 1]), 1, n) for n in numbers}
    write_dump_json(data.parent, entries)
    dump = read_one(tmp_path)
    assert dump.column("op_index") == numbers
    assert dump.column("load_kind") == ["counts"] * 3


# --- what a file may hold ----------------------------------------------------------------------


def test_what_torch_saves_is_read_whatever_its_type(tmp_path: Path) -> None:  # [74]
    torch = pytest.importorskip("torch")
    data = write_dump(tmp_path)
    made = [
        torch.tensor([10, 25, 30]),
        torch.tensor([1, 2, 3], dtype=torch.int32),
        torch.tensor([4.0, 5.0, 6.0], dtype=torch.float32),
        torch.tensor([100, 200, 256], dtype=torch.bfloat16),
        [7, 8, 9],
        (1, 1, 1),
        torch.tensor([[0, 3], [1, 4]]),
    ]
    for number, value in enumerate(made):
        torch.save(value, data / name(number))
    dump = read_one(tmp_path)
    assert dump.loads[:4] == [[10, 25, 30], [1, 2, 3], [4, 5, 6], [100, 200, 256]]
    assert dump.loads[4:] == [[7, 8, 9], [1, 1, 1], [0, 3, 1, 4]]
    assert dump.column("load_kind")[-1] == "pairs"
    assert "inexact_counts" not in dump.problems()


@pytest.mark.parametrize(("kind", "largest"), [("bfloat16", 256), ("float16", 2048)])
def test_numbers_that_a_short_float_cannot_hold_exactly_are_doubted(
    tmp_path: Path, kind: str, largest: int
) -> None:
    # [74]
    torch = pytest.importorskip("torch")
    data = write_dump(tmp_path)
    for number, most in enumerate((largest, largest + 8)):
        values = torch.tensor([1, most], dtype=getattr(torch, kind))
        torch.save(values, data / name(number))
    dump = read_one(tmp_path)
    assert len(dump.rows) == 2
    assert dump.problems() == {"inexact_counts": 1}
    assert name(1) in str(dump.example("inexact_counts"))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (np.array([3, -1, 5]), "-1 cannot be a number of tokens"),
        (np.array([1.0, 2.5]), "2.5 cannot be a number of tokens"),
        (np.array([1.0, np.nan]), "nan cannot be a number of tokens"),
        (np.array([1.0, np.inf]), "inf cannot be a number of tokens"),
        (np.array([1, 2**62]), f"{2**62} cannot be a number of tokens"),
        (np.array([[1, 2, 3]]), "its tensor of 1 x 3 is no group list"),
        (np.zeros((2, 2, 2), np.int64), "its tensor of 2 x 2 x 2 is no group list"),
        (np.array([True, False]), "it holds bool, no numbers"),
        (
            np.zeros((1 << 20) + 1, np.int64),
            "it has 1048577 experts, and 1048576 is the limit",
        ),
    ],
)
def test_what_can_be_no_load_is_left_out_and_named(
    tmp_path: Path, value: np.ndarray, why: str
) -> None:
    data = write_dump(tmp_path, calls=[[1, 2], [3, 4]])
    save(data / name(2), value)
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2], [3, 4]]
    assert dump.problems() == {"impossible_load": 1}
    assert dump.said == (
        "salvaged",
        f"1 group list left out, the first {name(2)}: {why}; the other 2 are kept",
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "it holds None: the call was given no group list"),
        ([], "its vector is empty"),
        (5, "it holds a single number, no vector"),
    ],
)
def test_a_call_without_a_group_list_is_counted_and_left_out(
    tmp_path: Path, value: object, why: str
) -> None:
    # [71]
    torch = pytest.importorskip("torch")
    data = write_dump(tmp_path, calls=[[1, 2]])
    torch.save(value, data / name(1))
    torch.save(torch.tensor(value) if value is not None else None, data / name(2))
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2]]
    assert dump.problems() == {"no_vector": 2}
    assert dump.said == ("ok", f"2 group lists without numbers left out: {name(1)}: {why}")
    (data / name(0)).unlink()
    assert read_one(tmp_path).said == (
        "empty",
        f"none of its group lists holds a vector: {name(1)}: {why}",
    )


@pytest.mark.parametrize("value", [{"a": 1}, "text", [1, "b"], [[1], [2, 3]], [None]])
def test_a_file_of_something_else_is_left_out(tmp_path: Path, value: object) -> None:
    torch = pytest.importorskip("torch")
    data = write_dump(tmp_path, calls=[[1, 2]])
    torch.save(value, data / name(1))
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2]]
    assert dump.problems() == {"impossible_load": 1}


def test_ranks_with_other_numbers_of_experts_are_both_kept(tmp_path: Path) -> None:  # [77]
    write_dump(tmp_path, rank=0, calls=[list(range(64))])
    write_dump(tmp_path, rank=1, calls=[list(range(32))])
    assert [len(dump.loads[0]) for dump in read_all(tmp_path)] == [64, 32]


def test_files_of_one_rank_with_other_numbers_of_experts_are_kept_and_told(
    tmp_path: Path,
) -> None:
    write_dump(tmp_path, calls=[[1, 2, 3], [4, 5, 6], [7, 8]])
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2, 3], [4, 5, 6], [7, 8]]
    assert dump.problems() == {"experts_differ": 1}
    assert dump.example("experts_differ") == f"2 and 3 experts, first in {name(2)}"


# --- damaged files -----------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["cut", "zero", "zeros", "text"])
def test_a_damaged_file_costs_only_itself(tmp_path: Path, damage: str) -> None:
    data = write_dump(tmp_path, calls=[[1, 2], [3, 4], [5, 6]])
    broken = data / name(1)
    whole = broken.read_bytes()
    made = {"cut": whole[: len(whole) // 2], "zero": b"", "zeros": bytes(99), "text": b"hello"}
    broken.write_bytes(made[damage])
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2], [5, 6]]
    assert dump.column("op_index") == [0, 2]
    status, detail = dump.said
    assert status == "salvaged"
    assert detail is not None
    assert detail.startswith(f"1 group list left out, the first {name(1)}: ")
    assert detail.endswith("; the other 2 are kept")
    assert str(tmp_path) not in detail
    assert dump.problems() == {"unreadable": 1}


def test_a_dump_of_which_nothing_is_left_has_failed(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2], [3, 4]])
    for path in data.iterdir():
        path.write_bytes(b"")
    status, detail = read_one(tmp_path).said
    assert status == "failed"
    assert detail == (
        f"nothing is left: {name(0)}: it is empty (0 bytes): its writer was killed, the first of 2 "
        "such"
    )


def test_a_tensor_that_was_saved_on_an_npu_is_read_without_one(tmp_path: Path) -> None:  # [72]
    data = write_dump(tmp_path)
    source = save(tmp_path / "small.bin", [10, 25, 30], device="npu:0")
    with zipfile.ZipFile(source) as small:
        pickled, numbers = small.read("small/data.pkl"), small.read("small/data/0")
    # torch_npu gives its function what torch gives, and then how the device stored it.
    plain = b"torch._utils\n_rebuild_tensor_v2"
    made = pickled.replace(plain, b"torch_npu.utils.storage\n_rebuild_npu_tensor")
    made = made.replace(b")RtR.", b")RK\x02tR.")
    assert len(made) > len(pickled) + 2
    with zipfile.ZipFile(data / name(0), "w") as archive:
        archive.writestr("x/data.pkl", made)
        archive.writestr("x/data/0", numbers)
    assert read_one(tmp_path).loads == [[10, 25, 30]]


def test_a_file_that_would_run_code_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2]])
    mark = tmp_path / "ran"

    class Program:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {mark}",)

    program = pickle.dumps(Program(), protocol=2)
    with zipfile.ZipFile(data / name(1), "w") as archive:
        archive.writestr("x/data.pkl", program)
        archive.writestr("x/version", "3\n")
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2]]
    assert not mark.exists()
    assert "refused" in str(dump.example("unreadable"))


def test_a_tensor_that_claims_to_be_giant_is_refused(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2]])
    source = save(tmp_path / "small.bin", np.arange(3))
    with zipfile.ZipFile(source) as small:
        pickled = small.read("small/data.pkl")
    # Three elements, as sizes of the storage and of the tensor, become a billion.
    giant = pickled.replace(b"J\x03\x00\x00\x00", b"J\x00\xca\x9a\x3b")
    assert giant != pickled
    with zipfile.ZipFile(data / name(1), "w") as archive:
        archive.writestr("x/data.pkl", giant)
        archive.writestr("x/data/0", bytes(24))
        archive.writestr("x/version", "3\n")
    dump = read_one(tmp_path)
    assert dump.loads == [[1, 2]]
    assert dump.problems() == {"unreadable": 1}


def test_what_a_killed_writer_left_is_told_unless_it_was_written_again(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[1, 2]])
    (data / f"{name(0)}.tmp").write_bytes(b"PK")
    dump = read_one(tmp_path)
    assert dump.said == ("ok", None)
    assert dump.problems() == {"leftover": 1}
    (data / f"{name(1)}.tmp").write_bytes(b"PK")
    dump = read_one(tmp_path)
    assert dump.parsed.status == "salvaged"
    assert dump.loads == [[1, 2]]
    (data / name(0)).unlink()
    (data / f"{name(0)}.tmp").unlink()
    assert read_one(tmp_path).said == (
        "failed",
        f"a file of a killed writer: {name(1)}.tmp",
    )


# --- the parallel group ------------------------------------------------------------------------


def test_the_input_may_be_the_folder_of_the_tensors_itself(tmp_path: Path) -> None:
    data = write_dump(tmp_path, rank=5, calls=[[1, 2]])
    (data / "profiler_metadata.json").write_text(groups(4, 5, rank=1))
    dump = read_one(data)
    assert dump.path == "."
    assert dump.loads == [[1, 2]]
    assert dump.column("ep_rank") == [1]


def groups(*members: int, name: str = "ep", rank: int = 0) -> str:
    group = {"group_name": name, "group_rank": rank, "global_ranks": list(members)}
    everyone = {"group_name": "default_group", "group_rank": 0, "global_ranks": list(range(8))}
    return json.dumps({"parallel_group_info": {"a": everyone, "b": group}})


@pytest.mark.parametrize("purpose", ["ep", "exp"])
def test_the_group_of_a_rank_tells_where_its_experts_begin(tmp_path: Path, purpose: str) -> None:
    data = write_dump(tmp_path, rank=6, calls=[[1, 2, 3, 4]])
    (data.parent / "profiler_metadata.json").write_text(groups(4, 5, 6, 7, name=purpose, rank=2))
    (row,) = read_one(tmp_path).rows
    assert (row["ep_rank"], row["ep_size"], row["expert_offset"]) == (2, 4, 8)


def test_a_file_above_the_ranks_tells_about_those_it_names(tmp_path: Path) -> None:
    for rank in (1, 3, 5):
        write_dump(tmp_path, rank=rank, calls=[[1, 2]])
    (tmp_path / "step_1/profiler_metadata.json").write_text(groups(1, 3, rank=0))
    told = [
        (dump.rows[0]["ep_rank"], dump.rows[0]["ep_size"], dump.rows[0]["expert_offset"])
        for dump in read_all(tmp_path)
    ]
    assert told == [(0, 2, 0), (1, 2, 2), (None, None, None)]


def test_pairs_name_their_experts_themselves(tmp_path: Path) -> None:
    data = write_dump(tmp_path, calls=[[[0, 5], [1, 6]]])
    (data.parent / "profiler_metadata.json").write_text(groups(0, 1))
    (row,) = read_one(tmp_path).rows
    assert (row["ep_rank"], row["expert_offset"]) == (0, None)


@pytest.mark.parametrize("text", ["{", "[]", '{"parallel_group_info": {"a": 5}}', groups()])
def test_odd_metadata_costs_nothing(tmp_path: Path, text: str) -> None:
    data = write_dump(tmp_path, calls=[[1, 2]])
    (data.parent / "profiler_metadata.json").write_text(text)
    dump = read_one(tmp_path)
    assert dump.column("ep_rank") == [None]
    assert dump.parsed.status == "ok"


def test_a_parse_job_imports_neither_pandas_nor_torch(tmp_path: Path) -> None:
    write_dump(
        tmp_path, calls=[[1, 2]], group_list_type=1, stacks={0: ["File x.py, line 1, in f, "]}
    )
    program = (
        "import sys; from pathlib import Path; from rl_insight.parsers import PARSERS, Source\n"
        "from rl_insight.data.tree import scan\n"
        "root = Path(sys.argv[1]); parser = PARSERS.get('gmm')\n"
        "(found,) = parser.discover(scan(root))\n"
        "parsed = parser.parse(Source('s', found.path, root, found.files), {})\n"
        "assert sum(table.num_rows for table in parsed.parts['expert_load']) == 1\n"
        "print(sorted({'pandas', 'torch', 'numpy.ma', 'pyarrow.compute'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
