"""The pickle instructions for plain values: numbers, text, tuples, lists, dictionaries, the memo.

Their meaning: the standard library's `pickletools`. Each makes one small object at most, besides
texts and bytes that stand in the pickle.
"""

import struct

from rl_insight.errors import ReadError

_SHORT = struct.Struct("<H")
_INT = struct.Struct("<i")
_LONG = struct.Struct("<I")
_SIZE = struct.Struct("<Q")
_FLOAT = struct.Struct(">d")

# By which dictionaries may be keyed: the hash of tuples inside tuples takes for ever.
_KEYS = (str, int, float, bool, type(None))


class ValueStack:
    """The stack and the memo of a run over the pickle `raw`, and what works on nothing else.

    There is one method for each instruction, under its name in pickletools: from the place behind
    its code to the place of the next. On damage they raise LookupError, ValueError, TypeError or
    struct.error.
    """

    __slots__ = ("_marks", "_memo", "_raw", "_stack")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._stack: list[object] = []
        self._marks: list[int] = []
        self._memo: dict[int, object] = {}

    def _since_mark(self) -> list[object]:
        mark = self._marks.pop()
        values = self._stack[mark:]
        del self._stack[mark:]
        return values

    def _pop(self) -> object:
        # What lies below a mark belongs to somebody else.
        if self._marks and len(self._stack) <= self._marks[-1]:
            raise IndexError
        return self._stack.pop()

    def _text(self, start: int, size: int) -> int:
        end = start + size
        self._stack.append(str(self._bytes(start, end), "utf-8"))
        return end

    def _data(self, start: int, size: int) -> int:
        end = start + size
        self._stack.append(self._bytes(start, end))
        return end

    def _bytes(self, start: int, end: int) -> bytes:
        if end > len(self._raw):
            raise IndexError
        return self._raw[start:end]

    def _mark(self, at: int) -> int:
        self._marks.append(len(self._stack))
        return at

    def _none(self, at: int) -> int:
        self._stack.append(None)
        return at

    def _newtrue(self, at: int) -> int:
        self._stack.append(True)
        return at

    def _newfalse(self, at: int) -> int:
        self._stack.append(False)
        return at

    def _binint1(self, at: int) -> int:
        self._stack.append(self._raw[at])
        return at + 1

    def _binint2(self, at: int) -> int:
        self._stack.extend(_SHORT.unpack_from(self._raw, at))
        return at + 2

    def _binint(self, at: int) -> int:
        self._stack.extend(_INT.unpack_from(self._raw, at))
        return at + 4

    def _long1(self, at: int) -> int:
        end = at + 1 + self._raw[at]
        self._stack.append(int.from_bytes(self._bytes(at + 1, end), "little", signed=True))
        return end

    def _long4(self, at: int) -> int:
        raise ReadError("its pickle has a number of more than 255 bytes")

    def _binfloat(self, at: int) -> int:
        self._stack.extend(_FLOAT.unpack_from(self._raw, at))
        return at + 8

    def _short_binunicode(self, at: int) -> int:
        return self._text(at + 1, self._raw[at])

    def _binunicode(self, at: int) -> int:
        return self._text(at + 4, *_LONG.unpack_from(self._raw, at))

    def _binunicode8(self, at: int) -> int:
        return self._text(at + 8, *_SIZE.unpack_from(self._raw, at))

    def _short_binbytes(self, at: int) -> int:
        return self._data(at + 1, self._raw[at])

    def _binbytes(self, at: int) -> int:
        return self._data(at + 4, *_LONG.unpack_from(self._raw, at))

    def _binbytes8(self, at: int) -> int:
        return self._data(at + 8, *_SIZE.unpack_from(self._raw, at))

    def _empty_tuple(self, at: int) -> int:
        self._stack.append(())
        return at

    def _tuple1(self, at: int) -> int:
        self._stack.append((self._pop(),))
        return at

    def _tuple2(self, at: int) -> int:
        second = self._pop()
        self._stack.append((self._pop(), second))
        return at

    def _tuple3(self, at: int) -> int:
        third, second = self._pop(), self._pop()
        self._stack.append((self._pop(), second, third))
        return at

    def _tuple(self, at: int) -> int:
        self._stack.append(tuple(self._since_mark()))
        return at

    def _empty_list(self, at: int) -> int:
        self._stack.append([])
        return at

    def _append(self, at: int) -> int:
        return self._extend([self._pop()], at)

    def _appends(self, at: int) -> int:
        return self._extend(self._since_mark(), at)

    def _extend(self, values: list[object], at: int) -> int:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise TypeError
        target.extend(values)
        return at

    def _empty_dict(self, at: int) -> int:
        self._stack.append({})
        return at

    def _setitem(self, at: int) -> int:
        value = self._pop()
        return self._update([self._pop(), value], at)

    def _setitems(self, at: int) -> int:
        return self._update(self._since_mark(), at)

    def _update(self, items: list[object], at: int) -> int:
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise TypeError
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, _KEYS):
                raise ReadError("it holds a dictionary that is keyed by something else than text")
            target[key] = value
        return at

    def _binput(self, at: int) -> int:
        self._memo[self._raw[at]] = self._stack[-1]
        return at + 1

    def _long_binput(self, at: int) -> int:
        self._memo[_LONG.unpack_from(self._raw, at)[0]] = self._stack[-1]
        return at + 4

    def _memoize(self, at: int) -> int:
        self._memo[len(self._memo)] = self._stack[-1]
        return at

    def _binget(self, at: int) -> int:
        self._stack.append(self._memo[self._raw[at]])
        return at + 1

    def _long_binget(self, at: int) -> int:
        self._stack.append(self._memo[_LONG.unpack_from(self._raw, at)[0]])
        return at + 4
