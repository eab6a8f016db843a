"""What Ascend captures look like in real life, each drawn as far as it can be.

Every case is built from scratch and goes through discovery, parsing and merge; what is checked is
what a person sees: the spans, the status and the sentence.
"""

import json
from pathlib import Path

import pytest

from rl_insight.main import main
from tests.ascend_captures import (
    ANALYSIS,
    BASE_NS,
    BUSY,
    HARDWARE_PID,
    OVERLAP_PID,
    Event,
    at,
    database_in,
    drawn,
    event,
    info,
    mstx,
    overlap,
    process,
    task,
    write_text,
)

Tables = dict[str, list[Event]]


def lanes(tables: Tables) -> list[tuple[str | None, int | None, int, int]]:
    """The stages: role, rank, start after BASE_NS and duration in ns."""
    found = [span for span in tables["spans"] if span["kind"] == "stage"]
    return [
        (span["role"], span["rank_id"], span["start_ns"] - BASE_NS, span["duration_ns"])
        for span in sorted(found, key=lambda one: (one["start_ns"], one["rank_id"] or 0))
    ]


def states(tables: Tables) -> dict[str, tuple[str, str | None]]:
    """Status and sentence of each input, by its path."""
    return {row["path"]: (row["status"], row["detail"]) for row in tables["sources"]}


def codes(tables: Tables, path: str) -> set[str]:
    (row,) = [row for row in tables["sources"] if row["path"] == path]
    return {problem["code"] for problem in row["problems"]}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_43_overlap_rows_without_args_are_drawn(run: Path, tmp_path: Path) -> None:
    # GIVEN the row of the real file, and its neighbours
    pid = 3089232608
    events = [
        *process(pid, "Overlap Analysis", "NPU"),
        {**event("Computing", pid, 0, 50.62), "ts": "1736405443881410.320"},
        {**event("Free", pid, 0, 9.38), "ts": "1736405443881460.940"},
    ]
    write_text(run / "actor_update/a_ascend_pt", events)

    tables = drawn(run, tmp_path / "out")

    (span,) = tables["spans"]
    assert (span["role"], span["rank_id"]) == ("actor_update", 0)
    assert (span["start_ns"], span["duration_ns"]) == (1736405443881410320, 60_000)
    assert tables["breakdown"][0]["computing_ns"] == 50_620
    assert states(tables) == {"actor_update/a_ascend_pt": ("ok", None)}


def test_44_times_are_decimal_text_exact_to_the_nanosecond(run: Path, tmp_path: Path) -> None:
    # GIVEN a time of which a double would lose a quarter of a microsecond
    row = {**overlap("Computing", 0, 1.001), "ts": "1773285904640626.314"}
    write_text(run / "actor_update/a_ascend_pt", [*ANALYSIS, row])

    (span,) = drawn(run, tmp_path / "out")["spans"]

    assert (span["start_ns"], span["duration_ns"]) == (1773285904640626314, 1_001)


def test_44_times_may_be_numbers(run: Path, tmp_path: Path) -> None:
    # GIVEN absolute times as numbers: the text of the file has digits that a double has not
    text = (
        '[{"ph":"M","name":"process_name","pid":9,"tid":0,"args":{"name":"Overlap Analysis"}},'
        '{"name":"Computing","pid":9,"tid":0,"ts":1773285904640626.314,"dur":2,"ph":"X"}]'
    )
    write_text(run / "actor_update/a_ascend_pt", text)

    (span,) = drawn(run, tmp_path / "out")["spans"]

    assert (span["start_ns"], span["duration_ns"]) == (1773285904640626314, 2_000)


def test_44_ranks_that_mix_absolute_and_relative_times_are_warned_about(
    run: Path, tmp_path: Path
) -> None:
    write_text(run / "actor_update/a_ascend_pt", told=info(0))
    relative = [*ANALYSIS, {**overlap("Computing", 0, 40), "ts": 12.5}]
    write_text(run / "actor_update/b_ascend_pt", relative, told=info(1))

    tables = drawn(run, tmp_path / "out")

    # THEN both are drawn, the second from the beginning of the first, and it says so
    assert lanes(tables) == [
        ("actor_update", 0, 100_000, 100_000),
        ("actor_update", 1, 100_000, 40_000),
    ]
    assert "clock_unknown" in codes(tables, "actor_update/b_ascend_pt")
    assert codes(tables, "actor_update/a_ascend_pt") == set()


