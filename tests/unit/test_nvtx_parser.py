"""NVTX captures become lanes and spans, in every form that nsys exports, whatever is in them.

Numbers in brackets are rows of the collection of odd and broken input.
"""

import gzip
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from rl_insight.errors import ReadError
from rl_insight.parsers import PARSERS, Parsed, Source
from rl_insight.problems import Problems
from tests.nvtx_exports import (
    DOMAIN,
    EPOCH,
    MARK,
    PUSH_POP,
    SECOND,
    START_END,
    UPTIME,
    Row,
    activity,
    capture_fact,
    details,
    kernel,
    session,
    string,
    string_range,
    system_fact,
    text_range,
    variable,
    write_database,
    write_folder,
    write_lines,
)

NVTX = PARSERS.get("nvtx")
NAME = "worker_process_70000.1"


def source(root: Path, path: str) -> Source:
    place = root / path
    files = [path]
    if place.is_dir():
        files = [f"{path}/{file.name}" for file in sorted(place.iterdir())]
    return Source("s", path, root, tuple(files))


def parse_file(root: Path, path: str, **options: object) -> Parsed:
    return NVTX.parse(source(root, path), {f"timeline.parser.{k}": v for k, v in options.items()})


def parse(root: Path, *rows: Row, name: str = NAME, **options: object) -> Parsed:
    """Parse rows as JSON lines."""
    write_lines(root / f"{name}.jsonl", rows)
    return parse_file(root, f"{name}.jsonl", **options)


def _lines(root: Path, rows: Iterable[Row]) -> str:
    return write_lines(root / f"{NAME}.jsonl", rows).name


