"""One clock for captures that know the time, and for those that do not."""

from collections.abc import Sequence

from rl_insight.pipeline.clock import SECOND, Shift, Timed, shifts

# The numbers of a real export (nsys 2026.2): uptime and Unix time when a capture began.
UPTIME = 35_255_823_190
EPOCH = 1_779_630_014_975_716_426


def offsets(clocks: Sequence[str | None], starts: Sequence[int | None]) -> list[int]:
    """The shifts of captures of which only clock and start are known."""
    captures = [Timed(clock, start) for clock, start in zip(clocks, starts, strict=True)]
    return [shift.offset_ns for shift in shifts(captures)]


def boot(start: int, host: str | None = "node-1", **stages: int) -> Timed:
    """A capture that began `start` ns after the boot of its host."""
    return Timed("boot", start, host, None, stages)


def dated(epoch: int, uptime: int, host: str | None = "node-1", **stages: int) -> Timed:
    """A capture that says it began at `epoch`, `uptime` ns after the boot of its host."""
    return Timed("utc", epoch, host, epoch - uptime, stages)


def moved(captures: Sequence[Timed]) -> list[int]:
    return [shift.offset_ns for shift in shifts(captures)]


def codes(captures: Sequence[Timed]) -> list[tuple[str | None, str]]:
    return [(shift.code, shift.severity) for shift in shifts(captures)]


def test_captures_that_know_the_time_are_never_shifted() -> None:
    assert offsets(["utc", "utc"], [1_000, 9_000_000_000]) == [0, 0]


def test_relative_captures_move_together_to_begin_with_the_first_that_knows_the_time() -> None:
    # GIVEN two captures on one relative clock, 30 apart, and two that know the time
    assert offsets(["relative", "utc", "relative", "utc"], [50, 1_200, 20, 1_000]) == [
        980,  # 50 + 980 = 1,030: still 30 after the other
        0,
        980,  # 20 + 980 = 1,000: the first that knows the time
        0,
    ]


def test_relative_captures_alone_keep_their_times() -> None:
    assert offsets(["relative", "relative"], [20, 50]) == [0, 0]


def test_a_relative_capture_may_begin_at_zero() -> None:
    assert offsets(["relative", "utc"], [0, 1_000]) == [1_000, 0]


def test_a_capture_without_a_start_decides_nothing_but_moves_along() -> None:
    assert offsets(["relative", "relative", "utc", "utc"], [None, 20, None, 1_000]) == [
        980,
        980,
        0,
        0,
    ]
    assert offsets(["relative", "utc"], [None, 1_000]) == [0, 0]
    assert offsets(["relative", "utc"], [5, None]) == [0, 0]


def test_what_is_shifted_begins_with_the_first_span_and_not_with_a_capture_that_waited() -> None:
    # GIVEN a dated capture that waited 5 for its stage, and one without a date that waited 2
    captures = [
        Timed("utc", 1_000, first_ns=1_005),
        Timed("relative", 0, first_ns=2),
    ]
    # THEN 2 becomes 1,005: the first span stays the first
    assert moved(captures) == [0, 1_003]


def test_a_host_that_is_shifted_to_the_first_capture_begins_with_its_first_span() -> None:
    captures = [
        Timed("utc", EPOCH, "node-1", first_ns=EPOCH + 5),
        Timed("boot", 100, "node-2", first_ns=130),
    ]
    assert moved(captures) == [0, EPOCH + 5 - 130]


def test_a_clock_of_unknown_kind_is_left_alone() -> None:
    assert offsets([None, "other", "relative", "utc"], [1, 2, 3, 10]) == [0, 0, 7, 0]


def test_no_captures_need_no_offsets() -> None:
    assert offsets([], []) == []


# -- captures of one host that tell the time ---------------------------------------------------


def test_captures_of_one_host_that_agree_about_its_boot_stay_where_they_are() -> None:
    # GIVEN captures whose two clocks were read milliseconds apart from each other
    captures = [
        dated(EPOCH, UPTIME),
        dated(EPOCH + 25 * SECOND + 3_000_000, UPTIME + 25 * SECOND),
    ]
    assert moved(captures) == [0, 0]
    assert codes(captures) == [(None, "info"), (None, "info")]


def test_a_time_that_is_the_sessions_is_replaced_by_the_median_of_the_host() -> None:
    # GIVEN three captures of a session, which all tell the time at which the session began
    captures = [dated(EPOCH, UPTIME + after * SECOND) for after in (0, 25, 31)]
    # THEN they stand 25 s and 31 s after the first, and the one in the middle stays
    assert moved(captures) == [-25 * SECOND, 0, 6 * SECOND]
    assert codes(captures) == [("clock_of_session", "warning")] * 3


def test_of_an_even_number_the_median_lies_between_the_middle_two_exactly() -> None:
    captures = [dated(EPOCH, UPTIME + after * SECOND) for after in (0, 10, 20, 40)]
    assert moved(captures) == [-15 * SECOND, -5 * SECOND, 5 * SECOND, 25 * SECOND]


