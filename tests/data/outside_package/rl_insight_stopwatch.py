"""A parser and a rule for `*.stopwatch.csv` (rank,stage,start_ns,duration_ns), and a one-line
visualizer."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from rl_insight import tables
from rl_insight.data import Finding
from rl_insight.data.roles import canonical
from rl_insight.data.rules import TreeRule
from rl_insight.data.tree import Tree
from rl_insight.errors import ReadError
from rl_insight.files import replacing
from rl_insight.parsers import Found, Parsed, Source
from rl_insight.schema import LANES, SPANS


class Stopwatch:
    """One file is one rank: each of its rows is one stage span."""

    name = "stopwatch"
    preset = "timeline"
    cache_version = 1
    tables = ("lanes", "spans")
    options = ()

    def discover(self, tree: Tree) -> Iterator[Found]:
        """Every file with our ending, wherever it lies."""
        for file in tree.files:
            if file.name.endswith(".stopwatch.csv"):
                yield Found(file.path, (file.path,))

    def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
        """Read one file. Raises ReadError when a row is not rank,stage,start_ns,duration_ns."""
        lane = f"{source.source_id}-0"
        spans = []
        ranks = set()
        with open(source.absolute, newline="", encoding="utf-8") as file:
            for line, row in enumerate(csv.reader(file), start=1):
                try:
                    rank, name, start, duration = int(row[0]), row[1], int(row[2]), int(row[3])
                    ranks.add(rank)
                except (ValueError, IndexError):
                    raise ReadError(f"line {line} is not rank,stage,start_ns,duration_ns") from None
                spans.append(
                    {
                        "span_id": f"{lane}-{line}",
                        "lane_id": lane,
                        "source_id": source.source_id,
                        "role": canonical(name),
                        "name": canonical(name),
                        "raw_name": name,
                        "domain": "default",
                        "kind": "stage",
                        "depth": 0,
                        "start_ns": start,
                        "duration_ns": duration,
                        "truncated": False,
                    }
                )
        if not spans:
            return Parsed("empty", "it holds no rows")
        if len(ranks) > 1:
            raise ReadError("it mixes several ranks: write one file for each")
        whole = {
            "lane_id": lane,
            "source_id": source.source_id,
            "rank_id": rank,
            "clock": "utc",
            "capture_start_ns": min(span["start_ns"] for span in spans),
            "capture_end_ns": max(span["start_ns"] + span["duration_ns"] for span in spans),
        }
        return Parsed(
            "ok",
            events=len(spans),
            tables={
                "lanes": tables.from_rows(LANES, [whole]),
                "spans": tables.from_rows(SPANS, spans),
            },
        )


class Slowest:
    """Writes one line: the longest stage span of all."""

    name = "slowest"
    preset = "timeline"
    output = "slowest.txt"
    tables = ("spans",)
    options = ()

    def render(self, tables_folder: Path, output: Path, options: Mapping[str, object]) -> None:
        """Write the line, also when there is no span."""
        spans = tables.read(tables_folder / "spans.parquet").to_pandas()
        with replacing(output) as path:
            if spans.empty:
                path.write_text("no spans\n")
            else:
                longest = spans.loc[spans["duration_ns"].idxmax()]
                seconds = longest["duration_ns"] / 1e9
                whose = f"{longest['name']} on rank {longest['rank_id']}"
                path.write_text(f"{whose}: {seconds:.1f} s\n")


class StopwatchRowsRule(TreeRule):
    """Every row of a `*.stopwatch.csv` has its four fields."""

    kinds = ("stopwatch",)

    def look(self, tree: Tree) -> Iterator[Finding]:
        """An error for each file, at its first row that has not."""
        for one in tree.files:
            if one.name.endswith(".stopwatch.csv"):
                with open(tree.absolute(one.path), newline="", encoding="utf-8") as file:
                    for line, row in enumerate(csv.reader(file), start=1):
                        if len(row) != 4:
                            text = f"row {line} has {len(row)} fields, not 4"
                            yield self.found("error", text, one.path)
                            break


PARSER = Stopwatch()
VISUALIZER = Slowest()
