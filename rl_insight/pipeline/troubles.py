"""The kinds of trouble that a run had with its inputs, as they are told after it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight.pipeline import filter_hints
from rl_insight.pipeline.kinds_named import MOST_NAMED, Kind, blocks
from rl_insight.pipeline.terminal import printable
from rl_insight.plain_text import count, holds_command
from rl_insight.problems import CLOCK, explained

# Parts of a sentence that differ from source to source though the trouble is the same.
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
_LONGEST_DETAIL = 300
# A path may have 4,096 bytes, and a command may name two.
_LONGEST_COMMAND = 10_000


@dataclass(frozen=True, slots=True)
class Trouble:
    """One kind of trouble: how many sources have it, and the first of them as an example.

    `others` are the paths and details of the next ones, as many as are to be named.
    """

    status: str
    code: str | None
    sources: int
    example: str
    detail: str | None
    others: tuple[tuple[str, str | None], ...] = ()


def sentences(troubles: Iterable[Trouble]) -> list[str]:
    """The kinds of trouble in lines for a terminal, which name the inputs where they are few."""
    return [line for block in blocks(map(_kind, troubles)) for line in block]


def _kind(trouble: Trouble) -> Kind:
    named = ((trouble.example, trouble.detail), *trouble.others)
    return Kind(
        number=trouble.sources,
        counted=count(trouble.sources, "input"),
        named=[(path, _words(trouble, detail)) for path, detail in named],
        opening="read with doubts: " if trouble.status == "ok" else f"{trouble.status}: ",
    )


def _words(trouble: Trouble, detail: str | None) -> str:
    if trouble.status == "ok":
        words = trouble.code or ""  # as docs/broken.md has it
        detail = f"{words} ({detail})" if detail else words
    limit = _LONGEST_COMMAND if holds_command(detail or "") else _LONGEST_DETAIL
    return printable(detail or "", limit)


def troubles_of(sources: pa.Table, statuses: list[str]) -> tuple[Trouble, ...]:
    """The kinds of trouble, the worst status first, among these the most frequent first.

    A source has one of them, its gravest, and a second one where its time is in doubt too: that
    something is drawn at a wrong time does not follow from what it lost.
    """
    paths, details = sources["path"], sources["detail"]
    first: dict[tuple[str, str], Trouble] = {}
    counts: dict[tuple[str, str], int] = {}
    others: dict[tuple[str, str], list[tuple[str, str | None]]] = {}

    def note(at: int, status: str, code: str | None, detail: str | None) -> None:
        key = (status, code or filter_hints.kind(detail) or _PARTICULAR.sub("#", detail or ""))
        counts[key] = counts.get(key, 0) + 1
        path = paths[at].as_py() or ""
        if key not in first:
            first[key] = Trouble(status, code, 1, path, detail)
        elif counts[key] <= MOST_NAMED:
            others.setdefault(key, []).append((path, detail))

    for at, (status, found) in enumerate(zip(statuses, _gravest(sources), strict=True)):
        if status == "ok" and found.worst is None:
            continue
        # Why a source was left out has nothing to do with what is wrong with it.
        code, example = (status != "skipped" and found.worst) or (None, None)
        note(at, status, code, details[at].as_py() or example)
        # What was left out or lost whole is drawn at no time.
        second = status == "salvaged" or (status == "ok" and found.clock != found.worst)
        if second and found.clock is not None:
            note(at, "ok", *found.clock)
    order = ("failed", "empty", "salvaged", "ok", "skipped")
    ranked = sorted(first, key=lambda key: (order.index(key[0]), -counts[key]))
    return tuple(
        replace(
            first[key],
            sources=counts[key],
            others=tuple(others.get(key, ())) if counts[key] <= MOST_NAMED else (),
        )
        for key in ranked
    )


@dataclass(slots=True)
class _Gravest:
    """Code and example of the gravest problem of a source, and of the gravest about its time."""

    worst: tuple[str, str | None] | None = None
    clock: tuple[str, str | None] | None = None


def _gravest(sources: pa.Table) -> list[_Gravest]:
    """The gravest problems of each source; mere information is none."""
    result = [_Gravest() for _ in range(sources.num_rows)]
    problems = sources["problems"].combine_chunks()
    flat = problems.flatten()
    severities = flat.field("severity").to_pylist()
    codes, counts, examples = (flat.field(name) for name in ("code", "count", "example"))
    parents = pc.list_parent_indices(problems).to_pylist()
    for grave in ("error", "warning"):
        for at, (source, severity) in enumerate(zip(parents, severities, strict=True)):
            if severity != grave:
                continue
            code = codes[at].as_py() or ""
            problem = (code, explained(code, counts[at].as_py() or 1, examples[at].as_py()))
            found = result[source]
            found.worst = found.worst or problem
            if problem[0].startswith(CLOCK):
                found.clock = found.clock or problem
    return result
