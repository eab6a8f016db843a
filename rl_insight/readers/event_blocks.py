"""The events of a list, a block at a time.

Speed comes from decoding blocks of some megabytes, cut between two events, straight into structs
that name only the fields needed. A block that does not decode is read event by event
(`event_salvage`); a damaged file takes the same way more often.
"""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from rl_insight.problems import Problems
from rl_insight.readers import event_text
from rl_insight.readers.event_decoding import EventDecoder
from rl_insight.readers.event_salvage import EventSalvager, Outcome
from rl_insight.readers.json_text import COMMAS, end_of
from rl_insight.readers.window import Window

Event = TypeVar("Event")

# How much of the end of a block says whether its times are fine: this or a 64th of it, if that is
# more. Of the first block all does.
_FINE_TIME_TAIL = 16 << 10

# More than what is unread, so that something is read.
_SOME_BYTES = 512


class EventBlocks(Generic[Event]):
    """Reads the lists of events of one file, and keeps count of them.

    The types are those of `ChromeTraceReader`. After `read` has ended `broken_off` tells whether
    the file did so too; `events_seen` and `fallback_blocks` count over all lists.
    """

    def __init__(
        self,
        problems: Problems,
        event_type: type[Event],
        exact_type: type[Event] | None,
        quick_type: Any,
        *,
        block_bytes: int,
        max_event_bytes: int,
    ) -> None:
        self.events_seen = 0
        self.fallback_blocks = 0
        self.broken_off = False
        self._problems = problems
        self._decoder = EventDecoder(event_type, quick_type=quick_type)
        self._quick_type = quick_type
        self._exact_type = exact_type
        self._first_block = True
        self._block_bytes = block_bytes
        self._max_event_bytes = max_event_bytes

    def read(
        self, window: Window, *, in_object: bool, stray: bool = False
    ) -> Iterator[list[Event]]:
        """The events of the list whose opening bracket has just been passed.

        It stands `in_object` or alone; `stray` events stand where none belong.
        """
        salvager: EventSalvager[Event] = EventSalvager(
            window,
            self._problems,
            in_object=in_object,
            max_event_bytes=self._max_event_bytes,
            stray=stray,
        )
        wanted = self._block_bytes
        outcome = Outcome.MORE
        while outcome is Outcome.MORE:
            window.fill(wanted)
            wanted = self._block_bytes
            self._choose_type(window)
            events = (
                None if salvager.passing is not None else self._block(window, not salvager.lost)
            )
            if events is None:
                outcome = salvager.read(self._decoder)
                events, salvager.events = salvager.events, []
                self.fallback_blocks += salvager.damaged
                if len(events) < event_text.MOST_EVENTS:
                    # An event that does not fit takes twice the bytes, until it is too large.
                    grown = min(2 * window.unread, self._max_event_bytes)
                    wanted = max(wanted, grown, window.unread + _SOME_BYTES)
            self.events_seen += len(events)
            if events:
                yield events
            del events  # or two blocks of events would be alive while the next one is decoded
        self.broken_off = outcome is Outcome.BROKEN_OFF

    def _block(self, window: Window, at_event: bool) -> list[Event] | None:
        """The whole events of the window but the last, if they decode, and if not too many."""
        buffer = window.buffer
        end = event_text.block_end(buffer, window.start, window.end, any_object=at_event)
        if end is None:
            return None
        start = end_of(COMMAS, buffer, window.start, end)
        events = self._decoder.block(buffer, start, end)
        if events is not None:
            window.start = end + 1
        return events

    def _choose_type(self, window: Window) -> None:
        if self._exact_type is None:
            return
        start = window.start
        if not self._first_block:
            start = max(start, window.end - max(_FINE_TIME_TAIL, self._block_bytes // 64))
        self._first_block = False
        if event_text.has_fine_time(window.buffer, start, window.end):
            self._decoder = EventDecoder(
                self._exact_type, numbers_as_text=True, quick_type=self._quick_type
            )
            self._exact_type = None
