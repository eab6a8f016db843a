"""What is missing, in sentences."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from rl_insight.data import roles
from rl_insight.data.coverage import Column, Coverage


def ranges(numbers: Iterable[int], most: int = 8) -> str:
    """Numbers for a person: `0-3, 5`; what is beyond `most` ranges is counted: `and 12 more`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:most]]
    more = sum(b - a + 1 for a, b in runs[most:])
    return f"{', '.join(shown)} and {more:,} more" if more else ", ".join(shown)


def sentences(found: Coverage) -> list[str]:
    """What is missing, a line for each role and each set of ranks, steps with the same in one line:
    `actor_update step 2: 3 of 4 ranks, rank 1 missing`. Role names are as they were found.
    """
    alike: dict[tuple[object, ...], list[Column]] = defaultdict(list)
    for one in found.columns:
        by_step = one.step is not None
        key = (one.role, one.replica, by_step, one.expected, one.missing, one.lost)
        alike[key].append(one)
    lines = [_sentence(columns) for columns in alike.values()]
    lines += [
        f"{role}: its ranks were recorded in different steps; what is missing cannot be told"
        for role in found.scattered
    ]
    return lines


def _sentence(columns: Sequence[Column]) -> str:
    one = columns[0]
    where = roles.lane_role_label(one.role, one.replica)
    if one.step is not None:
        where += _listed(" step", [column.step for column in columns if column.step is not None])
    elif one.capture is not None:
        captures = [column.capture + 1 for column in columns if column.capture is not None]
        where += _listed(" capture", captures)
    there = one.expected - len(one.missing) - len(one.lost)
    noun = "rank" if one.expected == 1 else "ranks"
    told = [f"{f'{there:,}' if there else 'none'} of {one.expected:,} {noun}"]
    # When all are missing, which ones says nothing more.
    if there or one.lost:
        told += [f"{_listed('rank', one.missing)} missing"] if one.missing else []
        told += [f"{_listed('rank', one.lost)} gave nothing"] if one.lost else []
    return f"{where}: {', '.join(told)}"


def _listed(noun: str, numbers: Sequence[int]) -> str:
    return f"{noun}{'' if len(numbers) == 1 else 's'} {ranges(numbers)}"
