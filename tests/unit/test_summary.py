"""The closing summary: what it counts, what it says, and the exit code that follows."""

import os
from pathlib import Path

import pytest

from rl_insight import tables
from rl_insight.errors import CacheError
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.run import Outcome
from rl_insight.pipeline.summary import Trouble, exit_code, lines, summarise
from rl_insight.problems import Problem
from rl_insight.schema import BREAKDOWN, LANES, SOURCES, SPANS


def source(path, status="ok", detail=None, problems=(), parser="torch"):
    return {
        "source_id": path,
        "path": path,
        "parser": parser,
        "status": status,
        "detail": detail,
        "problems": list(problems),
    }


def span(role, rank, replica=None, step=None, lane="a"):
    return {"role": role, "rank_id": rank, "replica": replica, "step": step, "lane_id": lane}


def write(output, sources, spans=()):
    folder = output / "tables"
    folder.mkdir()
    tables.write(folder / "sources.parquet", tables.from_rows(SOURCES, sources))
    tables.write(folder / "breakdown.parquet", tables.empty(BREAKDOWN))
    tables.write(folder / "spans.parquet", tables.from_rows(SPANS, list(spans)))


@pytest.fixture
def mixed(tmp_path):
    """Two good ranks, one good with a doubt, a cut one, three broken, an empty, two skipped."""
    doubt = Problem("negative_duration", "warning", 3, 12, "aten::mm")
    note = Problem("whole_window", "info", 1, None, "Spans")
    cut = Problem("truncated", "error", 1, 4096, None)
    write(
        tmp_path,
        [
            source("a/rank0.json.gz"),
            source("a/rank1.json.gz", problems=[note]),
            source("a/rank2.json.gz", problems=[note, doubt]),
            source("a/rank3.json.gz", "salvaged", "cut off after 4096 bytes", [cut]),
            source("a/rank4.json.gz", "failed", "not gzip: begins with 'abc'"),
            source("a/rank5.json.gz", "failed", "not gzip: begins with 'xyz'"),
            source("a/rank6.json.gz", "failed", "is a folder"),
            source("a/rank7.json.gz", "empty", "holds no events"),
            source("a/async_llm_1.json.gz", "skipped", "rank 9 is not in input.rank_list"),
            source("a/async_llm_2.json.gz", "skipped", "rank 10 is not in input.rank_list"),
            source("other.pt", "failed", "no zip", parser="gmm"),
        ],
        spans=[
            span("update", 0, step=1, lane="a"),
            span("update", 0, step=2, lane="b"),
            span("update", 1, step=1, lane="c"),
            span("rollout", 0, replica=0, lane="d"),
            span("rollout", 0, replica=1, lane="e"),
            span("rollout", None, lane="f"),
            span("rollout", None, lane="g"),
            span("rollout", None, lane="g"),
        ],
    )
    return tmp_path


def test_sources_are_counted_by_status_and_troubles_by_kind(mixed):
    summary = summarise(mixed, ["torch"])
    assert summary.sources == {"ok": 3, "salvaged": 1, "empty": 1, "failed": 3, "skipped": 2}
    assert (summary.lanes, summary.spans, summary.ranks, summary.steps) == (6, 8, 2, 2)
    assert (summary.drawn, summary.damaged) == (True, 5)
    assert summary.troubles == (
        Trouble(
            "failed",
            None,
            2,
            "a/rank4.json.gz",
            "not gzip: begins with 'abc'",
            (("a/rank5.json.gz", "not gzip: begins with 'xyz'"),),
        ),
        Trouble("failed", None, 1, "a/rank6.json.gz", "is a folder"),
        Trouble("empty", None, 1, "a/rank7.json.gz", "holds no events"),
        Trouble("salvaged", "truncated", 1, "a/rank3.json.gz", "cut off after 4096 bytes"),
        Trouble(
            "ok",
            "negative_duration",
            1,
            "a/rank2.json.gz",
            "3 events that end before they start were left out, such as aten::mm",
        ),
        Trouble(
            "skipped",
            None,
            2,
            "a/async_llm_1.json.gz",
            "rank 9 is not in input.rank_list",
            (("a/async_llm_2.json.gz", "rank 10 is not in input.rank_list"),),
        ),
    )


