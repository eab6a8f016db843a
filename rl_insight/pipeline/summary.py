"""What a run came to: read from its tables, told in a few lines, turned into an exit code."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight.pipeline import layout
from rl_insight.pipeline.load_summary import LoadSummary, load_lines, summarise_loads
from rl_insight.pipeline.summary_tables import read
from rl_insight.pipeline.terminal import duration, printable
from rl_insight.plain_text import count, ends_with_command
from rl_insight.problems import CLOCK
from rl_insight.schema import SPANS, STATUSES

if TYPE_CHECKING:
    from rl_insight.pipeline.run import Outcome

# More kinds of trouble than this are not read any more; the table has them all.
_SHOWN_TROUBLES = 12

_LONGEST_DETAIL = 300
# A path may have 4,096 bytes, and a command may name two.
_LONGEST_COMMAND = 10_000

# What `--strict` does not accept. A skipped source was left out by rule or by a filter.
_DAMAGED = ("salvaged", "empty", "failed")

# The pages that runs leave in the output folder.
_PAGES = ("rl_timeline.*", "gmm_heatmap.*")

# What a lane is, of the columns of a span.
_LANE = ("role", "replica", "rank_id", "lane_id")

# Parts of a sentence that differ from source to source though the trouble is the same.
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


@dataclass(frozen=True, slots=True)
class Trouble:
    """One kind of trouble: how many sources have it, and the first of them as an example."""

    status: str
    code: str | None
    sources: int
    example: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class Summary:
    """The tables of a run in numbers. `sources` counts them by status, `lanes` as they are drawn:
    one for each role, replica and rank.
    """

    sources: dict[str, int]
    lanes: int
    spans: int
    ranks: int
    steps: int
    troubles: tuple[Trouble, ...]
    unranked: int = 0
    """Lanes whose rank is unknown."""
    loads: LoadSummary | None = None
    """Of a run that draws expert load."""
    timeline: bool = True
    """Whether the run draws a timeline."""

    @property
    def drawn(self) -> bool:
        """Whether there was anything to draw."""
        return self.spans > 0 or (self.loads is not None and self.loads.rows > 0)

    @property
    def damaged(self) -> int:
        """How many sources are not as they should be."""
        return sum(self.sources.get(status, 0) for status in _DAMAGED)


def summarise(
    output: Path,
    parsers: Collection[str] | None = None,
    presets: Collection[str] = ("timeline",),
) -> Summary:
    """Read the merged tables below `output`.

    `parsers` names those whose sources count, `presets` whose tables; a folder may also hold those
    of a run of another kind.
    Raises FileNotFoundError when a table is missing, CacheError when one is damaged.
    """
    folder = output / layout.TABLES
    columns = ["path", "parser", "status", "detail", "problems"]
    sources = read(layout.table(folder, "sources"), columns)
    if parsers is not None:
        wanted = pc.is_in(_plain(sources["parser"]), pa.array(list(parsers), pa.string()))
        sources = sources.filter(wanted)
    names = [*_LANE, "step"]
    spans = SPANS.empty_table().select(names)
    if "timeline" in presets:
        spans = read(layout.table(folder, "spans"), names)
    statuses = _plain(sources["status"]).to_pylist()
    unranked = pc.count_distinct(spans["lane_id"].filter(pc.is_null(spans["rank_id"])))
    return Summary(
        sources={name: statuses.count(name) for name in STATUSES if name in statuses},
        lanes=_lanes(spans),
        spans=spans.num_rows,
        ranks=pc.count_distinct(spans["rank_id"]).as_py(),
        steps=pc.count_distinct(spans["step"]).as_py(),
        troubles=_troubles(sources, statuses),
        unranked=unranked.as_py(),
        loads=summarise_loads(output) if "heatmap" in presets else None,
        timeline="timeline" in presets,
    )


def lines(summary: Summary, outcome: "Outcome") -> list[str]:
    """What to tell a person after the run: what was read and drawn, what not, and where it is."""
    read = sum(summary.sources.get(status, 0) for status in ("ok", "salvaged"))
    considered = sum(n for status, n in summary.sources.items() if status != "skipped")
    files = count(considered, "input")
    result = [f"Read {files}." if read == considered else f"Read {read:,} of {files}."]
    if summary.spans:
        what = [count(summary.lanes, "lane"), count(summary.ranks, "rank")]
        what += [count(summary.steps, "step")] if summary.steps else []
        result.append(f"Drew {', '.join(what)}: {count(summary.spans, 'span')}.")
    elif summary.timeline or not summary.drawn:
        result.append(f"Nothing could be drawn{' on a timeline' if summary.drawn else ''}.")
    if summary.loads is not None and summary.drawn:
        result += load_lines(summary.loads)
    if summary.unranked:
        known = "input.identity can tell it from the path"
        result.append(f"  rank unknown: {count(summary.unranked, 'lane')}; {known}")
    result += [f"  {_told(trouble)}" for trouble in summary.troubles[:_SHOWN_TROUBLES]]
    more = len(summary.troubles) - _SHOWN_TROUBLES
    if more > 0:
        result.append(f"  and {count(more, 'more kind')} of trouble")
    if summary.troubles:
        table = layout.table(outcome.output / layout.TABLES, "sources")
        result.append(f"  Every input and its problems: {printable(str(table))}")
    return result + closing(outcome)


def closing(outcome: "Outcome") -> list[str]:
    """Where the pages are, and how long it took."""
    pages = [page for page in outcome.pages if page.is_file()]
    result = [f"Open {printable(str(page), 1_000)}" for page in pages]
    # Beside a page of other filters it would be taken for the same run.
    there = [page for pattern in _PAGES for page in outcome.output.glob(pattern)]
    older = sorted(page.name for page in there if page not in outcome.pages)
    if older:
        result.append(f"Not drawn again, so still of an earlier run: {', '.join(older)}")
    return [*result, f"Took {duration(outcome.seconds)}."]


def exit_code(summary: Summary, strict: bool) -> int:
    """How the command line ends after Snakemake ended well: 1 nothing drawn, 3 strict, else 0."""
    if not summary.drawn:
        return 1
    return 3 if strict and summary.damaged else 0


def _told(trouble: Trouble) -> str:
    what, detail = trouble.status, trouble.detail
    if trouble.status == "ok":
        words = (trouble.code or "").replace("_", " ")
        what, detail = "read with doubts", f"{words} ({detail})" if detail else words
    example = printable(trouble.example, 160)
    if trouble.sources > 1:
        example = f"{count(trouble.sources, 'input')}, such as {example}"
    if not detail:
        return f"{what}: {example}"
    limit = _LONGEST_COMMAND if ends_with_command(detail) else _LONGEST_DETAIL
    return f"{what}: {example}: {printable(detail, limit)}"


def _troubles(sources: pa.Table, statuses: list[str]) -> tuple[Trouble, ...]:
    """The kinds of trouble, the worst status first, among these the most frequent first.

    A source has one of them, its gravest, and a second one where its time is in doubt too: that
    something is drawn at a wrong time does not follow from what it lost.
    """
    paths, details = sources["path"], sources["detail"]
    first: dict[tuple[str, str], Trouble] = {}
    counts: dict[tuple[str, str], int] = {}

    def note(at: int, status: str, code: str | None, detail: str | None) -> None:
        key = (status, code or _PARTICULAR.sub("#", detail or ""))
        counts[key] = counts.get(key, 0) + 1
        if key not in first:
            first[key] = Trouble(status, code, 1, paths[at].as_py() or "", detail)

    for at, (status, found) in enumerate(zip(statuses, _gravest(sources), strict=True)):
        if status == "ok" and found.worst is None:
            continue
        code, example = found.worst or (None, None)
        note(at, status, code, details[at].as_py() or example)
        # What was left out or lost whole is drawn at no time.
        second = status == "salvaged" or (status == "ok" and found.clock != found.worst)
        if second and found.clock is not None:
            note(at, "ok", *found.clock)
    order = ("failed", "empty", "salvaged", "ok", "skipped")
    ranked = sorted(first, key=lambda key: (order.index(key[0]), -counts[key]))
    return tuple(replace(first[key], sources=counts[key]) for key in ranked)


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
    codes, examples = flat.field("code"), flat.field("example")
    parents = pc.list_parent_indices(problems).to_pylist()
    for grave in ("error", "warning"):
        for at, (source, severity) in enumerate(zip(parents, severities, strict=True)):
            if severity != grave:
                continue
            problem = (codes[at].as_py() or "", examples[at].as_py())
            found = result[source]
            found.worst = found.worst or problem
            if problem[0].startswith(CLOCK):
                found.clock = found.clock or problem
    return result


def _lanes(spans: pa.Table) -> int:
    """How many lanes the spans are drawn in; those without a rank are not known to be the same."""
    role, replica, rank, lane = (_plain(spans[name]) for name in _LANE)
    unknown = pc.if_else(pc.is_null(rank), lane, "")
    keys = pa.Table.from_arrays([role, replica, rank, unknown], names=list(_LANE))
    distinct: int = keys.group_by(list(_LANE)).aggregate([]).num_rows
    return distinct


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())
