"""Intervals the slow way, as sets of whole instants: what the tests of fast ones compare with."""

import numpy as np
from hypothesis import strategies as st

from rl_insight.intervals import Intervals, union

# Starts and lengths.
PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=25)


def make(*pairs: tuple[int, int]) -> Intervals:
    """The union of (start, end) pairs."""
    starts, ends = ([pair[side] for pair in pairs] for side in (0, 1))
    return union(np.array(starts, np.int64), np.array(ends, np.int64))


def pairs_of(intervals: Intervals) -> list[tuple[int, int]]:
    """The (start, end) pairs of intervals."""
    return list(zip(intervals.starts.tolist(), intervals.ends.tolist(), strict=True))


def instants(pairs: list[tuple[int, int]]) -> set[int]:
    """Every whole instant that some pair covers."""
    return {instant for start, end in pairs for instant in range(start, end)}
