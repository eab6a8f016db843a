"""A torch trace is good in every layout that VeRL ever wrote, and bad for a reason."""

import gzip
import json
from pathlib import Path

import pytest

from rl_insight.data.rules import TorchJsonFieldValidRule, TorchJsonFileExistsRule
from tests.data_findings import found

KIND = "multi_json_torch"
EVENT = {"ph": "X", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 5.25, "dur": 1.5}
INFO = {"rank": 0, "world_size": 2, "backend": "nccl"}
OLD = "actor_update/prof_rank-0_1_20260101000000000.json.gz"
FLAT = "actor_actor-update_step1_rank0-of-2_pid7_20260814122731089.json.gz"


def text(events: object = (EVENT,), info: object = INFO, **more: object) -> str:
    told = {} if info is None else {"distributedInfo": info}
    return json.dumps({"schemaVersion": 1, **told, **more, "traceEvents": events})


def trace(root: Path, name: str = OLD, content: str | bytes | None = None) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = text() if content is None else content
    raw = raw.encode() if isinstance(raw, str) else raw
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


@pytest.mark.parametrize(
    "name",
    [
        OLD,
        FLAT,
        "actor_update/prof_rank-0_031847.json.gz",
        "a/b/c/prof_rank-3.json.gz",
        "agent_loop_rollout_replica_0/host_372640.1771730291744166997.pt.trace.json.gz",
        "agent_loop_rollout_replica_0/1771730291.5-TP-0.trace.json.gz",
        "rank0/any name.json",
    ],
)
def test_a_good_trace_has_nothing_to_say_wherever_it_lies(name: str, tmp_path: Path) -> None:
    path = trace(tmp_path, name)
    assert found(KIND, tmp_path) == []
    assert found(KIND, path) == []
    for rule in (TorchJsonFileExistsRule(), TorchJsonFieldValidRule()):
        assert rule.check(str(tmp_path)) is True
        assert rule.check(tmp_path) is True


def test_keys_may_stand_behind_the_events(tmp_path: Path) -> None:
    late = json.dumps({"traceEvents": [EVENT], "distributedInfo": INFO})
    trace(tmp_path, content=late)
    assert found(KIND, tmp_path) == []


@pytest.mark.parametrize(
    "event",
    [
        {**EVENT, "pid": "Spans", "tid": "PyTorch Profiler"},
        {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 1, "s": "g"},
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
        {**EVENT, "args": {"Comms Id": 18446744073709551615}},
        {"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 2, "ts": 1.0},
    ],
    ids=["text as pid", "no pid", "metadata without a time", "large number", "flow"],
)
def test_events_that_real_traces_hold_are_good(event: object, tmp_path: Path) -> None:
    trace(tmp_path, content=text([EVENT, event]))
    assert found(KIND, tmp_path) == []


def test_a_trace_that_tells_only_its_rank_is_good(tmp_path: Path) -> None:
    trace(tmp_path, content=text(info={"rank": 0}))
    said = "distributedInfo does not have world_size, backend"
    assert found(KIND, tmp_path) == [("info", OLD, said)]


def test_the_path_tells_the_rank_where_the_trace_does_not(tmp_path: Path) -> None:
    trace(tmp_path, content=text(info=None))
    trace(tmp_path, "x/some.json", text(info={"backend": "nccl", "world_size": 1}))
    assert found(KIND, tmp_path) == [
        ("info", OLD, "distributedInfo tells no rank; its path says 0"),
        ("warning", "x/some.json", "neither distributedInfo nor its name tells the rank"),
    ]


def test_a_bare_list_of_the_legacy_exporter_is_a_trace(tmp_path: Path) -> None:
    trace(tmp_path, "x/some.json", json.dumps([{**EVENT, "pid": "CPU functions"}]))
    assert [one[0] for one in found(KIND, tmp_path)] == ["warning"]


@pytest.mark.parametrize("field", ["ph", "name", "pid", "tid", "ts"])
def test_events_without_a_field_are_counted(field: str, tmp_path: Path) -> None:
    odd = {key: value for key, value in EVENT.items() if key != field}
    trace(tmp_path, content=text([EVENT, odd, EVENT]))
    assert found(KIND, tmp_path) == [("error", OLD, f"1 of its 3 events have no «{field}»")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no events"),
        (text([]), "no events"),
        (text([{"ph": "M", "name": "n", "pid": 1, "tid": 2}]), "no timed events"),
        (text()[:-30], "truncated"),
        ('{"a": [1, 2]}', "another kind"),
        ("PK\x03\x04", "zip archive"),
        (text([EVENT, EVENT]).replace("5.25", "@@", 1), "event undecodable"),
    ],
    ids=["no byte", "no event", "names only", "cut", "other JSON", "zip", "no number"],
)
def test_what_holds_nothing_or_lost_something_is_an_error(
    content: str, words: str, tmp_path: Path
) -> None:
    trace(tmp_path, content=content)
    trace(tmp_path, FLAT)
    errors = [one for one in found(KIND, tmp_path) if one[0] == "error"]
    assert {path for _, path, _ in errors} == {OLD}
    assert words in errors[0][2]
    assert str(tmp_path) not in errors[0][2]


