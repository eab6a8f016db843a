"""Whole JSON objects inside a line that is none: what writers left that shared a file.

Two processes that append to one file put a line into the middle of another's, or two behind each
other; other programs put the rows of a list into lines, with brackets and commas around them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

# An object whose values are no objects. What was matched is never given back: else a line of
# nothing but quotes takes exponential time.
_FLAT = re.compile(rb'\{(?:[^{}"]|"(?:[^"\\\n]|\\.)*+")*+\}')
# How many braces may begin nothing: each may cost a look at the rest of the line.
_MOST_TRIES = 64
# What stands around the rows of a list.
AROUND = b" \t\r\n,[]"


Row = TypeVar("Row")


class Piece(NamedTuple, Generic[Row]):
    """A row of a line, and where it began and stopped."""

    start: int
    stop: int
    row: Row


class Rest(NamedTuple):
    """What is left of a line without its pieces: its text, and where that begins."""

    text: bytes
    at: int


def pieces(line: bytes, decode: Callable[[bytes], Row | None]) -> Iterator[Piece[Row]]:
    """What `decode` makes of the flat objects in `line`, from left to right; None: of none."""
    at, failed = line.find(b"{"), 0
    while at >= 0 and failed < _MOST_TRIES:
        found = _FLAT.match(line, at)
        row = None if found is None else decode(found[0])
        if found is None or row is None:
            # A cut text may have taken the quote that opens one behind it for its own end.
            failed += 1
            at = line.find(b"{", at + 1)
        else:
            yield Piece(at, found.end(), row)
            at = line.find(b"{", found.end())


def rest(line: bytes, taken: Sequence[Piece[Any]]) -> Rest:
    """`line` without what was `taken` from it, and without what stands around rows of a list."""
    bounds = [0, *(place for piece in taken for place in piece[:2]), len(line)]
    parts = [(at, line[at:stop]) for at, stop in zip(bounds[::2], bounds[1::2], strict=True)]
    text = b"".join(part for _, part in parts).strip(AROUND)
    for at, part in parts:
        behind = part.lstrip(AROUND)
        if behind:
            return Rest(text, at + len(part) - len(behind))
    return Rest(text, len(line))
