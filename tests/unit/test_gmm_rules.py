"""A group list is a vector of tokens, in a folder that tells whose it is."""

from pathlib import Path

import numpy as np
import pytest
import torch

from rl_insight.data import DataChecker
from rl_insight.data.rules import GmmDataRule
from tests.data_findings import found
from tests.group_lists import name, save, write_dump

KIND = "gmm_data"


@pytest.mark.parametrize("inner", [True, False])
def test_a_good_dump_has_nothing_to_say(inner: bool, tmp_path: Path) -> None:
    folder = write_dump(tmp_path, calls=[[3, 4, 5], [[0, 7], [3, 9]]], inner_step=inner)
    torch.save([1, 2, 3], folder / name(2))
    np.save(folder / name(3, suffix="npy"), np.array([1, 2]))
    torch.save(torch.tensor([1.0, 2.0], dtype=torch.bfloat16), folder / name(4))
    for data in (tmp_path, str(tmp_path), folder):
        assert DataChecker(KIND, data).run() == []
        assert GmmDataRule().check(data) is True


def test_a_call_without_a_group_list_is_told(tmp_path: Path) -> None:
    folder = write_dump(tmp_path, calls=[[1, 2]])
    torch.save(None, folder / name(1))
    ((severity, path, said),) = found(KIND, tmp_path)
    assert (severity, Path(path).name) == ("info", name(1))
    assert "None" in said


def test_folders_that_are_not_as_msprobes_are_told(tmp_path: Path) -> None:
    write_dump(tmp_path, rank="", calls=[[1, 2], [3, 4]])
    save(tmp_path / name(0), [1, 2])
    assert found(KIND, tmp_path) == [
        ("info", "", "group lists outside of dump_tensor_data are read all the same"),
        ("warning", "", "no folder around it tells the rank"),
        (
            "warning",
            "step_1/actor_update/step0/rank/dump_tensor_data",
            "no folder around it tells the rank",
        ),
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.zeros(2, 3, dtype=torch.int64), "its shape (2 x 3)"),
        (torch.zeros((), dtype=torch.int64), "its shape (no dimension)"),
        (torch.zeros(0, dtype=torch.int64), "empty"),
        (torch.tensor([1, -2]), "cannot be a number of tokens"),
        (torch.tensor([1.0, 0.5]), "cannot be a number of tokens"),
        (torch.tensor([1.0, float("nan")]), "cannot be a number of tokens"),
        ({"a": 1}, "neither a tensor nor a list"),
        (5, "neither a tensor nor a list"),
        (["a"], "something else than numbers"),
        ([[1], [1, 2]], "no vector"),
    ],
)
def test_what_is_no_load_is_an_error(value: object, words: str, tmp_path: Path) -> None:
    folder = write_dump(tmp_path, calls=[[1, 2]])
    torch.save(value, folder / name(1))
    ((severity, path, said),) = found(KIND, tmp_path)
    assert (severity, Path(path).name) == ("error", name(1))
    assert words in said


class Runs:
    """Whoever unpickles it runs code."""

    def __reduce__(self) -> object:
        return (exec, ("raise SystemExit('it was executed')",))


def test_nothing_is_executed_and_damage_is_an_error(tmp_path: Path) -> None:
    folder = write_dump(tmp_path, calls=[[1, 2]])
    torch.save(Runs(), folder / name(1))
    (folder / name(2)).write_bytes((folder / name(0)).read_bytes()[:100])
    (folder / name(3)).write_bytes(b"")
    with (folder / name(4)).open("wb") as file:
        file.truncate(80 << 30)  # a hole, which takes no room
    findings = found(KIND, tmp_path)
    assert [(severity, Path(path).name) for severity, path, _ in findings] == [
        ("error", name(number)) for number in (1, 2, 3, 4)
    ]
