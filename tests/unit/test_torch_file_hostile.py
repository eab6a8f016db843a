"""Files that want code to be run, memory to be filled or time to be spent."""

import os
import struct
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rl_insight.errors import ReadError
from rl_insight.readers.torch_file import load
from tests.torch_archives import (
    Code,
    call,
    code,
    longs,
    named,
    pickled,
    storage,
    tensor,
    torch_file,
    zipped,
)

COUNTS = {"0": longs(5, 7, 9)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "group_list.pt"


@pytest.fixture
def little_memory() -> Iterator[None]:
    """The test must not take more than 32 MB, as far as Python and numpy count it."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def refused(path: Path, raw: bytes, words: str, limit: int = 64 << 20) -> None:
    path.write_bytes(raw)
    with pytest.raises(ReadError, match=words) as caught:
        load(path, limit)
    assert str(caught.value).startswith(f"{path} cannot be read: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 300


# ---- code ----

MODULE = "dropped_by_a_dump"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that appears when anything of the module MODULE, or a shell, was run."""
    sprung = tmp_path / "sprung"
    write = f"__import__('pathlib').Path({str(sprung)!r}).touch()"
    (tmp_path / f"{MODULE}.py").write_text(f"{write}\ndef run(*a): {write}\nclass C: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    return sprung


def test_the_trap_of_these_tests_works(trap: Path) -> None:
    __import__(MODULE)
    assert trap.exists()
    sys.modules.pop(MODULE)


@pytest.mark.parametrize(
    "name",
    [
        f"{MODULE}.run",
        "os.system",
        "posix.system",
        "builtins.eval",
        "builtins.exec",
        "builtins.getattr",
        "__builtin__.__import__",
        "subprocess.Popen",
        "_codecs.lookup",
        "operator.attrgetter",
        "functools.partial",
    ],
)
@pytest.mark.parametrize(
    "form", ["reduce", "stack_global", "instance", "object", "newobj", "alone"]
)
def test_names_from_outside_are_refused_and_nothing_runs(
    path: Path, trap: Path, name: str, form: str
) -> None:
    module, _, attribute = name.rpartition(".")
    argument = (
        f"touch {trap}"
        if "system" in name
        else f"__import__('pathlib').Path({str(trap)!r}).touch()"
    )
    value = {
        "reduce": code(call(name, argument)),
        "stack_global": code(module) + code(attribute) + b"\x93" + code((argument,)) + b"R",
        "instance": b"(" + code(argument) + f"i{module}\n{attribute}\n".encode(),
        "object": b"(" + named(name) + code(argument) + b"o",
        "newobj": named(name) + code((argument,)) + b"\x81",
        "alone": named(name),
    }[form]
    words = "of some class: refused" if form == "instance" else f"would run {name}: refused"
    refused(path, torch_file(pickled(Code(value))), words)
    assert not trap.exists()
    assert MODULE not in sys.modules


@pytest.mark.parametrize(
    "harmless",
    [
        "torch._utils._rebuild_tensor_v2",
        "collections.OrderedDict",
        "numpy.dtype",
        "torch.Tensor",
        "torch.LongStorage",
    ],
)
@pytest.mark.parametrize("end", [b"R", b"b", b"Q", b"o"])
def test_known_names_are_called_with_nothing_else_than_they_take(
    path: Path, harmless: str, end: bytes
) -> None:
    value = Code(b"(" * (end == b"o") + named(harmless) + code(({"x": [1]}, "a")) + end)
    refused(path, torch_file(pickled(value)), "is damaged at byte|refused|plain numbers")


def test_a_state_does_not_reach_what_has_none(path: Path) -> None:
    value = Code(tensor((3,), (1,)) + code({"__class__": 1}) + b"b")
    refused(path, torch_file(pickled(value), COUNTS), "is damaged at byte")


def test_attributes_of_a_dictionary_are_left_out(path: Path) -> None:
    ordered = call("collections.OrderedDict")
    value = Code(ordered + code("a") + code(1) + b"s" + code({"_metadata": {"version": 1}}) + b"b")
    path.write_bytes(torch_file(pickled(value)))
    assert load(path) == {"a": 1}


# ---- tensors ----


@pytest.mark.parametrize("device", ["cpu", "cuda:0", "npu:3", "xla:1", "privateuseone"])
def test_the_device_of_a_tensor_does_not_matter(path: Path, device: str) -> None:
    path.write_bytes(torch_file(pickled(tensor((3,), (1,), device=device)), COUNTS))
    assert np.asarray(load(path)).tolist() == [5, 7, 9]


@pytest.mark.parametrize("layout", [True, False, 2, 29, call("torch_npu.npu._format.Format", 29)])
def test_a_tensor_of_an_npu_is_read(path: Path, layout: object) -> None:
    # Seven arguments, the last the layout that the numbers had on the device.
    value = call(
        "torch_npu.utils.storage._rebuild_npu_tensor",
        *(storage("LongStorage", "0", "npu:3", 3), 1, (2,), (1,)),
        *(False, call("collections.OrderedDict"), layout),
    )
    path.write_bytes(torch_file(pickled({"group_list": value}), COUNTS))
    assert np.asarray(load(path)["group_list"]).tolist() == [7, 9]  # type: ignore[index]


def test_numbers_of_a_machine_of_the_other_byte_order_are_read(path: Path) -> None:
    data = {"0": struct.pack(">3q", 5, 7, 9)}
    path.write_bytes(torch_file(pickled(tensor((3,), (1,))), data, b"big"))
    assert np.asarray(load(path)).tolist() == [5, 7, 9]
    refused(path, torch_file(pickled(tensor((3,), (1,))), data, b"odd"), "neither little nor big")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (tensor((4,), (1,)), "beyond the end"),
        (tensor((3,), (2,)), "beyond the end"),
        (tensor((3,), (1,), 1), "beyond the end"),
        (tensor((), (), 3), "beyond the end"),
        (tensor((2**62, 1), (0, 1)), "more than the limit"),
        (tensor((2**40,), (0,)), "more than the limit"),
        (tensor((0, 2**62), (1, 1)), "more than the limit"),
        (tensor((2**2000,), (1,)), "more than the limit"),
        (tensor((2**13,) * 32, (0,) * 32), "more than the limit"),
        (tensor((3,), (2**2000,)), "beyond the end"),
        (tensor((1,), (1,), 2**2000), "beyond the end"),
        (tensor((3,), (-1,), 2), "no positive number"),
        (tensor((-3,), (1,)), "no positive number"),
        (tensor((3,), (1,), -1), "no positive number"),
        (tensor((True,), (1,)), "no positive number"),
        (tensor((3.0,), (1,)), "damaged at byte|no positive number"),
        (tensor(("3",), (1,)), "no positive number"),
        (tensor((3,), ()), "another number of strides"),
        (tensor((1,) * 33, (1,) * 33), "more than 32 dimensions"),
        (tensor((3,), (1,), count=4), "cut off: 24 of 32 bytes"),
        (tensor((3,), (1,), count=2**60), "cut off"),
        (tensor((3,), (1,), key="7"), "the entry '7' is missing"),
        (tensor((3,), (1,), key="../0"), "the entry '0' is missing"),
        ({"counts": [storage("LongStorage", "0", "cpu", 3)]}, "something else than numbers"),
    ],
)
@pytest.mark.usefixtures("little_memory")
def test_a_tensor_stays_inside_its_data(path: Path, value: object, words: str) -> None:
    refused(path, torch_file(pickled(value), COUNTS), words)


