"""Ascend captures whose times do not fit each other, in both forms: flagged, never shifted alone.

Each is built from scratch and goes through discovery, parsing and merge.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ascend_captures import (
    ANALYSIS,
    BASE_NS,
    BASE_US,
    database_in,
    drawn,
    info,
    mstx,
    overlap,
    write_text,
)
from tests.merged_runs import Tables, states

SECOND_US = 1_000_000
# Roles of a step with start and duration in µs: two calls of the first, one of the second.
STEP = [
    ("compute_log_prob", 0, 2 * SECOND_US),
    ("compute_log_prob", 20 * SECOND_US, 2 * SECOND_US),
    ("update_actor", 10 * SECOND_US, 3 * SECOND_US),
]
Write = Callable[[Path, int, int], None]


def as_text(folder: Path, rank: int, late_us: int) -> None:
    ranges = [mstx(name, start + late_us, long) for name, start, long in STEP]
    events = [*ANALYSIS, overlap("Computing", late_us, 500), *ranges]
    write_text(folder, events, told=info(rank), told_as=f"profiler_info_{rank}.json")


def as_database(folder: Path, rank: int, late_us: int) -> None:
    names = {"compute_log_prob": 10, "update_actor": 11}
    start_of_all = BASE_NS + late_us * 1_000
    database_in(
        folder,
        rank,
        STRING_IDS=("id, value", [(2, "default"), *((at, name) for name, at in names.items())]),
        MSTX_EVENTS=(
            "startNs, endNs, eventType, message, domainId, globalTid",
            [
                (
                    start_of_all + start * 1_000,
                    start_of_all + (start + long) * 1_000,
                    *(2, names[name], 2, 1),
                )
                for name, start, long in STEP
            ],
        ),
        TASK=None,
        COMPUTE_TASK_INFO=None,
        COMMUNICATION_OP=None,
        RANK_DEVICE_MAP=("rankId, deviceId", [(rank, 0)]),
        # The name of the folder tells the host.
        HOST_INFO=None,
    )


BOTH = pytest.mark.parametrize("write", [as_text, as_database], ids=["text", "database"])


def clock_problems(tables: Tables) -> dict[str, list[tuple[str, str]]]:
    """What is said about clocks, by the host and process in the path."""
    return {
        row["path"].removeprefix("e2e/").partition("_2026")[0]: [
            (one["code"], one["example"])
            for one in row["problems"]
            if one["code"].startswith("clock_")
        ]
        for row in tables["sources"]
    }


def starts(tables: Tables, rank: int) -> list[int]:
    """When the stages of a rank begin, in µs after BASE_US."""
    own = [one for one in tables["spans"] if one["rank_id"] == rank]
    return sorted(one["start_ns"] // 1_000 - BASE_US for one in own)


def folder(root: Path, host: str, pid: int) -> Path:
    return root / f"e2e/{host}_{pid}_20260312032448000_ascend_pt"


@BOTH
def test_a_host_that_is_seven_seconds_late_is_flagged_and_not_shifted(
    tmp_path: Path, write: Write
) -> None:
    # GIVEN two ranks of one node, and one of another that does everything seven seconds later
    late = 7 * SECOND_US
    for rank, (host, shift) in enumerate((("node-a", 0), ("node-a", 0), ("node-b", late))):
        write(folder(tmp_path / "run", host, 4_711 + rank), rank, shift)

    tables = drawn(tmp_path / "run", tmp_path / "out")

    evidence = "the stages of node-b come 7.000 s after those of node-a: their clocks may differ"
    assert clock_problems(tables) == {
        "node-a_4711": [],
        "node-a_4712": [],
        "node-b_4713": [("clock_skew", evidence)],
    }
    assert {row["clock_offset_ns"] for row in tables["lanes"]} == {0}
    sound = [0, 10 * SECOND_US, 20 * SECOND_US]
    assert (starts(tables, 0), starts(tables, 1)) == (sound, sound)
    assert starts(tables, 2) == [one + late for one in sound]


@BOTH
def test_hosts_that_work_at_the_same_time_are_not_flagged(tmp_path: Path, write: Write) -> None:
    write(folder(tmp_path / "run", "node-a", 1), 0, 0)
    # A twentieth of a second late: so long may it take until a stage has begun everywhere.
    write(folder(tmp_path / "run", "node-b", 2), 1, SECOND_US // 20)

    tables = drawn(tmp_path / "run", tmp_path / "out")

    assert clock_problems(tables) == {"node-a_1": [], "node-b_2": []}


@BOTH
def test_a_rank_of_relative_times_among_absolute_ones_says_that_it_was_moved(
    tmp_path: Path, write: Write
) -> None:
    # GIVEN a rank whose times count from 12 s on, and one that counts from 1970
    write(folder(tmp_path / "run", "node-a", 1), 0, 0)
    write(folder(tmp_path / "run", "node-b", 2), 1, 12 * SECOND_US - BASE_US)

    tables = drawn(tmp_path / "run", tmp_path / "out")

    # THEN both begin together, and the one without a date says what was done to it
    sound = [0, 10 * SECOND_US, 20 * SECOND_US]
    assert (starts(tables, 0), starts(tables, 1)) == (sound, sound)
    moved = "its clock does not tell the date: shifted to begin with the first capture"
    assert clock_problems(tables) == {"node-a_1": [], "node-b_2": [("clock_unknown", moved)]}
    offsets = {row["rank_id"]: row["clock_offset_ns"] for row in tables["lanes"]}
    assert offsets == {0: 0, 1: (BASE_US - 12 * SECOND_US) * 1_000}
    assert {status for status, _ in states(tables).values()} == {"ok"}