def _packed(root: Path, rows: Iterable[Row]) -> str:
    path = write_lines(root / f"{NAME}.jsonl", rows)
    (root / f"{NAME}.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    return f"{NAME}.jsonl.gz"


def _database(root: Path, rows: Iterable[Row]) -> str:
    return write_database(root / f"{NAME}.sqlite", rows).name


def _parquet(root: Path, rows: Iterable[Row]) -> str:
    return write_folder(root / f"{NAME}_pqtdir", rows).name


def _arrow(root: Path, rows: Iterable[Row]) -> str:
    return write_folder(root / f"{NAME}_arwdir", rows, "arrow").name


def _stream(root: Path, rows: Iterable[Row]) -> str:
    return write_folder(root / f"{NAME}_arwdir", rows, "stream").name


FORMS = {
    "jsonlines": _lines,
    "jsonlines.gz": _packed,
    "sqlite": _database,
    "parquetdir": _parquet,
    "arrowdir, files": _arrow,
    "arrowdir, streams": _stream,
}
Form = Callable[[Path, Iterable[Row]], str]


@pytest.fixture(params=FORMS.values(), ids=FORMS.keys())
def form(request: pytest.FixtureRequest) -> Form:
    chosen: Form = request.param
    return chosen


def parse_as(form: Form, root: Path, *rows: Row, **options: object) -> Parsed:
    return parse_file(root, form(root, rows), **options)


def table(parsed: Parsed, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parsed.tables[name].to_pylist()
    return found


def lane(parsed: Parsed) -> dict[str, Any]:
    (one,) = table(parsed, "lanes")
    return one


def stages(parsed: Parsed) -> list[dict[str, Any]]:
    return [span for span in table(parsed, "spans") if span["kind"] == "stage"]


def stage(parsed: Parsed) -> dict[str, Any]:
    (one,) = stages(parsed)
    return one


def ranges(parsed: Parsed) -> list[dict[str, Any]]:
    return [span for span in table(parsed, "spans") if span["kind"] == "range"]


def times(span: dict[str, Any], base: int = 0) -> tuple[int, int]:
    start = span["start_ns"] - base
    return start, start + span["duration_ns"]


def told(problems: Problems, *severities: str) -> dict[str, int]:
    return {one.code: one.count for one in problems if not severities or one.severity in severities}


# -- one worker, one stage: what verl leaves behind ----------------------------------------------

WORKER = [
    string(38, "compute_log_prob"),
    details(),
    string_range(20_979_323, 21_019_655_556, 38, pid=75_871),
    variable("RANK", '"3"'),
    variable("WORLD_SIZE", '"8"'),
]


def test_a_workers_capture_is_one_lane_with_one_stage(tmp_path: Path, form: Form) -> None:
    parsed = parse_as(form, tmp_path, *WORKER)
    assert (parsed.status, parsed.detail, list(parsed.problems)) == ("ok", None, [])
    one = lane(parsed)
    assert (one["rank_id"], one["world_size"], one["pid"], one["role"]) == (3, 8, 75_871, None)
    span = stage(parsed)
    assert (span["name"], span["raw_name"], span["role"]) == (
        "actor_compute_log_prob",
        "compute_log_prob",
        "actor_compute_log_prob",
    )
    assert times(span, UPTIME) == (20_979_323, 21_019_655_556)
    assert (span["domain"], span["depth"], span["truncated"], span["rank_id"]) == (
        "default",
        0,
        False,
        3,
    )


def test_rows_may_come_in_any_order(tmp_path: Path, form: Form) -> None:
    first = parse_as(form, tmp_path / "a", *WORKER)
    turned = parse_as(form, tmp_path / "b", *reversed(WORKER))
    assert table(first, "spans") == table(turned, "spans")
    assert table(first, "lanes") == table(turned, "lanes")


def test_the_documented_thread_of_a_stage_is_the_process_in_the_files_name(tmp_path: Path) -> None:
    assert stage(parse(tmp_path, *WORKER))["tid"] == "70000"
    assert stage(parse(tmp_path, *WORKER, name="other"))["tid"] == "75871"


def test_ranges_of_every_recorded_and_imported_kind_are_read(tmp_path: Path, form: Form) -> None:
    # [58]
    rows = [
        text_range(n * 100, n * 100 + 50, "update_actor", kind=kind)
        for n, kind in enumerate((59, 60, 70, 71))
    ]
    parsed = parse_as(form, tmp_path, details(), *rows)
    assert [times(span, UPTIME) for span in stages(parsed)] == [
        (0, 50),
        (100, 150),
        (200, 250),
        (300, 350),
    ]


def test_marks_halves_and_domain_rows_are_passed_over(tmp_path: Path, form: Form) -> None:
    # [56]
    rows = [
        text_range(5, None, "CCCL", kind=DOMAIN, domainId=7),
        text_range(6, None, "a mark", kind=MARK),
        *(text_range(7, 900, "half", kind=kind) for kind in (33, 35, 36, 37, 38, 39, 76, 97)),
        text_range(10, 20, "update_actor"),
    ]
    parsed = parse_as(form, tmp_path, details(), *rows)
    assert [(span["name"], times(span, UPTIME)) for span in table(parsed, "spans")] == [
        ("actor_update", (10, 20))
    ]
    assert parsed.status == "ok"


def test_an_open_range_ends_with_the_capture_and_is_marked(tmp_path: Path, form: Form) -> None:
    # [56]
    rows = [
        text_range(10, 20, "compute_log_prob"),
        text_range(30, None, "update_actor"),
        string_range(40, None, 1),
        string(1, "micro_batch0"),
    ]
    parsed = parse_as(form, tmp_path, details(duration=1_000), *rows)
    first, second = stages(parsed)
    assert (times(first, UPTIME), first["truncated"]) == ((10, 20), False)
    assert (times(second, UPTIME), second["truncated"]) == ((30, 1_000), True)
    (inner,) = ranges(parsed)
    assert (times(inner, UPTIME), inner["truncated"]) == ((40, 1_000), True)
    assert told(parsed.problems) == {"open_range": 2}
    assert parsed.status == "ok"


def test_without_a_known_end_an_open_range_lasts_as_long_as_anything_does(tmp_path: Path) -> None:
    rows = [text_range(10, 500, "compute_log_prob"), text_range(30, None, "update_actor")]
    parsed = parse(tmp_path, *rows)
    first, second = stages(parsed)
    assert (first["truncated"], second["truncated"]) == (False, True)
    assert times(second) == (30, 501)


def test_an_open_range_that_begins_after_everything_else_has_no_length(tmp_path: Path) -> None:
    parsed = parse(
        tmp_path, details(duration=100), text_range(0, 50, "a"), text_range(100, None, "b")
    )
    assert [span["name"] for span in stages(parsed)] == ["a"]
    assert told(parsed.problems) == {"open_range": 1, "no_length": 1}


def test_names_stand_inline_or_among_the_strings(tmp_path: Path, form: Form) -> None:
    # [59]
    rows = [
        text_range(10, 20, "update_actor"),
        string_range(30, 40, 5),
        text_range(50, 60, "compute_values", textId=5),
        string(5, "compute_log_prob"),
    ]
    parsed = parse_as(form, tmp_path, details(), *rows)
    assert [span["raw_name"] for span in stages(parsed)] == [
        "update_actor",
        "compute_log_prob",
        "compute_values",
    ]


def test_a_name_that_cannot_be_told_costs_the_name_only(tmp_path: Path, form: Form) -> None:
    rows = [text_range(10, 90, "update_actor"), string_range(30, 40, 5), _nameless(50, 60)]
    other = [string(6, "other"), string_range(70, 80, 6)]
    parsed = parse_as(form, tmp_path, details(), *rows, *other)
    assert [times(span, UPTIME) for span in ranges(parsed)] == [(30, 40), (50, 60), (70, 80)]
    assert [span["name"] for span in ranges(parsed)] == ["(unnamed)", "(unnamed)", "other"]
    assert told(parsed.problems) == {"unnamed_range": 2}


def test_a_capture_of_nothing_but_nameless_ranges_is_still_drawn(tmp_path: Path) -> None:
    parsed = parse(tmp_path, details(), string_range(30, 40, 5), variable("RANK", "1"))
    assert (stage(parsed)["role"], times(stage(parsed), UPTIME)) == (None, (30, 40))
    assert lane(parsed)["rank_id"] == 1


def _nameless(start: int, end: int) -> Row:
    row = text_range(start, end, "x")
    del row["text"]
    return row


def test_ranges_without_a_length_or_that_end_before_they_start_are_counted(
    tmp_path: Path, form: Form
) -> None:
    rows = [
        text_range(10, 20, "update_actor"),
        text_range(12, 12, "nothing"),
        text_range(15, 13, "backwards"),
    ]
    parsed = parse_as(form, tmp_path, details(), *rows)
    assert len(table(parsed, "spans")) == 1
    assert told(parsed.problems) == {"no_length": 1, "negative_duration": 1}


def test_impossible_times_stretch_nothing(tmp_path: Path, form: Form) -> None:
    week = 7 * 24 * 3600 * SECOND
    rows = [
        text_range(10, 20, "update_actor"),
        text_range(11, 11 + week + 1, "a week and more"),
        text_range(30 * 24 * 3600 * SECOND, 30 * 24 * 3600 * SECOND + 5, "a month later"),
        text_range(-(10**15), -(10**15) + 5, "long before"),
    ]
    parsed = parse_as(form, tmp_path, details(), *rows)
    assert times(stage(parsed), UPTIME) == (10, 20)
    assert not ranges(parsed)
    assert told(parsed.problems) == {"impossible_duration": 1, "outside_capture": 2}


def test_times_that_are_no_numbers_are_counted(tmp_path: Path) -> None:
    odd = text_range(10, 20, "odd")
    odd["start"] = "soon"
    huge = text_range(10, 20, "huge")
    huge["end"] = 2**70
    text = text_range(0, 0, "update_actor")
    text |= {"start": "10", "end": 20.0}
    parsed = parse(tmp_path, details(), odd, huge, text)
    assert times(stage(parsed), UPTIME) == (10, 20)
    # An end that is no number is not the lack of one: nobody says that this range was still open.
    assert told(parsed.problems) == {"no_time": 2}


# -- schemas of several versions -----------------------------------------------------------------


def test_columns_that_a_version_does_not_write_are_missing(tmp_path: Path, form: Form) -> None:
    # [61] schema 3.24 has no systemClockNs; hand-made and old exports lack more
    bare = [
        {"table": "NVTX_EVENTS", "start": 5, "end": 9, "eventType": 60, "text": "update_actor"},
        {"table": "ANALYSIS_DETAILS", "startTime": UPTIME, "stopTime": UPTIME + 100},
        {"table": "TARGET_INFO_SESSION_START_TIME", "utcEpochNs": EPOCH},
    ]
    parsed = parse_as(form, tmp_path, *bare)
    assert parsed.status == "ok"
    assert times(stage(parsed), EPOCH) == (5, 9)
    assert lane(parsed)["pid"] is None
    assert lane(parsed)["capture_end_ns"] == EPOCH + 100


@pytest.mark.parametrize("make", [_database, _parquet], ids=["sqlite", "parquetdir"])
def test_a_column_that_is_needed_is_named_with_the_version(tmp_path: Path, make: Form) -> None:
    # [61]
    rows = [
        {"table": "NVTX_EVENTS", "begin": 5, "end": 9, "eventType": 60, "text": "update_actor"},
        {"table": "META_DATA_EXPORT", "name": "EXPORT_SCHEMA_VERSION", "value": "9.1.0"},
    ]
    parsed = parse_as(make, tmp_path, *rows)
    assert parsed.status == "failed"
    assert parsed.detail is not None
    assert "NVTX_EVENTS has no column start (schema version 9.1.0)" in parsed.detail


@pytest.mark.parametrize("make", [_database, _parquet, _arrow], ids=["sqlite", "parquet", "arrow"])
def test_every_column_that_is_needed_and_missing_is_counted_once(
    tmp_path: Path, make: Form
) -> None:
    # GIVEN StringIds without its `value`, and ranges without `start`, more than one batch holds
    rows: list[Row] = [{"table": "StringIds", "id": 1}]
    rows += [{"table": "NVTX_EVENTS", "end": 9, "eventType": 60, "text": "a"}] * 70_000
    parsed = parse_as(make, tmp_path, *rows)
    assert parsed.problems.count("column_missing") == 2


# -- the clock -----------------------------------------------------------------------------------


def test_the_time_is_utc_where_the_export_tells_it(tmp_path: Path, form: Form) -> None:
    # The session's clocks were read 5 s before the capture began.
    rows = [details(), session(EPOCH, UPTIME - 5 * SECOND), text_range(10, 20, "update_actor")]
    parsed = parse_as(form, tmp_path, *rows)
    one = lane(parsed)
    assert one["clock"] == "utc"
    assert one["capture_start_ns"] == EPOCH + 5 * SECOND
    assert one["capture_end_ns"] == EPOCH + 105 * SECOND
    assert times(stage(parsed), EPOCH) == (5 * SECOND + 10, 5 * SECOND + 20)
    # What the merge compares: the Unix time of the boot of the host.
    assert one["clock_offset_ns"] == EPOCH + 5 * SECOND - UPTIME


def test_an_older_export_tells_the_time_at_which_the_capture_began(tmp_path: Path) -> None:
    parsed = parse(tmp_path, details(), session(EPOCH, None), text_range(10, 20, "update_actor"))
    assert times(stage(parsed), EPOCH) == (10, 20)
    assert lane(parsed)["clock_offset_ns"] == EPOCH - UPTIME


def test_captures_of_nodes_with_different_uptime_stand_where_they_were(tmp_path: Path) -> None:
    # [64]
    found = []
    for name, uptime, epoch in (("a", 35_255_823_190, 0), ("b", 6_589_107_243_593_703, 7)):
        rows = [details(uptime), session(EPOCH + epoch, None), text_range(10, 20, "update_actor")]
        found.append(times(stage(parse(tmp_path, *rows, name=name)), EPOCH))
    assert found == [(10, 20), (17, 27)]


def test_without_utc_the_time_is_the_uptime_of_the_host(tmp_path: Path) -> None:
    parsed = parse(tmp_path, details(), text_range(10, 20, "update_actor"))
    one = lane(parsed)
    assert (one["clock"], one["clock_offset_ns"]) == ("boot", 0)
    assert (one["capture_start_ns"], one["capture_end_ns"]) == (UPTIME, UPTIME + 100 * SECOND)
    assert times(stage(parsed)) == (UPTIME + 10, UPTIME + 20)


def test_without_anything_the_time_is_relative(tmp_path: Path) -> None:
    one = lane(parse(tmp_path, text_range(10, 20, "update_actor")))
    assert (one["clock"], one["capture_start_ns"], one["capture_end_ns"]) == ("relative", 10, 20)


def test_an_impossible_utc_is_not_believed(tmp_path: Path) -> None:
    for wrong in (0, 5, -1, 2**62 + 2**61):
        parsed = parse(tmp_path, details(), session(wrong), text_range(1, 2, "update_actor"))
        assert lane(parsed)["clock"] == "boot"
        assert told(parsed.problems) == {"odd_metadata": 1}
    parsed = parse(tmp_path, details(), session(EPOCH, -(2**62)), text_range(1, 2, "update_actor"))
    assert times(stage(parsed), EPOCH) == (1, 2)


def test_an_export_with_absolute_times_is_not_shifted_again(tmp_path: Path) -> None:
    # nsys export --ts-normalize=true
    at = EPOCH + 10
    parsed = parse(tmp_path, details(), session(), text_range(at, at + 5, "update_actor"))
    assert times(stage(parsed)) == (at, at + 5)
    assert (lane(parsed)["clock"], lane(parsed)["capture_start_ns"]) == ("utc", at)


# -- processes and ranks -------------------------------------------------------------------------

TWO = [
    text_range(10, 50, "update_actor", pid=111),
    text_range(12, 52, "update_actor", pid=112),
    details(),
]


def ranks(parsed: Parsed) -> dict[int, int | None]:
    return {row["pid"]: row["rank_id"] for row in table(parsed, "lanes")}


def test_a_capture_of_several_processes_has_a_lane_for_each(tmp_path: Path, form: Form) -> None:
    # [63]
    parsed = parse_as(form, tmp_path, *TWO)
    assert ranks(parsed) == {111: 0, 112: 1}
    assert [(span["lane_id"], span["rank_id"], times(span, UPTIME)) for span in stages(parsed)] == [
        ("s-0", 0, (10, 50)),
        ("s-1", 1, (12, 52)),
    ]
    assert told(parsed.problems) == {"rank_by_pid_order": 2}
    (problem,) = parsed.problems
    assert problem.severity == "warning"
    assert problem.example == (
        "2 processes and no rank for each: numbered in the order of their process ids"
    )


def test_ids_of_threads_are_told_apart_by_the_machine_too(tmp_path: Path) -> None:
    # The id of the machine stands above the process id and is none of it.
    row = text_range(10, 20, "update_actor") | {"globalTid": 9 << 48 | 111 << 24 | 222}
    parsed = parse(tmp_path, row, name="x")
    assert (lane(parsed)["pid"], stage(parsed)["tid"]) == (111, "222")


def test_a_rank_in_the_environment_of_several_processes_is_the_launchers(tmp_path: Path) -> None:
    # [63] nsys profile torchrun, started by an operator that sets RANK to the number of the node
    parsed = parse(tmp_path, *TWO, variable("RANK", '"1"'), variable("WORLD_SIZE", '"2"'))
    assert ranks(parsed) == {111: 0, 112: 1}
    assert {row["world_size"] for row in table(parsed, "lanes")} == {None}
    (problem,) = parsed.problems
    assert problem.example is not None
    assert problem.example.endswith("rank 1 in the environment is the launcher's own")


def test_the_process_that_the_name_tells_has_the_recorded_rank(tmp_path: Path) -> None:
    parsed = parse(tmp_path, *TWO, variable("RANK", "5"), name="worker_process_112.1")
    assert ranks(parsed) == {111: None, 112: 5}
    assert "rank_by_pid_order" not in parsed.problems


def test_processes_with_an_environment_each_have_their_ranks(tmp_path: Path) -> None:
    facts = [capture_fact("PROCESS_0:PID", "112"), capture_fact("PROCESS_1:PID", "111")]
    own = [variable("RANK", '"6"', 0), variable("RANK", '"7"', 1)]
    parsed = parse(tmp_path, *TWO, *facts, *own)
    assert ranks(parsed) == {111: 7, 112: 6}
    assert not list(parsed.problems)


def test_a_rank_in_the_files_name_is_not_contradicted_by_counting(tmp_path: Path) -> None:
    assert ranks(parse(tmp_path, *TWO, name="train_rank4")) == {111: None, 112: None}


def test_helpers_of_a_rank_are_no_ranks(tmp_path: Path, form: Form) -> None:
    # GIVEN a rank, and a data loader with ranges of its own
    rows = [
        text_range(10, 50, "update_actor", pid=111),
        text_range(11, 12, "load", pid=300),
        variable("RANK", '"4"'),
    ]
    parsed = parse_as(form, tmp_path, details(), *rows)
    # THEN the rank is the only one
    assert ranks(parsed) == {111: 4}
    assert told(parsed.problems) == {"processes_left_out": 1}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"RANK": '"0"'}, 0),
        ({"RANK": "7"}, 7),
        ({"rank": '"2"'}, 2),
        ({"SLURM_PROCID": "5"}, 5),
        ({"OMPI_COMM_WORLD_RANK": '"3"', "SLURM_PROCID": "0"}, 3),
        ({"PMI_RANK": "4", "SLURM_PROCID": "0"}, 4),
        ({"PMIX_RANK": "6"}, 6),
        ({"LOCAL_RANK": '"1"', "RANK": '"9"'}, 9),
        ({"LOCAL_RANK": '"0"', "SLURM_PROCID": "8"}, 8),
        ({"RANK": '""'}, None),
        ({"RANK": "x1"}, None),
        ({"RANK": "-1"}, None),
        ({"RANK": "99999999999"}, None),
        ({"RANKING": "1", "MY_RANK": "2", "NODE_RANK": "3"}, None),
    ],
)
def test_the_rank_is_what_the_launched_process_was_told(
    tmp_path: Path, form: Form, values: dict[str, str], expected: int | None
) -> None:
    # [63]
    rows = [variable(name, value) for name, value in values.items()]
    parsed = parse_as(form, tmp_path, text_range(10, 20, "update_actor"), *rows)
    assert lane(parsed)["rank_id"] == expected
    assert not list(parsed.problems)


