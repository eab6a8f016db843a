"""From the tables to the plain data of a timeline."""

from pathlib import Path

from rl_insight import presets, tables
from rl_insight.visualizers import timeline_data, timeline_words
from rl_insight.visualizers.timeline_model import Timeline
from tests import timeline_tables
from tests.timeline_tables import MS, ORIGIN_NS, Tables


def load(made: Tables, folder: Path) -> Timeline:
    return timeline_data.load(made.write(folder))


def test_a_row_is_one_role_replica_and_rank_over_all_its_captures(tmp_path: Path) -> None:
    timeline = load(timeline_tables.training(ranks=4, steps=2, replicas=2), tmp_path)

    rows = {(lane.role, lane.replica, lane.rank_id) for lane in timeline.lanes}
    assert len(timeline.lanes) == len(rows) == 2 * 2 + 3 * 4
    assert ("agent_loop_rollout", 1, 0) in rows
    assert ("actor_update", None, 3) in rows
    assert timeline.ranks == 4
    assert timeline.steps == [1, 2]


def test_replicas_number_their_ranks_themselves_and_never_share_a_row(tmp_path: Path) -> None:
    made = Tables()
    for replica in (0, 1):
        made.lane(f"r{replica}")
        made.span(f"r{replica}", 0, 10, role="agent_loop_rollout", replica=replica, rank_id=0)

    assert [lane.replica for lane in load(made, tmp_path).lanes] == [0, 1]


def test_a_global_rank_is_known_where_all_captures_of_a_row_agree(tmp_path: Path) -> None:
    made = Tables()
    for name, rank, known in (("a", 0, 2), ("b", 0, 2), ("c", 1, 2), ("d", 1, 3), ("e", 2, None)):
        made.lane(name, global_rank=known)
        made.span(name, 0, 10, role="agent_loop_rollout", replica=1, rank_id=rank)

    assert [lane.global_rank for lane in load(made, tmp_path).lanes] == [2, None, None]


def test_lanes_of_unknown_rank_never_share_a_row(tmp_path: Path) -> None:
    timeline = load(timeline_tables.unknown_ranks(), tmp_path)

    unknown = [lane for lane in timeline.lanes if lane.rank_id is None]
    assert len(unknown) == timeline.unknown_ranks == 4
    assert [lane.sources for lane in unknown][:2] == [
        ("nsys/report_a.nsys-rep",),
        ("nsys/report_b.nsys-rep",),
    ]
    assert [lane.process for lane in unknown] == ["pid 100", "pid 101", "pid 102", "pid 103"]


