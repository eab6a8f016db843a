"""Files of torch and numpy, against torch and numpy themselves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rl_insight.errors import ReadError
from rl_insight.readers import torch_file
from rl_insight.readers.torch_file import load, read

torch = pytest.importorskip("torch")

KINDS = {
    "bool": torch.bool,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "uint8": torch.uint8,
    "uint16": torch.uint16,
    "uint32": torch.uint32,
    "uint64": torch.uint64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


@st.composite
def views(draw: st.DrawFn) -> Any:
    """A tensor that looks at some storage in any way that torch allows."""
    count = draw(st.integers(0, 40))
    kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    width = kind.itemsize
    raw = draw(st.binary(min_size=count * width, max_size=count * width))
    if kind is torch.bool:
        raw = bytes(byte & 1 for byte in raw)
    base = torch.frombuffer(bytearray(raw), dtype=kind) if raw else torch.empty(0, dtype=kind)
    offset = draw(st.integers(0, count))
    left = count - offset - 1
    size, stride = [], []
    for _ in range(draw(st.integers(0, 4))):
        step = draw(st.integers(0, 5))
        most = 4 if step == 0 else max(left, 0) // step + 1
        length = draw(st.integers(0, min(most, 4))) if left >= 0 else 0
        left -= max(length - 1, 0) * step
        size.append(length)
        stride.append(step)
    if left < 0 and 0 not in size:
        size, stride = [*size, 0], [*stride, 1]
    return torch.as_strided(base, size, stride, offset)


def plain(value: Any) -> Any:
    """What is expected of a value: as it is, with torch's own numpy arrays."""
    if isinstance(value, torch.Tensor):
        half = value.dtype in (torch.float16, torch.bfloat16)
        return (value.detach().float() if half else value.detach()).numpy()
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.flags.c_contiguous
        # Bit by bit: there are several NaNs.
        assert found.tobytes() == expected.tobytes()
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, member in expected.items():
            assert_same(found[key], member)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert found == expected


def kinds(value: Any) -> set[str]:
    if isinstance(value, torch.Tensor):
        return {str(value.dtype).removeprefix("torch.")}
    if isinstance(value, dict):
        return set().union(*map(kinds, value.values()))
    return set().union(*map(kinds, value)) if isinstance(value, list | tuple) else set()


numbers = st.integers(-(2**80), 2**80) | st.floats(allow_nan=False) | st.booleans() | st.none()
keys = st.text(max_size=8) | st.integers(-5, 300)
values = st.recursive(
    views() | numbers | st.text(max_size=8) | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values, st.sampled_from([2, 3, 4, 5]))
def test_what_torch_saves_is_read_as_torch_reads_it(
    tmp_path: Path, value: Any, protocol: int
) -> None:
    path = tmp_path / "any.pt"
    torch.save(value, path, pickle_protocol=protocol)
    found = read(path)
    assert_same(found.value, plain(value))
    assert found.kinds == kinds(value)


def test_a_vector_of_counts_is_read_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "NPU.npu_grouped_matmul.0.forward.kwargs.group_list.pt"
    torch.save(torch.tensor([45, 72, 18]), path)
    value = load(path)
    assert isinstance(value, np.ndarray)
    assert value.dtype == np.int64
    assert value.tolist() == [45, 72, 18]


def test_arrays_belong_to_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    whole = torch.arange(6)
    torch.save({"whole": whole, "part": whole[2:4]}, path)
    value: Any = load(path)
    value["part"][0] = 99
    assert value["whole"].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "float64"])
def test_how_far_counts_are_exact_follows_from_their_kind(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.pt"
    torch.save([torch.tensor([1], dtype=KINDS[kind]), torch.tensor([2])], path)
    exact = read(path).exact_to
    assert exact is not None
    # Each whole number up to there is held, and the next one is not.
    around = torch.tensor([exact - 1, exact, exact + 1]).to(KINDS[kind]).long().tolist()
    assert around == [exact - 1, exact, exact]


def test_whole_numbers_are_exact(tmp_path: Path) -> None:
    torch.save(torch.tensor([2**62 + 1]), tmp_path / "a.pt")
    assert read(tmp_path / "a.pt").exact_to is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.nn.Parameter(torch.tensor([1.0, 2.0])),
        lambda: torch.tensor([1, 2, 3]).reshape(3, 1).expand(3, 4),
        lambda: torch.tensor([[1, 2], [3, 4], [5, 6]]).t(),
        lambda: torch.tensor(7),
    ],
)
def test_tensors_of_all_makes_are_arrays(tmp_path: Path, make: Any) -> None:
    torch.save(make(), tmp_path / "a.pt")
    assert np.array_equal(np.asarray(load(tmp_path / "a.pt")), make().detach().numpy())


