import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_insight.breakdown import Breakdown
from rl_insight.parsers import device_time, op_names
from rl_insight.parsers.device_tables import Seen, see
from rl_insight.parsers.device_time import DeviceTime
from rl_insight.parsers.op_names import LEFT_OUT, NameCodes, OpNames
from rl_insight.schema import CATEGORIES
from tests.interval_sets import instants

Event = tuple[int, int, int, str]  # start, duration, category, name

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 300), st.integers(0, 40), st.integers(0, 2), st.sampled_from(["a", "b", "c"])
    ),
    # Enough for several pieces, and for summing up: Hypothesis prefers short lists.
    min_size=40,
    max_size=120,
)


def device_of(events: list[Event], names: OpNames, most: int = 1_000, block: int = 7) -> DeviceTime:
    """A device that got `events` in blocks, as from a file."""
    device = DeviceTime(names, most)
    for at in range(0, len(events), block):
        part = events[at : at + block]
        device.add(
            np.array([start for start, _, _, _ in part], np.int64),
            np.array([length for _, length, _, _ in part], np.int64),
            np.array([names.code(category, name) for _, _, category, name in part]),
        )
    return device


def slow_breakdown(events: list[Event], low: int, high: int) -> Breakdown | None:
    """Instant by instant, straight from the definition."""
    window = set(range(low, high))
    by_class = [
        instants([(start, start + long) for start, long, own, _ in events if own == index]) & window
        for index in range(3)
    ]
    computing, communication, memory = by_class
    at_work = computing | communication | memory
    if not at_work:
        return None
    return Breakdown(
        window_ns=high - low,
        device_start_ns=min(at_work),
        device_end_ns=max(at_work) + 1,
        computing_ns=len(computing),
        communication_ns=len(communication),
        overlapped_ns=len(computing & communication),
        memory_ns=len(memory - computing - communication),
        free_ns=len(window - at_work),
    )


def slow_ops(events: list[Event], low: int, high: int) -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for start, length, category, name in events:
        if low <= start < high:
            row = found.setdefault((CATEGORIES[category], name), [0, 0, 0])
            found[CATEGORIES[category], name] = [row[0] + 1, row[1] + length, max(row[2], length)]
    return found


