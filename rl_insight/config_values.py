"""The small languages inside values: numbers and ranges, names by comma; and words for errors."""

import difflib
import re
from collections.abc import Iterable

from rl_insight.plain_text import shown

# Far above any rank or step that exists; a typing error like 0-70000000000 must not eat the memory.
LARGEST_NUMBER = 9_999_999
# They become a set: so many take 60 MB.
MOST_NUMBERS = 1_000_000

_NOTHING = ("", "null", "none", "~")
_RANGE = re.compile(r"(\d{1,18})(?:\s*-\s*(\d{1,18}))?", re.ASCII)


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of `known` that `word` was most likely meant to be, or None.

    `cutoff` is how alike they must be, from 0 to 1.
    """
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=cutoff)
    return close[0] if close else None


def is_nothing(value: object) -> bool:
    """Whether `value` says that nothing is chosen: null, or the same in words."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING)


def parse_intervals(text: str) -> list[tuple[int, int]]:
    """`0,1,4-7` as sorted, disjoint, inclusive intervals.

    Raises ValueError for anything but numbers up to `LARGEST_NUMBER` and rising ranges of them,
    and when they are more than `MOST_NUMBERS` in all.
    """
    intervals = []
    for part in _parts(text):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f"{shown(part)} is neither a number nor a range such as 4-7")
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if last < first:
            raise ValueError(f"the range {part} runs backwards")
        if last > LARGEST_NUMBER:
            raise ValueError(f"{part} is too large: the largest number is {LARGEST_NUMBER}")
        intervals.append((first, last))
    if not intervals:
        raise ValueError("it names no number")
    intervals.sort()
    joined = [intervals[0]]
    for first, last in intervals[1:]:
        if first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    total = sum(last - first + 1 for first, last in joined)
    if total > MOST_NUMBERS:
        raise ValueError(
            f"{shown(text)} is {total:,} numbers; at most {MOST_NUMBERS:,} can be named"
        )
    return joined


def write_intervals(intervals: Iterable[tuple[int, int]]) -> str:
    """The one way in which intervals are written: `0,1,4-7`."""
    return ",".join(_written(first, last) for first, last in intervals)


def parse_ranks(text: str) -> frozenset[int] | None:
    """The ranks that `all` (None) or `0,1,4-7` means.

    Raises ValueError as `parse_intervals` does.
    """
    if text.strip().lower() == "all":
        return None
    return _expand(parse_intervals(text))


def parse_steps(text: str | None) -> frozenset[int] | None:
    """The steps that `1`, `1,2` or `1-3` means; None when nothing is filtered.

    Raises ValueError as `parse_intervals` does.
    """
    if text is None or text.strip().lower() == "all":
        return None
    return _expand(parse_intervals(text))


def parse_names(text: str | None) -> tuple[str, ...]:
    """The names in `html,png`, each once, in the order given; none for None."""
    return () if text is None else tuple(dict.fromkeys(_parts(text)))


def _expand(intervals: list[tuple[int, int]]) -> frozenset[int]:
    return frozenset(n for first, last in intervals for n in range(first, last + 1))


def _written(first: int, last: int) -> str:
    if last - first < 2:
        return ",".join(str(n) for n in range(first, last + 1))
    return f"{first}-{last}"


def _parts(text: str) -> list[str]:
    """The parts between commas; brackets and quotes around a list, as in YAML, are let go."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return [part for part in (part.strip().strip("'\"") for part in text.split(",")) if part]