def test_a_local_rank_is_the_last_resort_and_doubtful(tmp_path: Path, form: Form) -> None:
    # [63]
    parsed = parse_as(
        form, tmp_path, text_range(10, 20, "update_actor"), variable("LOCAL_RANK", '"1"')
    )
    assert lane(parsed)["rank_id"] == 1
    (problem,) = parsed.problems
    assert (problem.code, problem.severity) == ("rank_from_local_rank", "warning")
    assert problem.example == "only LOCAL_RANK=1 is recorded, which counts inside one node"


def test_of_several_ranks_the_last_counts(tmp_path: Path) -> None:
    rows = [variable("RANK", "1"), variable("RANK", "2")]
    assert lane(parse(tmp_path, text_range(1, 2, "update_actor"), *rows))["rank_id"] == 2


def test_the_host_is_the_machines_name(tmp_path: Path, form: Form) -> None:
    rows = [
        text_range(10, 20, "update_actor"),
        capture_fact("DEVICE_DISPLAY_NAME", "shown"),
        system_fact("Hostname", "node-7"),
    ]
    assert lane(parse_as(form, tmp_path, *rows[:2]))["host"] == "shown"
    assert lane(parse_as(form, tmp_path / "b", *rows))["host"] == "node-7"


# -- device activity -----------------------------------------------------------------------------

