"""Dumps of expert load as killed jobs, full disks and hostile hands leave them, in every form.

Each damaged file stands between two sound ones of its rank, beside a sound rank that must stay
complete. Checked is what a person sees: rows, status, sentence and problems. Numbers are rows of
the case list.
"""

import io
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from rl_insight import tables
from rl_insight.data.identity import compile_rules
from rl_insight.pipeline import layout
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.merge import merge
from rl_insight.pipeline.merge_options import MergeOptions
from tests.group_lists import entry, name, save, write_dump, write_dump_json
from tests.merged_runs import parse_all
from tests.torch_archives import call, longs, pickled, storage, tensor, torch_file

RANK = "step_1/actor_update/step0/rank0"
DATA, SOUND = f"{RANK}/dump_tensor_data", "step_1/actor_update/step0/rank1/dump_tensor_data"
CALLS = [[1, 2, 3], [10, 25, 30], [4, 5, 6]]
BROKEN = name(1)
FRAMES = ["File /job/model.py, line 3, in forward, \n y = gmm(x)"]


class Seen(NamedTuple):
    """What a person sees of one input."""

    rows: list[dict[str, Any]]
    state: tuple[str, str | None]
    problems: dict[str, tuple[int, int | None]]

    @property
    def loads(self) -> list[list[int]]:
        return [row["load"] for row in self.rows]


def drawn(root: Path, output: Path, parser: str) -> dict[str, Seen]:
    """What a run over `root` gives, by the path of each input."""
    folders = parse_all(root, output, [parser])
    options = MergeOptions(compile_rules(None), Filters(), root.name, presets=("heatmap",))
    loads_file = output / "loads.parquet"
    merge(folders, output / layout.SKIPPED, output / layout.TABLES, options, loads=loads_file)
    loads = tables.read(loads_file).to_pylist()
    sources = tables.read(layout.table(output / layout.TABLES, "sources")).to_pylist()
    return {
        row["path"]: Seen(
            [load for load in loads if load["source_id"] == row["source_id"]],
            (row["status"], row["detail"]),
            {one["code"]: (one["count"], one["offset"]) for one in row["problems"]},
        )
        for row in sources
    }


def look(tmp_path: Path) -> Seen:
    """Draw the dump below `run` beside a sound rank."""
    root = tmp_path / "run"
    write_dump(root, rank=1, calls=CALLS, group_list_type=1, stacks=dict.fromkeys(range(3), FRAMES))
    found = drawn(root, tmp_path / "out", "gmm")
    assert found[SOUND].loads == CALLS
    assert found[SOUND].state == ("ok", None)
    assert found[SOUND].problems == {}
    assert {row["phase"] for row in found[SOUND].rows} == {"forward"}
    return found[DATA]


def dump(tmp_path: Path) -> Path:
    """A sound dump of rank 0: its folder of tensors."""
    return write_dump(
        tmp_path / "run", calls=CALLS, group_list_type=1, stacks=dict.fromkeys(range(3), FRAMES)
    )


def saved(tmp_path: Path, values: Any = (10, 25, 30)) -> bytes:
    return save(tmp_path / "x.bin", values).read_bytes()


