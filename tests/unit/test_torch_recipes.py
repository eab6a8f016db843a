"""A file that has the pickle of another is read as if it were the first."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from rl_insight.errors import ReadError
from rl_insight.readers.torch_file import read
from tests.group_lists import save


def test_files_with_one_pickle_have_their_own_numbers(tmp_path: Path) -> None:
    made = [np.arange(5) + 10 * number for number in range(4)]
    for number, values in enumerate(made):
        save(tmp_path / f"{number}.pt", values)
    found = [read(tmp_path / f"{number}.pt") for number in range(4)]
    for one, values in zip(found, made, strict=True):
        assert isinstance(one.value, np.ndarray)
        assert one.value.tolist() == values.tolist()
        assert one.kinds == {"int64"}
    # They share no memory.
    found[0].value[:] = 0  # type: ignore[index]
    assert read(tmp_path / "0.pt").value.tolist() == made[0].tolist()  # type: ignore[attr-defined]


def test_a_view_of_a_storage_is_the_same_view_the_next_time(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for number in (1, 2):
        whole = number * torch.arange(12).reshape(3, 4)
        torch.save(whole.t()[1:3], tmp_path / f"{number}.pt")
        value = read(tmp_path / f"{number}.pt").value
        assert value.tolist() == whole.t()[1:3].tolist()  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "int32"])
def test_the_kind_of_numbers_is_told_each_time(tmp_path: Path, kind: str) -> None:
    torch = pytest.importorskip("torch")
    for number in range(3):
        values = torch.tensor([number, 2], dtype=getattr(torch, kind))
        torch.save(values, tmp_path / "x.pt")
        found = read(tmp_path / "x.pt")
        assert found.kinds == {kind}
        assert found.value.tolist() == [number, 2]  # type: ignore[attr-defined]


def test_what_holds_more_than_one_tensor_is_followed_each_time(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for number in range(3):
        one = torch.tensor([number, 1])
        for content in ([one], (one, one + 1), {"a": one, "b": number}, [one, one[:1]]):
            torch.save(content, tmp_path / "x.pt")
            value = read(tmp_path / "x.pt").value
            parts = value.values() if isinstance(value, dict) else value
            wanted = content.values() if isinstance(content, dict) else content
            assert [np.asarray(part).tolist() for part in parts] == [  # type: ignore[union-attr]
                np.asarray(part).tolist() for part in wanted
            ]


def test_a_storage_that_is_too_short_is_told_the_next_time_too(tmp_path: Path) -> None:
    save(tmp_path / "good.pt", [1, 2, 3])
    read(tmp_path / "good.pt")
    with zipfile.ZipFile(tmp_path / "good.pt") as archive:
        pickled = archive.read("good/data.pkl")
    with zipfile.ZipFile(tmp_path / "short.pt", "w") as archive:
        archive.writestr("x/data.pkl", pickled)
        archive.writestr("x/data/0", bytes(16))
    with pytest.raises(ReadError, match="cut off: 16 of 24 bytes"):
        read(tmp_path / "short.pt")
    with zipfile.ZipFile(tmp_path / "none.pt", "w") as archive:
        archive.writestr("x/data.pkl", pickled)
    with pytest.raises(ReadError, match="missing"):
        read(tmp_path / "none.pt")


def test_what_takes_too_much_memory_is_refused_the_next_time_too(tmp_path: Path) -> None:
    path = save(tmp_path / "x.pt", np.ones(1_000, np.float16))
    assert len(np.asarray(read(path).value)) == 1_000
    # 2,000 bytes in the file become 4,000 in memory.
    with pytest.raises(ReadError, match="take more than the limit"):
        read(path, limit_bytes=3_000)


def test_numbers_of_the_other_byte_order_are_turned_the_next_time_too(tmp_path: Path) -> None:
    save(tmp_path / "little.pt", [1, 2])
    assert read(tmp_path / "little.pt").value.tolist() == [1, 2]  # type: ignore[attr-defined]
    with zipfile.ZipFile(tmp_path / "little.pt") as archive:
        pickled = archive.read("little/data.pkl")
    with zipfile.ZipFile(tmp_path / "big.pt", "w") as archive:
        archive.writestr("x/data.pkl", pickled)
        archive.writestr("x/byteorder", "big")
        archive.writestr("x/data/0", np.array([7, 8], ">i8").tobytes())
    assert read(tmp_path / "big.pt").value.tolist() == [7, 8]  # type: ignore[attr-defined]
