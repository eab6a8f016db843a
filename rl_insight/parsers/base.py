"""What a parser is: it finds its inputs in a listing, and turns one input into tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rl_insight.data.tree import Tree
from rl_insight.problems import Problems

if TYPE_CHECKING:
    # Whoever only looks for inputs must not wait for it.
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Found:
    """One input that a parser claims in the input folder: a file, or a folder of several.

    `path` names it (relative to the input root), `files` are the files that parsing reads and that
    decide whether the cache is stale. With `skip` it is not parsed, but stands in `sources` as
    `skipped` with that sentence. `peek` gives what the input's own metadata tells about its
    identity (columns of `lanes`, such as `rank_id`) as far as its first bytes show; it is called
    only when the user chose ranks, to leave out the others without reading them. `pack` is the
    folder whose inputs may be read by one job where they are many and small; unset, the folder
    that holds the input.
    """

    path: str
    files: tuple[str, ...]
    skip: str | None = None
    peek: Callable[[], Mapping[str, object]] | None = field(default=None, compare=False)
    pack: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One input to parse: where it lies, and the `source_id` that its rows must carry."""

    source_id: str
    path: str
    root: Path
    files: tuple[str, ...]

    @property
    def absolute(self) -> Path:
        """The absolute path of the input."""
        return self.root / self.path


@dataclass(slots=True)
class Parsed:
    """What one source gave.

    `tables` may lack tables that are empty. `parts` are tables that may grow beyond what memory
    should hold: each is read as the caller takes its parts one by one, and only then do the other
    fields here tell what came of it. `status` is `ok`, `salvaged` (something was lost),
    `empty` (nothing timed inside), `failed` or `skipped` (not ours after all); `detail` is one
    sentence for a person, or None when all is well. `events` counts the records that were read.
    """

    status: str
    detail: str | None = None
    events: int = 0
    problems: Problems = field(default_factory=Problems)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    parts: Mapping[str, Iterable[pa.Table]] = field(default_factory=dict)


class Parser(Protocol):
    """One profiler's format. Stateless: all state lives in one call."""

    name: str
    """As in `timeline.parser.type`, and the name of the folder below `parsed/`."""

    preset: str
    """What it feeds: `timeline` or `heatmap`."""

    cache_version: int
    """Raise it whenever the same input would give other rows: cached rows are made anew."""

    tables: tuple[str, ...]
    """Names of the tables that it writes, besides `sources`."""

    options: tuple[str, ...]
    """The dotted configuration keys that parsing depends on; changing one parses anew."""

    def discover(self, tree: Tree) -> Iterator[Found]:
        """The inputs of this kind in `tree`, by name or by their first bytes."""
        ...

    def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
        """Read one source.

        Raises ReadError when it cannot be read at all; anything short of that is told by
        `status` and `problems`. Never raises for what another source holds.
        """
        ...
