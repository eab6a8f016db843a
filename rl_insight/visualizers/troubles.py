"""The sources that gave less than they should, for the lists beside a picture."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

import numpy as np

from rl_insight import presets
from rl_insight.plain_text import count, holds_command
from rl_insight.problems import CLOCK, LEFT_OUT, explained
from rl_insight.visualizers.columns import Columns
from rl_insight.visualizers.labels import SENTENCE_LIMIT, plain

# Our own, where a table does not tell.
_HEATMAP_PARSERS = frozenset({"gmm", "sglang"})
TROUBLED = ("failed", "salvaged", "empty", "doubtful", "skipped")
COLUMNS = ("source_id", "path", "parser", "status", "detail", "problems")
# Of each kind, so that many of one do not hide the few of another.
_SHOWN = 100
# A path may have 4,096 bytes, and a command may name two.
_LONGEST_COMMAND = 10_000


@dataclass(frozen=True, slots=True)
class Trouble:
    """A source that gave less than it should, by its status: `failed`, `salvaged` or `empty`.

    `doubtful` is one that was read, with warnings; `skipped` was left out by a rule or a filter.
    """

    path: str
    status: str
    detail: str


@dataclass(frozen=True, slots=True)
class TroubleList:
    """Sources that gave less than they should: a summary, some of them, and how many more.

    `calm` holds when all of them were left out on purpose.
    """

    summary: str
    shown: tuple[tuple[str, str, str], ...]
    more: str | None
    calm: bool


def heatmap_parsers(sources: Columns) -> frozenset[str]:
    """The parsers in `sources` that read expert load.

    `sources` is shared: a group list that cannot be read is no loss to a timeline.
    """
    told = presets.of(sources.schema)
    return _HEATMAP_PARSERS | {name for name, preset in told.items() if preset == "heatmap"}


def listed(sources: Columns, ours: Callable[[str | None], bool]) -> list[Trouble]:
    """The troubled ones of the sources whose parser is `ours`, worst first, then by path.

    `sources` has at least the columns `COLUMNS`.
    """
    mine = np.array([ours(parser) for parser in sources.strings("parser")], dtype=bool)
    told = np.array([status != "ok" for status in sources.strings("status")], dtype=bool)
    suspects = sources.where(mine & (told | sources.filled("problems")))
    found = []
    columns = zip(
        suspects.strings("path"),
        suspects.strings("status"),
        suspects.strings("detail"),
        suspects.structs("problems"),
        strict=True,
    )
    for path, status, detail, problems in columns:
        if status == "ok" and (doubts := _doubts(problems)):
            found.append(Trouble(path or "unknown file", "doubtful", doubts))
        elif status in TROUBLED:
            # Of what was drawn a part was lost, and beside that its time may be doubtful.
            clock = _doubts(problems, CLOCK) if status == "salvaged" else ""
            reasons = [detail or "No reason was recorded.", clock]
            found.append(Trouble(path or "unknown file", status, "; ".join(filter(None, reasons))))
    return sorted(found, key=lambda trouble: (TROUBLED.index(trouble.status), trouble.path))


def example_of(sources: Columns, code: str) -> dict[str | None, str]:
    """By `source_id`, what the sources that have the problem `code` say of it."""
    rows = sources.where(sources.filled("problems"))
    return {
        source: str(problem["example"] or code)
        for source, problems in zip(
            rows.strings("source_id"), rows.structs("problems"), strict=True
        )
        for problem in problems
        if problem["code"] == code
    }


def of_doubtful_clock(sources: Columns) -> set[str | None]:
    """The `source_id` of those that were read and of which it is doubtful when they were."""
    rows = sources.where(sources.filled("problems"))
    columns = (rows.strings("source_id"), rows.strings("status"), rows.structs("problems"))
    return {
        source
        for source, status, problems in zip(*columns, strict=True)
        if status in ("ok", "salvaged") and _doubts(problems, CLOCK)
    }


def summarised(
    troubles: Sequence[Trouble], sources: int, noun: str, empty: str
) -> TroubleList | None:
    """The `troubles` of so many `sources` for people, None where there are none.

    `noun` is what a source is called, `empty` what a picture says of one that held nothing for it.
    """
    if not troubles:
        return None
    numbers = Counter(trouble.status for trouble in troubles)
    kinds = losses(troubles, noun, empty)
    if numbers["doubtful"]:
        kinds.append(f"{count(numbers['doubtful'], noun)} read with doubts")
    calm = not kinds
    if numbers["skipped"]:
        kinds.append(f"{numbers['skipped']:,} skipped")
    shown = tuple(
        (trouble.status, plain(trouble.path, 160), plain(trouble.detail, _limit(trouble.detail)))
        for _, group in groupby(troubles, key=lambda trouble: trouble.status)
        for trouble in islice(group, _SHOWN)
    )
    rest = len(troubles) - len(shown)
    more = f"… and {rest:,} more; all are in tables/sources.parquet." if rest else None
    return TroubleList(f"{', '.join(kinds)} (of {sources:,})", shown, more, calm)


def _limit(detail: str) -> int:
    """A sentence may be shortened, but not a command in it: nobody could copy it."""
    return _LONGEST_COMMAND if holds_command(detail) else SENTENCE_LIMIT


def losses(troubles: Sequence[Trouble], noun: str, empty: str) -> list[str]:
    """How many of the `troubles` are of each kind that costs data, in words as in `summarised`."""
    numbers = Counter(trouble.status for trouble in troubles)
    kinds = (("failed", "not read"), ("salvaged", "read in part"), ("empty", empty))
    return [f"{count(numbers[status], noun)} {words}" for status, words in kinds if numbers[status]]


def left_out(sources: Columns) -> dict[str | None, str]:
    """By `source_id`, which events of it were read and are not drawn, and why."""
    rows = sources.where(sources.filled("problems"))
    found: dict[str | None, str] = {}
    for source, problems in zip(rows.strings("source_id"), rows.structs("problems"), strict=True):
        told = [_explained(one) for one in problems if one["code"] in LEFT_OUT]
        if told:
            found[source] = "; ".join(filter(None, told))
    return found


def _explained(problem: Mapping[str, object]) -> str | None:
    count, example = problem.get("count"), problem["example"]
    return explained(
        str(problem["code"]),
        count if isinstance(count, int) else 1,
        example if isinstance(example, str) else None,
    )


def _doubts(problems: Sequence[Mapping[str, object]], code: str = "") -> str:
    """What is doubtful about a source, gravest first; empty for mere information. Codes stand as
    docs/broken.md has them, so that one is found there.

    With `code` only problems whose own begins so.
    """
    doubts = []
    for severity in ("error", "warning"):
        for problem in problems:
            own = str(problem["code"] or "unknown trouble")
            if problem["severity"] == severity and own.startswith(code):
                example = _explained(problem)
                doubts.append(f"{own}: {example}" if example else own)
    return "; ".join(doubts)
