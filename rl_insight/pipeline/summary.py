"""What a run came to: read from its tables, told in a few lines, turned into an exit code."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight.pipeline import filter_hints, layout
from rl_insight.pipeline.discovery import Filters
from rl_insight.pipeline.load_summary import LoadSummary, load_lines, summarise_loads
from rl_insight.pipeline.missing import missing
from rl_insight.pipeline.stage_summary import StageSummary, stage_lines, summarise_stages
from rl_insight.pipeline.summary_tables import read
from rl_insight.pipeline.terminal import duration, printable
from rl_insight.pipeline.troubles import Trouble, sentences, troubles_of
from rl_insight.plain_text import count
from rl_insight.schema import SPANS, STATUSES
from rl_insight.table_names import HEATMAP_TABLES, TIMELINE_TABLES

if TYPE_CHECKING:
    from rl_insight.pipeline.run import Outcome

# More kinds of trouble than this are not read any more; the table has them all.
_SHOWN_TROUBLES = 12
_SHOWN_MISSING = 8

# What `--strict` does not accept. A skipped source was left out by rule or by a filter.
_DAMAGED = ("salvaged", "empty", "failed")

# The pages that runs leave in the output folder, and the tables that they are drawn from.
_PAGES = {"rl_timeline.*": TIMELINE_TABLES, "gmm_heatmap.*": HEATMAP_TABLES}

# What a lane is, of the columns of a span.
_LANE = ("role", "replica", "rank_id", "lane_id")


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
    stages: StageSummary | None = None
    """Of a run that draws a timeline."""
    timeline: bool = True
    """Whether the run draws a timeline."""
    hints: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Captures that should be there and are not, in sentences."""

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
    roles: Collection[str] = (),
    filters: Mapping[str, Filters] | None = None,
) -> Summary:
    """Read the merged tables below `output`.

    `parsers` names those whose sources count, `presets` whose tables; a folder may also hold those
    of a run of another kind. `roles` are those that were chosen, none where all were. `filters`
    are those of each preset; without them nothing is said about what is missing.
    Raises FileNotFoundError when a table is missing, CacheError when one is damaged.
    """
    folder = output / layout.TABLES
    columns = ["path", "parser", "role", "status", "detail", "problems"]
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
        troubles=troubles_of(sources, statuses),
        unranked=unranked.as_py(),
        loads=summarise_loads(output) if "heatmap" in presets else None,
        stages=summarise_stages(output) if "timeline" in presets else None,
        timeline="timeline" in presets,
        hints=tuple(_hints(sources, spans, roles)),
        missing=tuple(missing(output, filters) if filters else ()),
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
        result += stage_lines(summary.stages) if summary.stages is not None else []
    elif summary.timeline or not summary.drawn:
        result.append(f"Nothing could be drawn{' on a timeline' if summary.drawn else ''}.")
    if summary.loads is not None and summary.drawn:
        result += load_lines(summary.loads)
    if summary.unranked:
        known = "input.identity can tell it from the path"
        result.append(f"  rank unknown: {count(summary.unranked, 'lane')}; {known}")
    result += [f"  {printable(hint)}" for hint in summary.hints]
    result += [f"  missing: {printable(one)}" for one in summary.missing[:_SHOWN_MISSING]]
    if len(summary.missing) > _SHOWN_MISSING:
        rest = count(len(summary.missing) - _SHOWN_MISSING, "more line")
        result.append(f"  and {rest} of what is missing")
    result += [f"  {line}" for line in sentences(summary.troubles[:_SHOWN_TROUBLES])]
    more = len(summary.troubles) - _SHOWN_TROUBLES
    if more > 0:
        result.append(f"  and {count(more, 'more kind')} of trouble")
    if summary.troubles:
        table = layout.table(outcome.output / layout.TABLES, "sources")
        result.append(f"  Every input and its problems: {printable(str(table))}")
    return result + closing(outcome, summary.drawn)


def closing(outcome: "Outcome", drawn: bool = True) -> list[str]:
    """Where the pages are, and how long it took; without anything `drawn` they only say why."""
    pages = [page for page in outcome.pages if page.is_file()]
    opening = "Open" if drawn else "Why, is also said in"
    result = [f"{opening} {printable(str(page), 1_000)}" for page in pages]
    older = sorted(
        page.name
        for pattern, tables in _PAGES.items()
        for page in outcome.output.glob(pattern)
        if page not in outcome.pages and _is_older(page, tables, outcome.output / layout.TABLES)
    )
    if older:
        # Beside a page of other filters it would be taken for the same run.
        result.append(f"Not drawn again, so still of an earlier run: {', '.join(older)}")
    return [*result, f"Took {duration(outcome.seconds)}."]


def _is_older(page: Path, tables: Collection[str], folder: Path) -> bool:
    """Whether one of the tables that a page is drawn from has changed since."""
    paths = [page, *(layout.table(folder, name) for name in tables)]
    drawn, *changed = (path.stat().st_mtime_ns if path.is_file() else 0 for path in paths)
    return any(moment > drawn for moment in changed)


def exit_code(summary: Summary, strict: bool) -> int:
    """How the command line ends after Snakemake ended well: 1 nothing drawn, 3 strict, else 0."""
    if not summary.drawn:
        return 1
    return 3 if strict and summary.damaged else 0


def _hints(sources: pa.Table, spans: pa.Table, roles: Collection[str]) -> list[str]:
    drawn = spans.group_by(["role", "replica"]).aggregate([]).to_pylist()
    known = [(row["role"], row["replica"]) for row in drawn]
    known += [(role, None) for role in pc.unique(_plain(sources["role"])).to_pylist()]
    skipped = sources.filter(pc.equal(_plain(sources["status"]), "skipped"))
    details = [detail or "" for detail in skipped["detail"].to_pylist()]
    result = filter_hints.hints(roles, known, details)
    if sources.num_rows and skipped.num_rows == sources.num_rows:
        result += filter_hints.other_steps(details)
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
