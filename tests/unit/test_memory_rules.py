"""The allocations that the Ascend profiler recorded are all there, and are numbers."""

import csv
import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from rl_insight.data import DataChecker, DataValidationError
from rl_insight.data.rules import AscendMemoryFieldValidRule, AscendMemoryFileExistsRule
from tests.data_findings import found

KIND = "ascend_memory"
NAME = "1_2_ascend_pt/ASCEND_PROFILER_OUTPUT/operator_memory.csv"
HEADER = [
    *("Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Active Release Time(us)"),
    *("Duration(us)", "Active Duration(us)", "Allocation Total Allocated(MB)"),
    *("Allocation Total Reserved(MB)", "Allocation Total Active(MB)"),
    *("Release Total Allocated(MB)", "Release Total Reserved(MB)", "Release Total Active(MB)"),
    *("Stream Ptr", "Device Type"),
]
# As torch_npu writes it: a tab behind each time, and nothing where nothing was released.
ROW = ["aten::empty", "0.5", "1779785515596661.420\t", "", "", "", "", "10.5", *"1234567"]
INFO = dict.fromkeys(
    ("config", "start_info", "end_info", "torch_npu_version", "cann_version"), "as it was"
)


def capture(root: Path, rows: object = (ROW,), header: object = HEADER) -> Path:
    """A capture from scratch; `rows` may be the text of the whole file."""
    folder = root / "1_2_ascend_pt"
    output = folder / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (folder / "profiler_info_0.json").write_text(json.dumps({**INFO, "rank_id": "0"}))
    (folder / "profiler_metadata.json").write_text(json.dumps({"ENV_VARIABLES": {}}))
    # No phase, process or thread: only names and stacks matter here.
    event = {"cat": "cpu_op", "name": "aten::empty", "ts": "1000", "dur": 0, "args": {}}
    (output / "trace_view.json").write_text(json.dumps([event]))
    path = output / "operator_memory.csv"
    if isinstance(rows, str | bytes):
        path.write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    else:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    return folder


def test_a_good_capture_passes_at_any_depth(tmp_path: Path) -> None:
    folder = capture(tmp_path / "a" / "b")
    for data in (tmp_path, folder, str(folder)):
        assert DataChecker(KIND, data).run() == []
    for rule in (AscendMemoryFileExistsRule(), AscendMemoryFieldValidRule()):
        assert rule.check(tmp_path) is True
        assert rule.check(str(tmp_path)) is True


@pytest.mark.parametrize("name", ["operator_memory.csv", "trace_view.json"])
def test_a_file_that_is_missing_is_named(name: str, tmp_path: Path) -> None:
    (capture(tmp_path) / "ASCEND_PROFILER_OUTPUT" / name).unlink()
    rule = AscendMemoryFileExistsRule()
    assert rule.check(str(tmp_path)) is False
    assert name in rule.error_message
    with pytest.raises(DataValidationError, match=name):
        DataChecker(KIND, tmp_path).run()


def test_metadata_may_be_missing_and_profiler_info_may_not(tmp_path: Path) -> None:
    folder = capture(tmp_path)
    (folder / "profiler_metadata.json").unlink()
    assert found(KIND, tmp_path) == [("info", "1_2_ascend_pt", "it has no profiler_metadata.json")]
    (folder / "profiler_info_0.json").unlink()
    rule = AscendMemoryFileExistsRule()
    assert rule.check(tmp_path) is False
    assert "profiler_info" in rule.error_message


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("profiler_info_0.json", "{not json", "profiler_info"),
        ("profiler_info_0.json", '{"config": {}}', "rank_id"),
        ("profiler_metadata.json", "{not json", "profiler_metadata.json"),
        ("ASCEND_PROFILER_OUTPUT/trace_view.json", "[]", "trace_view.json"),
        ("ASCEND_PROFILER_OUTPUT/trace_view.json", "", "trace_view.json"),
        ("ASCEND_PROFILER_OUTPUT/trace_view.json", '[{"name": "a"}, {"na', "truncated"),
        ("ASCEND_PROFILER_OUTPUT/trace_view.json", "hello", "trace_view.json"),
        (
            "ASCEND_PROFILER_OUTPUT/operator_memory.csv",
            "Name\naten::empty\n",
            "operator_memory.csv",
        ),
        ("ASCEND_PROFILER_OUTPUT/operator_memory.csv", ",".join(HEADER), "no data rows"),
        ("ASCEND_PROFILER_OUTPUT/operator_memory.csv", "", "Required column missing"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(
    name: str, content: str, words: str, tmp_path: Path
) -> None:
    (capture(tmp_path) / name).write_text(content)
    rule = AscendMemoryFieldValidRule()
    assert rule.check(str(tmp_path)) is False
    assert words in rule.error_message


@pytest.mark.parametrize("column", [1, 2, 5, 7])
@pytest.mark.parametrize("value", ["x", "nan", "inf", "1,5"])
def test_rows_without_a_number_are_counted(column: int, value: str, tmp_path: Path) -> None:
    odd = [*ROW[:column], value, *ROW[column + 1 :]]
    capture(tmp_path, [ROW, odd, ROW, odd])
    text = f"2 of its 4 rows hold no number where one belongs, first «{HEADER[column]}» of row 2"
    assert found(KIND, tmp_path) == [("error", NAME, f"operator_memory.csv: {text}")]


def test_only_what_was_not_released_may_be_empty(tmp_path: Path) -> None:
    capture(tmp_path, [[*ROW[:1], "", *ROW[2:]], ["cut off"]])
    ((_, _, text),) = found(KIND, tmp_path)
    assert "2 of its 2 rows" in text


def test_a_mark_another_order_and_sizes_below_zero_are_good(tmp_path: Path) -> None:
    negative = [*ROW[:1], "-512.0", *ROW[2:]]
    text = "".join(",".join(row[::-1]) + "\r\n" for row in (HEADER, ROW, negative))
    capture(tmp_path, b"\xef\xbb\xbf" + text.encode())
    assert found(KIND, tmp_path) == []


def test_names_that_are_no_utf_8_are_good(tmp_path: Path) -> None:
    text = "\n".join(",".join(row) for row in (HEADER, ["aten::NAME", *ROW[1:]]))
    capture(tmp_path, text.encode().replace(b"NAME", b"\xff\xfe\x00"))
    assert found(KIND, tmp_path) == []


FIRST = ",".join(HEADER).encode() + b"\n"
BOMBS: dict[str, Callable[[], bytes]] = {
    "a line without end": lambda: FIRST + b"1," * (16 << 20),
    "a field without end": lambda: FIRST + b'"' + (b"x" * 1_023 + b"\n") * (32 << 10),
    "a row without end": lambda: FIRST + b'"a\n",' * (6 << 20),
    "packed zero bytes": lambda: gzip.compress(bytes(64 << 20), 1),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_memory_stays_bounded_whatever_the_file_holds(kind: str, tmp_path: Path) -> None:
    capture(tmp_path, BOMBS[kind]())
    tracemalloc.start()
    findings = found(KIND, tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(severity, path) for severity, path, _ in findings] == [("error", NAME)]
    # Half of what each of them holds, or would hold.
    assert peak < 16 << 20
