"""Labels, titles and the sentences about what is missing."""

from pathlib import Path

import pytest

from rl_insight.visualizers import timeline_axis, timeline_data, timeline_words
from rl_insight.visualizers.labels import plain, shorten, utc
from rl_insight.visualizers.timeline_model import Lane
from tests import timeline_tables
from tests.timeline_tables import ORIGIN_NS, Tables


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("actor_update", "actor_update"),
        ("two\nlines\tand\r\na tab", "two lines and a tab"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07end", "red end"),
        ("\u202egnp.live\u200b\u2066x\u00ad", "gnp.livex"),
        ("a\u2028b\u2029c", "a b c"),
        ("角色_更新", "角色_更新"),
        ("\x00\x01\x7f\ufeff", "(no name)"),
        ("", "(no name)"),
        ("<script>", "<script>"),
    ],
)
def test_text_from_files_becomes_one_visible_line(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_long_names_keep_both_ends() -> None:
    short = plain("begin_" + "x" * 5_000_000 + "_rank7", 40)

    assert len(short) == 40
    assert short.startswith("begin_x")
    assert short.endswith("x_rank7")
    assert shorten("exact", 5) == "exact"


def test_rows_are_labelled_role_and_rank() -> None:
    lanes = [
        Lane("actor_update", None, 2),
        Lane("agent_loop_rollout", 1, 0),
        Lane("reward_model/agent_loop_rollout", 0, 3),
    ]

    assert timeline_words.row_labels(lanes) == [
        "actor_update - Rank 2",
        "agent_loop_rollout_replica_1 - Rank 0",
        "reward_model/agent_loop_rollout_replica_0 - Rank 3",
    ]


def test_a_row_of_unknown_rank_says_so_and_names_its_file() -> None:
    lane = Lane("actor_update", None, None, sources=("a/trace_7.json",), process="pid 12")

    assert timeline_words.row_labels([lane]) == [
        "actor_update - Rank ? (unknown: trace_7.json, pid 12)"
    ]
    assert "rank is unknown" in timeline_words.row_notes(lane)[0]


@pytest.mark.parametrize(
    ("paths", "shown"),
    [
        (["run/n1/trace.json", "run/n2/trace.json"], ["n1/trace.json", "n2/trace.json"]),
        (["n1/a/b/t.json", "n2/a/b/t.json"], ["n1/…/t.json", "n2/…/t.json"]),
        (["t.json", "a/t.json"], ["t.json", "a/t.json"]),
        (["a/t.json", "a/a/t.json"], ["t.json", "a/…/t.json"]),
        (["a/x/1/t.json", "a/y/2/t.json"], ["x/1/t.json", "y/2/t.json"]),
        (["a/one.json", "b/two.json"], ["one.json", "two.json"]),
        (
            [f"{'x' * 30}_{number}_{'y' * 20}.json" for number in "12"],
            [f"…{number}_{'y' * 14}{'y' * 6}.json" for number in "12"],
        ),
    ],
)
def test_rows_of_unknown_rank_show_what_tells_their_files_apart(
    paths: list[str], shown: list[str]
) -> None:
    lanes = [Lane("r", None, None, sources=(path,)) for path in paths]

    assert timeline_words.row_labels(lanes) == [f"r - Rank ? (unknown: {file})" for file in shown]


def test_deep_folders_leave_a_label_short() -> None:
    lanes = [
        Lane("r", None, None, sources=(f"{name * 100}/{name * 80}/{'t' * 90}.json",))
        for name in "ab"
    ]

    labels = timeline_words.row_labels(lanes)

    assert len(set(labels)) == 2
    assert all(len(label) < 80 for label in labels)


def test_no_two_rows_have_the_same_label() -> None:
    lanes = [Lane("x" * 100 + middle + "x" * 100, None, 0) for middle in "abc"]

    labels = timeline_words.row_labels(lanes)

    assert len(set(labels)) == 3
    assert all(len(label) < 60 and " - Rank 0" in label for label in labels)


def test_the_heading_tells_origin_ranks_steps_and_files_not_read(tmp_path: Path) -> None:
    made = timeline_tables.failures(timeline_tables.training(ranks=4, steps=2))

    heading = timeline_words.heading(timeline_data.load(made.write(tmp_path)))

    assert heading.title == "RL Timeline"
    assert heading.origin == "2026-08-14 12:27:31.090 UTC"
    counted = "rollout ranks are counted inside their replica"
    assert heading.facts == ("4 ranks", "16 lanes", "2 steps (1–2)", counted)
    assert heading.lost == ("3 files not read, 1 file read in part, 1 file without timed events")


def test_steps_that_nobody_recorded_are_said_to_be_unknown(tmp_path: Path) -> None:
    made = Tables()
    made.lane("a")
    made.span("a", 0, 1, role="r", rank_id=0)

    heading = timeline_words.heading(timeline_data.load(made.write(tmp_path)))

    assert heading.facts == ("1 rank", "1 lane", "steps unknown")
    assert heading.lost is None


def test_the_list_of_troubles_counts_and_is_capped(tmp_path: Path) -> None:
    made = timeline_tables.failures(timeline_tables.training(steps=1), failed=300)

    troubles = timeline_words.troubles(timeline_data.load(made.write(tmp_path)))

    assert troubles is not None
    assert troubles.summary.startswith(
        "300 files not read, 1 file read in part, 1 file without timed events (of "
    )
    assert [status for status, *_ in troubles.shown] == ["failed"] * 100 + ["salvaged", "empty"]
    assert troubles.shown[0][:2] == ("failed", "actor_update/broken_0.json.gz")
    assert troubles.more == "… and 200 more; all are in tables/sources.parquet."


def test_the_heading_tells_of_doubtful_clocks_and_of_no_other_doubts(tmp_path: Path) -> None:
    made = timeline_tables.training(ranks=1, steps=1)

    def lost() -> str | None:
        return timeline_words.heading(timeline_data.load(made.write(tmp_path))).lost

    def doubted(number: int, code: str, **more: object) -> None:
        doubt = {"code": code, "severity": "warning", "example": "so it is"}
        made.source(f"d{number}", f"doubt_{number}.json", problems=[doubt], **more)

    doubted(0, "identity_conflict")
    assert lost() is None
    doubted(1, "clock_skew")
    doubted(2, "clock_skew", parser="gmm")
    doubted(3, "clock_skew", status="failed")
    assert lost() == "1 file not read, 1 file with a doubtful clock"
    doubted(4, "clock_unknown", status="salvaged")
    assert lost() == "1 file not read, 1 file read in part, 2 files with doubtful clocks"


def test_files_read_with_doubts_and_skipped_ones_are_counted_and_listed(tmp_path: Path) -> None:
    made = timeline_tables.training(ranks=1, steps=1)
    doubt = {"code": "identity_conflict", "severity": "warning", "example": "rank 1, or rank 2"}
    for number in range(2):
        made.source(f"d{number}", f"doubt_{number}.json", problems=[doubt])
    made.source("left", "a.json.tmp", status="skipped", detail="A writer's leftover.")

    troubles = timeline_words.troubles(timeline_data.load(made.write(tmp_path)))

    assert troubles is not None
    assert troubles.summary.startswith("2 files read with doubts, 1 skipped (of ")
    assert troubles.shown == (
        ("doubtful", "doubt_0.json", "identity_conflict: rank 1, or rank 2"),
        ("doubtful", "doubt_1.json", "identity_conflict: rank 1, or rank 2"),
        ("skipped", "a.json.tmp", "A writer's leftover."),
    )
    assert not troubles.calm


def test_what_was_left_out_on_purpose_is_said_calmly(tmp_path: Path) -> None:
    made = timeline_tables.training(ranks=1, steps=1)
    for number in range(150):
        made.source(f"s{number}", f"s{number}.json", status="skipped", detail="Another rank.")
    timeline = timeline_data.load(made.write(tmp_path))

    troubles = timeline_words.troubles(timeline)

    assert troubles is not None
    assert troubles.calm
    assert troubles.summary.startswith("150 skipped (of ")
    assert troubles.more == "… and 50 more; all are in tables/sources.parquet."
    assert timeline_words.heading(timeline).lost is None


@pytest.mark.parametrize(
    ("statuses", "sentence"),
    [
        ([], "No spans to draw: no input file was found for this timeline."),
        (["failed"] * 2, "No spans to draw: none of 2 input files could be read."),
        (["failed", "skipped"], "No spans to draw: the only input file could not be read."),
        (["empty"], "No spans to draw: the only input file held no timed events."),
        (["empty"] * 2, "No spans to draw: none of 2 input files held timed events."),
        (
            ["ok", "failed"],
            "No spans to draw: of 2 input files, 1 could not be read.",
        ),
        (
            ["skipped"] * 2,
            "No spans to draw: 2 input files gave no stage or range. "
            "A filter on ranks, roles or steps may have left nothing.",
        ),
        (
            ["failed", "empty", "empty"],
            "No spans to draw: of 3 input files, 1 could not be read and 2 held no timed events.",
        ),
        (
            ["ok"],
            "No spans to draw: 1 input file gave no stage or range. "
            "A filter on ranks, roles or steps may have left nothing.",
        ),
    ],
)
def test_an_empty_timeline_says_why(statuses: list[str], sentence: str, tmp_path: Path) -> None:
    made = timeline_tables.nothing([f"f{n}" for n in range(len(statuses))], statuses)

    assert timeline_words.nothing_to_draw(timeline_data.load(made.write(tmp_path))) == sentence


def test_dates_are_utc_and_say_so() -> None:
    assert utc(ORIGIN_NS) == "2026-08-14 12:27:31.089 UTC"
    assert utc(10**30) == f"{10**21} s since 1970"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (12, "12 ns"),
        (1_500, "1.50 µs"),
        (842_000_000, "842 ms"),
        (12_340_000_000, "12.3 s"),
        (125_000_000_000, "125 s"),
        (720_000_000_000, "12.0 min"),
        (9_000_000_000_000, "2.50 h"),
    ],
)
def test_durations_are_in_human_units(ns: int, text: str) -> None:
    assert timeline_axis.duration(ns) == text


def test_ticks_are_round_and_few() -> None:
    texts = [text for _, text in timeline_axis.ticks(20_600_000_000, 10)]

    assert texts == ["0", "5", "10", "15", "20"]
    assert timeline_axis.unit(1_500_000_000).symbol == "ms"
    assert [text for _, text in timeline_axis.ticks(1_500_000_000, 4)] == [
        "0",
        "500",
        "1,000",
        "1,500",
    ]
    assert timeline_axis.ticks(3_000_000_000, 10)[1] == (500_000_000, "0.5")