def test_what_is_not_in_the_closed_set_of_torch_is_named(path: Path) -> None:
    value = tensor((3,), (1,), kind="NoStorage")
    refused(path, torch_file(pickled(value), COUNTS), r"it needs torch\.NoStorage, which is not")


@pytest.mark.usefixtures("little_memory")
def test_many_tensors_over_one_storage_count_each(path: Path) -> None:
    # 1,000 times 80 kB, from a file of some 90 kB.
    view = code(tensor((10_000,), (1,), count=10_000))
    value = Code(b"](" + view + b"q\x01" + b"h\x01" * 3 + b"e")
    path.write_bytes(torch_file(pickled(value), {"0": bytes(80_000)}))
    assert len(load(path, 1 << 20)) == 4  # type: ignore[arg-type]
    again = Code(b"](" + view * 14 + b"e")
    refused(path, torch_file(pickled(again), {"0": bytes(80_000)}), "more than the limit", 1 << 20)


# ---- containers ----


def nested(levels: int, width: int) -> Code:
    """A list that holds one list `width` times, which holds one list `width` times, and so on."""
    step = b"](" + b"h\x00" * width + b"eq\x00"
    return Code(b"](]q\x00" + step * levels + b"e")


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (nested(40, 10), "more than 16384 values"),
        (nested(200, 1), "deeper than 64 levels"),
        (nested(2_000, 1), "deeper than 64 levels"),
        (Code(b"(" * 15_000), "damaged at byte"),
        (Code(b"]q\x00h\x00a"), "deeper than 64 levels"),
        (Code(b"]" * 20_000), "more than 16384 instructions"),
        (Code(b"}" + b")" + b"\x85" * 5_000 + b"Ns"), "keyed by something else"),
        (Code(b"}" + b"]Ns"), "keyed by something else"),
        (Code(b"\x8b\xff\xff\xff\x7f"), "number of more than 255 bytes"),
        (Code(b"X\xff\xff\xff\xff"), "damaged at byte"),
        (Code(b"\x8d" + b"\xff" * 8), "damaged at byte"),
        (Code(b"\x96" + b"\xff" * 7 + b"\x7f"), "damaged at byte"),
        (Code(b"h\x05"), "damaged at byte"),
        (Code(b"(N(R"), "damaged at byte"),
        (Code(b"N(\x85"), "damaged at byte"),
        (Code(b"NN"), "damaged at byte"),
        (Code(b"t"), "damaged at byte"),
        (Code(b"X\x01\x00\x00\x00\xff"), "damaged at byte"),
        # Into no sentence goes what may have any size.
        (Code(named("numpy.dtype") + nested(40, 10) + b"\x85R"), "plain numbers \\(no text"),
        (Code(named("numpy.dtype") + nested(2_000, 1) + b"\x85R"), "plain numbers \\(no text"),
        (call("numpy.dtype", "i8" * 9_000, False, True), "plain numbers"),
        (call("os." + "x" * 9_000), "would run os.xxx"),
    ],
)
def test_pickles_are_bounded(path: Path, value: object, words: str) -> None:
    refused(path, torch_file(pickled(value)), words, limit=1 << 20)