def test_a_tensor_with_attributes_is_a_tensor(tmp_path: Path) -> None:
    counts = torch.tensor([4, 5])
    counts.layer = 3
    torch.save(counts, tmp_path / "a.pt")
    assert np.asarray(load(tmp_path / "a.pt")).tolist() == [4, 5]


def test_names_of_torch_become_text_and_sizes_tuples(tmp_path: Path) -> None:
    saved = {"d": torch.bfloat16, "dev": torch.device("cuda", 3), "s": torch.Size([2, 3])}
    torch.save(saved, tmp_path / "a.pt")
    assert load(tmp_path / "a.pt") == {"d": "bfloat16", "dev": "cuda:3", "s": (2, 3)}


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<i8", ">i4", "<f4", "?", "u1", "<f8"])
def test_arrays_of_numpy_inside_are_read(
    tmp_path: Path, dtype: str, order: Any, protocol: int
) -> None:
    saved = np.asarray([[0, 1, 2], [3, 4, 5]], dtype, order=order)
    path = tmp_path / "a.pt"
    torch.save([saved, saved[0, 1], np.zeros(0, dtype)], path, pickle_protocol=protocol)
    array, scalar, empty = load(path)  # type: ignore[misc]
    assert array.tolist() == saved.tolist()
    assert array.dtype == saved.dtype.newbyteorder("=")
    assert scalar == saved[0, 1].item()
    assert empty.shape == (0,)


def test_a_file_without_checksums_is_read(tmp_path: Path) -> None:
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(torch.tensor([3, 1]), tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert np.asarray(load(tmp_path / "a.pt")).tolist() == [3, 1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.eye(3).to_sparse(), "a sparse tensor"),
        (lambda: torch.zeros(3, device="meta"), "a meta tensor"),
        (lambda: torch.zeros(2, dtype=torch.complex64), "ComplexFloatStorage"),
        (lambda: torch.zeros(2).to(torch.float8_e4m3fn), "float8_e4m3fn"),
        (lambda: torch._neg_view(torch.ones(2)), "its sign still to be changed"),
        (lambda: torch.zeros(3).untyped_storage(), "something else than numbers"),
    ],
)
def test_tensors_that_are_not_read_are_named(tmp_path: Path, make: Any, words: str) -> None:
    torch.save({"value": make()}, tmp_path / "a.pt")
    with pytest.raises(ReadError, match=rf"a\.pt cannot be read: it holds .*{words}"):
        load(tmp_path / "a.pt")


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_program_of_torchscript_is_named(tmp_path: Path) -> None:
    @torch.jit.script
    def double(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    torch.jit.save(double, str(tmp_path / "a.pt"))
    with pytest.raises(ReadError, match="it holds a TorchScript program, not tensors"):
        load(tmp_path / "a.pt")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<i8", ">i8", "<u4", "<f2", "<f4", ">f8", "?", "i1"])
def test_an_npy_file_is_known_by_its_first_bytes(tmp_path: Path, dtype: str, order: Any) -> None:
    saved = np.asarray([[0, 1, 2], [3, 4, 5]], dtype, order=order)
    path = tmp_path / "array.pt"
    with path.open("wb") as file:
        np.save(file, saved)
    found = read(path)
    assert np.asarray(found.value).tolist() == saved.tolist()
    assert found.kinds == {saved.dtype.name}


def test_memory_stays_within_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pt"
    torch.save(torch.zeros(1000, dtype=torch.int64), path)
    # The numbers, some two hundred bytes of pickle, and where the bytes of a number start.
    assert np.asarray(load(path, limit_bytes=8500)).shape == (1000,)
    with pytest.raises(ReadError, match="are left of the limit"):
        load(path, limit_bytes=7999)
    monkeypatch.setattr(torch_file, "_HEADERS", 0)
    with pytest.raises(ReadError, match=r"it has \d+ bytes, and 7999 is the limit"):
        load(path, limit_bytes=7999)