@pytest.mark.parametrize(
    ("ending", "status", "sentence"),
    [
        ("]", "ok", None),
        # An appended second list: msprof's part of the file.
        (',{"ph":"M","name":"x","pid":1,"tid":0,"args":{}}]', "ok", None),
        # It was empty.
        (",]", "ok", None),
        # The analysis was killed in between.
        ("", "salvaged", "the file breaks off"),
    ],
)
def test_45_traces_without_a_proper_end_are_read(
    run: Path, tmp_path: Path, ending: str, status: str, sentence: str | None
) -> None:
    body = json.dumps(BUSY)[:-1]
    write_text(run / "actor_update/a_ascend_pt", body + ending)

    tables = drawn(run, tmp_path / "out")

    assert lanes(tables) == [("actor_update", 0, 100_000, 100_000)]
    ((found, detail),) = states(tables).values()
    assert found == status
    assert detail is None if sentence is None else sentence in str(detail)


@pytest.mark.parametrize("rank", [5, "5", " 5 "])
def test_47_a_rank_may_be_a_number_or_text_and_versions_may_be_missing(
    run: Path, tmp_path: Path, rank: object
) -> None:
    write_text(run / "actor_update/a_ascend_pt", told=info(rank), told_as="profiler_info_5.json")

    tables = drawn(run, tmp_path / "out")

    assert lanes(tables) == [("actor_update", 5, 100_000, 100_000)]
    assert states(tables) == {"actor_update/a_ascend_pt": ("ok", None)}


def test_48_a_capture_with_nothing_but_a_database_is_read(run: Path, tmp_path: Path) -> None:
    database_in(run / "e2e/n1_11_20260312032448000_ascend_pt")
    (run / "e2e/n1_11_20260312032448000_ascend_pt/ASCEND_PROFILER_OUTPUT/analysis.db").touch()

    tables = drawn(run, tmp_path / "out")

    assert lanes(tables) == [("actor_update", 3, 50_000, 200_000)]
    assert states(tables) == {"e2e/n1_11_20260312032448000_ascend_pt": ("ok", None)}


def test_48_the_configured_form_is_not_trusted(run: Path, tmp_path: Path) -> None:
    # GIVEN a capture that was to be a database, and was analysed as text
    told = info()
    told["config"]["experimental_config"]["_export_type"] = ["db"]
    write_text(run / "actor_update/a_ascend_pt", told=told)

    assert lanes(drawn(run, tmp_path / "out")) == [("actor_update", 0, 100_000, 100_000)]


def test_49_without_overlap_rows_the_tasks_tell_and_level_none_is_asked_about(
    run: Path, tmp_path: Path
) -> None:
    # GIVEN only «CANN» and «Ascend Hardware», whose names come last
    events = [
        event("AscendCL@op", 8, 90, 5, args={"level": "acl"}),
        task("MatMul", "AI_CORE", 100, 30),
        task("EVENT_WAIT", "EVENT_WAIT_SQE", 140, 60),
        *process(8, "CANN", "CPU"),
        *process(HARDWARE_PID, "Ascend Hardware"),
    ]
    write_text(run / "actor_update/a_ascend_pt", events)

    tables = drawn(run, tmp_path / "out")

    assert lanes(tables) == [("actor_update", 0, 100_000, 30_000)]
    assert tables["breakdown"][0]["computing_ns"] == 30_000
    assert states(tables) == {
        "actor_update/a_ascend_pt": (
            "ok",
            "no Overlap Analysis (collected at level_none?); "
            "its tasks say when the device was busy",
        )
    }


def test_49_without_any_device_the_host_tells_from_when_to_when(run: Path, tmp_path: Path) -> None:
    events = [
        event("aten::mm", 7, 40, 20, cat="cpu_op"),
        event("AscendCL@op", 8, 30, 5, args={}),
        *process(8, "CANN", "CPU"),
        *process(7, "Python", "CPU"),
    ]
    write_text(run / "actor_update/a_ascend_pt", events, told=info(level="Level_none"))

    tables = drawn(run, tmp_path / "out")

    assert lanes(tables) == [("actor_update", 0, 30_000, 30_000)]
    assert tables["breakdown"] == []
    assert states(tables) == {
        "actor_update/a_ascend_pt": (
            "ok",
            "no Overlap Analysis and no device tasks (collected at level_none); "
            "it is drawn without a breakdown",
        )
    }


