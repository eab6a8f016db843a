"""A profiler made up for tests: its captures are JSON that says which rows they give."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rl_insight import tables
from rl_insight.data.tree import Tree
from rl_insight.errors import ReadError
from rl_insight.parsers import Found, Parsed, Source
from rl_insight.schema import SCHEMAS
from rl_insight.table_names import TIMELINE_TABLES


@dataclass
class NoteParser:
    """Reads `*.note` as `write_note` writes it; passes over `*.memo`."""

    name: str = "notes"
    preset: str = "timeline"
    cache_version: int = 1
    tables: tuple[str, ...] = TIMELINE_TABLES
    options: tuple[str, ...] = ("timeline.parser.range_depth",)
    suffix: str = ".note"
    seen: list[Mapping[str, object]] = field(default_factory=list)

    def discover(self, tree: Tree) -> Iterator[Found]:
        for file in tree.files:
            if file.name.endswith(self.suffix):
                yield Found(file.path, (file.path,))
            elif file.name.endswith(".memo"):
                yield Found(file.path, (file.path,), skip="a memo holds no capture")

    def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
        self.seen.append(options)
        content = json.loads(source.absolute.read_text("utf-8"))
        if "unreadable" in content:
            raise ReadError(content["unreadable"])
        parsed = Parsed(
            content.get("status", "ok"), content.get("detail"), content.get("events", 0)
        )
        for problem in content.get("problems", ()):
            parsed.problems.add(**problem)
        own = {"source_id": source.source_id, "lane_id": f"{source.source_id}-0"}
        parsed.tables = {
            name: tables.from_rows(
                SCHEMAS[name],
                [{**own, **_with_own(row, source.source_id)} for row in content[name]],
            )
            for name in self.tables
            if name in content
        }
        return parsed


def _with_own(row: Mapping[str, object], source_id: str) -> dict[str, object]:
    """`row` with `{source}` in its texts replaced by the id of its source."""
    return {
        key: value.replace("{source}", source_id) if isinstance(value, str) else value
        for key, value in row.items()
    }


def write_note(path: Path, **content: object) -> Path:
    """Write a capture that gives the rows `lanes=[{...}]`, `spans=[{...}]` and so on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")
    return path


def capture(start_ns: int = 1_000, end_ns: int = 2_000, **lane: object) -> dict[str, object]:
    """The rows of one lane with one stage span from its start to its end."""
    return {
        "lanes": [
            {
                "capture_start_ns": start_ns,
                "capture_end_ns": end_ns,
                "clock": "utc",
                **lane,
            }
        ],
        "spans": [
            {
                "span_id": "{source}-0-0",
                "kind": "stage",
                "depth": 0,
                "start_ns": start_ns,
                "duration_ns": end_ns - start_ns,
            }
        ],
    }
