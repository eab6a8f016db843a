"""Events one by one: from a block that does not decode as a whole, and at the end of the array.

The way through such text is a walk from boundary to boundary. Each step tries the text up to the
nearest boundary; then the whole object, by its brackets; then the same with repairs; and gives up
only the text up to the next thing that looks like an event. Every byte is looked at a bounded
number of times.
"""

import re
from enum import Enum
from typing import Generic, TypeVar

from rl_insight.problems import Problems
from rl_insight.readers.event_decoding import EventDecoder, example
from rl_insight.readers.json_text import (
    BOUNDARY,
    KEY,
    NEXT_OBJECT,
    OBJECT_START,
    SEPARATORS,
    SPACE,
    Lexer,
    end_of,
    is_event,
)
from rl_insight.readers.window import Window

Event = TypeVar("Event")

# Text that may be looked at again for objects that never close, in multiples of the block.
_SECOND_LOOKS = 8
# Repairs look at the text several times, token by token.
_REPAIR_LIMIT = 1 << 20
# Enough bytes to see a separator ("null") or a key to its end.
_LOOK_AHEAD = 512

# The keys of an event in the Chrome trace format; other keys belong to the top level.
_EVENT_KEYS = frozenset(
    b"name cat ph ts dur tts tdur pid tid id id2 bp s args cname sf stack esf estack".split()
)
_PHASE = re.compile(rb'"ph"\s*+:\s*+"')
# What is no event and no bracket, with whole strings.
_JUNK = re.compile(rb'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\[\]{"])*+', re.DOTALL)
_CLOSING_BRACE = re.compile(rb"\}\s*+\Z")


class Outcome(Enum):
    """Why the salvager stopped."""

    MORE = "more bytes are needed to go on"
    CLOSED = "the array ended; the window stands behind it"
    BROKEN_OFF = "the stream ended before the array did"


class Unclosed(Enum):
    """Why an object does not close."""

    HERE = "not in the text at hand"
    EVER = "its strings or brackets are damaged"


