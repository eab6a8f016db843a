"""What a run would make of a small input, asked of the run's own parser.

What is seen whole need not be guessed at. Of a larger file that does not begin as a trace does,
the first megabytes are asked whether one follows, which is as far as the run looks too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rl_insight.config import KEYS
from rl_insight.data.health import END_BYTES, Health
from rl_insight.data.tree import File
from rl_insight.errors import RLInsightError
from rl_insight.parsers import Found, Parser, Source
from rl_insight.parsers.garbage import without_collection
from rl_insight.pipeline.units import source_id

_MOST_BYTES = 1 << 20
_DRAWN = ("ok", "salvaged")
# What every event that is drawn has: those of torch's profiler have a phase and a duration.
_OF_EVENTS = (b'"ph"', b'"dur"')


@dataclass(frozen=True, slots=True)
class Outcome:
    """The `status` that a run would give an input, and its sentence; None when all is well."""

    status: str
    detail: str | None = None

    @property
    def gives(self) -> bool:
        """Whether anything of it would be drawn."""
        return self.status in _DRAWN


def is_doubtful(parser: Parser, looked: Sequence[tuple[File, Health]]) -> bool:
    """Whether an input is seen whole, and its ends leave open what a run makes of it."""
    sizes = [file.size_bytes for file, _ in looked]
    if not any(sizes) or max(sizes) > END_BYTES or sum(sizes) > _MOST_BYTES:
        return False
    if any(health.damaged for _, health in looked):
        return True
    if parser.name == "torch":
        # Thousands of small traces are whole: one look spares reading them.
        health = looked[0][1]
        return health.format != "json" or not all(sign in health.head for sign in _OF_EVENTS)
    return sum(sizes) <= END_BYTES


def outcome(parser: Parser, found: Found, root: Path) -> Outcome:
    """What the parser makes of the input. Never raises for what is in it."""
    # Most inputs need no second look, and must not wait for Arrow.
    from rl_insight.pipeline.parse import in_words

    source = Source(source_id(found.path), found.path, root, found.files)
    options = {name: KEYS[name].default for name in parser.options if name in KEYS}
    try:
        parsed = parser.parse(source, options)
        for parts in parsed.parts.values():
            for _ in parts:
                pass
    except Exception as error:
        return Outcome("failed", in_words(error, parser, source))
    return Outcome(parsed.status, parsed.detail)


def trace_follows(path: Path) -> bool:
    """Whether events of a trace begin in the first megabytes of the text of a file."""
    from rl_insight.parsers.torch_events import TorchEvent
    from rl_insight.readers.chrome_trace import BLOCK_BYTES, ChromeTraceReader

    reader = ChromeTraceReader(path, TorchEvent, max_bytes=BLOCK_BYTES)
    try:
        with without_collection():
            return any(event.ph for events in reader for event in events)
    except (RLInsightError, OSError):
        return False
