"""Durations that stand as two events, a beginning and an end, made into one. Neutral to profilers.

kineto and msprof write complete events; other writers of the format write pairs, and other programs
add them. Format: "Trace Event Format" (Google, 2016), «Duration Events»: an end belongs to the last
open beginning of its thread.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final, Generic, Protocol, TypeVar, cast

from rl_insight.problems import Problems
from rl_insight.readers.timestamps import NOT_A_TIME, Microseconds, exact_ns

Scalar = str | int | float | bool | None

_MOST_OPEN: Final = 100_000


class Half(Protocol):
    """An event of the phase B or E, or of any other: those are passed over. Times in µs."""

    @property
    def ph(self) -> Scalar: ...  # noqa: D102
    @property
    def name(self) -> Scalar: ...  # noqa: D102
    @property
    def pid(self) -> Scalar: ...  # noqa: D102
    @property
    def tid(self) -> Scalar: ...  # noqa: D102
    @property
    def ts(self) -> Scalar: ...  # noqa: D102


Event = TypeVar("Event", bound=Half)


class Pairs(Generic[Event]):
    """Takes blocks of events in the order of the file; what never ends is counted at the end."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._open: dict[tuple[Scalar, Scalar], list[Event]] = {}
        self._count = 0

    def ended(self, events: Iterable[Event]) -> Iterator[tuple[Event, str | None]]:
        """The beginnings that ended in this block, and how long they took (µs), if that is known.

        An end without a beginning is counted as `unpaired_event`.
        """
        begins: list[Event] = []
        ends: list[Event] = []
        for event in events:
            if event.ph == "B":
                if self._count < _MOST_OPEN:
                    self._count += 1
                    self._open.setdefault((event.pid, event.tid), []).append(event)
                else:
                    self._lose(event, "too many events have no end yet")
            elif event.ph == "E":
                thread = (event.pid, event.tid)
                is_open = self._open.get(thread)
                if not is_open:
                    self._lose(event, "it has no beginning")
                    continue
                self._count -= 1
                begins.append(is_open.pop())
                ends.append(event)
                if not is_open:
                    del self._open[thread]
        return zip(begins, _durations(begins, ends), strict=True)

    def finish(self) -> None:
        """Count what never ended."""
        for thread in self._open.values():
            self._lose(thread[0], "it never ends", len(thread))
        self._open = {}

    def _lose(self, event: Event, why: str, count: int = 1) -> None:
        example = f"{event.name!r} at {event.ts}: {why}"
        self._problems.add("unpaired_event", "warning", count, example=example)


def _durations(begins: Sequence[Half], ends: Sequence[Half]) -> Iterator[str | None]:
    """How long each pair took in µs, to the ns. Of all at once: numpy costs by the call."""
    starts, stops = (
        exact_ns(cast(Sequence[Microseconds], [event.ts for event in events])).tolist()
        for events in (begins, ends)
    )
    for start, stop in zip(starts, stops, strict=True):
        yield None if NOT_A_TIME in (start, stop) else str(Decimal(stop - start) / 1000)