def npy(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


WHOLE = torch_file(pickled(tensor((3,), (1,))), {"0": longs(10, 25, 30)})
NPY = npy(np.array([10, 25, 30]))
TORN = bytearray(WHOLE)
TORN[WHOLE.index(longs(10, 25, 30))] ^= 1
KILLED = "the end of the archive is missing: it was cut off while it was written or copied"
REACHES = "a tensor reaches beyond the end of its data"
NO_HEADER = "its npy header is damaged, or of a version that is not read"

UNREADABLE = {
    "cut": (WHOLE[:-40], KILLED),
    "cut in half": (WHOLE[: len(WHOLE) // 2], KILLED),
    "a wrong checksum": (bytes(TORN), "the entry '0' is damaged: its checksum is wrong"),
    "a storage missing": (
        torch_file(pickled(tensor((3,), (1,)))),
        "the entry '0' is missing in the archive",
    ),
    "larger than its data": (
        torch_file(pickled(tensor((9,), (1,), count=9)), {"0": longs(10, 25, 30)}),
        None,
    ),
    "72 code to be run": (
        torch_file(pickled(call("os.system", "true"))),
        "it would run os.system: refused, nothing was executed",
    ),
    "npy cut": (NPY[:-8], REACHES),
    "npy cut in its header": (NPY[:20], NO_HEADER),
    "npy of nothing else than its magic": (NPY[:6], NO_HEADER),
    "npy that says it is longer": (NPY.replace(b"(3,)", b"(9,)"), REACHES),
    "npy that says it is huge": (
        NPY.replace(b"(3,), }" + b" " * 7, b"(99999999,), }"),
        "its tensors take more than the limit of 67108864 bytes",
    ),
    "npy of objects": (
        NPY.replace(b"'<i8'", b"'|O' "),
        "it holds an array of object, and only plain numbers are read",
    ),
    "zero bytes": (b"", "it is empty (0 bytes): its writer was killed"),
    "only zeros": (bytes(500), "it holds only zero bytes: the data never reached the disk"),
    "packed": (b"\x1f\x8b\x08" + bytes(20), "it is compressed by gzip: unpack it first"),
    "a login page": (b"<html></html>", "it holds HTML or XML"),
    "text": (b"hello", "it was not written by torch.save; it starts with 'hello'"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_cannot_be_read_costs_only_itself(tmp_path: Path, case: str) -> None:
    content, why = UNREADABLE[case]
    (dump(tmp_path) / BROKEN).write_bytes(content)
    seen = look(tmp_path)
    assert seen.loads == [CALLS[0], CALLS[2]]
    assert [row["op_index"] for row in seen.rows] == [0, 2]
    assert seen.state[0] == "salvaged" and seen.state[1] is not None
    begins = f"1 group list left out, the first {BROKEN}: "
    assert seen.state[1].startswith(begins)
    assert seen.state[1].endswith("; the other 2 are kept")
    if why is not None:
        assert seen.state[1] == f"{begins}{why}; the other 2 are kept"
    assert seen.problems == {"unreadable": (1, None)}


@pytest.mark.parametrize("cut", [0, 10, 100])
def test_a_file_of_the_format_before_torch_1_6_may_be_cut(tmp_path: Path, cut: int) -> None:
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save(torch.tensor([10, 25, 30]), file, _use_new_zipfile_serialization=False)
    content = file.getvalue()
    (dump(tmp_path) / BROKEN).write_bytes(content[: len(content) - cut])
    seen = look(tmp_path)
    if not cut:
        assert (seen.loads, seen.state) == (CALLS, ("ok", None))
        return
    assert seen.loads == [CALLS[0], CALLS[2]]
    assert seen.state[0] == "salvaged" and seen.state[1] is not None
    assert seen.state[1].startswith(
        f"1 group list left out, the first {BROKEN}: it has the format that torch wrote before "
        "version 1.6, and torch refuses it: "
    )
    assert seen.problems == {"unreadable": (1, None)}


READ = {
    "npy under a name in pt": NPY,
    "something behind the archive": WHOLE + b"junk",
    "71 a list": torch_file(pickled([10, 25, 30])),
    "72 a tensor of an NPU": torch_file(
        pickled(
            call(
                "torch_npu.utils.storage._rebuild_npu_tensor",
                *(storage("LongStorage", "0", "npu:0", 3), 0, (3,), (1,), False),
                *(call("collections.OrderedDict"), {}),
            )
        ),
        {"0": longs(10, 25, 30)},
    ),
    "74 int32": torch_file(
        pickled(tensor((3,), (1,), kind="IntStorage")), {"0": struct.pack("<3i", 10, 25, 30)}
    ),
    # The upper halves of the float32 10.0, 25.0 and 30.0.
    "74 bfloat16": torch_file(
        pickled(tensor((3,), (1,), kind="BFloat16Storage")),
        {"0": struct.pack("<3H", 0x4120, 0x41C8, 0x41F0)},
    ),
}


@pytest.mark.parametrize("case", READ)
def test_what_is_only_unusual_is_read(tmp_path: Path, case: str) -> None:
    (dump(tmp_path) / BROKEN).write_bytes(READ[case])
    seen = look(tmp_path)
    assert (seen.loads, seen.state, seen.problems) == (CALLS, ("ok", None), {})


IMPOSSIBLE = {
    "negative": ([10, -1, 30], "-1"),
    "infinite": (np.array([10, np.inf, 30]), "inf"),
    "no number": (np.array([10, np.nan, 30]), "nan"),
    "a half": (np.array([10, 2.5, 30]), "2.5"),
    "beyond any batch": ([10, 2**62, 30], "4611686018427387904"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_numbers_that_no_router_gives_cost_their_list(tmp_path: Path, case: str) -> None:
    values, odd = IMPOSSIBLE[case]
    (dump(tmp_path) / BROKEN).write_bytes(saved(tmp_path, values))
    seen = look(tmp_path)
    assert seen.loads == [CALLS[0], CALLS[2]]
    assert seen.state == (
        "salvaged",
        f"1 group list left out, the first {BROKEN}: {odd} cannot be a number of tokens; "
        "the other 2 are kept",
    )
    assert seen.problems == {"impossible_load": (1, None)}


def test_71_a_call_without_a_group_list_is_passed_over(tmp_path: Path) -> None:
    (dump(tmp_path) / BROKEN).write_bytes(torch_file(pickled(None)))
    seen = look(tmp_path)
    assert seen.loads == [CALLS[0], CALLS[2]]
    assert seen.state == (
        "ok",
        f"1 group list without numbers left out: {BROKEN}: it holds None: the call was given no "
        "group list",
    )
    assert seen.problems == {"no_vector": (1, None)}


def test_71_a_list_of_pairs_is_no_list_of_twice_as_many(tmp_path: Path) -> None:
    (dump(tmp_path) / BROKEN).write_bytes(saved(tmp_path, [[0, 10], [1, 25], [2, 30]]))
    seen = look(tmp_path)
    assert [row["load_kind"] for row in seen.rows] == ["counts", "pairs", "counts"]
    assert seen.problems == {"kind_conflict": (1, None)}


@pytest.mark.parametrize("written_again", [False, True])
def test_a_file_that_was_not_completed_is_told(tmp_path: Path, written_again: bool) -> None:
    data = dump(tmp_path)
    left = data / f"{BROKEN}.tmp"
    left.write_bytes(WHOLE[:50])
    if not written_again:
        (data / BROKEN).unlink()
    seen = look(tmp_path)
    if written_again:
        assert (seen.loads, seen.state) == (CALLS, ("ok", None))
        assert seen.problems == {"leftover": (1, None)}
        return
    assert seen.loads == [CALLS[0], CALLS[2]]
    assert seen.state == (
        "salvaged",
        f"1 group list left out, the first {left.name}; the other 2 are kept; "
        "1 group list named in dump.json has no file",
    )
    assert seen.problems == {"leftover": (1, None), "group_list_missing": (1, None)}


def test_75_a_rank_that_is_not_known_is_none(tmp_path: Path) -> None:
    root = tmp_path / "run"
    write_dump(root, step="unknown", rank="", calls=CALLS, group_list_type=1)
    (seen,) = drawn(root, tmp_path / "out", "gmm").values()
    assert seen.loads == CALLS
    assert {(row["step"], row["role"], row["rank_id"]) for row in seen.rows} == {
        (None, "actor_update", None)
    }
    assert seen.state == ("ok", None)


# -- dump.json, stack.json, construct.json -------------------------------------------------------

ENTRIES = {
    f"NPU.npu_grouped_matmul.{n}.forward": entry(np.array(load), 1, n)
    for n, load in enumerate(CALLS)
}


def told(tmp_path: Path) -> bytes:
    return write_dump_json(tmp_path / "made", ENTRIES).read_bytes()


SECOND_ENTRY = b'"NPU.npu_grouped_matmul.1.forward"'
DAMAGE: Mapping[str, tuple[Any, list[str | None]]] = {
    "cut": (lambda raw: raw[: raw.index(SECOND_ENTRY) + 60], ["counts", None, None]),
    "cut at its end": (lambda raw: raw[:-3], ["counts"] * 3),
    "zero bytes": (lambda raw: b"", [None] * 3),
    "only zeros": (lambda raw: bytes(500), [None] * 3),
    "a login page": (lambda raw: b"<html></html>", [None] * 3),
    "a list": (lambda raw: b"[]", [None] * 3),
    "a packed one that is cut": (
        # Stored, not packed: 10 bytes of header, 5 of the block (RFC 1952, RFC 1951).
        lambda raw: b"".join(
            (
                b"\x1f\x8b\x08" + bytes(7) + b"\x01",
                struct.pack("<HH", len(raw), 65_535 - len(raw)),
                raw[: raw.index(SECOND_ENTRY) + 60],
            )
        ),
        ["counts", None, None],
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_dump_json_costs_what_it_told(tmp_path: Path, case: str) -> None:
    damaged, kinds = DAMAGE[case]
    dump(tmp_path)
    (tmp_path / "run" / RANK / "dump.json").write_bytes(damaged(told(tmp_path)))
    seen = look(tmp_path)
    # THEN all lists are there, and of those behind the damage it is not told what they hold
    assert seen.loads == CALLS
    assert [row["load_kind"] for row in seen.rows] == kinds
    assert seen.state == ("salvaged", "its damaged dump.json may not tell what they hold")
    assert "dump_damaged" in seen.problems
    unsaid = kinds.count(None)
    assert seen.problems.get("not_in_dump", (0, None))[0] == unsaid


def test_unescaped_quotes_in_an_entry_of_dump_json_cost_that_entry(tmp_path: Path) -> None:
    dump(tmp_path)
    raw = told(tmp_path)
    at = raw.index(SECOND_ENTRY)
    odd = raw[:at] + raw[at:].replace(b'"torch.Tensor"', b'"torch."Tensor""', 1)
    (tmp_path / "run" / RANK / "dump.json").write_bytes(odd)
    seen = look(tmp_path)
    assert (seen.loads, [row["load_kind"] for row in seen.rows]) == (
        CALLS,
        ["counts", None, "counts"],
    )
    assert seen.state == ("salvaged", "its damaged dump.json may not tell what they hold")
    assert seen.problems == {"dump_damaged": (1, None), "not_in_dump": (1, None)}


HARMLESS = {
    "a comma at the end": lambda raw: raw[:-4] + b",\n }\n}",
    "two commas": lambda raw: raw.replace(b'"L1",', b'"L1",,'),
    "a control character": lambda raw: raw.replace(b'"L1"', b'"L\x011"'),
    "a line break": lambda raw: raw.replace(b'"L1"', b'"L\n1"'),
    "no UTF-8": lambda raw: raw.replace(b'"torch.int64"', b'"torch.\xff64"'),
    "UTF-16": lambda raw: raw.decode().encode("utf-16"),
    "infinite statistics": lambda raw: raw.replace(b'"Mean": 2.0', b'"Mean": -inf'),
    "NaN": lambda raw: raw.replace(b'"Mean": 2.0', b'"Mean": NaN'),
    "an integer beyond 64 bits": lambda raw: raw.replace(b'"Max": 3.0', b'"Max": ' + b"9" * 30),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_harms_nothing_in_dump_json_is_not_told(tmp_path: Path, case: str) -> None:
    dump(tmp_path)
    raw = told(tmp_path)
    odd = HARMLESS[case](raw)
    assert odd != raw
    (tmp_path / "run" / RANK / "dump.json").write_bytes(odd)
    seen = look(tmp_path)
    assert (seen.loads, seen.state, seen.problems) == (CALLS, ("ok", None), {})
    assert [row["load_kind"] for row in seen.rows] == ["counts"] * 3


@pytest.mark.parametrize("content", [b"", b'{"0": [["NPU.npu', b"[]"])
def test_a_damaged_stack_json_costs_the_phases(tmp_path: Path, content: bytes) -> None:
    dump(tmp_path)
    (tmp_path / "run" / RANK / "stack.json").write_bytes(content)
    seen = look(tmp_path)
    assert (seen.loads, [row["phase"] for row in seen.rows]) == (CALLS, [None] * 3)
    assert seen.state == ("salvaged", "its damaged stack.json may not tell their phase")
    assert set(seen.problems) == {"stack_damaged"}


@pytest.mark.parametrize("content", [b"", b'{"a', bytes(99)])
def test_construct_json_is_not_needed(tmp_path: Path, content: bytes) -> None:
    dump(tmp_path)
    (tmp_path / "run" / RANK / "construct.json").write_bytes(content)
    seen = look(tmp_path)
    assert (seen.loads, seen.state, seen.problems) == (CALLS, ("ok", None), {})


# -- SGLang's recorder ---------------------------------------------------------------------------

OF_RANK = "expert_distribution_recorder_1773285904.1_%d.pt"


def recording(*counts: tuple[int, ...], rank: int) -> bytes:
    """Passes of one layer, each with the tokens of two experts, as the recorder saves them."""
    records = [
        {
            "forward_pass_id": number,
            "rank": rank,
            "global_physical_count": tensor((1, 2), (2, 1), 0, 2, key=str(number)),
        }
        for number in range(len(counts))
    ]
    content = {"records": records, "last_physical_to_logical_map": None}
    data = {str(number): longs(*values) for number, values in enumerate(counts)}
    return torch_file(pickled(content), data)


PASSES = [(1, 2), (3, 4), (5, 6)]
RECORDING = recording(*PASSES, rank=3)
FLIPPED = bytearray(RECORDING)
FLIPPED[RECORDING.index(longs(3, 4))] ^= 1
RECORDED = {
    "cut": (RECORDING[:-30], KILLED),
    "a wrong checksum": (bytes(FLIPPED), "the entry '1' is damaged: its checksum is wrong"),
    "zero bytes": (b"", "it is empty (0 bytes): its writer was killed"),
    "only zeros": (bytes(99), "it holds only zero bytes: the data never reached the disk"),
    "code to be run": (
        torch_file(pickled(call("os.system", "true"))),
        "it would run os.system: refused, nothing was executed",
    ),
}


def look_at_recording(tmp_path: Path, content: bytes) -> Seen:
    root = tmp_path / "run"
    root.mkdir()
    (root / (OF_RANK % 3)).write_bytes(content)
    (root / (OF_RANK % 4)).write_bytes(recording(*PASSES, rank=4))
    found = drawn(root, tmp_path / "out", "sglang")
    sound = found[OF_RANK % 4]
    assert [tuple(load) for load in sound.loads] == PASSES
    assert sound.state == ("ok", None)
    return found[OF_RANK % 3]


@pytest.mark.parametrize("case", RECORDED)
def test_a_recording_that_cannot_be_read_says_why(tmp_path: Path, case: str) -> None:
    content, why = RECORDED[case]
    seen = look_at_recording(tmp_path, content)
    assert seen.loads == []
    assert seen.state[0] == "failed" and seen.state[1] is not None
    assert seen.state[1].endswith(why)


def test_a_pass_of_impossible_numbers_costs_only_itself(tmp_path: Path) -> None:
    seen = look_at_recording(tmp_path, recording((1, 2), (-3, 4), (5, 6), rank=3))
    assert seen.loads == [[1, 2], [5, 6]]
    assert seen.state == (
        "salvaged",
        "1 layer of a pass left out, the first pass 1, layer 0: -3 cannot be a number of tokens",
    )