def test_hosts_are_settled_one_by_one() -> None:
    captures = [dated(EPOCH, UPTIME + after * SECOND) for after in (0, 25, 31)]
    captures.append(dated(EPOCH, 6_589_107_243_593_703, "node-2"))
    assert moved(captures) == [-25 * SECOND, 0, 6 * SECOND, 0]


def test_two_boots_of_one_host_are_no_disagreement() -> None:
    # GIVEN a host that was captured, booted again a minute later, and captured again
    first = dated(EPOCH, UPTIME)
    second = dated(EPOCH + 90 * SECOND, 30 * SECOND)
    assert moved([first, second]) == [0, 0]
    # AND three captures of the second boot that disagree
    again = [dated(EPOCH + 90 * SECOND, (30 + after) * SECOND) for after in (0, 25, 31)]
    assert moved([first, *again]) == [0, -25 * SECOND, 0, 6 * SECOND]


def test_captures_of_unknown_hosts_are_believed_unless_their_session_is_the_same() -> None:
    # Two nodes of different uptime [64]
    nodes = [dated(EPOCH, UPTIME, None), dated(EPOCH + 5, 6_589_107_243_593_703, None)]
    assert moved(nodes) == [0, 0]
    session = [dated(EPOCH, UPTIME + after * SECOND, None) for after in (0, 25, 31)]
    assert moved(session) == [-25 * SECOND, 0, 6 * SECOND]


def test_relative_captures_begin_with_the_first_after_it_was_moved() -> None:
    session = [dated(EPOCH, UPTIME + after * SECOND) for after in (0, 25, 31)]
    assert moved([*session, Timed("relative", 100)])[-1] == EPOCH - 25 * SECOND - 100


# -- captures that know only the time since boot -------------------------------------------------


def test_one_host_alone_keeps_its_own_time() -> None:
    captures = [boot(100 * SECOND), boot(125 * SECOND), boot(100 * SECOND)]
    assert moved(captures) == [0, 0, 0]
    assert codes(captures) == [("clock_boot", "info")] * 3


def test_another_capture_of_the_host_tells_when_it_booted() -> None:
    captures = [dated(EPOCH, UPTIME), boot(UPTIME + 7 * SECOND)]
    # UPTIME + 7 s after boot is 7 s after the other began
    assert moved(captures) == [0, EPOCH - UPTIME]
    assert codes(captures)[1] == ("clock_boot", "info")


def test_all_captures_of_a_host_move_together_to_the_first_that_tells_the_time() -> None:
    captures = [boot(100 * SECOND), boot(125 * SECOND), dated(EPOCH, UPTIME, "node-2")]
    assert moved(captures) == [EPOCH - 100 * SECOND, EPOCH - 100 * SECOND, 0]
    assert codes(captures)[:2] == [("clock_boot", "warning")] * 2


def test_a_stage_that_both_hold_is_where_they_meet() -> None:
    # GIVEN a host that was captured from the update on, and one that told the time before it
    told = dated(EPOCH, UPTIME, "node-2", rollout=EPOCH + SECOND, actor_update=EPOCH + 40 * SECOND)
    captures = [boot(100 * SECOND, actor_update=101 * SECOND), told]
    assert moved(captures)[0] == EPOCH + 40 * SECOND - 101 * SECOND
    assert shifts(captures)[0].text == (
        "its clock counts from boot: its first actor_update was put where that of others begins"
    )


def test_of_several_common_stages_the_first_counts() -> None:
    told = dated(EPOCH, UPTIME, "node-2", b=EPOCH + 10, a=EPOCH + 20)
    assert moved([boot(100, a=130, b=111), told])[0] == EPOCH + 10 - 111


def test_hosts_that_all_count_from_boot_meet_at_a_common_stage() -> None:
    # GIVEN two captures of one host and one of another, whose uptime is 76 days longer
    captures = [
        boot(35 * SECOND, "node-1", actor_update=40 * SECOND),
        boot(90 * SECOND, "node-1", actor_update=95 * SECOND),
        boot(6_589_107 * SECOND, "node-2", actor_update=6_589_109 * SECOND),
    ]
    # THEN the host with more captures stays
    assert moved(captures) == [0, 0, (40 - 6_589_109) * SECOND]
    assert codes(captures) == [("clock_boot", "warning")] * 3


def test_hosts_without_a_name_are_told_apart_by_a_day_of_uptime() -> None:  # [64]
    captures = [boot(35_255_823_190, None), boot(6_589_107_243_593_703, None)]
    assert moved(captures) == [0, 35_255_823_190 - 6_589_107_243_593_703]
    assert moved([boot(35 * SECOND, None), boot(70_000 * SECOND, None)]) == [0, 0]


def test_a_boot_clock_may_begin_at_zero() -> None:
    assert moved([boot(0), Timed("utc", EPOCH)]) == [EPOCH, 0]


def test_nothing_to_meet_moves_nothing() -> None:
    assert moved([boot(5), Timed("utc", None)]) == [0, 0]
    assert shifts([Timed("utc", 5)]) == [Shift()]