@pytest.mark.usefixtures("little_memory")
def test_copies_of_one_text_count_each(path: Path) -> None:
    encode = named("_codecs.encode") + b"h\x00" + code("latin1") + b"\x86R"
    value = Code(b"](" + code("x" * 100_000) + b"q\x00" + encode * 1_000 + b"e")
    refused(path, torch_file(pickled(value)), "more than the limit", limit=1 << 20)
    device = named("torch.device") + b"h\x00" + code("latin1") + b"\x86R"
    value = Code(b"](" + code("x" * 100_000) + b"q\x00" + device * 1_000 + b"e")
    refused(path, torch_file(pickled(value)), "damaged at byte", limit=1 << 20)


def numpy_array(shape: object, dtype: object, data: object, flag: object = False) -> Code:
    empty = call("numpy._core.multiarray._reconstruct", named("numpy.ndarray"), (0,), b"b")
    return Code(empty + code((1, shape, dtype, flag, data)) + b"b")


def numpy_dtype(name: str) -> Code:
    return call("numpy.dtype", name, False, True)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (numpy_array((3,), numpy_dtype("O8"), [1, 2, 3]), "something else than plain numbers"),
        (numpy_array((3,), numpy_dtype("V8"), bytes(24)), "something else than plain numbers"),
        (numpy_array((3,), numpy_dtype("i8"), [1, 2, 3]), "damaged at byte"),
        (numpy_array((4,), numpy_dtype("i8"), bytes(24)), "beyond the end"),
        (numpy_array((2**50,), numpy_dtype("i8"), bytes(24)), "more than the limit"),
        (numpy_array(("3", 2**60), numpy_dtype("i8"), bytes(24)), "no positive number"),
        (numpy_array((1,) * 10_000, numpy_dtype("i8"), bytes(24)), "more than 32 dimensions"),
        (numpy_array(3, numpy_dtype("i8"), bytes(24)), "damaged at byte"),
        (call("numpy.core.multiarray._reconstruct", 1, (0,), b"b"), "of a class that is not read"),
        (
            call("numpy.core.multiarray._reconstruct", named("numpy.ndarray"), (0,), b"b"),
            "something else than numbers",
        ),
        (call("numpy.core.multiarray.scalar", numpy_dtype("O8"), b""), "plain numbers"),
    ],
)
def test_arrays_of_numpy_stay_inside_their_data(path: Path, value: object, words: str) -> None:
    refused(path, torch_file(pickled(value)), words)


# ---- archives ----


@pytest.mark.usefixtures("little_memory")
def test_an_archive_that_unpacks_without_end_is_refused(path: Path) -> None:
    name = "archive/data.pkl"
    bomb = zipped({name: bytes(20 << 20)}, deflate=True)
    assert len(bomb) < 1 << 16
    refused(path, bomb, "are left of the limit", limit=1 << 20)
    # It lies about its size.
    refused(path, zipped({name: bytes(20 << 20)}, deflate=True, declared={name: 9}), "another size")


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    with pytest.raises(ReadError, match="it is no file"):
        load(tmp_path / "pipe.pt")
    with pytest.raises(ReadError, match="it is no file"):
        load(tmp_path)
