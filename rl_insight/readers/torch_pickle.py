"""The pickle instructions that torch writes, carried out without executing anything.

The unpickler of the standard library imports what a file names and calls it. Here, names are looked
up in a closed set of `Objects`, who decide what a call gives; what is not in it is refused. The
instructions are those that Python's pickler writes in the protocols 2 to 5 for the values that
`torch.save` meets in dumps (their meaning: the standard library's `pickletools`).
"""

import struct
from collections.abc import Callable
from typing import Protocol

from rl_insight.errors import ReadError

_SHORT = struct.Struct("<H")
_INT = struct.Struct("<i")
_LONG = struct.Struct("<I")
_SIZE = struct.Struct("<Q")
_FLOAT = struct.Struct(">d")

_PROTOCOLS = range(2, 6)
# By which dictionaries may be keyed: the hash of tuples inside tuples takes for ever.
_KEYS = (str, int, float, bool, type(None))


class NotKnownError(ReadError):
    """Well-formed, but with content that this reader does not know; torch itself may."""


class Objects(Protocol):
    """What stands behind the names of a pickle."""

    def named(self, name: bytes) -> object:
        """What `module\\nname` stands for; raises ReadError when it is not in the closed set."""

    def called(self, function: object, arguments: tuple[object, ...]) -> object:
        """What `function`, which must come from `named`, gives."""

    def set_state(self, target: object, state: object) -> None:
        """Give `target` its state."""

    def stored(self, reference: object) -> object:
        """The storage that the pickle refers to."""


class Machine:
    """One run over the pickle `raw`, of `most_steps` instructions at most.

    Each instruction makes one small object at most, besides texts and bytes that stand in `raw`:
    so their number bounds time and memory.
    """

    __slots__ = ("_marks", "_memo", "_objects", "_raw", "_stack")

    def __init__(self, raw: bytes, objects: Objects) -> None:
        self._raw = raw
        self._objects = objects
        self._stack: list[object] = []
        self._marks: list[int] = []
        self._memo: dict[int, object] = {}

    def run(self, most_steps: int) -> object:
        """The value of the pickle. Raises ReadError when it is damaged, too long or refused."""
        instructions = _INSTRUCTIONS
        raw = self._raw
        at = 0
        try:
            if raw[:1] != b"\x80" or raw[1] not in _PROTOCOLS:
                raise ReadError("its pickle is of a protocol that torch does not write")
            for _ in range(most_steps):
                code = raw[at]
                if code == _STOP:
                    (value,) = self._stack
                    return value
                at = instructions[code](self, at + 1)
        except (LookupError, ValueError, TypeError, struct.error) as error:
            raise ReadError(f"its pickle is damaged at byte {at}") from error
        raise ReadError(f"its pickle has more than {most_steps} instructions")

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

    # One method for each instruction, under its name in pickletools: from the place behind its code
    # to the place of the next.

    def _proto(self, at: int) -> int:
        if self._raw[at] not in _PROTOCOLS:
            raise ValueError
        return at + 1

    def _frame(self, at: int) -> int:
        return at + 8

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

    def _global(self, at: int) -> int:
        end = self._raw.index(b"\n", self._raw.index(b"\n", at) + 1)
        self._stack.append(self._objects.named(self._raw[at:end]))
        return end + 1

    def _stack_global(self, at: int) -> int:
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise TypeError
        self._stack.append(self._objects.named(f"{module}\n{name}".encode()))
        return at

    def _reduce(self, at: int) -> int:
        arguments, function = self._pop(), self._pop()
        if not isinstance(arguments, tuple):
            raise TypeError
        self._stack.append(self._objects.called(function, arguments))
        return at

    def _build(self, at: int) -> int:
        state = self._pop()
        self._objects.set_state(self._stack[-1], state)
        return at

    def _binpersid(self, at: int) -> int:
        self._stack.append(self._objects.stored(self._pop()))
        return at

    def _instance(self, at: int) -> int:
        raise ReadError("it would make an object of some class: refused, nothing was executed")

    def _unknown(self, at: int) -> int:
        code = self._raw[at - 1]
        raise NotKnownError(f"its pickle uses an instruction (0x{code:02x}) that is not read")


_STOP = ord(".")
_METHODS: dict[int, Callable[[Machine, int], int]] = {
    0x80: Machine._proto,
    0x95: Machine._frame,
    ord("("): Machine._mark,
    ord("N"): Machine._none,
    0x88: Machine._newtrue,
    0x89: Machine._newfalse,
    ord("K"): Machine._binint1,
    ord("M"): Machine._binint2,
    ord("J"): Machine._binint,
    0x8A: Machine._long1,
    0x8B: Machine._long4,
    ord("G"): Machine._binfloat,
    0x8C: Machine._short_binunicode,
    ord("X"): Machine._binunicode,
    0x8D: Machine._binunicode8,
    ord("C"): Machine._short_binbytes,
    ord("B"): Machine._binbytes,
    0x8E: Machine._binbytes8,
    0x96: Machine._binbytes8,  # BYTEARRAY8: what comes of it here is only ever read
    ord(")"): Machine._empty_tuple,
    0x85: Machine._tuple1,
    0x86: Machine._tuple2,
    0x87: Machine._tuple3,
    ord("t"): Machine._tuple,
    ord("]"): Machine._empty_list,
    ord("a"): Machine._append,
    ord("e"): Machine._appends,
    ord("}"): Machine._empty_dict,
    ord("s"): Machine._setitem,
    ord("u"): Machine._setitems,
    ord("q"): Machine._binput,
    ord("r"): Machine._long_binput,
    0x94: Machine._memoize,
    ord("h"): Machine._binget,
    ord("j"): Machine._long_binget,
    ord("c"): Machine._global,
    0x93: Machine._stack_global,
    ord("R"): Machine._reduce,
    ord("b"): Machine._build,
    ord("Q"): Machine._binpersid,
    ord("i"): Machine._instance,
    ord("o"): Machine._instance,
}
_INSTRUCTIONS = [_METHODS.get(code, Machine._unknown) for code in range(256)]
