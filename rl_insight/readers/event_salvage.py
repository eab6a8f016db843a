"""Events one by one: from a block that does not decode as a whole, and at the end of the list.

The way through such text is a walk from boundary to boundary. Each step tries the text up to the
nearest boundary; then the whole object, by its brackets; then the same with repairs; and gives up
only the text up to the next thing that looks like an event. Every byte is looked at a bounded
number of times.
"""

from enum import Enum
from typing import Generic, TypeVar

from rl_insight.problems import Problems
from rl_insight.readers import event_text
from rl_insight.readers.event_decoding import EventDecoder, example
from rl_insight.readers.event_separators import Separators
from rl_insight.readers.json_text import Lexer
from rl_insight.readers.window import Window

Event = TypeVar("Event")

# Bytes that may be looked at again for objects that do not close, in multiples of the block.
_SECOND_LOOKS = 8
# Up to here a boundary is looked for before the brackets are counted.
_LONG_EVENT = 4 << 10
# Repairs look at the text several times, token by token.
_REPAIR_LIMIT = 1 << 20
# An unfinished object of this size that holds what looks like events lost a brace or a quote.
_PLAUSIBLE_EVENT = 1 << 20
# Bytes that show a separator, a key or the end of the list as a whole.
_LOOK_AHEAD = 512


class Outcome(Enum):
    """Why the salvager stopped."""

    MORE = "more bytes are needed to go on"
    CLOSED = "the list ended; the window stands behind it"
    BROKEN_OFF = "the stream ended before the list did"