def test_times_count_from_the_first_span_to_the_nanosecond(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a")
    made.span("a", 0, 10, role="actor_update", rank_id=0, start_ns=ORIGIN_NS + 7)
    made.span("a", 0, 10, role="actor_update", rank_id=0, start_ns=ORIGIN_NS + 10 * MS + 8)

    timeline = load(made, tmp_path)

    assert timeline.origin_ns == ORIGIN_NS + 7
    assert timeline.spans.start_ns.tolist() == [0, 10 * MS + 1]
    assert timeline.extent_ns == 20 * MS + 1


def test_a_range_knows_its_stage_and_stands_for_one_where_there_is_none(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a")
    where = {"role": "actor_update", "rank_id": 0}
    stage = made.span("a", 0, 100, **where)
    outer = made.span("a", 10, 50, kind="range", depth=1, name="mini", parent_id=stage, **where)
    made.span("a", 20, 10, kind="range", depth=2, name="micro", parent_id=outer, **where)
    made.span("a", 200, 10, kind="range", depth=1, name="alone", parent_id="gone", **where)

    timeline = load(made, tmp_path)

    assert timeline.spans.root.tolist() == [0, 0, 0, 3]
    assert timeline.spans.depth.tolist() == [0, 1, 2, 0]
    stages = [timeline.names[code] for code in timeline.spans.stage]
    assert stages == ["actor_update"] * 4
    assert [timeline.names[code] for code in timeline.spans.name][1:] == ["mini", "micro", "alone"]


def test_parents_in_a_circle_do_not_hang(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a")
    for own, parent in (("x", "y"), ("y", "x")):
        made.span("a", 0, 10, role="r", kind="range", depth=1, span_id=own, parent_id=parent)

    assert load(made, tmp_path).spans.root.tolist() == [0, 1]


def test_spans_without_a_start_or_a_length_are_not_drawn(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a")
    made.span("a", 0, 0, role="r", rank_id=0)
    made.span("a", 0, 5, role="r", rank_id=0, start_ns=None)
    made.span("a", 3, 5, role="r", rank_id=0)

    assert len(load(made, tmp_path).spans) == 1


def test_the_breakdown_is_found_by_span_and_keeps_unknowns(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a")
    made.span("a", 0, 5, role="r", rank_id=0)
    span = made.span("a", 10, 5, role="r", rank_id=0)
    made.breakdown.append({"span_id": span, "window_ns": 5 * MS, "computing_ns": 2 * MS})
    made.breakdown.append({"span_id": "gone", "window_ns": 1})

    breakdown = load(made, tmp_path).breakdown

    assert list(breakdown) == [1]
    assert breakdown[1].computing_ns == 2 * MS
    assert breakdown[1].communication_ns is None


def test_a_capture_on_a_boot_clock_is_drawn_near_the_others_and_marked(tmp_path: Path) -> None:
    made = Tables()
    made.lane("wall")
    made.lane("boot", clock="boot")
    made.span("wall", 0, 10, role="a", rank_id=0, host="n0")
    made.span("boot", 0, 10, role="b", rank_id=0, host="n1", start_ns=76 * 86_400 * 10**9)
    made.span("boot", 0, 10, role="b", rank_id=0, host="n1", start_ns=76 * 86_400 * 10**9 + 5 * MS)

    timeline = load(made, tmp_path)

    assert timeline.origin_ns == ORIGIN_NS
    assert timeline.spans.start_ns.tolist() == [0, 0, 5 * MS]
    assert timeline.lanes[0].clock_note is None
    assert "boot clock" in (timeline.lanes[1].clock_note or "")


def test_spans_without_a_date_never_move_the_origin_and_say_so_alone(tmp_path: Path) -> None:
    made = Tables()
    made.lane("wall")
    made.lane("lost", clock="relative")
    # GIVEN two captures of one rank, one of which the merge has moved to before the other
    made.span("wall", 0, 10, role="a", rank_id=0)
    made.span("lost", -5, 10, role="a", rank_id=0)
    made.span("lost", 2, 3, role="a", rank_id=0)

    timeline = load(made, tmp_path)

    # THEN both of its spans keep their distance, and begin with what is dated
    assert timeline.origin_ns == ORIGIN_NS
    assert timeline.spans.start_ns.tolist() == [0, 0, 7 * MS]
    assert timeline.spans.undated.tolist() == [False, True, True]
    said = ("No clock in this capture: drawn from the origin, not aligned with other lanes.",)
    assert timeline.spans.remarks == [(), said, said]
    assert timeline.lanes[0].clock_is_mixed
    words = timeline_words.clock_words(timeline.lanes[0])
    assert words is not None and words.endswith("(some of its captures).")


def test_a_date_that_only_the_merge_gave_is_no_origin(tmp_path: Path) -> None:
    made = Tables()
    made.lane("lost", clock="relative")
    made.span("lost", 5, 10, role="a", rank_id=0)

    timeline = load(made, tmp_path)

    assert (timeline.origin_ns, timeline.spans.start_ns.tolist()) == (None, [0])


def test_the_spans_of_a_file_that_was_read_in_part_say_what_was_lost(tmp_path: Path) -> None:
    made = Tables()
    made.source("file-cut", "cut.json", status="salvaged", detail="the file breaks off")
    made.source("file-mute", "mute.json", status="salvaged", detail=None)
    for lane in ("cut", "mute", "well"):
        made.lane(lane)
        made.span(lane, 0, 10, role="a", rank_id=0)

    assert load(made, tmp_path).spans.remarks == [
        ("Read in part: the file breaks off.",),
        ("Read in part: no reason was recorded.",),
        (),
    ]


def test_without_any_wall_clock_there_is_no_origin(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a", clock="relative")
    made.span("a", 0, 10, role="a", rank_id=0, start_ns=5_000)

    timeline = load(made, tmp_path)

    assert timeline.origin_ns is None
    assert timeline.spans.start_ns.tolist() == [0]


def test_sources_that_gave_less_are_listed_worst_first_without_those_of_a_heatmap(
    tmp_path: Path,
) -> None:
    made = timeline_tables.failures(timeline_tables.training(steps=1), failed=2)

    timeline = load(made, tmp_path)

    statuses = [trouble.status for trouble in timeline.troubles]
    assert statuses == ["failed", "failed", "salvaged", "empty"]
    assert timeline.troubled("failed") == 2
    assert timeline.sources == len(made.sources) - 1


def test_what_was_read_in_part_also_tells_that_its_time_is_doubtful(tmp_path: Path) -> None:
    made = Tables()
    cut = {"code": "truncated", "severity": "warning", "count": 1}
    clock = {"code": "clock_unknown", "severity": "warning", "count": 1, "example": "no date"}
    made.source("a", "a.json", status="salvaged", detail="breaks off", problems=[cut, clock])

    assert [one.detail for one in load(made, tmp_path).troubles] == [
        "breaks off; clock_unknown: no date"
    ]


def test_a_command_in_the_list_of_troubles_is_never_cut(tmp_path: Path) -> None:
    made = Tables()
    command = f"rl-insight preprocess /{'long/' * 300}end"
    made.source("a", "a_ascend_pt", status="failed", detail=f"run this: {command}")

    told = timeline_words.troubles(load(made, tmp_path))

    assert told is not None
    assert told.shown == (("failed", "a_ascend_pt", f"run this: {command}"),)


def test_warnings_about_a_source_that_was_read_make_it_doubtful(tmp_path: Path) -> None:
    made = Tables()

    def problem(severity: str, code: str, example: str | None) -> dict[str, object]:
        return {"code": code, "severity": severity, "count": 1, "example": example}

    made.source("a", "a.json", problems=[problem("info", "whole_window", "a note")])
    made.source(
        "b",
        "b.json",
        problems=[
            problem("warning", "clock_skew", "set back by 3 s"),
            problem("info", "note", "said for information"),
            problem("error", "lost_events", None),
        ],
    )
    made.source("c", "c.json", problems=[])
    made.source("d", "d.pt", parser="gmm", problems=[problem("warning", "odd", "odd")])

    troubles = load(made, tmp_path).troubles

    assert [(one.path, one.status, one.detail) for one in troubles] == [
        ("b.json", "doubtful", "lost_events; clock_skew: set back by 3 s")
    ]


def test_events_that_were_left_out_are_counted_in_the_list_and_at_the_bars(tmp_path: Path) -> None:
    made = Tables()
    made.lane("0", role="actor_update", rank_id=0)
    made.span("0", 0, 50, role="actor_update", rank_id=0)
    zeros = {"code": "zero_time", "severity": "warning", "count": 20, "example": "'gemm': ts 0"}
    made.sources[0] = {**made.sources[0], "problems": [zeros]}

    timeline = load(made, tmp_path)

    told = "20 events at time 0 were left out, such as 'gemm': ts 0"
    assert [one.detail for one in timeline.troubles] == [f"zero_time: {told}"]
    assert timeline.spans.remarks == [(f"{told}.",)]


def test_what_a_parser_of_another_package_lost_of_expert_load_is_no_loss_to_a_timeline(
    tmp_path: Path,
) -> None:
    made = Tables()
    made.source("a", "a.load", parser="loads", status="failed", detail="Cut off.")
    made.source("b", "b.watch", parser="stopwatch", status="failed", detail="Broken.")
    path = made.write(tmp_path) / "sources.parquet"
    told = {"loads": "heatmap", "stopwatch": "timeline"}
    tables.write(path, presets.attach(tables.read(path), told))

    timeline = timeline_data.load(tmp_path)

    assert [one.path for one in timeline.troubles] == ["b.watch"]
    assert timeline.sources == 1


def test_missing_tables_are_an_empty_timeline(tmp_path: Path) -> None:
    timeline = timeline_data.load(tmp_path)

    assert timeline.lanes == []
    assert timeline.origin_ns is None
    assert timeline.extent_ns == 0
