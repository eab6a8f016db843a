"""Files that were cut off, changed or swapped: each gives its data or one sentence."""

import io
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rl_insight.errors import ReadError
from rl_insight.readers.torch_file import load
from tests.torch_archives import call, longs, named, pickled, tensor, torch_file, zipped

VALUE = {
    "records": [{"pass": 3, "rank": None, "count": tensor((2, 1), (2, 1))}, {"pass": 400_000}],
    "map": call("torch._utils._rebuild_parameter", tensor((1,), (1,), 2), True, 1),
    "numpy": call("numpy.core.multiarray.scalar", call("numpy.dtype", "f8", False, True), bytes(8)),
    "device": call("torch.device", "cuda", 1),
    "kind": named("torch.int64"),
}
SMALL = torch_file(pickled(VALUE), {"0": longs(5, 7, 9)})
LIMIT = 1 << 20


@pytest.fixture
def attempt(tmp_path: Path) -> Callable[[bytes], str]:
    """Read some bytes as a file: "" when that gives a value, else the sentence."""
    path = tmp_path / "group_list.pt"

    def read(raw: bytes) -> str:
        path.write_bytes(raw)
        try:
            load(path, LIMIT)
        except ReadError as error:
            assert str(error).startswith(f"{path} cannot be read: ")
            return str(error)
        return ""

    return read


def test_the_file_of_these_tests_is_good(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(SMALL)
    value = load(tmp_path / "a.pt")
    assert isinstance(value, dict)
    assert value["records"][0]["count"].tolist() == [[5], [9]]
    assert value["records"][1] == {"pass": 400_000}
    assert value["map"].tolist() == [9]
    assert [value["numpy"], value["device"], value["kind"]] == [0.0, "cuda:1", "int64"]
    with zipfile.ZipFile(io.BytesIO(SMALL)) as archive:
        assert archive.testzip() is None


def test_a_file_cut_off_anywhere_gives_one_sentence(attempt: Callable[[bytes], str]) -> None:
    for size in range(len(SMALL)):
        assert attempt(SMALL[:size]), size


def test_a_changed_byte_gives_the_data_or_one_sentence(attempt: Callable[[bytes], str]) -> None:
    chance = random.Random(1)
    for at in range(len(SMALL)):
        changed = bytearray(SMALL)
        changed[at] ^= 1 << chance.randrange(8)
        attempt(bytes(changed))


def test_changed_numbers_are_found_by_their_checksum(attempt: Callable[[bytes], str]) -> None:
    at = SMALL.index(longs(5, 7, 9))
    for place in range(at, at + 24):
        changed = bytearray(SMALL)
        changed[place] ^= 0x10
        assert "the entry '0' is damaged: its checksum is wrong" in attempt(bytes(changed))


@pytest.mark.parametrize("seed", range(4))
def test_changed_pickles_give_a_value_or_one_sentence(
    attempt: Callable[[bytes], str], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The checksum is right here, as a hostile file would have it.
    monkeypatch.setattr("rl_insight.readers.torch_fallback.by_torch", refuse)
    chance = random.Random(seed)
    pickle = pickled(VALUE)
    sentences = set()
    for _ in range(500):
        changed = bytearray(pickle)
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(changed))
            match chance.randrange(3):
                case 0:
                    changed[place] = chance.randrange(256)
                case 1:
                    del changed[place : place + chance.randrange(9)]
                case 2:
                    other = chance.randrange(len(pickle))
                    changed[place:place] = pickle[other : other + chance.randrange(30)]
        sentences.add(attempt(torch_file(bytes(changed), {"0": longs(5, 7, 9)})).partition(":")[2])
    assert len(sentences) > 5


@pytest.mark.parametrize("seed", range(4))
def test_any_instructions_give_a_value_or_one_sentence(
    attempt: Callable[[bytes], str], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rl_insight.readers.torch_fallback.by_torch", refuse)
    chance = random.Random(seed)
    pieces = [
        bytes([number]) for number in b"()]}NKMJG\x8a\x88\x89\x85\x86\x87taesuqhRbQ\x94.\x00\x01"
    ]
    pieces += [
        pickled(value)[2:-1] for value in ("torch", 3, (0,), [1], {"a": 1}, tensor((3,), (1,)))
    ]
    pieces += [
        named(name)
        for name in (
            *("torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3", "torch.int8"),
            *("torch._utils._rebuild_parameter", "torch._tensor._rebuild_from_type_v2"),
            *("torch_npu.utils.storage._rebuild_npu_tensor", "torch.LongStorage", "torch.Tensor"),
            *("torch.Size", "torch.device", "torch.storage.UntypedStorage", "numpy.dtype"),
            *("numpy.core.multiarray._reconstruct", "numpy.core.multiarray.scalar"),
            *("numpy._core.numeric._frombuffer", "numpy.ndarray", "_codecs.encode"),
            *("collections.OrderedDict", "builtins.bytes", "torch.serialization._get_layout"),
        )
    ]
    for _ in range(500):
        pickle = b"\x80\x02" + b"".join(chance.choices(pieces, k=chance.randrange(1, 25))) + b"."
        attempt(torch_file(pickle, {"0": longs(5, 7, 9)}))


def refuse(path: Path, reason: str, limit: int) -> None:
    raise ReadError(reason)


# ---- archives ----

ENTRIES = {"a/b/data.pkl": pickled(tensor((3,), (1,))), "a/b/data/0": longs(5, 7, 9)}


@pytest.mark.parametrize("deflate", [False, True])
@pytest.mark.parametrize("zip64", [False, True])
def test_archives_of_other_makers_are_read(tmp_path: Path, deflate: bool, zip64: bool) -> None:
    raw = zipped(ENTRIES, deflate=deflate, zip64=zip64)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == list(ENTRIES)
    (tmp_path / "a.pt").write_bytes(raw)
    assert np.asarray(load(tmp_path / "a.pt")).tolist() == [5, 7, 9]
    # With a comment at its end, too.
    (tmp_path / "a.pt").write_bytes(raw[:-2] + struct.pack("<H", 5) + b"hello")
    assert np.asarray(load(tmp_path / "a.pt")).tolist() == [5, 7, 9]


DATA_AT = zipped(ENTRIES).index(b"PK\x03\x04", 4)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (zipped(ENTRIES, at={"a/b/data/0": DATA_AT + 1}), "directory of the archive is damaged"),
        (zipped(ENTRIES, at={"a/b/data/0": 1 << 31}), "directory of the archive is damaged"),
        (zipped(ENTRIES, zip64=True, at={"a/b/data/0": 1 << 63}), "directory of the archive is"),
        # Two entries of the same bytes.
        (zipped(ENTRIES, at={"a/b/data/0": 0}), "directory of the archive is damaged"),
        (zipped(ENTRIES, declared={"a/b/data/0": 25}), "another size than the archive says"),
        (zipped(ENTRIES, declared={"a/b/data/0": 2**31}), "are left of the limit"),
        (zipped(ENTRIES, flags=1), "encrypted"),
        (zipped(ENTRIES, method=12), "a way that torch does not use (12)"),
        (zipped({"word/document.xml": b"<w/>"}), "not written by torch.save: it has no data.pkl"),
        (zipped(ENTRIES | {"a/b/constants.pkl": b"."}), "TorchScript program"),
        (zipped(ENTRIES) + b"PK\x05\x06", "the end of the archive is missing"),
        (zipped({}), "an empty zip archive"),
    ],
)
def test_what_is_wrong_with_an_archive_is_said(
    attempt: Callable[[bytes], str], raw: bytes, words: str
) -> None:
    assert words in attempt(raw)