class EventSalvager(Generic[Event]):
    """Reads events one by one from `window`, whatever state its text is in.

    `in_object` tells that the list is the value of a key, so that other keys may follow it. With
    `stray`, the window stands in text that is no list of events and may hold some nevertheless.
    An event of more than `max_event_bytes` is passed by without being held.

    `problems` gets `event_undecodable`, `event_too_large`, `event_repaired`, `field_dropped`,
    `bad_timestamp`, `truncated`, `missing_bracket`, and those of `Separators`.
    """

    def __init__(
        self,
        window: Window,
        problems: Problems,
        *,
        in_object: bool,
        max_event_bytes: int,
        stray: bool = False,
    ) -> None:
        self._window = window
        self._problems = problems
        self._in_object = in_object
        self._max_event_bytes = max_event_bytes
        self._separators = Separators(window, problems)
        # Set from lost text up to the next event; an object without a phase is a piece of it.
        self.lost = self._stray = stray
        # The inside of an event that is too large and passes by.
        self.passing: Lexer | None = None
        self._stopped_at = -1
        self._budget = 0
        self.events: list[Event] = []
        self.damaged = False

    def read(self, decoder: EventDecoder[Event]) -> Outcome:
        """Take the events that can be told in the window to `events`; says why it stopped.

        `damaged` tells whether an event was lost or needed patience. At the end of the stream the
        outcome is MORE only after MOST_EVENTS.
        """
        window = self._window
        self.events, self.damaged = [], False
        if window.offset(window.start) != self._stopped_at and self._stopped_at >= 0:
            # A whole block was decoded in between.
            self._separators.forget()
            self.lost = self._stray = False
        self._budget = _SECOND_LOOKS * window.unread
        outcome = None
        while outcome is None:
            if self.passing is not None:
                outcome = self._pass_by(self.passing)
            elif self.lost:
                outcome = self._find_again(decoder)
            elif len(self.events) >= event_text.MOST_EVENTS:
                outcome = Outcome.MORE
            else:
                outcome = self._element(decoder)
        self._stopped_at = window.offset(window.start)
        return outcome

    def _element(self, decoder: EventDecoder[Event]) -> Outcome | None:
        window, buffer = self._window, self._window.buffer
        self._separators.pass_by()
        if window.unread == 0:
            return self._broken_off() if window.at_end else Outcome.MORE
        byte = buffer[window.start]
        if byte == ord("{"):
            self._separators.before_event()
            return self._object(decoder)
        if byte == ord("]"):
            return Outcome.CLOSED if self._separators.close_list() else None
        if byte == ord("[") and self._separators.open_list():
            return None
        if window.unread < _LOOK_AHEAD and not window.at_end:
            return Outcome.MORE
        if self._in_object and (
            event_text.starts_top_level_key(buffer, window.start, window.end)
            or (window.at_end and event_text.is_last_brace(buffer, window.start, window.end))
        ):
            self._problems.add("missing_bracket", "info", 1, window.offset(window.start))
            return Outcome.CLOSED
        count, end = event_text.other_values(buffer, window.start, window.end)
        if count:
            # Nothing is doubtful but these: what follows need not be searched for.
            # A list of numbers stands where one event should.
            self._undecodable(1 if self._separators.nested else count, end)
            self.damaged = True
            self._separators.forget()
            window.start = end
        else:
            self._lose()
        return None

    def _undecodable(self, count: int, end: int) -> None:
        """Tell of `count` events that are none, from the start of the window to about `end`."""
        window = self._window
        text = bytes(memoryview(window.buffer)[window.start : min(end, window.start + _LOOK_AHEAD)])
        offset = window.offset(window.start)
        self._problems.add("event_undecodable", "warning", count, offset, example(text))

    def _object(self, decoder: EventDecoder[Event]) -> Outcome | None:
        """Take the object at the start of the window, or lose it."""
        window, buffer = self._window, self._window.buffer
        start = window.start
        nearest = event_text.boundary_after(buffer, start, min(window.end, start + _LONG_EVENT))
        if nearest and self._take(decoder.one(buffer, start, nearest), nearest):
            return None
        reach = min(window.end, start + max(0, self._budget))
        end = event_text.closing_brace(buffer, start, reach)
        self._budget -= (end or window.end) - start
        if end is None and not self._seems_damaged():
            return self._more_or_broken_off()
        if end and end != nearest and self._take(decoder.one(buffer, start, end), end):
            return None
        for place in (nearest, end):
            if place and self._take(self._patiently(decoder, place), place):
                return None
        self._lose()
        return None

    def _seems_damaged(self) -> bool:
        """Whether the object at the start of the window, which does not close in the text at hand,
        never will; else it goes on behind the window, or was cut off with the file.
        """
        window = self._window
        if self._budget < 0:
            return True
        if window.unread < _PLAUSIBLE_EVENT and not window.at_end:
            return False
        inside = window.start + 1
        following = event_text.next_clean_event(window.buffer, inside, window.end)
        self._budget -= (following or window.end) - window.start
        if following is None and window.at_end:
            ends = event_text.ends_of_lost(window.buffer, inside, window.end, at_end=True)
            alone = event_text.end_without_partner(window.buffer, inside, window.end)
            return alone is not None or any(is_list_end for _, is_list_end in ends)
        return following is not None

    def _patiently(self, decoder: EventDecoder[Event], end: int) -> Event | None:
        window, buffer = self._window, self._window.buffer
        start = window.start
        if self.lost and not event_text.has_phase(buffer, start, end):
            return None
        self.damaged = True
        self._budget -= end - start
        if end - start > _REPAIR_LIMIT or self._budget < 0:
            return None
        if event_text.next_clean_event(
            buffer, start + 1, end
        ) is not None or event_text.ends_with_event(buffer, start + 1, end):
            return None  # what is damaged and holds a sound event swallowed it
        text = bytes(memoryview(buffer)[start:end])
        return decoder.patiently(text, window.offset(start), self._problems)

    def _take(self, event: Event | None, end: int) -> bool:
        if event is None:
            return False
        window, buffer = self._window, self._window.buffer
        start = window.start
        if self.lost and not event_text.is_event(buffer, start, end):
            # A piece of the lost event, whose own last brace this may be; or one that swallowed
            # events because it lost its end.
            if not event_text.has_phase(buffer, start, end):
                window.start = end - 1
                return True
            if event_text.next_clean_event(buffer, start + 1, end) is not None:
                window.start += 1
                return True
        self.events.append(event)
        self.lost = self._stray = False
        self._separators.after_event()
        window.start = end
        return True

    def _lose(self) -> None:
        """Give up on what begins at the start of the window.

        It counts as one event; inside lost text only where it has a phase of its own.
        """
        window, buffer = self._window, self._window.buffer
        near = min(window.end, window.start + _LOOK_AHEAD)
        nearest = event_text.boundary_after(buffer, window.start, near) or near
        if not self.lost or event_text.has_phase(buffer, window.start, nearest):
            self._undecodable(1, nearest)
        self.damaged = self.lost = True
        self._separators.forget()
        # What begins here is no event, but one may begin inside.
        window.start += buffer[window.start] == ord("{")

    def _find_again(self, decoder: EventDecoder[Event]) -> Outcome | None:
        """Go on with the next object inside or behind lost text, or see the end of the list."""
        window = self._window
        # The closing brace of the event before may be needed to see that the list ends.
        start = window.start - (window.buffer[window.start - 1] == ord("}"))
        ends = event_text.ends_of_lost(window.buffer, start, window.end, at_end=window.at_end)
        found = next(ends, None)
        del ends
        if found is None and window.at_end:
            end = event_text.end_without_partner(window.buffer, window.start, window.end)
            found = None if end is None else (end, True)
        if found is None:
            if window.at_end:
                return self._broken_off()
            window.start = max(window.start, window.end - _LOOK_AHEAD)
            return Outcome.MORE
        window.start, is_list_end = found
        if not is_list_end:
            return self._object(decoder)
        self._separators.close_all()
        self.lost = False
        return Outcome.CLOSED

    def _more_or_broken_off(self) -> Outcome | None:
        """Ask for more of an unfinished object, unless it is too large or the stream is over."""
        window = self._window
        if window.at_end:
            return self._broken_off()
        if window.unread < self._max_event_bytes:
            return Outcome.MORE
        why = f"one event of more than {self._max_event_bytes} bytes"
        self._problems.add("event_too_large", "warning", 1, window.offset(window.start), why)
        self.damaged = True
        self.passing = Lexer()
        return None

    def _pass_by(self, lexer: Lexer) -> Outcome | None:
        window = self._window
        end = lexer.run(window.buffer, window.start, window.end)
        if end >= 0:
            self.passing = None
            window.start = end
            return None
        following = event_text.next_clean_event(window.buffer, window.start, window.end)
        if following is not None:
            self.passing = None
            self.lost = True
            window.start = following
            return None
        window.start = lexer.position
        return self._broken_off() if window.at_end else Outcome.MORE

    def _broken_off(self) -> Outcome:
        window = self._window
        text = bytes(memoryview(window.buffer)[window.start : window.end][:_LOOK_AHEAD])
        if not self._stray:
            # Room that was kept for the file and never written is zero, and no part of it.
            end = window.end
            if window.unread and window.buffer[end - 1] == 0:
                written = bytes(memoryview(window.buffer)[window.start : end]).rstrip(b"\0")
                end = window.start + len(written) if written else end
            self._problems.add("truncated", "warning", 1, window.offset(end), example(text))
        window.start = window.end
        return Outcome.BROKEN_OFF