def test_49_without_any_device_stage_ranges_are_drawn(run: Path, tmp_path: Path) -> None:
    events = [mstx("update_actor", 40, 20), mstx("compute_ref_log_prob", 10, 25)]
    write_text(run / "e2e/a_ascend_pt", events)

    tables = drawn(run, tmp_path / "out")

    assert lanes(tables) == [
        ("ref_compute_log_prob", 0, 10_000, 25_000),
        ("actor_update", 0, 40_000, 20_000),
    ]
    (detail,) = [detail for _, detail in states(tables).values()]
    assert "collected at level_none?" in str(detail)


def test_50_captures_that_were_never_analysed_say_what_to_do_and_the_rest_is_drawn(
    run: Path, tmp_path: Path
) -> None:
    raw = run / "actor_update/a_ascend_pt"
    for name in ("FRAMEWORK/torch.op_range", "PROF_000001_20260312_AB/host/info.json"):
        (raw / name).parent.mkdir(parents=True)
        (raw / name).write_bytes(b"raw")
    interrupted = run / "actor_update/b_ascend_pt"
    (interrupted / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    (interrupted / "FRAMEWORK").mkdir()
    write_text(run / "actor_update/c_ascend_pt", told=info(2))

    tables = drawn(run, tmp_path / "out")

    assert lanes(tables) == [("actor_update", 2, 100_000, 100_000)]
    found = states(tables)
    assert {path: status for path, (status, _) in found.items()} == {
        "actor_update/a_ascend_pt": "failed",
        "actor_update/b_ascend_pt": "failed",
        "actor_update/c_ascend_pt": "ok",
    }
    for folder, what in (
        (raw, "never analysed: it holds only raw data"),
        (interrupted, "not analysed: its ASCEND_PROFILER_OUTPUT holds no result"),
    ):
        assert found[folder.relative_to(run).as_posix()][1] == (
            f"{what}; run this where torch_npu is installed: rl-insight preprocess {run}"
        )


def test_50_the_command_that_analyses_names_a_folder_with_a_space_as_a_shell_takes_it(
    tmp_path: Path,
) -> None:
    run = tmp_path / "my run"
    (run / "a_ascend_pt/FRAMEWORK").mkdir(parents=True)
    (run / "a_ascend_pt/FRAMEWORK/torch.op_range").touch()

    ((_, detail),) = states(drawn(run, tmp_path / "out")).values()

    assert str(detail).endswith(f": rl-insight preprocess '{run}'")


def test_50_what_was_never_analysed_still_tells_whose_it_is(run: Path, tmp_path: Path) -> None:
    raw = run / "actor_update/host_4711_20260312032448123_ascend_pt"
    (raw / "FRAMEWORK").mkdir(parents=True)
    (raw / "profiler_info_3.json").write_text(json.dumps(info(3)))
    # AND a capture of which the result cannot be read
    write_text(run / "actor_update/b_ascend_pt", "no trace at all", told=info("5"))

    tables = drawn(run, tmp_path / "out")

    assert [(row["status"], row["role"], row["rank_id"]) for row in tables["sources"]] == [
        ("failed", "actor_update", 5),
        ("failed", "actor_update", 3),
    ]


def test_50_where_nothing_is_left_to_analyse_nobody_is_sent_to_analyse_it(
    run: Path, tmp_path: Path
) -> None:
    gone, never = run / "actor_update/a_ascend_pt", run / "actor_update/b_ascend_pt"
    (gone / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    never.mkdir()
    for folder in (gone, never):
        (folder / "profiler_info_0.json").write_text(json.dumps(info()))

    found = states(drawn(run, tmp_path / "out"))

    left = "and nothing is left to analyse: neither FRAMEWORK nor PROF_* is there"
    assert found == {
        "actor_update/a_ascend_pt": (
            "failed",
            f"not analysed: its ASCEND_PROFILER_OUTPUT holds no result, {left}",
        ),
        "actor_update/b_ascend_pt": ("failed", f"never analysed, {left}"),
    }


def test_49_what_damage_may_have_cost_is_not_put_down_to_the_level(
    run: Path, tmp_path: Path
) -> None:
    events = [mstx("update_actor", 40, 20), mstx("compute_ref_log_prob", 10, 25)]
    text = json.dumps(events)[:-20]
    write_text(run / "e2e/a_ascend_pt", text)
    write_text(run / "e2e/b_ascend_pt", text, told=info(1, level="Level_none"))

    (cut, of_none) = (detail for _, detail in states(drawn(run, tmp_path / "out")).values())

    assert "no Overlap Analysis and no device tasks (it may be in what was lost)" in str(cut)
    assert "level_none" not in str(cut)
    assert "(collected at level_none)" in str(of_none)


def test_50_a_capture_that_is_an_empty_folder_is_empty(run: Path, tmp_path: Path) -> None:
    (run / "actor_update/a_ascend_pt").mkdir(parents=True)

    tables = drawn(run, tmp_path / "out")

    assert states(tables) == {
        "actor_update/a_ascend_pt": (
            "empty",
            "the capture is an empty folder: nothing was recorded",
        )
    }


def test_51_the_rank_is_not_taken_from_the_folder_but_from_the_capture(
    run: Path, tmp_path: Path
) -> None:
    # GIVEN the names that producers, engines and people give
    names = {
        "host.with_parts_4711_20260312032448123_ascend_pt": 4,
        "dp0_pp0_tp0_dcp0_ep0_rank0_4712_20260312032448124_ascend_pt": 5,
        "rank0_ascend_pt": 6,
        "xxx_ascend_pt": 7,
        "renamed": 8,
    }
    for name, rank in names.items():
        told_as = f"profiler_info_{rank}.json"
        write_text(run / "actor_update" / name, told=info(str(rank)), told_as=told_as)

    tables = drawn(run, tmp_path / "out")

    ranks = {span["rank_id"] for span in tables["spans"]}
    assert ranks == {4, 5, 6, 7, 8}
    assert {status for status, _ in states(tables).values()} == {"ok"}


def test_52_the_analysis_is_found_wherever_it_is_named_and_whatever_stands_around(
    run: Path, tmp_path: Path
) -> None:
    # GIVEN flows and counters, times of metadata missing, whole durations, and a name that comes
    # only after a megabyte of events
    flow = {"bp": "e", "name": "torch_to_npu", "cat": "async_npu", "tid": 1}
    counter = {"ph": "C", "name": "HBM", "pid": 3, "tid": 0, "args": {"Read(MB/s)": 0.5}}
    noise: list[Event] = []
    for index in range(4_000):
        noise += [{**flow, "ph": phase, "id": index, "pid": 1, "ts": at(index)} for phase in "sf"]
        noise.append({**counter, "ts": at(index)})
    events = [overlap("Computing", 500, 7), *noise, overlap("Free", 507, 3), *ANALYSIS]
    write_text(run / "actor_update/a_ascend_pt", events)

    tables = drawn(run, tmp_path / "out")

    assert OVERLAP_PID > 2**31
    assert lanes(tables) == [("actor_update", 0, 500_000, 10_000)]
    assert states(tables) == {"actor_update/a_ascend_pt": ("ok", None)}


def test_55_a_role_in_the_metadata_beats_the_folder_and_the_step_is_shown(
    run: Path, tmp_path: Path
) -> None:
    write_text(run / "2/actor_update/a_ascend_pt", told=info(0))
    write_text(run / "3/whatever/b_ascend_pt", told=info(1), metadata={"role": "rollout_generate"})

    tables = drawn(run, tmp_path / "out")

    found = {(span["role"], span["rank_id"], span["step"]) for span in tables["spans"]}
    assert found == {("actor_update", 0, 2), ("rollout_generate", 1, 3)}


def test_nothing_but_failures_ends_with_an_error(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN a folder of the wrong kind: no capture at all
    run.mkdir()
    (run / "notes.txt").touch()

    code = main(["--input-path", str(run), "--output-path", str(tmp_path / "out")])

    assert code == 2
    assert "holds no mstx profile" in capsys.readouterr().err