def test_a_doubtful_time_is_told_beside_what_was_lost(tmp_path):
    cut = {"code": "truncated", "severity": "warning", "count": 1, "offset": 9, "example": None}
    clock = {"code": "clock_unknown", "severity": "warning", "example": "no date"}
    skew = {"code": "clock_skew", "severity": "warning", "example": "3 s late"}
    write(
        tmp_path,
        [
            source("a", "salvaged", "breaks off", [cut, clock]),
            source("b", "salvaged", "breaks off", [cut]),
            source("c", "ok", None, [clock]),
            source("d", "ok", None, [{**cut, "code": "no_time"}, skew]),
            source("e", "skipped", "not wanted", [clock]),
        ],
        [span("update", 0)],
    )
    assert lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, ()))[2:10] == [
        "  salvaged: 2 inputs: breaks off",
        "    a",
        "    b",
        "  read with doubts: 2 inputs: clock_unknown (no date)",
        "    a",
        "    c",
        "  read with doubts: d: no_time (1 event without a time was left out)",
        "  read with doubts: d: clock_skew (3 s late)",
    ]


def test_without_a_choice_of_parsers_all_sources_count(mixed):
    assert summarise(mixed).sources["failed"] == 4


def test_the_summary_says_what_was_read_drawn_and_left_out(mixed):
    page = mixed / "rl_timeline.html"
    page.touch()
    outcome = Outcome(0, mixed, 83.2, (page, mixed / "rl_timeline.png"))
    assert lines(summarise(mixed, ["torch"]), outcome) == [
        "Read 4 of 8 inputs.",
        "Drew 6 lanes, 2 ranks, 2 steps: 8 spans.",
        "  rank unknown: 2 lanes; input.identity can tell it from the path",
        "  failed: a/rank4.json.gz: not gzip: begins with 'abc'",
        "  failed: a/rank5.json.gz: not gzip: begins with 'xyz'",
        "  failed: a/rank6.json.gz: is a folder",
        "  empty: a/rank7.json.gz: holds no events",
        "  salvaged: a/rank3.json.gz: cut off after 4096 bytes",
        "  read with doubts: a/rank2.json.gz: negative_duration (3 events that end before they "
        "start were left out, such as aten::mm)",
        "  skipped: a/async_llm_1.json.gz: rank 9 is not in input.rank_list",
        "  skipped: a/async_llm_2.json.gz: rank 10 is not in input.rank_list",
        f"  Every input and its problems: {mixed}/tables/sources.parquet",
        f"Open {page}",
        "Took 1 min 23 s.",
    ]


def test_a_good_run_is_told_in_four_lines(tmp_path):
    write(tmp_path, [source("r0")], [span("update", 0)])
    page = tmp_path / "rl_timeline.html"
    page.touch()
    assert lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, (page,))) == [
        "Read 1 input.",
        "Drew 1 lane, 1 rank: 1 span.",
        f"Open {page}",
        "Took 1.0 s.",
    ]


def test_a_run_of_thousands_of_bad_files_is_told_in_a_few_lines(tmp_path):
    bad = [source(f"r{n}", "failed", f"line {n} is broken") for n in range(3000)]
    odd = [source(f"s{n}", "failed", f"odd{'x' * n}") for n in range(20)]
    write(tmp_path, bad + odd)
    told = lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, ()))
    assert told[:3] == [
        "Read 0 of 3,020 inputs.",
        "Nothing could be drawn.",
        "  failed: 3,000 inputs, such as r0: line 0 is broken",
    ]
    assert told[14:] == [
        "  and 9 more kinds of trouble",
        f"  Every input and its problems: {tmp_path}/tables/sources.parquet",
        "Took 1.0 s.",
    ]


@pytest.mark.parametrize("number", [2, 5, 6])
def test_of_up_to_five_inputs_each_is_named(tmp_path, number):
    write(tmp_path, [source(f"r{n}", "failed", "the file is empty") for n in range(number)])
    told = lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, ()))[2:-2]
    if number <= 5:
        named = [f"    r{n}" for n in range(number)]
        assert told == [f"  failed: {number} inputs: the file is empty", *named]
    else:
        assert told == ["  failed: 6 inputs, such as r0: the file is empty"]


def test_many_kinds_of_few_inputs_each_do_not_fill_the_screen(tmp_path):
    bad = [source(f"r{k}-{n}", "failed", "odd" + "x" * k) for k in range(12) for n in range(5)]
    write(tmp_path, bad)
    told = lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, ()))[2:-2]
    # Each kind has a line of its own, and beside these there are at most 30.
    assert len(told) == 12 + 30
    assert sum("5 inputs: odd" in line for line in told) == 6
    assert sum("5 inputs, such as r" in line for line in told) == 6