def test_what_can_be_repaired_for_certain_is_no_error(tmp_path: Path) -> None:
    trace(tmp_path, content=text().replace("aten::mm", 'lib = "ns"\n'))
    ((severity, path, said),) = found(KIND, tmp_path)
    assert (severity, path) == ("info", OLD)
    assert "event repaired" in said


def test_a_packed_trace_that_is_cut_is_an_error(tmp_path: Path) -> None:
    path = trace(tmp_path, content=text([{**EVENT, "ts": number} for number in range(5_000)]))
    path.write_bytes(path.read_bytes()[:-200])
    words = {one[2].partition(",")[0] for one in found(KIND, tmp_path) if one[0] == "error"}
    assert "gzip truncated" in words


def test_what_might_be_taken_for_a_trace_is_told(tmp_path: Path) -> None:
    trace(tmp_path)
    trace(tmp_path, "agent_loop_rollout_replica_0/host_1.async_llm.17.pt.trace.json.gz")
    trace(tmp_path, "actor_update/prof_rank-1_1_2.json.tmp", "{")
    trace(tmp_path, "actor_update/settings.json", '{"a": 1}')
    (tmp_path / "ref_compute_log_prob").mkdir()
    findings = found(KIND, tmp_path)
    assert {(severity, Path(path).name) for severity, path, _ in findings} == {
        ("info", "host_1.async_llm.17.pt.trace.json.gz"),
        ("info", "prof_rank-1_1_2.json.tmp"),
        ("info", "settings.json"),
        ("warning", "ref_compute_log_prob"),
    }


def test_front_end_traces_alone_are_nothing(tmp_path: Path) -> None:
    trace(tmp_path, "replica/host_1.async_llm.17.pt.trace.json.gz")
    for rule in (TorchJsonFileExistsRule(), TorchJsonFieldValidRule()):
        assert rule.check(tmp_path) is False
        assert "no torch trace" in rule.error_message


def test_events_at_time_0_are_lost_unless_all_times_are_small(tmp_path: Path) -> None:
    # GIVEN a trace that begins 50 days after its base, and the profiler's own span at 0
    late = {**EVENT, "ts": 50 * 86_400 * 1e6}
    zeros = [{**EVENT, "ts": zero} for zero in (0, 0.0)]
    span = {**EVENT, "pid": "Spans", "ts": 0}
    trace(tmp_path, content=text([late, *zeros, span]))
    told = "2 events at time 0 were left out: the others begin 4,320,000 s after that"
    assert found(KIND, tmp_path) == [("error", OLD, told)]
    # AND one whose times count from its own beginning
    trace(tmp_path, content=text([EVENT, *zeros]))
    assert found(KIND, tmp_path) == []
