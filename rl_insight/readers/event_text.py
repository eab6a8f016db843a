"""Where events begin and end in the text of a list of them, healthy or not."""

import re
from collections import deque
from collections.abc import Iterator

import msgspec
import numpy as np

from rl_insight.readers.json_text import COMMAS, Buffer, Lexer, end_of

# Between two events of a healthy file.
_COMMA = re.compile(rb"\}\s*+,\s*+(?=\{)")

_PHASE = re.compile(rb'"ph"\s*+:\s*+"')
_KEY = rb'"(?P<key>[^"\\]{0,256}+)"\s*+:'
_TOP_LEVEL_KEY = re.compile(rb"\s*+" + _KEY)
# The keys of an event in the Chrome trace format; other keys belong to the top level.
_EVENT_KEYS = frozenset(
    b"name cat ph ts dur tts tdur pid tid id id2 bp s args cname sf stack esf estack".split()
)

# What may stand between two events of a damaged file.
SEPARATORS = re.compile(rb"(?:[\s,]|null)*+")
_BETWEEN = rb"(?:[\s,\[]|null)*+"
# A quote inside a string is escaped, so that `{"key":` does not stand inside a string: it begins
# an event, or an object inside one. (A string that ends with a brace, followed by one that begins
# with a colon, looks the same; so this never decides alone.)
_OBJECT = rb'\{\s*+"[^"\\]{0,256}+"\s*+:'
_OBJECT_START = re.compile(_OBJECT)
# The end of an object, if it is: an empty object or a closing bracket may stand inside a string.
_BOUNDARY = re.compile(rb"\}" + _BETWEEN + rb"(?:" + _OBJECT + rb"|\{\s*+\}|\])")
# Sound values that are neither objects nor lists, as elements of a list: each with what shows that
# it is whole, a comma or the bracket behind it.
_VALUE = (
    rb'(?:"[^"\\]{0,4096}+(?:\\.[^"\\]{0,4096}+){0,256}+"'
    rb"|-?+(?:[0-9]++(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+|NaN|Infinity)|true|false)"
    rb"(?=\s*+[,\]])"
)
_VALUES = re.compile(_VALUE + rb"(?:\s*+,\s*+" + _VALUE + rb")*+", re.DOTALL)
_ONE_VALUE = re.compile(_VALUE, re.DOTALL)
# What follows the events: another key, or the end of the object and of the file, behind which room
# that was kept for it and never written is zero.
_BEHIND_LIST = rb"\s*+(?:,\s*+" + _KEY + rb"|\}?[\s\0]*+\Z)"
# The end of the events behind the last of them.
_LIST_END = re.compile(
    rb"(?P<object>" + _OBJECT + rb')|\}[^{}\[\]"]{0,64}+\](?P<behind>)' + _BEHIND_LIST
)
_BEHIND = re.compile(_BEHIND_LIST)
# Brackets outside strings, and a string that has no end.
_BRACKETS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(?P<bracket>[{}\[\]"])', re.DOTALL)
_PARTNERS = {b"]": b"[", b"}": b"{"}
# Each bracket takes a step of Python.
_MOST_LAST_BYTES = 256 << 10
_LAST_BRACE = re.compile(rb"\}\s*+\Z")


class _Probe(msgspec.Struct, gc=False):
    ph: str


_PROBE = msgspec.json.Decoder(_Probe)


def is_event(text: Buffer, start: int, end: int) -> bool:
    """Whether the text is one whole JSON object with a phase, as only trace events have it."""
    try:
        _PROBE.decode(memoryview(text)[start:end])
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def has_phase(text: Buffer, start: int, end: int) -> bool:
    """Whether the text, decodable or not, says a phase."""
    return _PHASE.search(text, start, end) is not None


MOST_EVENTS = 1 << 17
"""Events of one block, however short: a struct takes a hundred bytes where `{}` takes two."""

# How much of the end of a block is searched for a boundary, at first and then.
_CUT_WINDOWS = (4 << 10, 64 << 10, 1 << 20)
# How many boundaries are tried there.
_MOST_CUTS = 4_000
# How many objects may begin in an event before its phase: arguments that stand first.
_MOST_OPENINGS = 16


def last_event_end(text: Buffer, start: int, end: int) -> int | None:
    """The position of the comma after the last whole event of `text[start:end]`, or None where
    none is found near the end.

    The comma counts when it ends an object with a phase that follows another such comma (or
    `start`): commas inside strings and between objects inside an event do not pass. This only
    chooses the cut; that it was right is proved by decoding the block, as a cut inside a string
    or an inner list leaves it open.
    """
    for size in _CUT_WINDOWS:
        low = max(start, end - size)
        if not has_phase(text, low, end):
            continue
        marks = [(match.start() + 1, match.end()) for match in _COMMA.finditer(text, low, end)]
        if low == start:
            marks.insert(0, (start, end_of(COMMAS, text, start, end)))
        for (_, before), (after, _) in zip(
            marks[-2::-1][:_MOST_CUTS], marks[:0:-1][:_MOST_CUTS], strict=True
        ):
            if is_event(text, before, after):
                return text.index(b",", after)
        if low == start:
            break
    return None


def last_object_end(text: Buffer, start: int, end: int) -> int | None:
    """The same for objects of any kind: many have no phase where the events are of another kind."""
    for size in _CUT_WINDOWS:
        marks = deque(_COMMA.finditer(text, max(start, end - size), end), maxlen=1)
        if marks:
            return text.index(b",", marks[0].start())
    return None


def block_end(text: Buffer, start: int, end: int, *, any_object: bool) -> int | None:
    """Where to cut a block of at most MOST_EVENTS events that begins at `start`, or None.

    With `any_object`, one without a phase counts as an event where none with a phase is near, in a
    block too long to be a piece of a damaged event.
    """
    end = dense_end(text, start, end, MOST_EVENTS)
    cut = last_event_end(text, start, end)
    if cut is None and any_object and end - start >= _COUNTED:
        return last_object_end(text, start, end)
    return cut


# numpy counts a byte five times as fast as `bytes.count` does.
_COUNTED = 64 << 10
_BRACE = ord("{")


def dense_end(text: Buffer, start: int, end: int, most: int) -> int:
    """Up to where `text[start:end]` opens at most `most` braces, so holds no more objects."""
    count = 0
    whole = np.frombuffer(text, np.uint8)
    is_brace = np.empty(_COUNTED, np.bool_)
    for low in range(start, end, _COUNTED):
        part = whole[low : min(low + _COUNTED, end)]
        count += int(np.count_nonzero(np.equal(part, _BRACE, out=is_brace[: len(part)])))
        if count > most:
            return max(low, start + most)
    return end


# A number of µs with decimals that a double cannot hold to the nanosecond: from 8.7e12 on, just
# below 2**43 (see timestamps.EXACT_FLOAT_US).
_FINE_TIME = re.compile(rb'"ts"\s*+:\s*+(?:\d{14,}+|9\d{12}|8[789]\d{11})\.')


def has_fine_time(text: Buffer, start: int, end: int) -> bool:
    """Whether a `ts` is a number that a float would round."""
    return _FINE_TIME.search(text, start, end) is not None


def boundary_after(text: Buffer, start: int, end: int) -> int | None:
    """The end of the nearest closing brace that may end an object which begins at `start`."""
    boundary = _BOUNDARY.search(text, start, end)
    return boundary.start() + 1 if boundary else None


def closing_brace(text: Buffer, start: int, end: int) -> int | None:
    """Where the object at `start` ends by its brackets, or None if it does not before `end`."""
    closed = Lexer().run(text, start, end)
    return closed if closed >= 0 else None


def next_clean_event(text: Buffer, start: int, end: int) -> int | None:
    """Where the first event of `text[start:end]` begins that decodes up to its next boundary."""
    for opening in _OBJECT_START.finditer(text, start, end):
        after = boundary_after(text, opening.start(), end)
        if after is None:
            return None
        if is_event(text, opening.start(), after):
            return opening.start()
    return None


def ends_with_event(text: Buffer, start: int, end: int) -> bool:
    """Whether the last event that begins in `text[start:end]` is sound and ends where that does.

    Behind it a boundary may follow, so `next_clean_event` does not see it.
    """
    phases = deque(_PHASE.finditer(text, start, end), maxlen=1)
    if not phases:
        return False
    openings = deque(_OBJECT_START.finditer(text, start, phases[0].end()), maxlen=_MOST_OPENINGS)
    return any(is_event(text, opening.start(), end) for opening in openings)


def starts_top_level_key(text: Buffer, start: int, end: int) -> bool:
    """Whether a key comes next that no event has."""
    key = _TOP_LEVEL_KEY.match(text, start, end)
    return key is not None and key["key"] not in _EVENT_KEYS


def other_values(text: Buffer, start: int, end: int) -> tuple[int, int]:
    """How many values stand at `start`, one behind the other, that are neither objects nor lists,
    and where the last of them ends.
    """
    found = _VALUES.match(text, start, end)
    if found is None:
        return 0, start
    stop, count = found.end(), 0
    if b'"' not in found[0]:
        return found[0].count(b",") + 1, stop  # millions of numbers
    for value in _ONE_VALUE.finditer(text, start, end):
        if value.end() > stop:
            break
        count += 1
    return count, stop


def is_last_brace(text: Buffer, start: int, end: int) -> bool:
    """Whether nothing but a closing brace is left."""
    return _LAST_BRACE.match(text, start, end) is not None


def ends_of_lost(text: Buffer, start: int, end: int, *, at_end: bool) -> Iterator[tuple[int, bool]]:
    """Where lost text may end: at opening braces of objects (False), or behind a bracket that
    closes the list of events (True). `at_end` tells that no text follows.
    """
    for found in _LIST_END.finditer(text, start, end):
        if found["object"] is not None:
            yield found.start(), False
        elif found["key"] is None:
            if at_end:
                yield found.start("behind"), True
        elif found["key"] not in _EVENT_KEYS:
            yield found.start("behind"), True


def end_without_partner(text: Buffer, start: int, end: int) -> int | None:
    """Where the list of events ends by a bracket that closes no list in `text[start:end]`, or None.

    The text is the last of its file and lost. One that was only cut off holds no such bracket; an
    event that lost its own closing brace is followed by one. In a very long text none is looked
    for.
    """
    if end - start > _MOST_LAST_BYTES:
        return None
    open_ones = []
    for found in _BRACKETS.finditer(text, start, end):
        bracket = found["bracket"]
        if bracket is None:
            continue
        if bracket == b'"':
            return None
        if bracket not in _PARTNERS:
            open_ones.append(bracket)
        elif open_ones and open_ones[-1] == _PARTNERS[bracket]:
            open_ones.pop()
        elif bracket == b"]":
            behind = _BEHIND.match(text, found.end(), end)
            if behind is not None and behind["key"] not in _EVENT_KEYS:
                return found.end()
    return None