class EventSalvager(Generic[Event]):
    """Reads events one by one from `window`, whatever state its text is in.

    `in_object` tells that the array is the value of a key, so that other keys may follow it. An
    event of more than `max_event_bytes` is passed by without being held.

    `problems` gets `event_undecodable`, `event_too_large`, `event_repaired`, `field_dropped`,
    `bad_timestamp`, `truncated`, and for what costs no event: `trailing_comma`, `missing_comma`,
    `missing_bracket`, `empty_element`, `nested_list`.
    """

    def __init__(
        self, window: Window, problems: Problems, *, in_object: bool, max_event_bytes: int
    ) -> None:
        self._window = window
        self._problems = problems
        self._in_object = in_object
        self._max_event_bytes = max_event_bytes
        self._nesting = 0
        # Set from lost text up to the next clean event: only an object with a phase is one then.
        self._lost = False
        # The inside of an event that is too large and passes by.
        self._passing: Lexer | None = None
        self._after_event = False
        self._commas = 0
        self._stopped_at = -1
        self._budget = 0
        self.events: list[Event] = []
        self.damaged = False

    @property
    def passing(self) -> bool:
        """Whether the window stands inside an event that is too large."""
        return self._passing is not None

    def read(self, decoder: EventDecoder[Event]) -> Outcome:
        """Take all events that can be told in the window to `events`; says why it stopped.

        `damaged` tells whether an event was lost or needed patience. At the end of the stream the
        outcome is never MORE.
        """
        window = self._window
        self.events = []
        self.damaged = False
        if window.offset(window.start) != self._stopped_at:
            # A whole block was decoded in between.
            self._after_event, self._commas, self._lost = False, 0, False
        self._budget = _SECOND_LOOKS * window.unread
        while True:
            outcome = self._step(decoder) if self._passing is None else self._pass_by(self._passing)
            if outcome is not None:
                self._stopped_at = window.offset(window.start)
                return outcome

    def _step(self, decoder: EventDecoder[Event]) -> Outcome | None:
        window, buffer = self._window, self._window.buffer
        between = SEPARATORS.match(buffer, window.start, window.end)
        assert between is not None  # it matches everywhere
        window.start = position = between.end()
        self._commas += between[0].count(b",")
        if b"null" in between[0]:
            self._note("empty_element", between.start())
        if position == window.end:
            return self._broken_off() if window.at_end else Outcome.MORE
        byte = buffer[position]
        if byte == ord("{") and not (self._lost and not OBJECT_START.match(buffer, position)):
            self._check_commas()
            return self._object(decoder)
        if window.unread < _LOOK_AHEAD and not window.at_end:
            return Outcome.MORE
        if byte == ord("]") and (self._nesting or not self._lost or self._ends_here(position + 1)):
            return self._close_list()
        if byte == ord("["):
            if not self._lost:
                self._note("nested_list", position)
            self._nesting += 1
            window.start += 1
            return None
        return self._junk()

    def _check_commas(self) -> None:
        if self._after_event and self._commas == 0:
            self._note("missing_comma", self._window.start)
        if self._commas > 1:
            self._note("empty_element", self._window.start)
        self._after_event, self._commas = False, 0

    def _close_list(self) -> Outcome | None:
        if self._commas:
            self._note("trailing_comma", self._window.start)
            self._commas = 0
        self._window.start += 1
        if self._nesting == 0:
            return Outcome.CLOSED
        self._nesting -= 1
        return None

    def _ends_here(self, position: int) -> bool:
        """Whether the text from `position` on is what follows the array of events.

        Asked where text was lost: a bracket there may belong to it.
        """
        window, buffer = self._window, self._window.buffer
        position = end_of(SPACE, buffer, position, window.end)
        if window.at_end and (
            position == window.end or _CLOSING_BRACE.match(buffer, position, window.end)
        ):
            return True
        if buffer[position : position + 1] != b",":
            return False
        return self._is_top_level_key(end_of(SPACE, buffer, position + 1, window.end))

    def _is_top_level_key(self, position: int) -> bool:
        key = KEY.match(self._window.buffer, position, self._window.end)
        return self._in_object and key is not None and key[1] not in _EVENT_KEYS

    def _junk(self) -> Outcome | None:
        """Pass over text that can be no event, or see that the array ended without a bracket."""
        window, buffer = self._window, self._window.buffer
        start = window.start
        closing = window.at_end and _CLOSING_BRACE.match(buffer, start, window.end)
        if self._in_object and not self._lost and (closing or self._is_top_level_key(start)):
            self._note("missing_bracket", start)
            return Outcome.CLOSED
        window.start = max(start + 1, end_of(_JUNK, buffer, start, window.end))
        self._lose(start, window.start)
        return None

    def _object(self, decoder: EventDecoder[Event]) -> Outcome | None:
        """Take the object at the start of the window, or lose it up to the next one."""
        window, buffer = self._window, self._window.buffer
        start = window.start
        boundary = BOUNDARY.search(buffer, start, window.end)
        nearest = boundary.start() + 1 if boundary else None
        if nearest and self._take(decoder.one(buffer, start, nearest), nearest):
            return None
        closing = self._closing(start)
        if closing is Unclosed.HERE and self._next_clean_event(start) is None:
            # It may go on behind the window, or was cut off with the file; unless the text is at
            # its end and something in this last event hides that it closed.
            at_last = boundary and window.at_end and self._ends_here(boundary.end())
            if nearest is None or not at_last:
                return self._more_or_broken_off()
        ends = [end for end in (closing, nearest) if isinstance(end, int)]
        if ends[0] != nearest and self._take(decoder.one(buffer, start, ends[0]), ends[0]):
            return None
        for end in ends:
            if self._take(self._patiently(decoder, end), end):
                return None
        window.start = min(ends)
        self._lose(start, window.start)
        return None

    def _closing(self, start: int) -> int | Unclosed:
        """Where the object at `start` ends, by its brackets."""
        window, buffer = self._window, self._window.buffer
        lexer = Lexer()
        position = start
        while True:
            boundary = NEXT_OBJECT.search(buffer, position, window.end)
            limit = boundary.start() + 1 if boundary else window.end
            end = lexer.run(buffer, position, limit)
            self._budget -= limit - position
            if end >= 0:
                return end
            if boundary is None:
                return Unclosed.HERE
            if lexer.in_string or self._budget < 0:
                return Unclosed.EVER
            position = limit

    def _next_clean_event(self, start: int) -> int | None:
        """Where the next event that is whole and decodes begins, behind the one at `start`."""
        buffer = self._window.buffer
        before = None
        for boundary in NEXT_OBJECT.finditer(buffer, start, self._window.end):
            if before is not None and is_event(buffer, before, boundary.start() + 1):
                return before
            before = boundary.start("next")
        return None

    def _patiently(self, decoder: EventDecoder[Event], end: int) -> Event | None:
        window = self._window
        self.damaged = True
        if end - window.start > _REPAIR_LIMIT:
            return None
        text = bytes(memoryview(window.buffer)[window.start : end])
        return decoder.patiently(text, window.offset(window.start), self._problems)

    def _take(self, event: Event | None, end: int) -> bool:
        if event is None:
            return False
        # Inside lost text an object without a phase is a piece of the lost event.
        if not self._lost or _PHASE.search(self._window.buffer, self._window.start, end):
            self.events.append(event)
            self._lost = False
        self._after_event = True
        self._window.start = end
        return True

    def _lose(self, start: int, end: int) -> None:
        """Count lost text as one event; what follows it counts when it has an event's phase."""
        buffer = self._window.buffer
        if not self._lost or _PHASE.search(buffer, start, end):
            text = bytes(memoryview(buffer)[start : min(end, start + _LOOK_AHEAD)])
            offset = self._window.offset(start)
            self._problems.add("event_undecodable", "warning", 1, offset, example(text))
        self.damaged = self._lost = True
        self._after_event = False

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
        self._passing = Lexer()
        return None

    def _pass_by(self, lexer: Lexer) -> Outcome | None:
        window = self._window
        end = lexer.run(window.buffer, window.start, window.end)
        if end >= 0:
            self._passing = None
            window.start = end
            return None
        following = self._next_clean_event(window.start)
        if following is not None:
            self._passing = None
            self._lost = True
            window.start = following
            return None
        window.start = lexer.position
        return self._broken_off() if window.at_end else Outcome.MORE

    def _broken_off(self) -> Outcome:
        window = self._window
        text = bytes(memoryview(window.buffer)[window.start : window.end][:_LOOK_AHEAD])
        self._problems.add("truncated", "warning", 1, window.offset(window.end), example(text))
        window.start = window.end
        return Outcome.BROKEN_OFF

    def _note(self, code: str, position: int) -> None:
        self._problems.add(code, "info", 1, self._window.offset(position))
