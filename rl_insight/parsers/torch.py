"""The parser for PyTorch profiler (kineto) traces. It reads JSON; it does not import PyTorch."""

import gc
from collections.abc import Iterator, Mapping

from rl_insight.data import identity
from rl_insight.data.tree import Tree
from rl_insight.parsers.base import Found, Parsed, Source
from rl_insight.parsers.torch_capture import TorchCapture
from rl_insight.parsers.torch_discovery import claims
from rl_insight.parsers.torch_events import TorchEvent, TorchEventExact
from rl_insight.parsers.torch_tables import Wanted, build, told_by
from rl_insight.problems import Problems
from rl_insight.readers.chrome_trace import ChromeTraceReader

_RANGE_DEPTH = "timeline.parser.range_depth"
_DEFAULT_RANGE_DEPTH = 2
_METADATA = ("distributedInfo", "baseTimeNanoseconds", "host_name")
# The reader's words for a file that ends before the capture did.
_CUT = ("truncated", "gzip_truncated", "gzip_corrupt", "read_failed", "too_large")


class TorchParser:
    """One trace file is one source and one lane."""

    name = "torch"
    preset = "timeline"
    cache_version = 1
    tables = ("lanes", "spans", "breakdown", "activity", "collectives", "ops")
    options = (_RANGE_DEPTH,)

    def discover(self, tree: Tree) -> Iterator[Found]:
        """Every trace in `tree`, and what might be taken for one, with the reason to skip it."""
        return claims(tree)

    def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
        """Read one trace; memory does not grow with its size.

        Raises ReadError when the file cannot be read or is no JSON.
        """
        reader = ChromeTraceReader(source.absolute, TorchEvent, _METADATA, TorchEventExact)
        capture = TorchCapture()
        # No reference cycle runs through events: looking for one in every block costs time only.
        collecting = gc.isenabled()
        gc.disable()
        try:
            for events in reader:
                capture.add(events)
                del events  # or two blocks would be alive while the next one is decoded
        finally:
            if collecting:
                gc.enable()
        problems = reader.problems
        if not reader.has_events_key or (reader.events_seen and not capture.is_trace):
            return Parsed("skipped", "JSON of another kind: it holds no trace events")
        capture.finish()
        told = told_by(reader.metadata, capture.problems)
        tables = build(
            capture,
            told,
            Wanted(
                source_id=source.source_id,
                path_role=identity.path_role(source.path, source.root.name),
                range_depth=_range_depth(options),
                cut_short=any(code in problems for code in _CUT),
            ),
        )
        lost = _lost(problems, reader.events_seen)
        problems.extend(capture.problems)
        if "spans" not in tables or not tables["spans"].num_rows:
            detail = _why_empty(reader.events_seen, "empty_file" in problems)
            if lost is not None:
                detail = f"{detail}; {lost}"
            return Parsed("empty", detail, reader.events_seen, problems, tables)
        status = "ok" if lost is None else "salvaged"
        return Parsed(status, lost, reader.events_seen, problems, tables)


PARSER = TorchParser()


def _range_depth(options: Mapping[str, object]) -> int:
    depth = options.get(_RANGE_DEPTH)
    return depth if isinstance(depth, int) else _DEFAULT_RANGE_DEPTH


def _why_empty(events: int, nothing: bool) -> str:
    if nothing:
        return "the file is empty"
    if not events:
        return "the trace holds no events"
    return f"no timed events: none of its {events:,} events has a duration"


def _lost(problems: Problems, events: int) -> str | None:
    """What the reader lost and how much is there, for a person; None when it lost nothing."""
    lost = [one for one in problems if one.severity != "info" and one.code != "empty_file"]
    if not lost:
        return None
    kept = f"the {events:,} events that could be read are kept"
    cut = next((one for one in lost if one.code in _CUT), None)
    if cut is not None:
        where = "" if cut.offset is None else f" after {cut.offset:,} bytes of unpacked text"
        return f"the file breaks off{where}; {kept}"
    worst = max(lost, key=lambda one: one.count)
    where = "" if worst.offset is None else f", first at byte {worst.offset:,}"
    return f"damaged ({worst.code}, {worst.count} times{where}); {kept}"
