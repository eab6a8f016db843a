"""The sources that gave less than they should, for the lists beside a picture."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rl_insight.visualizers.columns import Columns

# `sources` is shared: a group list that cannot be read is no loss to a timeline.
HEATMAP_PARSERS = frozenset({"gmm", "sglang"})
TROUBLED = ("failed", "salvaged", "empty", "doubtful", "skipped")
COLUMNS = ("source_id", "path", "parser", "status", "detail", "problems")


@dataclass(frozen=True, slots=True)
class Trouble:
    """A source that gave less than it should, by its status: `failed`, `salvaged` or `empty`.

    `doubtful` is one that was read, with warnings; `skipped` was left out by a rule or a filter.
    """

    path: str
    status: str
    detail: str


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
            reason = detail or "No reason was recorded."
            found.append(Trouble(path or "unknown file", status, reason))
    return sorted(found, key=lambda trouble: (TROUBLED.index(trouble.status), trouble.path))


def _doubts(problems: Sequence[Mapping[str, object]]) -> str:
    """What is doubtful about a source, gravest first; empty for mere information."""
    doubts = []
    for severity in ("error", "warning"):
        for problem in problems:
            if problem["severity"] == severity:
                kind = str(problem["code"] or "unknown trouble").replace("_", " ")
                example = problem["example"]
                doubts.append(f"{kind}: {example}" if example else kind)
    return "; ".join(doubts)
