"""Values in Thrift's compact protocol, one after the other, of bytes that nobody checked.

Format: Apache Thrift, doc/specs/thrift-compact-protocol.md. Every method raises IndexError where
the bytes end first or make no value.
"""

from collections.abc import Iterator
from typing import Final

TRUE: Final = 1
FALSE: Final = 2
I16: Final = 4
I32: Final = 5
I64: Final = 6
BINARY: Final = 8
LIST: Final = 9
STRUCT: Final = 12

_BYTE, _DOUBLE, _SET = 3, 7, 10
_SIZES = {TRUE: 0, FALSE: 0, _BYTE: 1, _DOUBLE: 8}
_DEEPEST = 10


class Compact:
    """Goes through `raw`; `at` is where the next value begins."""

    __slots__ = ("_raw", "at")

    def __init__(self, raw: bytes, at: int = 0) -> None:
        self._raw = raw
        self.at = at

    def fields(self) -> Iterator[tuple[int, int]]:
        """The fields of a struct, by number and type; each value is read or skipped meanwhile."""
        field = 0
        while head := self._raw[self.at]:
            self.at += 1
            step = head >> 4
            field = field + step if step else self.number()
            yield field, head & 0xF
        self.at += 1

    def items(self) -> tuple[int, int]:
        """How many items a list has, and of which type; they follow."""
        head = self._raw[self.at]
        self.at += 1
        count = head >> 4
        return self._varint() if count == 0xF else count, head & 0xF

    def number(self) -> int:
        """A whole number of 16 to 64 bits."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        """Bytes, which may be text."""
        length = self._varint()
        self.at += length
        if self.at > len(self._raw):
            raise IndexError(self.at)
        return self._raw[self.at - length : self.at]

    def skip(self, kind: int, depth: int = 0) -> None:
        """Go behind a value of that type."""
        if kind in _SIZES:
            self.at += _SIZES[kind]
        elif I16 <= kind <= I64:
            self._varint()
        elif kind == BINARY:
            length = self._varint()
            self.at += length
        elif depth == _DEEPEST:
            raise IndexError(kind)
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (LIST, _SET):
            count, inner = self.items()
            for _ in range(count):
                # The items of a list of truth values have a byte each.
                self.skip(_BYTE if inner in (TRUE, FALSE) else inner, depth + 1)
                if self.at > len(self._raw):
                    raise IndexError(self.at)
        else:
            raise IndexError(kind)

    def _varint(self) -> int:
        """A number of seven bits a byte, the lowest first."""
        raw, at = self._raw, self.at
        value = raw[at] & 0x7F
        shift = 7
        while raw[at] >= 0x80:
            at += 1
            value |= (raw[at] & 0x7F) << shift
            shift += 7
            if shift > 70:
                raise IndexError(at)
        self.at = at + 1
        return value
