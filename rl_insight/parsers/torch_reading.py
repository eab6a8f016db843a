"""Reading one trace of the PyTorch profiler: from events to tables."""

from collections.abc import Mapping

from rl_insight.data import identity
from rl_insight.parsers.base import Parsed, Source
from rl_insight.parsers.garbage import without_collection
from rl_insight.parsers.losses import (
    cut_before_events,
    is_cut_short,
    is_in_part,
    lost,
    why_empty,
)
from rl_insight.parsers.options import range_depth
from rl_insight.parsers.torch_capture import TorchCapture
from rl_insight.parsers.torch_events import TorchEvent, TorchEventExact
from rl_insight.parsers.torch_tables import Wanted, build, told_by
from rl_insight.readers.chrome_trace import ChromeTraceReader

_METADATA = ("distributedInfo", "baseTimeNanoseconds", "host_name")


def read(source: Source, options: Mapping[str, object]) -> Parsed:
    """What the trace `source` holds; memory does not grow with its size.

    Raises ReadError when the file cannot be read or is no JSON.
    """
    reader = ChromeTraceReader(source.absolute, TorchEvent, _METADATA, TorchEventExact)
    capture = TorchCapture()
    with without_collection():
        for events in reader:
            capture.add(events)
            del events  # or two blocks would be alive while the next one is decoded
    problems = reader.problems
    foreign = not reader.has_events_key or (reader.events_seen and not capture.is_trace)
    if foreign and not is_cut_short(problems):
        why = "JSON of another kind: it holds no trace events"
        return Parsed("skipped", why, reader.events_seen, problems)
    if not reader.has_events_key:
        return Parsed("failed", cut_before_events(problems), 0, problems)
    told = told_by(reader.metadata, capture.problems)
    # kineto's base is a multiple of 7,889,238 s (8bf50de2): no capture begins right at it.
    capture.finish(zero_is_time=not told.base_ns)
    tables = build(
        capture,
        told,
        Wanted(
            source_id=source.source_id,
            path_role=identity.path_role(source.path, source.root.name),
            range_depth=range_depth(options),
            cut_short=is_cut_short(problems),
            in_part=is_in_part(problems, reader.events_seen),
        ),
    )
    damage = lost(problems, reader.events_seen)
    problems.extend(capture.problems)
    if "spans" not in tables or not tables["spans"].num_rows:
        detail = why_empty(problems, reader.events_seen)
        if damage is None:
            return Parsed("empty", detail, reader.events_seen, problems, tables)
        # Nothing is left of what was recorded: it was not empty, it was lost.
        detail = f"{detail}; {damage}" if reader.events_seen else damage
        return Parsed("failed", detail, reader.events_seen, problems, tables)
    status = "ok" if damage is None else "salvaged"
    return Parsed(status, damage, reader.events_seen, problems, tables)