NAMES = [
    string(1, "void gemm<float>(int)"),
    string(2, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
    string(3, "Memcpy of our own"),
]


def test_a_stage_tells_what_the_device_did(tmp_path: Path, form: Form) -> None:
    rows = [
        details(),
        *NAMES,
        text_range(100, 1_100, "update_actor"),
        kernel(100, 400, 1),
        kernel(300, 500, 2),  # 100 of it beside the computing
        activity("MEMCPY", 450, 600, copyKind=1),  # 100 alone
        activity("MEMSET", 700, 710),
        activity("GRAPH_TRACE", 800, 1_200),  # 300 inside the stage
    ]
    parsed = parse_as(form, tmp_path, *rows)
    (found,) = table(parsed, "breakdown")
    assert (found["window_ns"], found["computing_ns"], found["communication_ns"]) == (
        1_000,
        300 + 300,
        200,
    )
    assert (found["overlapped_ns"], found["memory_ns"], found["free_ns"]) == (100, 110, 190)
    assert found["device_start_ns"] == UPTIME + 100
    assert found["device_end_ns"] == UPTIME + 1_100
    assert lane(parsed)["device"] == 0
    ops = {(row["category"], row["name"]): row["total_ns"] for row in table(parsed, "ops")}
    assert ops == {
        ("computing", "void gemm<float>(int)"): 300,
        ("computing", "CUDA graph"): 400,
        ("communication", str(NAMES[1]["value"])): 200,
        ("memory", "Memcpy HtoD"): 150,
        ("memory", "Memset"): 10,
    }
    (call,) = table(parsed, "collectives")
    assert (call["op"], call["start_ns"], call["duration_ns"]) == ("AllReduce", UPTIME + 300, 200)
    assert (call["span_id"], call["bytes"]) == (stage(parsed)["span_id"], None)


def test_device_activity_belongs_to_the_process_that_launched_it(
    tmp_path: Path, form: Form
) -> None:
    rows = [*TWO, *NAMES, kernel(20, 30, 1, 111, 0), kernel(20, 40, 1, 112, 1)]
    parsed = parse_as(form, tmp_path, *rows)
    assert [row["computing_ns"] for row in table(parsed, "breakdown")] == [10, 20]
    assert [row["device"] for row in table(parsed, "lanes")] == [0, 1]


def test_names_of_kernels_may_come_after_the_kernels(tmp_path: Path) -> None:
    rows = [text_range(0, 100, "update_actor"), kernel(10, 20, 2), kernel(30, 40, 1), *NAMES]
    parsed = parse(tmp_path, *rows)
    (found,) = table(parsed, "breakdown")
    assert (found["computing_ns"], found["communication_ns"]) == (10, 10)
    assert len(table(parsed, "collectives")) == 1


def test_a_kernel_whose_name_cannot_be_told_computes(tmp_path: Path, form: Form) -> None:
    rows = [string(1, "gemm"), text_range(0, 100, "update_actor"), kernel(10, 20, 99)]
    parsed = parse_as(form, tmp_path, *rows, kernel(30, 40, 1))
    (found,) = table(parsed, "breakdown")
    assert found["computing_ns"] == 20
    assert told(parsed.problems) == {"unnamed_kernel": 1}


def test_a_capture_without_ranges_is_drawn_by_its_device(tmp_path: Path, form: Form) -> None:
    parsed = parse_as(form, tmp_path, details(), *NAMES, kernel(100, 200, 1), kernel(500, 600, 1))
    assert (stage(parsed)["role"], times(stage(parsed), UPTIME)) == (None, (100, 600))
    assert parsed.status == "ok"


def test_device_activity_without_a_process_is_the_only_ones(tmp_path: Path) -> None:
    row = kernel(10, 20, 1)
    del row["globalPid"]
    parsed = parse(tmp_path, text_range(0, 100, "update_actor"), row, *NAMES)
    (found,) = table(parsed, "breakdown")
    assert found["computing_ns"] == 10
    assert ranks(parsed) == {111: None}


def test_negative_times_of_the_device_are_counted(tmp_path: Path) -> None:
    rows = [text_range(0, 100, "update_actor"), kernel(30, 20, 1), kernel(40, 50, 1), *NAMES]
    parsed = parse(tmp_path, *rows)
    assert table(parsed, "breakdown")[0]["computing_ns"] == 10
    assert told(parsed.problems) == {"negative_duration": 1}


# -- empty, broken, something else ---------------------------------------------------------------


def test_an_export_without_ranges_and_activity_says_so(tmp_path: Path, form: Form) -> None:
    parsed = parse_as(form, tmp_path, details(), *NAMES)
    assert parsed.status == "empty"
    assert parsed.detail is not None
    assert parsed.detail.startswith("no NVTX ranges and no device activity in its ")
    assert parsed.detail.endswith("was it recorded with --trace=cuda,nvtx?")


def test_an_empty_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    parsed = parse_file(tmp_path, "a.jsonl")
    assert (parsed.status, parsed.detail) == ("empty", "the file is empty")


def test_a_file_that_breaks_off_gives_what_is_there(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", WORKER)
    content = path.read_bytes()
    path.write_bytes(content[:-30])
    parsed = parse_file(tmp_path, "a.jsonl")
    assert parsed.status == "salvaged"
    offset = content.rindex(b'{"name"')
    assert parsed.detail == (
        f"the file breaks off after {offset:,} bytes of unpacked text; "
        "the 4 rows that could be read are kept"
    )
    assert stage(parsed)["role"] == "actor_compute_log_prob"
    assert lane(parsed)["rank_id"] == 3


def test_a_damaged_line_costs_no_other(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", WORKER)
    path.write_bytes(b"%%%\n" + path.read_bytes())
    parsed = parse_file(tmp_path, "a.jsonl")
    assert parsed.status == "salvaged"
    assert parsed.detail == (
        "damaged: a line cannot be read, at byte 0; the 5 rows that could be read are kept"
    )
    assert lane(parsed)["rank_id"] == 3


def test_a_database_that_breaks_off_gives_the_tables_before(tmp_path: Path) -> None:
    rows = [*WORKER, *NAMES, *(kernel(n, n + 1, 1, pid=75_871) for n in range(20_000))]
    path = write_database(tmp_path / "a.sqlite", rows)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    parsed = parse_file(tmp_path, "a.sqlite")
    assert parsed.status == "salvaged"
    assert parsed.detail is not None
    assert "database disk image is malformed" in parsed.detail
    assert stages(parsed)[0]["role"] == "actor_compute_log_prob"
    # THEN of the table that breaks off there is what stands before
    assert 5 + 1_000 < parsed.events < 20_000


def test_one_broken_table_of_a_folder_costs_no_other(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a_pqtdir", [*WORKER, *NAMES, kernel(1, 2, 1)])
    (folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet").write_bytes(b"PAR1")
    parsed = parse_file(tmp_path, "a_pqtdir")
    assert parsed.status == "salvaged"
    assert parsed.detail is not None
    assert parsed.detail.startswith("damaged: CUPTI_ACTIVITY_KIND_KERNEL.parquet cannot be read")
    assert lane(parsed)["rank_id"] == 3


def test_a_folder_of_nothing_but_broken_tables_cannot_be_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a_pqtdir", [text_range(1, 2, "x")])
    (folder / "NVTX_EVENTS.parquet").write_bytes(b"")
    with pytest.raises(ReadError, match="it is empty: its writer was killed"):
        parse_file(tmp_path, "a_pqtdir")


def test_an_export_of_the_older_kind_says_how_to_export(tmp_path: Path) -> None:
    # [67]
    event = '{"NvtxEvent":{"Type":59,"Timestamp":1,"EndTimestamp":2,"Text":"a","GlobalTid":3}}\n'
    (tmp_path / "a.json").write_text(event * 3)
    with pytest.raises(ReadError) as raised:
        parse_file(tmp_path, "a.json")
    assert str(raised.value) == (
        "an export of the older kind (--type json), which is not read: nsys export --type sqlite "
        "--force-overwrite=true -o a.sqlite a.nsys-rep"
    )


def test_json_lines_of_another_kind_are_no_export(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.jsonl").write_text('{"loss":1}\n{"loss":2}\n')
    with pytest.raises(ReadError, match="JSON lines of another kind: no row names a table"):
        parse_file(tmp_path, f"{NAME}.jsonl")


def test_a_database_of_another_kind_is_no_export(tmp_path: Path) -> None:
    write_database(tmp_path / f"{NAME}.sqlite", [{"table": "TASK", "startNs": 1}])
    with pytest.raises(ReadError, match="no export of nsys: it has none of its tables"):
        parse_file(tmp_path, f"{NAME}.sqlite")


@pytest.mark.parametrize("suffix", ["nsys-rep", "qdrep"])
def test_a_report_that_was_not_exported_says_the_command(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "run 1").mkdir()
    (tmp_path / "run 1" / f"{NAME}.{suffix}").write_bytes(b"\x00report")
    with pytest.raises(ReadError) as raised:
        parse_file(tmp_path, f"run 1/{NAME}.{suffix}")
    assert str(raised.value) == (
        "a report that was not exported: run rl-insight preprocess on the input folder, or there: "
        "nsys export --type sqlite --force-overwrite=true "
        f"-o 'run 1/{NAME}.sqlite' 'run 1/{NAME}.{suffix}'"
    )


def test_a_report_that_was_never_made_says_what_happened(tmp_path: Path) -> None:
    (tmp_path / "a.qdstrm").write_bytes(b"raw")
    with pytest.raises(ReadError, match="nsys was ended before it made a report of this"):
        parse_file(tmp_path, "a.qdstrm")


def test_unmatched_pops_and_library_domains_are_filtered(tmp_path: Path, form: Form) -> None:
    # [67]
    rows = [
        text_range(1, None, "NCCL", kind=DOMAIN, domainId=3),
        string_range(1, None, 9, kind=DOMAIN, domainId=4),
        string(9, "CCCL"),
        text_range(1, None, "ours", kind=DOMAIN, domainId=5),
        text_range(10, 500, "update_actor", kind=START_END),
        text_range(20, 30, "ncclAllReduce", kind=PUSH_POP, domainId=3),
        text_range(40, 50, "DeviceReduce", kind=PUSH_POP, domainId=4),
        text_range(60, 70, "forward", kind=PUSH_POP, domainId=5),
        text_range(80, 90, "backward", kind=PUSH_POP, domainId=6),
        text_range(95, 99, "pop", kind=36),
    ]
    parsed = parse_as(form, tmp_path, details(), *rows)
    assert [(span["name"], span["domain"]) for span in ranges(parsed)] == [
        ("forward", "ours"),
        ("backward", "domain 6"),
    ]
    assert told(parsed.problems) == {"library_ranges": 2}


def test_a_known_stage_counts_in_any_domain(tmp_path: Path) -> None:
    rows = [
        text_range(1, None, "NCCL", kind=DOMAIN, domainId=3),
        text_range(10, 50, "update_actor", domainId=3),
    ]
    assert stage(parse(tmp_path, *rows))["domain"] == "NCCL"


def test_annotations_below_a_stage_are_kept_as_deep_as_is_asked_for(tmp_path: Path) -> None:
    rows = [
        text_range(0, 100, "update_actor"),
        text_range(10, 90, "a"),
        text_range(20, 80, "b"),
        text_range(30, 70, "c"),
    ]
    assert [span["name"] for span in ranges(parse(tmp_path, *rows))] == ["a", "b"]
    assert [span["name"] for span in ranges(parse(tmp_path, *rows, range_depth=1))] == ["a"]
    assert ranges(parse(tmp_path, *rows, range_depth=0)) == []


def test_a_parse_job_imports_no_pandas(tmp_path: Path, form: Form) -> None:
    rows = [*WORKER, *NAMES, kernel(100, 200, 1, 75_871), system_fact("Hostname", "node")]
    path = form(tmp_path, rows)
    files = source(tmp_path, path).files
    code = f"""
import sys
from pathlib import Path
from rl_insight.parsers import PARSERS, Source
parsed = PARSERS.get("nvtx").parse(Source("s", {path!r}, Path({str(tmp_path)!r}), {files!r}), {{}})
assert parsed.tables["spans"].num_rows == 1, parsed
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nonsense_about_the_captures_own_time_is_not_believed(tmp_path: Path, form: Form) -> None:
    rows = [details(UPTIME, 2**62), text_range(10, 20, "update_actor"), text_range(5, None, "x")]
    parsed = parse_as(form, tmp_path, *rows)
    assert times(stage(parsed), UPTIME) == (10, 20)
    assert told(parsed.problems, "warning") == {"odd_metadata": 1}
    # Without a known end, it is the last that happened.
    assert lane(parsed)["capture_end_ns"] == UPTIME + 21


def test_times_beyond_any_date_are_counted(tmp_path: Path, form: Form) -> None:
    rows = [
        text_range(10, 20, "update_actor"),
        text_range(2**62, 2**62 + 5, "late"),
        text_range(2**62, None, "late and open"),
    ]
    parsed = parse_as(form, tmp_path, *rows)
    assert times(stage(parsed)) == (10, 20)
    assert told(parsed.problems) == {"outside_capture": 2}
