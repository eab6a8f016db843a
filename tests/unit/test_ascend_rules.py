"""An Ascend capture is good in every form that a real one has, and bad for a reason."""

import json
import sqlite3
import tracemalloc
from pathlib import Path

import pytest

from rl_insight.data.rules import MstxJsonFieldValidRule, MstxJsonFileExistsRule
from rl_insight.errors import ReadError
from rl_insight.readers.small_json import json_object
from tests.ascend_captures import BUSY, database_in, info, overlap, process, task, write_text
from tests.data_findings import found

KIND = "multi_json_mstx"
WHOLE = info(0, torch_npu_version="2.7.1", cann_version="8.3")
TRACE = "actor_update/x_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json"
INFO = "actor_update/x_ascend_pt/profiler_info_0.json"


def capture(root: Path, events: object = None, told: object = WHOLE, **more: object) -> Path:
    return write_text(root / "actor_update" / "x_ascend_pt", events, told=told, **more)  # type: ignore[arg-type]


def test_a_good_capture_has_nothing_to_say(tmp_path: Path) -> None:
    capture(tmp_path, metadata={"role": "actor_update"})
    assert found(KIND, tmp_path) == []


@pytest.mark.parametrize("depth", ["", "a/b/1/actor_update"])
def test_captures_may_be_nested_or_be_the_folder_itself(depth: str, tmp_path: Path) -> None:
    folder = write_text(tmp_path / depth / "rank0_ascend_pt", told=WHOLE)
    assert found(KIND, tmp_path) == []
    assert found(KIND, folder) == []


def test_rows_without_arguments_and_ranks_as_text_are_good(tmp_path: Path) -> None:
    assert all("args" not in one for one in BUSY if one["ph"] == "X")
    capture(tmp_path, told={**WHOLE, "rank_id": "12"})
    assert found(KIND, tmp_path) == []


def test_what_older_versions_did_not_write_is_told_and_no_error(tmp_path: Path) -> None:
    capture(tmp_path, told=info(0))
    text = "it does not have torch_npu_version, cann_version"
    assert found(KIND, tmp_path) == [("info", INFO, text)]


def test_a_database_alone_is_good(tmp_path: Path) -> None:
    folder = tmp_path / "actor_update" / "x_ascend_pt"
    database_in(folder)
    (folder / "profiler_info_3.json").write_text(json.dumps(WHOLE))
    text = "its result is a database only, which is read"
    assert found(KIND, tmp_path) == [("info", "actor_update/x_ascend_pt", text)]


def test_a_capture_without_a_rank_is_in_doubt(tmp_path: Path) -> None:
    capture(tmp_path, told={**WHOLE, "rank_id": None}, told_as="profiler_info.json")
    ((severity, path, text),) = found(KIND, tmp_path)
    assert (severity, path) == ("warning", "actor_update/x_ascend_pt/profiler_info.json")
    assert "rank_id" in text


def test_a_capture_without_profiler_info_is_in_doubt(tmp_path: Path) -> None:
    (capture(tmp_path) / "profiler_info_0.json").unlink()
    ((severity, path, text),) = found(KIND, tmp_path)
    assert (severity, path) == ("warning", "actor_update/x_ascend_pt")
    assert "profiler_info" in text


@pytest.mark.parametrize("rank", ["abc", -1, [0], 1e99, True])
def test_a_rank_that_is_none_is_an_error(rank: object, tmp_path: Path) -> None:
    capture(tmp_path, told={**WHOLE, "rank_id": rank})
    assert found(KIND, tmp_path) == [("error", INFO, "its rank_id is no rank")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{not json", "no JSON"),
        ("", "no JSON"),
        ("[]", "no JSON object"),
        ("[" * 100_000, "no JSON"),
        (b"\xff\xfe\x9f", "no JSON"),
    ],
)
def test_small_files_that_are_damaged_are_errors_and_never_quoted(
    content: str | bytes, words: str, tmp_path: Path
) -> None:
    capture(tmp_path, told=content, metadata=content)
    findings = found(KIND, tmp_path)
    assert {(severity, Path(path).name) for severity, path, _ in findings} == {
        ("error", "profiler_info_0.json"),
        ("error", "profiler_metadata.json"),
    }
    assert all(words in text for _, _, text in findings)