def test_a_command_is_never_cut_so_that_it_can_be_copied(tmp_path):
    command = f"rl-insight preprocess /{'long/' * 300}end"
    write(tmp_path, [source("a", "failed", f"never analysed; run this: {command}")])
    told = lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, ()))
    assert told[2] == f"  failed: a: never analysed; run this: {command}"
    (tmp_path / "b").mkdir()
    write(tmp_path / "b", [source("a", "failed", "x" * 400)])
    told = lines(summarise(tmp_path / "b"), Outcome(0, tmp_path, 1.0, ()))
    assert told[2] == f"  failed: a: {'x' * 299}…"


def test_hostile_names_cannot_command_the_terminal(tmp_path):
    write(tmp_path, [source("\x1b[2Jrank\u202e0\n.json", "failed", "\x1b]0;owned\x07bad\nbad")])
    told = lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, ()))
    assert told[2] == "  failed: rank\ufffd0 .json: bad bad"


@pytest.mark.parametrize(
    ("statuses", "spans", "strict", "code"),
    [
        (["ok", "skipped"], 1, True, 0),
        (["ok", "failed"], 1, False, 0),
        (["ok", "failed"], 1, True, 3),
        (["ok", "empty"], 1, True, 3),
        (["salvaged"], 1, True, 3),
        (["failed"], 0, True, 1),
        (["skipped"], 0, False, 1),
    ],
)
def test_the_exit_code_follows_from_what_was_drawn_and_lost(
    tmp_path, statuses, spans, strict, code
):
    write(
        tmp_path,
        [source(str(n), status) for n, status in enumerate(statuses)],
        spans=[span("update", 0)] * spans,
    )
    assert exit_code(summarise(tmp_path), strict) == code


def test_a_role_that_no_capture_has_is_told_with_those_that_there_are(tmp_path):
    reason = "role {} is not among the chosen roles"
    left = [
        source("a", "skipped", reason.format("actor_update")),
        source("b", "skipped", "roles actor_update, reward are not among the chosen roles"),
        source(
            "c", "skipped", reason.format("unknown"), [Problem("truncated", "error", 1, 9, None)]
        ),
        {**source("d", "skipped", "rank 3 is not in input.rank_list"), "role": "critic_update"},
    ]
    write(tmp_path, left)
    told = lines(summarise(tmp_path, roles=["actor_updat"]), Outcome(0, tmp_path, 1.0, ()))
    assert told[1:7] == [
        "Nothing could be drawn.",
        "  no capture has the role actor_updat; there are actor_update, critic_update, reward",
        f"  skipped: a: {reason.format('actor_update')}",
        "  skipped: b: roles actor_update, reward are not among the chosen roles",
        f"  skipped: c: {reason.format('unknown')}",
        "  skipped: d: rank 3 is not in input.rank_list",
    ]
    # Whoever is there is not said to be missing, under any of its names.
    for name in ("update_actor", "critic_update"):
        told = lines(summarise(tmp_path, roles=[name]), Outcome(0, tmp_path, 1.0, ()))
        assert not any("no capture" in line for line in told)


def test_a_replica_that_was_asked_for_is_told_by_its_own_name(tmp_path):
    write(tmp_path, [source("a")], [span("agent_loop_rollout", 0, replica=1)])

    def told(name):
        said = lines(summarise(tmp_path, roles=[name]), Outcome(0, tmp_path, 1.0, ()))
        return [line for line in said if "no capture" in line]

    assert told("agent_loop_rollout_replica_1") == told("agent_loop_rollout") == []
    assert told("agent_loop_rollout_replica_2") == [
        "  no capture has the role agent_loop_rollout_replica_2; "
        "there are agent_loop_rollout_replica_1"
    ]


def test_captures_whose_step_nobody_tells_come_with_the_remedy(tmp_path):
    reason = "step unknown is not among the chosen steps"
    write(tmp_path, [source(str(n), "skipped", reason) for n in range(3)])
    told = lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, ()))
    assert told[2] == (
        "  step unknown: 3 inputs; put the captures of each step into a folder step_<n>, or let "
        "input.identity tell it from the path (docs/data.md has an example for each profiler)"
    )


