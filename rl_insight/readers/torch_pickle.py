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
from rl_insight.readers.pickle_values import ValueStack

_PROTOCOLS = range(2, 6)


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


class Machine(ValueStack):
    """One run over the pickle `raw`, of `most_steps` instructions at most.

    Each makes one small object at most, besides texts and bytes that stand in `raw`: so their
    number bounds time and memory.
    """

    __slots__ = ("_objects",)

    def __init__(self, raw: bytes, objects: Objects) -> None:
        super().__init__(raw)
        self._objects = objects

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

    def _proto(self, at: int) -> int:
        if self._raw[at] not in _PROTOCOLS:
            raise ValueError
        return at + 1

    def _frame(self, at: int) -> int:
        return at + 8

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