def test_of_a_small_file_that_is_huge_16_mib_are_read(tmp_path: Path) -> None:
    path = tmp_path / "profiler_metadata.json"
    with path.open("wb") as file:
        file.write(b"{")
        file.truncate(8 << 30)
    tracemalloc.start()
    with pytest.raises(ReadError, match="more than 16 MiB"):
        json_object(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 48 << 20


def test_a_capture_that_was_never_analysed_tells_the_remedy(tmp_path: Path) -> None:
    folder = tmp_path / "actor_update" / "x_ascend_pt"
    (folder / "PROF_1_2_3").mkdir(parents=True)
    (folder / "PROF_1_2_3" / "raw.bin").write_bytes(b"0")
    (folder / "profiler_info_0.json").write_text(json.dumps(WHOLE))
    capture(tmp_path / "good")
    ((severity, path, text),) = found(KIND, tmp_path)
    assert (severity, path) == ("error", "actor_update/x_ascend_pt")
    assert "raw data only" in text
    assert "trace_view.json" in text
    assert "rl-insight preprocess" in text


def test_a_trace_collected_at_level_none_is_in_doubt(tmp_path: Path) -> None:
    events = [*process(7, "Ascend Hardware", sort_index=13), task("MatMul", "AI_CORE", 1, 2, pid=7)]
    capture(tmp_path, events)
    ((severity, path, text),) = found(KIND, tmp_path)
    assert (severity, path) == ("warning", TRACE)
    assert "level_none" in text


@pytest.mark.parametrize("field", ["ph", "name", "pid", "tid", "ts"])
def test_events_without_a_field_are_counted(field: str, tmp_path: Path) -> None:
    odd = {key: value for key, value in overlap("Free", 1, 2).items() if key != field}
    capture(tmp_path, [*BUSY, odd, odd])
    count = len(BUSY) + 2
    assert ("error", TRACE, f"2 of its {count} events have no «{field}»") in found(KIND, tmp_path)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ("[]", "no events"),
        ("", "no events"),
        (process(1, "Overlap Analysis"), "no timed events"),
        ('{"a": 1}', "JSON of another kind"),
        ("hello", "no trace"),
        (json.dumps(BUSY)[:-20], "truncated"),
    ],
    ids=["no event", "no byte", "names only", "no trace", "no JSON", "cut"],
)
def test_traces_that_hold_nothing_or_lost_something_are_errors(
    events: object, words: str, tmp_path: Path
) -> None:
    capture(tmp_path, events)
    severity, path, text = found(KIND, tmp_path)[0]
    assert (severity, path) == ("error", TRACE)
    assert words in text
    assert str(tmp_path) not in text


def test_a_damaged_database_is_an_error_alone_and_a_doubt_beside_a_good_trace(
    tmp_path: Path,
) -> None:
    folder = capture(tmp_path)
    database = database_in(tmp_path / "other_ascend_pt")
    database.write_bytes(database.read_bytes()[:-4096])
    (folder / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_0.db").write_bytes(b"")
    findings = {path: (severity, text) for severity, path, text in found(KIND, tmp_path)}
    beside = "actor_update/x_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db"
    alone = "other_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_3.db"
    assert findings[beside][0] == "warning"
    assert "0 bytes" in findings[beside][1]
    assert findings[alone][0] == "error"
    assert "breaks off" in findings[alone][1]


def test_a_damaged_page_in_the_middle_is_an_error(tmp_path: Path) -> None:
    rows = [(number, f"name {number}") for number in range(2_000)]
    path = database_in(tmp_path / "x_ascend_pt", 0, STRING_IDS=("id, value", rows))
    raw = bytearray(path.read_bytes())
    at = raw.index(b"name 1000")
    raw[at - at % 4096 : at - at % 4096 + 4096] = bytes(4096)
    path.write_bytes(raw)
    ((_, _, text),) = [one for one in found(KIND, tmp_path) if one[0] == "error"]
    assert text.startswith("the database is damaged: ")


def test_rows_that_break_a_constraint_are_no_damage(tmp_path: Path) -> None:
    path = database_in(tmp_path / "x_ascend_pt", 0)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (NULL)")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = 'CREATE TABLE t (a NOT NULL)' WHERE name = 't'"
        )
    connection.close()
    assert "error" not in {severity for severity, _, _ in found(KIND, tmp_path)}


def test_a_good_database_spares_reading_the_trace_beside_it(tmp_path: Path) -> None:
    folder = capture(tmp_path, "nothing of the kind")
    database_in(folder, 0)
    assert found(KIND, tmp_path) == []


def test_a_database_without_timed_events_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "x_ascend_pt"
    database_in(folder, 0, TASK=None, COMMUNICATION_OP=None, MSTX_EVENTS=None)
    ((_, path, text),) = [one for one in found(KIND, tmp_path) if one[0] == "error"]
    assert path.endswith("ascend_pytorch_profiler_0.db")
    assert "no timed events" in text


def test_a_result_outside_of_a_capture_is_checked_too(tmp_path: Path) -> None:
    (tmp_path / "trace_view.json").write_text(json.dumps(BUSY))
    text = "a result outside of its capture is read all the same"
    assert found(KIND, tmp_path) == [("info", "trace_view.json", text)]
    (tmp_path / "trace_view.json").write_text("[]")
    assert ("error", "trace_view.json", "it holds no events") in found(KIND, tmp_path)


def test_the_documented_rules_take_text_and_path(tmp_path: Path) -> None:
    capture(tmp_path)
    for rule in (MstxJsonFileExistsRule(), MstxJsonFieldValidRule()):
        assert rule.check(str(tmp_path)) is True
        assert rule.check(tmp_path) is True
        (tmp_path / "empty").mkdir(exist_ok=True)
        assert rule.check(tmp_path / "empty") is False
        assert "Ascend capture" in rule.error_message