def test_steps_that_no_input_has_are_told_with_those_that_there_are(tmp_path):
    reason = "step {} is not among the chosen steps"
    steps = (1, 2, 3, 3, 7)
    left = [source(str(n), "skipped", reason.format(step)) for n, step in enumerate(steps)]
    write(tmp_path, left)
    page = tmp_path / "rl_timeline.html"
    page.touch()
    told = lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, (page,)))
    assert told[2] == "  no input has a chosen step; there are steps 1-3, 7"
    # A page without anything drawn is no result to open.
    assert f"Why, is also said in {page}" in told
    assert not any(line.startswith("Open") for line in told)


def test_what_other_steps_there_are_is_not_said_where_a_chosen_one_is(tmp_path):
    left = source("a", "skipped", "step 1 is not among the chosen steps")
    write(tmp_path, [left, source("b")], [span("update", 0, step=2)])
    told = lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, ()))
    assert not any("chosen step;" in line for line in told)


def test_missing_tables_are_told_as_such():
    with pytest.raises(FileNotFoundError):
        summarise(Path("/nonexistent"))


@pytest.mark.parametrize("name", ["sources", "spans"])
@pytest.mark.parametrize("damage", ["cut", "other", "text", "empty"])
def test_a_damaged_table_is_named_with_what_to_do(tmp_path, name, damage):
    write(tmp_path, [source("a")], [span("update", 0)])
    path = tmp_path / "tables" / f"{name}.parquet"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "other":
        tables.write(path, tables.empty(SOURCES.empty_table().select(["source_id"]).schema))
    else:
        path.write_bytes(b"" if damage == "empty" else b"PAR1 no table PAR1")
    with pytest.raises(CacheError, match=rf"{name}\.parquet: damaged .*; delete it and run again"):
        summarise(tmp_path)


def test_lanes_without_a_rank_are_told_with_the_remedy(tmp_path):
    write(tmp_path, [source("w0.json")], [span("update", None, lane=lane) for lane in "aab"])
    said = lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, ()))
    assert "  rank unknown: 2 lanes; input.identity can tell it from the path" in said


def test_a_picture_of_an_earlier_run_is_not_taken_for_this_ones(tmp_path):
    write(tmp_path, [source("a")], [span("update", 0)])
    page = tmp_path / "rl_timeline.html"
    for name in ("rl_timeline.html", "rl_timeline.png"):
        (tmp_path / name).touch()
    old = (tmp_path / "tables/spans.parquet").stat().st_mtime_ns
    picture = tmp_path / "rl_timeline.png"
    # GIVEN one that was drawn from these tables
    os.utime(picture, ns=(old + 1, old + 1))
    current = lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, (page,)))
    assert not any("earlier run" in line for line in current)
    # AND one that was drawn before them
    os.utime(picture, ns=(old - 1, old - 1))
    said = lines(summarise(tmp_path), Outcome(0, tmp_path, 1.0, (page,)))
    assert "Not drawn again, so still of an earlier run: rl_timeline.png" in said
    both = Outcome(0, tmp_path, 1.0, (page, tmp_path / "rl_timeline.png"))
    assert not any("earlier run" in line for line in lines(summarise(tmp_path), both))


def test_what_is_missing_is_told_in_a_bounded_number_of_lines(tmp_path):
    ranks = [rank for rank in range(4) if rank != 2]
    captures = [(role, rank) for role in "abcdefghijk" for rank in ranks]
    names = [f"{role}{rank}" for role, rank in captures]
    spans = [span(role, rank, step=1, lane=f"{role}{rank}") for role, rank in captures]
    # The last two are captures of a whole step: what is drawn of them are their stages.
    lanes = [
        {**row, "lane_id": name, "source_id": name, "world_size": 4}
        for row, name in zip(spans, names, strict=True)
    ]
    lanes = [{**row, "role": "train"} if row["role"] in "jk" else row for row in lanes]
    write(tmp_path, [source(name) for name in names], spans)
    tables.write(tmp_path / "tables" / "lanes.parquet", tables.from_rows(LANES, lanes))
    summary = summarise(tmp_path, filters={"timeline": Filters()})
    assert summary.missing[-1] == "k step 1: 3 of 4 ranks, rank 2 missing"
    told = [line for line in lines(summary, Outcome(0, tmp_path, 1.0, ())) if "missing" in line]
    assert told[0] == "  missing: a step 1: 3 of 4 ranks, rank 2 missing"
    assert told[8:] == ["  and 3 more lines of what is missing"]
    chosen = Filters(ranks=frozenset({0, 1}))
    assert summarise(tmp_path, filters={"timeline": chosen}).missing == ()