def test_entries_that_overlap_are_not_read(attempt: Callable[[bytes], str]) -> None:
    # The pickle is said to go on through the header and the numbers of the next entry.
    pickle = ENTRIES["a/b/data.pkl"]
    raw = zipped(ENTRIES)
    sizes = struct.pack("<2L", len(pickle), len(pickle))
    assert raw.count(sizes) == 2
    longer = struct.pack("<2L", len(pickle) + 40, len(pickle) + 40)
    assert "directory of the archive is damaged" in attempt(raw.replace(sizes, longer))


# ---- other files ----


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "it is empty (0 bytes): its writer was killed"),
        (bytes(5_000), "it holds only zero bytes"),
        (b"<!DOCTYPE html><html>Sign in</html>", "it holds HTML or XML"),
        (b'{"message": "Not found"}', "it was not written by torch.save; it starts with '{"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS pointer"),
        (b"\x1f\x8b\x08\x00", "it is compressed by gzip"),
        (b"\x80\x04K\x01.", "a plain pickle, not written by torch.save"),
        (b"\x00\xff\x10\x80" * 90, "it was not written by torch.save"),
        (b"\x93NUMPY", "its npy header is damaged"),
        (b"\x93NUMPY\x09\x00v\x00{}", "its npy header is damaged"),
    ],
)
def test_what_is_no_file_of_torch_is_named(
    attempt: Callable[[bytes], str], raw: bytes, words: str
) -> None:
    assert words in attempt(raw)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"gone\.pt cannot be read: No such file"):
        load(tmp_path / "gone.pt")


def npy(header: bytes, data: bytes = bytes(24)) -> bytes:
    header = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def npy_of(descr: str, shape: str) -> bytes:
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode())


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (npy_of("'|O'", "(3,)"), "it holds an array of object"),
        (npy_of("[('a', '<i8')]", "(3,)"), "only plain numbers are read"),
        (npy_of("'<U6'", "(1,)"), "only plain numbers are read"),
        (npy_of("'<c16'", "(1,)"), "it holds an array of complex128"),
        (npy_of("'<i8'", "(4,)"), "beyond the end"),
        (npy_of("'<i8'", "(99999999999999,)"), "more than the limit"),
        (npy_of("'<i8'", "(-3,)"), "no positive number"),
        (npy_of("'<i8'", "__import__('os').getcwd()"), "npy header is damaged"),
        (npy_of("'<i8'", "(3,"), "npy header is damaged"),
    ],
)
def test_npy_files_that_cannot_be_read_are_named(
    attempt: Callable[[bytes], str], raw: bytes, words: str
) -> None:
    assert words in attempt(raw)


def test_an_npy_file_cut_off_or_changed_gives_its_data_or_one_sentence(
    attempt: Callable[[bytes], str],
) -> None:
    raw = npy_of("'<i8'", "(3,)")
    assert attempt(raw) == ""
    for size in range(len(raw)):
        assert attempt(raw[:size]), size
    chance = random.Random(2)
    for _ in range(300):
        changed = bytearray(raw)
        changed[chance.randrange(6, 80)] = chance.randrange(256)
        attempt(bytes(changed))
