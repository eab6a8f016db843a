"""Files that torch alone reads: old ones, and those with what this reader does not know."""

import pickle
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_insight.errors import ReadError
from rl_insight.readers.torch_file import load, read
from tests.torch_archives import call, pickled, tensor, torch_file

torch = pytest.importorskip("torch")


def save_as_before_1_6(value: object, path: Path) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=False)
    return path


@pytest.mark.parametrize(
    ("kind", "numpy_kind"),
    [
        ("int64", "int64"),
        ("int32", "int32"),
        ("bool", "bool"),
        ("float16", "float32"),
        ("bfloat16", "float32"),
    ],
)
def test_a_file_of_before_1_6_is_read_by_torch(tmp_path: Path, kind: str, numpy_kind: str) -> None:
    counts = torch.tensor([[1, 0], [1, 1], [0, 1]]).to(getattr(torch, kind)).t()
    path = save_as_before_1_6(
        {"counts": [counts, torch.Size([2])], "none": None}, tmp_path / "a.pt"
    )
    found = read(path)
    value: Any = found.value
    assert value["counts"][0].tolist() == [[1, 1, 0], [0, 1, 1]]
    assert value["counts"][0].dtype == numpy_kind
    assert value["counts"][0].flags.c_contiguous
    assert value["counts"][1] == (2,)
    assert value["none"] is None
    assert found.kinds == {kind}


def test_content_that_only_torch_knows_is_read_by_torch(tmp_path: Path) -> None:
    # torch takes this class in its safe mode; no dump was ever seen with it.
    value = call("collections.Counter", {"a": 3})
    (tmp_path / "a.pt").write_bytes(torch_file(pickled(value)))
    assert load(tmp_path / "a.pt") == {"a": 3}


@pytest.mark.parametrize("new_format", [True, False])
def test_torch_never_leaves_its_safe_mode(
    tmp_path: Path, new_format: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    real = torch.load

    def recorded(*arguments: Any, **options: Any) -> Any:
        asked.append(options)
        return real(*arguments, **options)

    monkeypatch.setattr(torch, "load", recorded)
    path = tmp_path / "a.pt"
    if new_format:
        path.write_bytes(torch_file(pickled(call("torch.hub.load", "somebody/something"))))
    else:
        save_as_before_1_6({"a": 1}, path)
        raw = path.read_bytes()
        # Behind the three pickles of the head, the one of the value: put another in its place.
        at = raw.index(pickle.dumps({"a": 1}, 2)[:4], 60)
        path.write_bytes(raw[:at] + pickled(call("os.system", f"touch {tmp_path / 'ran'}")))
    with pytest.raises(ReadError, match="and torch refuses it: "):
        load(path)
    assert [options["weights_only"] for options in asked] == [True]
    assert not (tmp_path / "ran").exists()


def test_a_tar_archive_of_before_0_1_10_is_named(tmp_path: Path) -> None:
    # torch leaves its safe mode for those, so nobody reads them.
    (tmp_path / "sys_info").write_bytes(b"")
    with tarfile.open(tmp_path / "a.pt", "w") as archive:
        archive.add(tmp_path / "sys_info", "sys_info")
    with pytest.raises(ReadError, match=r"a\.pt cannot be read: .*, and torch refuses it"):
        load(tmp_path / "a.pt")


def test_without_torch_the_sentence_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_as_before_1_6([1], tmp_path / "a.pt")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ReadError,
        match=r"a\.pt cannot be read: it has the format that torch wrote before version 1\.6, "
        r"and torch is needed for that: pip install torch",
    ):
        load(path)


def test_a_torch_whose_safe_mode_is_not_safe_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_as_before_1_6([1], tmp_path / "a.pt")
    monkeypatch.setattr(torch, "__version__", "2.5.1+cpu")
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("torch was used"))
    with pytest.raises(ReadError, match=r"torch 2\.5\.1\+cpu can be made to run code"):
        load(path)


@pytest.mark.parametrize("version", ["2.6.0", "2.10.1+cu128", "2.13.0a0+git12ab", "3.0"])
def test_newer_ones_are(tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_as_before_1_6([1], tmp_path / "a.pt")
    monkeypatch.setattr(torch, "__version__", version)
    assert load(path) == [1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.zeros(2, dtype=torch.complex64), "a tensor of torch.complex64"),
        (lambda: torch.eye(2).to_sparse(), "torch.sparse_coo"),
        (lambda: torch.zeros(1).expand(2**20), "more than the limit of 1048576 bytes"),
    ],
)
def test_what_torch_reads_meets_the_same_limits(tmp_path: Path, make: Any, words: str) -> None:
    path = save_as_before_1_6([make()], tmp_path / "a.pt")
    with pytest.raises(ReadError, match=words):
        load(path, limit_bytes=1 << 20)


def test_an_old_tensor_without_numbers_gives_one_sentence(tmp_path: Path) -> None:
    path = save_as_before_1_6(torch.empty(3, device="meta"), tmp_path / "a.pt")
    with pytest.raises(ReadError, match=r"a\.pt cannot be read: it holds a tensor that is not"):
        load(path)


def test_an_old_tensor_whose_sign_was_left_to_the_reader_has_the_right_one(tmp_path: Path) -> None:
    path = save_as_before_1_6(torch._neg_view(torch.tensor([1, -2])), tmp_path / "a.pt")
    found: Any = load(path)
    assert found.tolist() == [-1, 2]


def test_an_old_file_cut_off_gives_one_sentence(tmp_path: Path) -> None:
    path = save_as_before_1_6([torch.tensor([1, 2])], tmp_path / "a.pt")
    raw = path.read_bytes()
    for size in range(0, len(raw), 5):
        path.write_bytes(raw[:size])
        with pytest.raises(ReadError, match=r"a\.pt cannot be read: "):
            load(path)


def test_files_that_this_reader_knows_need_no_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pt").write_bytes(
        torch_file(pickled({"counts": tensor((1,), (1,), count=1)}), {"0": bytes([7]) + bytes(7)})
    )
    monkeypatch.setitem(sys.modules, "torch", None)
    value: Any = load(tmp_path / "a.pt")
    assert np.asarray(value["counts"]).tolist() == [7]
