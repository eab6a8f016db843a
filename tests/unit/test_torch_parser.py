"""The torch parser on small traces made here; the numbers in brackets are rows of the case list."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rl_insight import tables
from rl_insight.errors import ReadError
from rl_insight.parsers.base import Source
from rl_insight.parsers.torch import PARSER
from tests.torch_traces import (
    ARGS,
    BASE_NS,
    DAY_US,
    MS,
    NOW_US,
    PATH,
    SINCE_BASE_US,
    Event,
    annotation,
    kernel,
    lane,
    parse,
    parse_file,
    profiler,
    rows,
    stage,
    stages,
    times,
    write,
    x,
)

# -- who wrote it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("info", "rank", "world"),
    [
        ({"backend": "nccl", "rank": 3, "world_size": 8}, 3, 8),
        ({"rank": 3}, 3, None),  # [21]
        ({"rank": "3", "world_size": "8"}, 3, 8),
        ({"rank": 3.0, "world_size": 8}, 3, 8),
        ({"backend": "nccl"}, None, None),  # [21]
        ({"rank": -1, "world_size": 0}, None, 0),
        ({"rank": True}, None, None),
        ({"rank": 2**31}, None, None),
        ([], None, None),
        (None, None, None),
    ],
)
def test_rank_and_world_size_are_what_distributed_info_says(
    tmp_path: Path, info: object, rank: int | None, world: int | None
) -> None:
    parsed = parse(tmp_path, x("a", 10, 5), distributedInfo=info)
    assert parsed.status == "ok"
    assert (lane(parsed)["rank_id"], lane(parsed)["world_size"]) == (rank, world)


def test_a_trace_without_distributed_info_is_read_and_leaves_its_rank_to_its_name(  # [20]
    tmp_path: Path,
) -> None:
    parsed = parse(tmp_path, x("a", 10, 5))
    assert (parsed.status, lane(parsed)["rank_id"], stage(parsed)["rank_id"]) == ("ok", None, None)


def test_metadata_after_a_long_list_of_events_counts_like_metadata_before_it(  # [22]
    tmp_path: Path,
) -> None:
    events = [x("op", 10 + i, 1) for i in range(50_000)]
    for event in events:
        event["ts"] = float(str(event["ts"])) - BASE_NS // 1000
    content = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "distributedInfo": {"rank": 5, "world_size": 8},
        "host_name": "node-1",
        "baseTimeNanoseconds": BASE_NS,
        "traceName": "/tmp/x.json",
    }
    write(tmp_path, PATH, content)
    parsed = parse_file(tmp_path, PATH)
    assert (lane(parsed)["rank_id"], lane(parsed)["host"]) == (5, "node-1")
    assert lane(parsed)["clock"] == "utc"
    assert times(stage(parsed)) == (10, 50_000)
    assert stage(parsed)["host"] == "node-1"


def test_eight_files_of_one_wrong_name_keep_the_ranks_that_they_say(tmp_path: Path) -> None:  # [36]
    ranks = [
        lane(
            parse(
                tmp_path,
                x("a", 10, 5),
                path=f"r0-{n}.pt.trace.json.gz",
                distributedInfo={"rank": n},
            )
        )["rank_id"]
        for n in range(8)
    ]
    assert ranks == list(range(8))


def test_two_replicas_whose_files_both_say_rank_0_give_a_lane_each(tmp_path: Path) -> None:  # [34]
    for replica in range(2):
        name = f"rollout-replica{replica}-globalrank{2 * replica}_1771730291-TP-0.trace.json.gz"
        write(tmp_path, name, {"distributedInfo": {"rank": 0}, "traceEvents": [x("a", 10, 5)]})
    names = sorted(path.name for path in tmp_path.iterdir())
    lanes = []
    for number, name in enumerate(names):
        source = Source(f"source{number}", name, tmp_path, (name,))
        lanes.append(lane(PARSER.parse(source, {})))
    assert [row["lane_id"] for row in lanes] == ["source0-0", "source1-0"]
    assert [row["rank_id"] for row in lanes] == [0, 0]


def test_the_process_and_the_device_are_those_of_the_events(tmp_path: Path) -> None:
    parsed = parse(tmp_path, kernel("k", 10, 5, pid=3), x("a", 10, 5, pid=815))
    assert (lane(parsed)["pid"], lane(parsed)["device"]) == (815, 3)


# -- when ----------------------------------------------------------------------------------------


def test_relative_and_absolute_times_meet_on_one_clock(tmp_path: Path) -> None:  # [23]
    old = parse(tmp_path, {**x("a", 1, 1), "ts": NOW_US + 0.5, "dur": 100})
    new = parse(
        tmp_path,
        {**x("a", 1, 1), "ts": SINCE_BASE_US + 0.111, "dur": 100.5},
        baseTimeNanoseconds=BASE_NS,
    )
    assert lane(old)["clock"] == lane(new)["clock"] == "utc"
    assert stage(old)["start_ns"] == NOW_US * 1000 + 500
    assert stage(new)["start_ns"] == NOW_US * 1000 + 111
    assert stage(new)["duration_ns"] == 100_500


def test_two_bases_a_quarter_apart_give_times_a_quarter_apart(tmp_path: Path) -> None:  # [23]
    quarter_ns = 7_889_238 * 10**9
    starts = []
    for base in (BASE_NS - quarter_ns, BASE_NS):
        event = {**x("a", 1, 1), "ts": 1000.5, "dur": 10}
        parsed = parse(tmp_path, event, baseTimeNanoseconds=base)
        starts.append(stage(parsed)["start_ns"])
    assert starts == [BASE_NS - quarter_ns + 1_000_500, BASE_NS + 1_000_500]


def test_nanoseconds_of_an_absolute_time_survive(tmp_path: Path) -> None:  # [24]
    # 1712195495406752.812 has 19 digits; the nearest double is …752.75.
    text = (
        b'{"displayTimeUnit":"ns","traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,'
        b'"tid":1,"ts":1712195495406752.812,"dur":0.125}]}'
    )
    write(tmp_path, PATH, text)
    row = stage(parse_file(tmp_path, PATH))
    # "ns" is what a viewer should show: ts and dur are µs all the same.
    assert (row["start_ns"], row["duration_ns"]) == (1_712_195_495_406_752_812, 125)


def test_a_base_is_not_added_to_times_that_are_absolute_already(tmp_path: Path) -> None:
    parsed = parse(tmp_path, x("a", 10, 5), baseTimeNanoseconds=BASE_NS)
    assert times(stage(parsed)) == (10, 5)
    assert parsed.problems.count("base_ignored") == 1


def test_times_without_a_base_are_marked_as_relative(tmp_path: Path) -> None:
    parsed = parse(tmp_path, {**x("a", 1, 1), "ts": 633, "dur": 54})
    assert (lane(parsed)["clock"], stage(parsed)["start_ns"]) == ("relative", 633_000)


def test_times_as_text_are_read(tmp_path: Path) -> None:
    parsed = parse(tmp_path, x("a", "1771730327316353.626", "12.5"))
    assert stage(parsed)["start_ns"] == 1_771_730_327_316_353_626


def test_two_hosts_whose_clocks_differ_keep_their_difference(tmp_path: Path) -> None:  # [40]
    here = stage(parse(tmp_path, x("a", 10, 5)))
    there = stage(parse(tmp_path, x("a", 10 + 7_000_000, 5)))
    assert int(str(there["start_ns"])) - int(str(here["start_ns"])) == 7_000 * MS


# -- what does not count -------------------------------------------------------------------------


def test_the_profilers_own_span_is_the_capture_and_no_activity(tmp_path: Path) -> None:  # [29]
    parsed = parse(tmp_path, profiler(1, 1_000), x("a", 100, 50), x("b", 200, 50))
    assert times(stage(parsed)) == (100, 150)
    row = lane(parsed)
    assert row["capture_start_ns"] == (NOW_US + 1) * 1000
    assert row["capture_end_ns"] == (NOW_US + 1_001) * 1000
    assert parsed.problems.count("profiler_span") == 1


def test_the_profilers_own_span_is_known_without_its_category(tmp_path: Path) -> None:
    span = profiler(1, 1_000)
    del span["cat"]
    assert times(stage(parse(tmp_path, span, x("a", 100, 50)))) == (100, 50)


def test_without_that_span_the_capture_goes_from_first_to_last_event(tmp_path: Path) -> None:
    row = lane(parse(tmp_path, x("a", 100, 50), x("b", 200, 50)))
    assert row["capture_start_ns"] == (NOW_US + 100) * 1000
    assert row["capture_end_ns"] == (NOW_US + 250) * 1000


def test_two_spans_of_the_profiler_that_contradict_each_other_are_not_believed(
    tmp_path: Path,
) -> None:
    early = {**profiler(1, 1_000), "ts": 5_000_000}
    stray = {**x("stray", 1, 1), "ts": 5_000_010}
    parsed = parse(tmp_path, early, profiler(1, 1_000), stray, x("a", 100, 50), x("b", 200, 50))
    assert times(stage(parsed)) == (100, 150)
    assert lane(parsed)["capture_start_ns"] == (NOW_US + 100) * 1000


def test_an_event_outside_the_profilers_span_widens_the_capture(tmp_path: Path) -> None:
    row = lane(parse(tmp_path, profiler(100, 1_000), x("a", 50, 60)))
    assert row["capture_start_ns"] == (NOW_US + 50) * 1000


def test_thousands_of_kernels_at_time_0_do_not_stretch_the_stage(tmp_path: Path) -> None:  # [25]
    zeros = [kernel("k", 0, 0) for _ in range(5_000)]
    parsed = parse(tmp_path, *zeros, x("a", 100, 50))
    assert times(stage(parsed)) == (100, 50)
    assert parsed.problems.count("zero_time") == 5_000
    assert rows(parsed, "breakdown") == []


def test_time_0_is_a_time_where_all_times_are_small(tmp_path: Path) -> None:
    events = [{**x("a", 1, 1), "ts": 0, "dur": 10}, {**x("b", 1, 1), "ts": 5, "dur": 10}]
    row = stage(parse(tmp_path, *events))
    assert (row["start_ns"], row["duration_ns"]) == (0, 15_000)


def test_time_0_is_no_time_among_times_of_minutes_after_it(tmp_path: Path) -> None:
    # A clock that counts from the start of the machine: ten minutes.
    events = [{**x("a", 1, 1), "ts": 0, "dur": 10}, {**x("b", 1, 1), "ts": 600_000_000, "dur": 10}]
    assert stage(parse(tmp_path, *events))["duration_ns"] == 10_000


def test_a_trace_with_nothing_but_time_0_is_still_drawn(tmp_path: Path) -> None:
    assert stage(parse(tmp_path, {**x("a", 1, 1), "ts": 0, "dur": 10}))["duration_ns"] == 10_000


def test_a_trace_with_nothing_but_time_0_after_a_base_has_no_times(tmp_path: Path) -> None:
    # GIVEN a whole capture whose clock gave 0 each time, and the base of the quarter
    events = [profiler(0, 9_000), annotation("actor_update", 0, 8_000)]
    events += [kernel(f"gemm_{number}", 0, 50) for number in range(3)]
    # WHEN it is read
    parsed = parse(tmp_path, *events, baseTimeNanoseconds=BASE_NS)
    # THEN nothing is drawn weeks before all other ranks
    assert parsed.status == "empty"
    assert rows(parsed, "spans") == []
    assert lane(parsed)["capture_start_ns"] is None
    assert parsed.problems.count("zero_time") == 4  # all but the profiler's own span
    assert parsed.detail == (
        "no timed events: 4 of its 5 events have an impossible time, such as "
        "'actor_update': ts 0, dur 8000"
    )


@pytest.mark.parametrize(
    ("ts", "dur", "code"),
    [
        (50, 8 * DAY_US, "impossible_duration"),
        (50, 2 * DAY_US, "impossible_duration"),  # reaches far outside the capture
        (50, -1, "negative_duration"),
        (-1, 5, "negative_time"),
        (-DAY_US, 5, "negative_time"),
        (50, "abc", "no_time"),
        ("soon", 5, "no_time"),
        (30 * DAY_US, 5, "outside_capture"),
    ],
)
def test_an_impossible_time_is_counted_and_stretches_nothing(
    tmp_path: Path, ts: float | str, dur: float | str, code: str
) -> None:
    parsed = parse(tmp_path, x("bad", ts, dur), x("a", 100, 50), x("b", 200, 50))
    assert times(stage(parsed)) == (100, 150)
    assert parsed.problems.count(code) == 1
    assert lane(parsed)["capture_end_ns"] == (NOW_US + 250) * 1000


def test_an_impossible_annotation_is_no_stage(tmp_path: Path) -> None:
    parsed = parse(tmp_path, annotation("update_actor", 50, 8 * DAY_US), x("a", 100, 50))
    assert stage(parsed)["raw_name"] is None
    assert times(stage(parsed)) == (100, 50)


def test_an_event_of_minutes_counts_in_a_capture_of_minutes(tmp_path: Path) -> None:
    minutes = 20 * 60 * 1_000_000
    parsed = parse(
        tmp_path, profiler(1, minutes + 100), annotation("update_actor", 10, minutes), x("a", 20, 5)
    )
    assert times(stage(parsed)) == (10, minutes)


def test_the_only_event_of_a_capture_may_be_long(tmp_path: Path) -> None:
    assert times(stage(parse(tmp_path, x("a", 10, 10_083_720)))) == (10, 10_083_720)


def test_the_only_event_of_a_capture_may_not_last_for_eight_days(tmp_path: Path) -> None:
    parsed = parse(tmp_path, x("a", 10, 8 * DAY_US))
    assert (parsed.status, parsed.problems.count("impossible_duration")) == ("empty", 1)


def test_an_event_that_outlasts_the_profilers_span_many_times_does_not_count(
    tmp_path: Path,
) -> None:
    parsed = parse(tmp_path, profiler(1, 1_000_000), x("a", 10, 50), x("b", 100, 60_000_000))
    assert times(stage(parsed)) == (10, 50)
    assert parsed.problems.count("impossible_duration") == 1


def test_projections_of_annotations_on_the_device_are_no_activity(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path, x("a", 100, 50), kernel("update_actor", 10, 900, "gpu_user_annotation")
    )
    assert times(stage(parsed)) == (100, 50)
    assert rows(parsed, "breakdown") == []


def test_metadata_rows_instants_and_string_pids_are_no_activity(tmp_path: Path) -> None:  # [29]
    parsed = parse(
        tmp_path,
        {
            "ph": "i",
            "s": "g",
            "name": "Record Window End",
            "pid": "",
            "tid": "",
            "ts": NOW_US + 900,
        },
        {"ph": "M", "name": "process_name", "pid": "Spans", "tid": 0, "ts": 0.0, "args": {}},
        x("a", 100, 50, pid="CPU functions", tid="main"),
        {"ph": "s", "cat": "ac2g", "id": 1, "pid": 0, "tid": 7, "ts": NOW_US + 950},
    )
    assert times(stage(parsed)) == (100, 50)
    assert (parsed.status, parsed.events, lane(parsed)["pid"]) == ("ok", 4, None)


def test_a_bare_list_of_events_is_a_trace_without_a_rank(tmp_path: Path) -> None:  # [11]
    events = [
        {"name": "aten::mul", "ph": "X", "ts": 633, "dur": 54, "tid": 1, "pid": "CPU functions"}
    ]
    write(tmp_path, PATH, events)
    parsed = parse_file(tmp_path, PATH)
    assert (parsed.status, lane(parsed)["rank_id"]) == ("ok", None)
    assert stage(parsed)["duration_ns"] == 54_000


def test_steps_of_the_profiler_are_not_needed_and_no_ranges(tmp_path: Path) -> None:  # [31]
    without = parse(tmp_path, x("a", 100, 50))
    with_steps = parse(tmp_path, annotation("ProfilerStep#3", 100, 50), x("a", 100, 50))
    assert times(stage(without)) == times(stage(with_steps)) == (100, 50)
    assert len(rows(with_steps, "spans")) == 1


# -- nothing inside ------------------------------------------------------------------------------


def test_a_trace_of_metadata_rows_only_is_empty_and_still_says_its_rank(
    tmp_path: Path,
) -> None:  # [28]
    row = {
        "ph": "M",
        "name": "process_name",
        "pid": 1,
        "tid": 0,
        "ts": NOW_US,
        "args": {"name": "x"},
    }
    parsed = parse(tmp_path, *[row] * 1_000, distributedInfo={"rank": 2})
    assert parsed.status == "empty"
    assert parsed.detail == "no timed events: none of its 1,000 events has a duration"
    assert (lane(parsed)["rank_id"], lane(parsed)["capture_start_ns"]) == (2, None)
    assert rows(parsed, "spans") == []


def test_a_trace_whose_only_event_has_no_length_is_empty(tmp_path: Path) -> None:
    assert parse(tmp_path, x("a", 10, 0)).status == "empty"


@pytest.mark.parametrize("content", [b"", b" \n"])
def test_an_empty_file_is_empty(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, PATH, content)
    parsed = parse_file(tmp_path, PATH)
    assert (parsed.status, parsed.detail) == ("empty", "the file is empty")


def test_an_empty_list_of_events_is_empty(tmp_path: Path) -> None:
    assert parse(tmp_path).detail == "the trace holds no events"


@pytest.mark.parametrize(
    "content", [{"config": {}, "rank_id": 0}, [{"name": "x", "value": 1}], {"traceEvents": [{}]}]
)
def test_json_that_is_no_trace_is_skipped(tmp_path: Path, content: object) -> None:
    write(tmp_path, PATH, content)
    parsed = parse_file(tmp_path, PATH)
    assert parsed.status == "skipped"
    assert parsed.detail == "JSON of another kind: it holds no trace events"


def test_what_is_no_json_cannot_be_read_and_says_so(tmp_path: Path) -> None:  # [42]
    write(tmp_path, PATH, b"<html>404</html>")
    with pytest.raises(ReadError, match="prof_rank-0_1"):
        parse_file(tmp_path, PATH)


def test_pairs_of_a_beginning_and_an_end_are_one_event(tmp_path: Path) -> None:
    def half(phase: str, name: str | None, ts: float, tid: int = 4711) -> Event:
        event = annotation(name or "", ts, 0, tid) | {"ph": phase}
        del event["dur"]
        return event

    # GIVEN pairs inside each other and on two threads, an end too many and a beginning too many
    parsed = parse(
        tmp_path,
        half("E", "orphan", 5),
        half("B", "actor_update", 10),
        half("B", "micro_batch_0", 20),
        half("B", "other", 30, 7),
        half("E", None, 120),
        half("E", "actor_update", 210),
        half("E", "other", 80, 7),
        half("B", "endless", 200),
    )
    assert times(stage(parsed)) == (10, 200)
    found = {row["raw_name"]: times(row) for row in rows(parsed, "spans")}
    assert found["micro_batch_0"] == (20, 100)
    assert {one.code: one.count for one in parsed.problems} == {"unpaired_event": 2}


# -- damaged -------------------------------------------------------------------------------------


def test_a_trace_that_breaks_off_keeps_what_stands_before(tmp_path: Path) -> None:  # [42]
    events = [x(f"op {i}", 10 + 10 * i, 5) for i in range(1_000)]
    whole = json.dumps({"traceEvents": events}).encode()
    cut = whole[: whole.index(b"op 600")]
    write(tmp_path, PATH, cut)
    parsed = parse_file(tmp_path, PATH)
    assert parsed.status == "salvaged"
    assert parsed.events == 600
    assert parsed.detail is not None
    assert "breaks off" in parsed.detail and "600 events" in parsed.detail
    # The last whole event is number 599: from 10 to 10 + 5990 + 5.
    assert times(stage(parsed)) == (10, 5_995)
    assert stage(parsed)["truncated"] is True


def test_a_gzip_stream_that_breaks_off_keeps_what_can_be_unpacked(tmp_path: Path) -> None:
    events = [x(f"op {i * i % 977}", 10 + 10 * i, 5 + i % 7) for i in range(5_000)]
    file = write(tmp_path, PATH + ".gz", {"distributedInfo": {"rank": 1}, "traceEvents": events})
    file.write_bytes(file.read_bytes()[:-200])
    parsed = parse_file(tmp_path, PATH + ".gz")
    assert parsed.status == "salvaged"
    assert 4_000 < parsed.events < 5_000
    assert lane(parsed)["rank_id"] == 1


def test_one_event_of_garbage_costs_only_itself(tmp_path: Path) -> None:
    good = json.dumps(x("good", 100, 50)).encode()
    write(tmp_path, PATH, b'{"traceEvents":[' + good + b',{"ph": "X", oops},' + good + b"]}")
    parsed = parse_file(tmp_path, PATH)
    assert (parsed.status, times(stage(parsed))) == ("salvaged", (100, 50))
    assert stage(parsed)["truncated"] is False


def test_odd_types_in_fields_cost_nothing(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path,
        {**x("a", 100, 50), "pid": 1.5, "tid": None},
        {**x("b", 200, 50), "name": None, "cat": 7},
        {**x("c", 300, 50), "args": [1, {}]},
        kernel("ncclKernel", 100, 10, **{"Collective name": {"x": 1}, "Seq": [1], "dtype": 3}),
        x("d", 100, 5, "user_annotation", tid=["list"]),
    )
    assert times(stage(parsed)) == (100, 250)
    (row,) = rows(parsed, "collectives")
    assert (row["op"], row["group"], row["seq"], row["bytes"]) == ("ncclKernel", None, None, None)


# -- stages --------------------------------------------------------------------------------------


def test_the_stage_is_its_own_annotation_where_there_is_one(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path, x("before", 10, 5), annotation("update_actor", 100, 500), x("a", 700, 5)
    )
    row = stage(parsed)
    assert (row["name"], row["role"], row["raw_name"]) == (
        "actor_update",
        "actor_update",
        "update_actor",
    )
    assert times(row) == (100, 500)
    assert (row["span_id"], row["lane_id"], row["source_id"]) == ("abc-0-0", "abc-0", "abc")
    assert (row["tid"], row["depth"], row["domain"]) == ("4711", 0, "default")


def test_an_engine_without_a_known_stage_is_one_stage_that_its_path_names(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path,
        annotation("execute_context_0(0)_generation_16(16)", 100, 50),
        x("a", 200, 50),
        path="agent_loop_rollout_replica_0/dp0_pp0_tp0_dcp0_ep0_rank0.1771730291744166997.pt.trace.json",
    )
    row, inner = rows(parsed, "spans")
    assert (row["name"], row["role"], row["raw_name"], times(row)) == (None, None, None, (100, 150))
    assert (inner["kind"], inner["depth"], inner["parent_id"]) == ("range", 1, row["span_id"])


def test_an_annotation_that_equals_the_role_of_the_path_is_the_stage(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path,
        annotation("env_step", 100, 500),
        x("a", 10, 5),
        path="env_step/prof_rank-0_1.json",
    )
    assert times(stage(parsed)) == (100, 500)


def test_a_capture_of_a_whole_step_is_split_into_its_stages(tmp_path: Path) -> None:  # [33]
    name = (
        "actor-rollout-ref_train_step1_rank0-of-16_tp0-pp0-dp0_pid10256_20260814122731089.json.gz"
    )
    parsed = parse(
        tmp_path,
        annotation("actor_compute_log_prob", 100, 200),
        annotation("ref_compute_log_prob", 300, 100),
        annotation("actor_update", 500, 400),
        annotation("mini_batch0", 510, 380),
        annotation("micro_batch0", 520, 100),
        kernel("gemm", 150, 20),
        kernel("gemm", 550, 40),
        path=name,
    )
    assert [(row["name"], row["role"], times(row)) for row in stages(parsed)] == [
        ("actor_compute_log_prob", "actor_compute_log_prob", (100, 200)),
        ("ref_compute_log_prob", "ref_compute_log_prob", (300, 100)),
        ("actor_update", "actor_update", (500, 400)),
    ]
    mini, micro = rows(parsed, "spans")[3:]
    assert (mini["mini_batch"], mini["role"], mini["parent_id"]) == (0, "actor_update", "abc-0-2")
    assert (micro["mini_batch"], micro["micro_batch"]) == (0, 0)
    assert micro["parent_id"] == mini["span_id"]
    # Each stage with device data has its own breakdown; the one in between had none.
    assert [(row["span_id"], row["computing_ns"]) for row in rows(parsed, "breakdown")] == [
        ("abc-0-0", 20_000),
        ("abc-0-2", 40_000),
    ]
    assert [(row["span_id"], row["total_ns"]) for row in rows(parsed, "ops")] == [
        ("abc-0-0", 20_000),
        ("abc-0-2", 40_000),
    ]


def test_the_depth_of_ranges_is_an_option(tmp_path: Path) -> None:
    events = (annotation("update_actor", 100, 500), annotation("forward", 110, 50))
    assert len(rows(parse(tmp_path, *events, depth=1), "spans")) == 2
    assert len(rows(parse(tmp_path, *events, depth=0), "spans")) == 1


def test_several_captures_of_one_role_and_rank_are_several_sources(tmp_path: Path) -> None:  # [32]
    for number, start in enumerate((100, 90_000)):
        write(
            tmp_path,
            f"actor_update/prof_rank-0_0318{number}.json.gz",
            {"distributedInfo": {"rank": 0}, "traceEvents": [x("a", start, 50)]},
        )
    found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.gz"))
    assert [times(stage(parse_file(tmp_path, path))) for path in found] == [(100, 50), (90_000, 50)]


# -- the job -------------------------------------------------------------------------------------


def test_a_parse_job_imports_neither_pandas_nor_torch(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path,
        annotation("update_actor", 100, 500),
        kernel("ncclDevKernel", 150, 40, **ARGS),
        kernel("gemm", 150, 40),
    )
    assert all(rows(parsed, name) for name in PARSER.tables)
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from rl_insight import tables\n"
        "from rl_insight.parsers import PARSERS, Source\n"
        "root, path = Path(sys.argv[1]), sys.argv[2]\n"
        "parsed = PARSERS.get('torch').parse(Source('abc', path, root, (path,)), {})\n"
        "for name, table in parsed.tables.items():\n"
        "    tables.write(root / f'{name}.parquet', table)\n"
        "print(sorted({'pandas', 'torch'} & set(sys.modules)), len(parsed.tables))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), PATH],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[] 6"
    for name, table in parsed.tables.items():
        assert tables.read(tmp_path / f"{name}.parquet").to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"{", "the file breaks off after 1 byte, before its events"),
        (b'{"schemaVersion": 1, "tra', "the file breaks off after 25 bytes, before its events"),
    ],
)
def test_a_file_cut_before_its_events_is_broken_and_not_of_another_kind(
    tmp_path: Path, content: bytes, detail: str
) -> None:
    write(tmp_path, PATH, content)
    parsed = parse_file(tmp_path, PATH)
    assert (parsed.status, parsed.detail) == ("failed", detail)
    assert "truncated" in parsed.problems


def test_a_gzip_cut_before_its_first_byte_of_text_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "rank0.json.gz").write_bytes(gzip.compress(b'{"traceEvents": []}')[:10])
    parsed = parse_file(tmp_path, "rank0.json.gz")
    assert parsed.status == "failed"
    assert parsed.detail == "the file breaks off after 0 bytes, before its events"


def test_one_event_without_length_is_told_in_the_singular(tmp_path: Path) -> None:
    parsed = parse(tmp_path, {"ph": "M", "name": "process_name"})
    assert parsed.detail == "no timed events: its only event has no duration"


@pytest.mark.parametrize(
    "top",
    [
        b'"distributedInfo": [3]',
        b'"distributedInfo": "rank 3"',
        b'"distributedInfo": {"rank": NaN}',
        b'"baseTimeNanoseconds": Infinity',
        b'"baseTimeNanoseconds": 1e999',
    ],
)
def test_odd_metadata_is_told(tmp_path: Path, top: bytes) -> None:
    event = json.dumps(x("a", 10, 5)).encode()
    write(tmp_path, PATH, b"{" + top + b', "traceEvents": [' + event + b"]}")
    parsed = parse_file(tmp_path, PATH)
    assert parsed.status in ("ok", "salvaged") and "odd_metadata" in parsed.problems


def test_thousands_of_devices_are_sorted_once_and_told(tmp_path: Path) -> None:
    # 65 devices, and 20,000 that no machine has: one pass over the events for each took minutes.
    events = [kernel("k", 10 + at, 0.5, pid=at) for at in range(20_000)]
    parsed = parse(tmp_path, kernel("k", 1, 5, pid=0), *events)
    assert parsed.problems.count("devices_joined") == 20_000 - 64
    assert lane(parsed)["device"] == 0
