"""A streaming reader for Chrome trace JSON, as kineto, msprof and many others write it.

Format: "Trace Event Format" (Google, 2016): an object with the key `traceEvents`, or a bare list of
events, whose closing bracket may be missing. kineto writes the other keys of the object on both
sides of the events, in any order (libkineto/src/output_json.cpp).

What stands around the events is read here, the events themselves a block at a time
(`event_blocks`).
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from rl_insight.errors import ReadError
from rl_insight.problems import Problems
from rl_insight.readers import event_text
from rl_insight.readers.bytestream import ByteStream
from rl_insight.readers.event_blocks import EventBlocks
from rl_insight.readers.event_decoding import example
from rl_insight.readers.json_members import Members, decode_loosely
from rl_insight.readers.json_text import COMMAS, SPACE, end_of
from rl_insight.readers.not_json import what_it_is
from rl_insight.readers.trace_start import behind_other_text, is_bare_event
from rl_insight.readers.window import Window

Event = TypeVar("Event")

# Measured: as fast as 16 MB, at half the memory.
BLOCK_BYTES = 4 << 20
MAX_EVENT_BYTES = 64 << 20
MAX_METADATA_BYTES = 16 << 20

_EVENTS = "traceEvents"
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*+:\s*+(?=\[)')

# A key that the end of the file cut.
_CUT_KEY = re.compile(rb'"[^"]*+(?:"\s*+:?\s*+)?\Z')

# A second list behind the first, or more events of it.
_MORE_EVENTS = re.compile(rb"\[?\s*+\{")

# Enough to tell what text is.
_HEAD_BYTES = 512

# How the first element of a list of events may start; `n` is for null.
_ELEMENT_STARTS = b"{[],n"


class ChromeTraceReader(Generic[Event]):
    """Iterates once over the events of the trace at `path`, in lists of some thousand.

    - `event_type` is a msgspec.Struct that names the fields needed; the others are skipped. Give
      all fields a default and a loose type (`ts: str | float`, `pid: int | str | float | None`):
      an odd value then costs nothing, where a tight type sends its block the slow way. Use
      `gc=False`. `ts` and `dur` are microseconds; `timestamps.exact_ns` makes nanoseconds of them.
    - `exact_type`, if given, takes the place of `event_type` from the first block on in which a
      `ts` is an absolute number with decimals (1712195495519689.123), which a float would round to
      0.25 µs. Type `ts` as `Any` there: it then comes as its text, digit by digit.
    - `quick_type`, if given, is tried first on each block. It may be a union of structs tagged by
      `ph`, so that phases of no interest come as empty structs: such a file takes a fifth less
      time. Events of a block are then all of it, or all of `event_type`. Type its times as `Any`.
    - `wanted` names the keys of the top level that go to `metadata`, decoded, whatever side of the
      events they stand on; of a repeated key the first counts.

    After the iteration: `metadata`; `problems`, all that was lost or doubted, with byte offsets in
    the unpacked file; `events_seen`; `fallback_blocks`, in how many blocks an event needed patience
    or was lost. `shape` is known with the first block.

    Iterating raises ReadError when the file cannot be opened or is no JSON of this kind at all.
    """

    def __init__(
        self,
        path: Path | str,
        event_type: type[Event],
        wanted: Sequence[str] = (),
        exact_type: type[Event] | None = None,
        block_bytes: int = BLOCK_BYTES,
        *,
        quick_type: Any = None,
        max_bytes: int | None = None,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        self.path = Path(path)
        self.metadata: dict[str, Any] = {}
        self.problems = Problems()
        self.shape: Literal["object", "list"] | None = None
        self._wanted = frozenset(wanted)
        self._blocks = EventBlocks(
            self.problems,
            event_type,
            exact_type,
            quick_type,
            block_bytes=block_bytes,
            max_event_bytes=max_event_bytes,
        )
        self._block_bytes = block_bytes
        self._max_bytes = max_bytes
        self._found_events = False
        self._cut_at: int | None = None
        self._broken_off = False
        self._started = False

    @property
    def events_seen(self) -> int:
        """How many events there were so far."""
        return self._blocks.events_seen

    @property
    def fallback_blocks(self) -> int:
        """In how many blocks an event needed patience or was lost."""
        return self._blocks.fallback_blocks

    @property
    def has_events_key(self) -> bool:
        """False for a JSON object without `traceEvents`: no trace."""
        return self.shape != "object" or self._found_events

    def __iter__(self) -> Iterator[list[Event]]:
        if self._started:
            raise RuntimeError("a ChromeTraceReader can be iterated over once")
        self._started = True
        with ByteStream(self.path, self.problems, self._max_bytes) as stream:
            window = Window(stream)
            window.fill(self._block_bytes)
            yield from self._documents(window)
        if self._cut_at is not None:
            yield from self._second_pass(self._cut_at)

    def _documents(self, window: Window) -> Iterator[list[Event]]:
        """The events of the document, and of what was appended to it."""
        members = Members(window)
        first = members.skip(SPACE)
        if not first:
            self.problems.add("empty_file", "warning", 1, window.offset(window.start))
            return
        if first not in (b"{", b"[") or self._is_other_text(window):
            first = self._pass_other_text(window)
        if first == b"{" and is_bare_event(window.buffer, window.start, window.end):
            self.shape = "list"
            self.problems.add("missing_bracket", "info", 1, window.offset(window.start))
            yield from self._events(window)
        elif first == b"{":
            self.shape = "object"
            yield from self._object(members, window)
        else:
            self.shape = "list"
            yield from self._list(members, window)
        while not self._broken_off and (following := members.skip(COMMAS)):
            code = "concatenated"
            window.fill(_HEAD_BYTES)
            offset, text = window.offset(window.start), example(self._head(window))
            if self.shape == "list" and _MORE_EVENTS.match(window.buffer, window.start, window.end):
                window.start += following == b"["
                more = self._events(window)
            elif following == b"{" and event_text.starts_top_level_key(
                window.buffer, window.start + 1, window.end
            ):
                window.start += 1
                more = self._members(members, window)
            else:
                code = "trailing_data"
                more = self._stray_events(members, window)
            self.problems.add(code, "warning", 1, offset, text)
            yield from more

    @staticmethod
    def _is_other_text(window: Window) -> bool:
        """Whether a line of a log begins with the bracket: `[2026-02-22 03:18:47] INFO`."""
        buffer, start, end = window.buffer, window.start, window.end
        after = end_of(SPACE, buffer, start + 1, end)
        return buffer[start] == ord("[") and after < end and buffer[after] not in _ELEMENT_STARTS

    def _pass_other_text(self, window: Window) -> bytes:
        """Go to where the trace begins; its first byte."""
        head = self._head(window)
        start = behind_other_text(window.buffer, window.start, window.end)
        if start is None:
            raise ReadError(f"{self.path} is no trace: {what_it_is(head)}")
        offset = window.offset(window.start)
        self.problems.add("leading_data", "warning", 1, offset, example(head))
        window.start = start
        return bytes(window.buffer[start : start + 1])

    def _list(self, members: Members, window: Window) -> Iterator[list[Event]]:
        start = self._head(window)
        window.start += 1
        if members.skip(SPACE) not in _ELEMENT_STARTS:
            raise ReadError(f"{self.path} is no trace: {what_it_is(start)}")
        yield from self._events(window)

    def _object(self, members: Members, window: Window) -> Iterator[list[Event]]:
        start = self._head(window)
        window.start += 1
        if members.skip(SPACE) not in b'"}':
            offset = window.offset(window.start)
            if not members.seek(_EVENTS_KEY):
                raise ReadError(f"{self.path} is no trace: {what_it_is(start)}")
            self.problems.add("metadata_damaged", "warning", 1, offset, example(start))
        yield from self._members(members, window)

    def _members(self, members: Members, window: Window) -> Iterator[list[Event]]:
        """The rest of the object, from any of its keys on."""
        while not self._broken_off:
            offset = window.offset(window.start)
            key = members.next_key()
            if key == _EVENTS:
                yield from self._events_value(members, window)
            elif key is not None:
                self._metadata(members, window, key)
            elif (byte := members.skip(SPACE)) == b"}":
                window.start += 1
                return
            elif not byte or _CUT_KEY.match(window.buffer, window.start, window.end):
                self._break_off(window.offset(window.end))
            else:
                self.problems.add(
                    "metadata_damaged", "warning", 1, offset, example(self._head(window))
                )
                if self._found_events:
                    yield from self._stray_events(members, window)
                    return
                self._broken_off = not members.seek(_EVENTS_KEY)

    def _stray_events(self, members: Members, window: Window) -> Iterator[list[Event]]:
        """Events in text that is out of place: a bracket too many may have ended the list early."""
        if not self._found_events and self.shape == "object":
            self._broken_off = True
            return
        yield from self._events(window, stray=True)
        if self.shape == "object":
            yield from self._members(members, window)

    def _events_value(self, members: Members, window: Window) -> Iterator[list[Event]]:
        offset = window.offset(window.start)
        if self._found_events:
            self.problems.add("repeated_events", "info", 1, offset)
        self._found_events = True
        if window.buffer[window.start] == ord("["):
            window.start += 1
            yield from self._events(window)
        else:
            self.problems.add(
                "events_not_a_list", "warning", 1, offset, example(self._head(window))
            )
            self._pass_value(members, window, 0)

    def _metadata(self, members: Members, window: Window, key: str) -> None:
        keep = MAX_METADATA_BYTES if key in self._wanted and key not in self.metadata else 0
        offset = window.offset(window.start)
        text = self._pass_value(members, window, keep)
        if text is not None:
            try:
                self.metadata[key] = decode_loosely(text)
            except ValueError as error:
                self.problems.add("metadata_undecodable", "warning", 1, offset, f"{key}: {error}")
        elif keep and not self._broken_off:
            self.problems.add("metadata_too_large", "warning", 1, offset, key)

    def _pass_value(self, members: Members, window: Window, keep: int) -> bytes | None:
        try:
            return members.text(keep)
        except EOFError:
            self._break_off(window.offset(window.end))
            return None

    def _second_pass(self, cut_at: int) -> Iterator[list[Event]]:
        """Look for the events alone: something before them never ended and swallowed them, or the
        file was cut at `cut_at` before they came.
        """
        with ByteStream(self.path, Problems(), self._max_bytes) as stream:
            window = Window(stream)
            members = Members(window)
            if not members.seek(_EVENTS_KEY):
                self.problems.add("truncated", "warning", 1, cut_at)
                return
            self.problems.add("metadata_damaged", "warning", 1, window.offset(window.start))
            self._broken_off = False
            yield from self._members(members, window)

    def _events(self, window: Window, *, stray: bool = False) -> Iterator[list[Event]]:
        """The events of the list whose opening bracket has just been passed."""
        blocks = self._blocks
        yield from blocks.read(window, in_object=self.shape == "object", stray=stray)
        self._broken_off = blocks.broken_off

    def _break_off(self, offset: int) -> None:
        self._broken_off = True
        if self._found_events:
            self.problems.add("truncated", "warning", 1, offset)
        else:
            self._cut_at = offset

    @staticmethod
    def _head(window: Window) -> bytes:
        return bytes(window.buffer[window.start : min(window.end, window.start + _HEAD_BYTES)])
