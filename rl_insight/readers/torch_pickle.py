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

_DAMAGED = "its pickle is damaged"


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

    __slots__ = ("_at", "_marks", "_memo", "_objects", "_raw", "_stack")

    def __init__(self, raw: bytes, objects: Objects) -> None:
        self._raw = raw
        self._at = 0
        self._objects = objects
        self._stack: list[object] = []
        self._marks: list[int] = []
        self._memo: dict[int, object] = {}

    def run(self, most_steps: int) -> object:
        """The value of the pickle. Raises ReadError when it is damaged, too long or refused."""
        instructions = _INSTRUCTIONS
        raw = self._raw
        try:
            if raw[:1] != b"\x80" or raw[1] not in _PROTOCOLS:
                raise ReadError("its pickle is of a protocol that torch does not write")
            for _ in range(most_steps):
                code = raw[self._at]
                self._at += 1
                if code == _STOP:
                    (value,) = self._stack
                    return value
                instructions[code](self)
        except (LookupError, ValueError, TypeError, struct.error) as error:
            raise ReadError(f"{_DAMAGED} at byte {self._at}") from error
        raise ReadError(f"its pickle has more than {most_steps} instructions")

    def _take(self, size: int) -> bytes:
        start = self._at
        self._at = end = start + size
        if end > len(self._raw):
            raise ReadError(f"{_DAMAGED}: it ends in the middle")
        return self._raw[start:end]

    def _number(self, form: struct.Struct) -> int:
        (value,) = form.unpack_from(self._raw, self._at)
        self._at += form.size
        return int(value)

    def _byte(self) -> int:
        value = self._raw[self._at]
        self._at += 1
        return value

    def _line(self) -> bytes:
        start = self._at
        end = self._raw.index(b"\n", start)
        self._at = end + 1
        return self._raw[start:end]

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

    def _tuple(self, size: int) -> None:
        stack = self._stack
        if len(stack) - (self._marks[-1] if self._marks else 0) < size:
            raise IndexError
        stack[-size:] = [tuple(stack[-size:])]

    # One method for each instruction, under its name in pickletools.

    def _proto(self) -> None:
        if self._byte() not in _PROTOCOLS:
            raise ValueError

    def _frame(self) -> None:
        self._at += 8

    def _mark(self) -> None:
        self._marks.append(len(self._stack))

    def _none(self) -> None:
        self._stack.append(None)

    def _newtrue(self) -> None:
        self._stack.append(True)

    def _newfalse(self) -> None:
        self._stack.append(False)

    def _binint1(self) -> None:
        self._stack.append(self._byte())

    def _binint2(self) -> None:
        self._stack.append(self._number(_SHORT))

    def _binint(self) -> None:
        self._stack.append(self._number(_INT))

    def _long1(self) -> None:
        self._stack.append(int.from_bytes(self._take(self._byte()), "little", signed=True))

    def _long4(self) -> None:
        raise ReadError("its pickle has a number of more than 255 bytes")

    def _binfloat(self) -> None:
        (value,) = _FLOAT.unpack(self._take(8))
        self._stack.append(value)

    def _text(self, size: int) -> None:
        self._stack.append(self._take(size).decode("utf-8"))

    def _short_binunicode(self) -> None:
        self._text(self._byte())

    def _binunicode(self) -> None:
        self._text(self._number(_LONG))

    def _binunicode8(self) -> None:
        self._text(self._number(_SIZE))

    def _short_binbytes(self) -> None:
        self._stack.append(self._take(self._byte()))

    def _binbytes(self) -> None:
        self._stack.append(self._take(self._number(_LONG)))

    def _binbytes8(self) -> None:
        self._stack.append(self._take(self._number(_SIZE)))

    def _empty_tuple(self) -> None:
        self._stack.append(())

    def _tuple1(self) -> None:
        self._tuple(1)

    def _tuple2(self) -> None:
        self._tuple(2)

    def _tuple3(self) -> None:
        self._tuple(3)

    def _marked_tuple(self) -> None:
        self._stack.append(tuple(self._since_mark()))

    def _empty_list(self) -> None:
        self._stack.append([])

    def _append(self) -> None:
        self._extend([self._pop()])

    def _appends(self) -> None:
        self._extend(self._since_mark())

    def _extend(self, values: list[object]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise TypeError
        target.extend(values)

    def _empty_dict(self) -> None:
        self._stack.append({})

    def _setitem(self) -> None:
        value = self._pop()
        self._update([self._pop(), value])

    def _setitems(self) -> None:
        self._update(self._since_mark())

    def _update(self, items: list[object]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise TypeError
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, _KEYS):
                raise ReadError("it holds a dictionary that is keyed by something else than text")
            target[key] = value

    def _binput(self) -> None:
        self._memo[self._byte()] = self._stack[-1]

    def _long_binput(self) -> None:
        self._memo[self._number(_LONG)] = self._stack[-1]

    def _memoize(self) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _binget(self) -> None:
        self._stack.append(self._memo[self._byte()])

    def _long_binget(self) -> None:
        self._stack.append(self._memo[self._number(_LONG)])

    def _global(self) -> None:
        start = self._at
        self._line()
        self._line()
        self._stack.append(self._objects.named(self._raw[start : self._at - 1]))

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise TypeError
        self._stack.append(self._objects.named(f"{module}\n{name}".encode()))

    def _reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        if not isinstance(arguments, tuple):
            raise TypeError
        self._stack.append(self._objects.called(function, arguments))

    def _build(self) -> None:
        state = self._pop()
        self._objects.set_state(self._stack[-1], state)

    def _binpersid(self) -> None:
        self._stack.append(self._objects.stored(self._pop()))

    def _unknown(self) -> None:
        code = self._raw[self._at - 1]
        raise NotKnownError(f"its pickle uses an instruction (0x{code:02x}) that is not read")


_STOP = ord(".")
_METHODS: dict[int, Callable[[Machine], None]] = {
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
    ord("t"): Machine._marked_tuple,
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
}
_INSTRUCTIONS = [_METHODS.get(code, Machine._unknown) for code in range(256)]
