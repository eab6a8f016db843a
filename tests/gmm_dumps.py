"""Reads dumps of group lists for tests, as a parse job does but without one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_insight.data.tree import scan
from rl_insight.parsers import Parsed, Source
from rl_insight.parsers.gmm import PARSER


@dataclass
class Dump:
    """What one source gave: its rows as dictionaries, and what is said of it."""

    path: str
    rows: list[dict[str, Any]]
    parsed: Parsed

    @property
    def said(self) -> tuple[str, str | None]:
        """Status and sentence."""
        return self.parsed.status, self.parsed.detail

    @property
    def loads(self) -> list[list[int]]:
        return [row["load"] for row in self.rows]

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows]

    def problems(self) -> dict[str, int]:
        return {one.code: one.count for one in self.parsed.problems}

    def example(self, code: str) -> str | None:
        return next(one.example for one in self.parsed.problems if one.code == code)


def read_all(root: Path) -> list[Dump]:
    """All dumps below `root`."""
    dumps = []
    for found in PARSER.discover(scan(root)):
        parsed = PARSER.parse(Source("source", found.path, root, found.files), {})
        tables = list(parsed.parts["expert_load"])
        dumps.append(Dump(found.path, [row for one in tables for row in one.to_pylist()], parsed))
    return dumps


def read_one(root: Path) -> Dump:
    """The one dump below `root`."""
    (dump,) = read_all(root)
    return dump
