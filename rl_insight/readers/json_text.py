"""Where JSON values begin and end, found with few and fast regular expressions.

No byte is looked at from Python. The quantifiers are possessive (`*+`): they never go back, so
that time and memory stay linear whatever the text (plain ones took 1.8 GB on 32 MB of strings).
"""

import re

import msgspec

Buffer = bytes | bytearray

# Text without brackets outside strings, with whole strings.
_PLAIN = re.compile(rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+', re.DOTALL)
_REST_OF_STRING = re.compile(rb"[^\"\\]*+(?:\\.[^\"\\]*+)*+", re.DOTALL)

# Between two events of a healthy file.
_COMMA = re.compile(rb"\}\s*+,\s*+(?=\{)")

_KEY = rb'"([^"\\]{0,256}+)"\s*+:'

# "}", then what may stand between two events of a damaged file, then the next object or a closing
# bracket. A quote inside a string is escaped, so that `}, {"key":` never stands inside a string:
# it lies between two events or between two objects of a list inside one.
BOUNDARY = re.compile(
    rb"\}(?:[\s,\[]|null)*+(?:(?P<next>\{)\s*+(?:" + _KEY + rb"|\})|\])",
)
NEXT_OBJECT = re.compile(rb"\}(?:[\s,\[]|null)*+(?P<next>\{)\s*+(?:" + _KEY + rb"|\})")
OBJECT_START = re.compile(rb"\{\s*+" + _KEY)
KEY = re.compile(_KEY)
SEPARATORS = re.compile(rb"(?:[\s,]|null)*+")
COMMAS = re.compile(rb"[\s,]*+")
SPACE = re.compile(rb"\s*+")

_OPENING = frozenset(b"{[")
_QUOTE = ord('"')


class Lexer:
    """Finds the end of one JSON value that starts with a brace, a bracket or a quote.

    It can be given the text in pieces, and stays right about strings and depth between them.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.in_string = False
        self.position = 0

    def run(self, text: Buffer, start: int, end: int) -> int:
        """Go on from `start`; returns the end of the value, or -1 when `end` comes first.

        After -1, `position` is where to go on: `end`, or one before it for half an escape.
        """
        position = start
        while True:
            if self.in_string:
                position = end_of(_REST_OF_STRING, text, position, end)
                if position >= end or text[position] != _QUOTE:
                    break
                self.in_string = False
                position += 1
                if self.depth == 0:
                    return position
            if self.depth:
                position = end_of(_PLAIN, text, position, end)
            if position >= end:
                break
            byte = text[position]
            position += 1
            if byte == _QUOTE:
                self.in_string = True
            elif byte in _OPENING:
                self.depth += 1
            else:
                self.depth -= 1
                if self.depth <= 0:
                    return position
        self.position = position
        return -1


def end_of(pattern: re.Pattern[bytes], text: Buffer, start: int, end: int) -> int:
    """Where a pattern that matches everywhere stops."""
    match = pattern.match(text, start, end)
    assert match is not None
    return match.end()


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


# How much of the end of a block is searched for a boundary, at first and then.
_CUT_WINDOWS = (16 << 10, 256 << 10)


def last_event_end(text: Buffer, start: int, end: int) -> int | None:
    """The position of the comma after the last whole event of `text[start:end]`, or None.

    The comma counts when it ends an object with a phase that follows another such comma (or
    `start`): commas inside strings and between objects inside an event do not pass. This only
    chooses the cut; that it was right is proved by decoding the block, as a cut inside a string
    or an inner list leaves it open.
    """
    for size in (*_CUT_WINDOWS, end - start):
        low = max(start, end - size)
        marks = [(match.start() + 1, match.end()) for match in _COMMA.finditer(text, low, end)]
        if low == start:
            marks.insert(0, (start, end_of(COMMAS, text, start, end)))
        for (_, before), (after, _) in zip(marks[-2::-1], marks[:0:-1], strict=True):
            if is_event(text, before, after):
                return text.index(b",", after)
        if low == start:
            return None
    return None