def ops_of(seen: Seen, window: int) -> dict[tuple[object, object], list[object]]:
    return {
        (row["category"], row["name"]): [row["count"], row["total_ns"], row["max_ns"]]
        for row in seen.ops
        if row["window"] == window
    }


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of about eight events, so that a short test has many."""
    monkeypatch.setattr(device_time, "_PIECE", 8)
    monkeypatch.setattr(device_time, "_SAMPLING", 2)


@settings(deadline=None)
@given(EVENTS, st.lists(st.tuples(st.integers(0, 350), st.integers(1, 200)), max_size=4))
def test_every_window_is_measured_as_if_all_events_were_looked_at_one_by_one(
    events: list[Event], raw: list[tuple[int, int]]
) -> None:
    names = OpNames()
    windows = [(low, low + length) for low, length in raw]
    seen = see(device_of(events, names), windows, names)
    assert seen.breakdowns == [slow_breakdown(events, low, high) for low, high in windows]


def test_an_event_goes_on_through_all_the_pieces_that_it_covers() -> None:
    names = OpNames()
    short = [(10 * i, 1, 0, "short") for i in range(200)]
    events = [(5, 1_500, 1, "long"), *short]
    seen = see(device_of(events, names), [(0, 3_000), (700, 800)], names)
    assert len(list(device_of(events, names).pieces())) > 10
    whole, part = seen.breakdowns
    assert whole is not None and part is not None
    assert (whole.communication_ns, whole.overlapped_ns) == (1_500, 150)
    # Nothing starts in 700-800 but ten short events, and the long one still goes on.
    assert (part.communication_ns, part.computing_ns, part.free_ns) == (100, 10, 0)


@settings(deadline=None)
@given(EVENTS, st.integers(1, 300), st.integers(1, 100))
def test_too_many_events_are_summed_up_without_changing_any_breakdown(
    events: list[Event], low: int, length: int
) -> None:
    names = OpNames()
    # 64 events at once, of which an eighth may stay as intervals: gaps could be joined.
    device = device_of(events, names, most=64)
    seen = see(device, [(low, low + length)], names)
    if device.joined_gap_ns == 0:
        assert seen.breakdowns == [slow_breakdown(events, low, low + length)]
    whole = see(device, [(0, 400)], names)
    if any(length for _, length, _, _ in events):
        expected = slow_ops(events, 0, 400)
        for key, row in ops_of(whole, 0).items():
            if key[1] != "(other)":
                assert row == expected[str(key[0]), str(key[1])]
        assert sum(int(str(row["count"])) for row in whole.ops) == len(events)


def test_what_has_no_length_is_counted_even_before_all_that_has() -> None:
    names = OpNames()
    events = [(0, 0, 0, "none")] * 40 + [(1_000 + 10 * i, 5, 0, "some") for i in range(40)]
    seen = see(device_of(events, names, most=64), [(0, 5_000)], names)
    assert ops_of(seen, 0) == {
        ("computing", "some"): [40, 200, 5],
        ("computing", "none"): [40, 0, 0],
    }


def test_joined_gaps_are_told_when_there_are_too_many_intervals() -> None:
    names = OpNames()
    # 100 kernels of 10 ns with gaps of 1 ns and, once, of 50 ns: 8 intervals may stay.
    events = [(11 * i + (50 if i >= 50 else 0), 10, 0, "k") for i in range(100)]
    device = device_of(events, names, most=64)
    seen = see(device, [(0, 1_200)], names)
    assert device.joined_gap_ns == 2
    (found,) = seen.breakdowns
    assert found is not None
    # The gaps of 1 ns of the first 70 events, when they were summed up, count as computing.
    assert found.computing_ns > 100 * 10
    assert seen.activity["computing"][1] == 2


def test_memory_is_bounded_however_many_events_come() -> None:
    names = OpNames()
    device = DeviceTime(names, most_events=1_000)
    for block in range(200):
        starts = np.arange(500, dtype=np.int64) * 20 + block * 10_000
        device.add(starts, np.full(500, 15), np.full(500, names.code(0, f"kernel {block % 9}")))
        assert sum(len(chunk.starts) for chunk in device._chunks) <= 1_500
        assert len(device._sums) <= 125
    (row,) = [row for row in see(device, [(0, 10**7)], names).ops if row["name"] == "kernel 3"]
    # Blocks 3, 12, ..., 192 (22 of them) hold 500 events of 15 ns.
    assert (row["count"], row["total_ns"], row["max_ns"]) == (22 * 500, 22 * 500 * 15, 15)


def test_a_kernel_longer_than_four_seconds_keeps_its_length() -> None:
    names = OpNames()
    long = 2**32 + 5
    seen = see(device_of([(10, long, 1, "wait"), (20, 5, 0, "k")], names), [(0, 2 * long)], names)
    (found,) = seen.breakdowns
    assert found is not None and found.communication_ns == long


def test_operations_that_cover_99_percent_have_a_name_and_the_rest_is_summed() -> None:
    names = OpNames()
    # 9,900 of 10,000 ns are «big»: with it 99 % are covered.
    events = [(0, 9_900, 0, "big")] + [(10_000 + 100 * i, 10, 0, f"small {i}") for i in range(10)]
    seen = see(device_of(events, names), [(0, 20_000)], names)
    assert [(row["name"], row["count"], row["total_ns"], row["max_ns"]) for row in seen.ops] == [
        ("big", 1, 9_900, 9_900),
        ("(other)", 10, 100, 10),
    ]


def test_one_operation_short_of_99_percent_brings_in_the_next() -> None:
    names = OpNames()
    events = [
        (0, 9_890, 0, "big"),
        (10_000, 60, 0, "next"),
        (11_000, 30, 0, "x"),
        (12_000, 20, 0, "y"),
    ]
    seen = see(device_of(events, names), [(0, 20_000)], names)
    assert [row["name"] for row in seen.ops] == ["big", "next", "(other)"]


def test_a_single_left_over_operation_keeps_its_name() -> None:
    names = OpNames()
    seen = see(device_of([(0, 990, 2, "copy"), (5_000, 1, 2, "set")], names), [(0, 9_000)], names)
    assert [(row["category"], row["name"]) for row in seen.ops] == [
        ("memory", "copy"),
        ("memory", "set"),
    ]


def test_an_operation_belongs_to_the_window_in_which_it_starts() -> None:
    names = OpNames()
    events = [(5, 10, 0, "a"), (10, 3, 0, "b")]
    seen = see(device_of(events, names), [(0, 10), (10, 20)], names)
    assert ops_of(seen, 0) == {("computing", "a"): [1, 10, 10]}
    assert ops_of(seen, 1) == {("computing", "b"): [1, 3, 3]}


def test_activity_keeps_at_most_2000_intervals_per_category_and_tells_the_gap() -> None:
    names = OpNames()
    # 5,000 kernels, the gap after every fifth is 7 ns, the others are 3 ns: 1,000 groups.
    starts = [13 * i + 4 * (i // 5) for i in range(5_000)]
    events = [(start, 10, 0, "k") for start in starts] + [(0, 5, 1, "all_reduce")]
    seen = see(device_of(events, names, most=10_000, block=1_000), [], names)
    intervals, gap = seen.activity["computing"]
    assert len(intervals) == 1_000
    assert gap == 4
    assert intervals.total == 5_000 * 10 + 4_000 * 3
    assert len(seen.activity["communication"][0]) == 1
    assert "memory" not in seen.activity


def test_names_beyond_the_bounds_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_names, "_MOST_NAMES", 10)
    names = OpNames()
    codes = NameCodes(names, lambda name: 1 if name.startswith("nccl") else 0)
    for number in range(50):
        codes[f"kernel {number}"]
        codes[f"nccl {number}"]
    # Six codes are taken for the categories themselves.
    assert len(names) == 10
    assert len(codes) <= 10
    assert names.categories[codes["kernel 49"]] == 0
    assert names.categories[codes["nccl 49"]] == 1
    assert names.names[codes["nccl 49"]] == "(other)"


def test_a_name_is_classified_once() -> None:
    asked: list[str] = []

    def classify(name: str) -> int | None:
        asked.append(name)
        return None if name == "wait" else 2

    codes = NameCodes(OpNames(), classify)
    assert codes["copy"] == codes["copy"]
    assert codes["wait"] == LEFT_OUT
    assert asked == ["copy", "wait"]
