from hypothesis import given
from hypothesis import strategies as st

from rl_insight.breakdown import Breakdown, Busy, measure
from rl_insight.intervals import EMPTY
from tests.interval_sets import PAIRS, instants, make


def test_a_window_is_divided_into_what_the_device_did() -> None:
    # GIVEN a device that computes 10-30 and 60-70, communicates 25-45, copies 40-50 and 80-90
    busy = Busy(make((10, 30), (60, 70)), make((25, 45)), make((40, 50), (80, 90)))
    # WHEN the window 0-100 is measured
    found = measure(busy, 0, 100)
    # THEN each time counts once: copies only where neither of the two covers them
    assert found == Breakdown(
        window_ns=100,
        device_start_ns=10,
        device_end_ns=90,
        computing_ns=30,
        communication_ns=20,
        overlapped_ns=5,
        memory_ns=5 + 10,
        free_ns=10 + 10 + 10 + 10,
    )


def test_only_what_lies_in_the_window_counts() -> None:
    busy = Busy(make((10, 30)), make((25, 45)), make((40, 50)))
    assert measure(busy, 20, 42) == Breakdown(22, 20, 42, 10, 17, 5, 0, 0)


def test_a_window_without_activity_is_free_and_has_no_first_activity() -> None:
    assert measure(Busy(make((10, 20)), EMPTY, EMPTY), 50, 60) == Breakdown(
        window_ns=10, free_ns=10
    )


def test_two_windows_that_follow_each_other_add_up() -> None:
    idle = measure(Busy(), 0, 10)
    work = measure(Busy(make((10, 20))), 10, 30)
    assert idle + work == Breakdown(30, 10, 20, 10, 0, 0, 0, 20)
    assert work + measure(Busy(), 30, 40) == Breakdown(30, 10, 20, 10, 0, 0, 0, 20)


@given(PAIRS, PAIRS, PAIRS, st.integers(0, 40), st.integers(1, 40), st.integers(0, 40))
def test_every_instant_counts_once_whatever_overlaps(
    computing: list[tuple[int, int]],
    communication: list[tuple[int, int]],
    memory: list[tuple[int, int]],
    low: int,
    length: int,
    cut: int,
) -> None:
    raw = [
        [(start, start + long) for start, long in one] for one in (computing, communication, memory)
    ]
    busy = Busy(*(make(*pairs) for pairs in raw))
    window = set(range(low, low + length))
    a, b, c = (instants(pairs) & window for pairs in raw)
    found = measure(busy, low, low + length)
    assert found.computing_ns == len(a)
    assert found.communication_ns == len(b)
    assert found.overlapped_ns == len(a & b)
    assert found.memory_ns == len(c - a - b)
    assert found.free_ns == len(window - a - b - c)
    assert found.window_ns == (
        found.computing_ns
        + found.communication_ns
        - found.overlapped_ns
        + found.memory_ns
        + found.free_ns
    )
    at_work = a | b | c
    assert found.device_start_ns == (min(at_work) if at_work else None)
    assert found.device_end_ns == (max(at_work) + 1 if at_work else None)
    middle = min(low + cut, low + length)
    assert measure(busy, low, middle) + measure(busy, middle, low + length) == found
