"""Durations that stand as two events, a beginning and an end, made into one.

kineto writes complete events; other writers of the format write pairs. Format: "Trace Event Format"
(Google, 2016), «Duration Events»: an end belongs to the last open beginning of its thread.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, cast

import msgspec

from rl_insight.parsers.torch_events import Scalar, TorchEvent
from rl_insight.problems import Problems
from rl_insight.readers.timestamps import NOT_A_TIME, Microseconds, exact_ns

_PAIRED: Final = frozenset("BE")
_MOST_OPEN: Final = 100_000


class Pairs:
    """Takes blocks of events in the order of the file; what never ends is counted at the end."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._open: dict[tuple[Scalar, Scalar], list[TorchEvent]] = {}
        self._count = 0

    def complete(self, events: Sequence[TorchEvent]) -> list[TorchEvent]:
        """The events that ended in this block, as complete ones."""
        found = []
        for event in (one for one in events if one.ph in _PAIRED):
            thread = (event.pid, event.tid)
            is_open = self._open.get(thread)
            if event.ph == "E" and is_open:
                self._count -= 1
                found.append(_complete(is_open.pop(), event))
                if not is_open:
                    del self._open[thread]
            elif event.ph == "B" and self._count < _MOST_OPEN:
                self._count += 1
                self._open.setdefault(thread, []).append(event)
            else:
                why = f"{event.name!r} at {event.ts}: no beginning, or too many of them"
                self._problems.add("unpaired_event", "warning", example=why)
        return found

    def finish(self) -> None:
        """Count what never ended."""
        for thread in self._open.values():
            why = f"{thread[0].name!r} at {thread[0].ts} never ends"
            self._problems.add("unpaired_event", "warning", len(thread), example=why)


def _complete(begin: TorchEvent, end: TorchEvent) -> TorchEvent:
    start, stop = exact_ns(cast(Sequence[Microseconds], [begin.ts, end.ts])).tolist()
    known = NOT_A_TIME not in (start, stop)
    duration = str(Decimal(stop - start) / 1000) if known else None
    return msgspec.structs.replace(begin, ph="X", dur=duration)
