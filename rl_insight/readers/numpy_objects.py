"""The closed set of numpy's names in a pickle: arrays and scalars of plain numbers.

Numpy pickles an array as an empty one that is given its state afterwards, and a dtype likewise
(`ndarray.__reduce__`, `dtype.__reduce__`). Both stand here for what they will be.
"""

from collections.abc import Callable
from typing import Any, Protocol

from rl_insight.errors import ReadError
from rl_insight.readers.torch_tensors import KINDS, Array, Budget, NumberKind

# Nobody checked of what kind they are.
Arguments = tuple[Any, ...]


class Context(Protocol):
    """What one file's objects have in common."""

    budget: Budget

    def array(
        self,
        data: memoryview | bytes,
        kind: NumberKind,
        size: tuple[int, ...],
        stride: tuple[int, ...] | None = None,
        offset: int = 0,
        order: str | None = None,
    ) -> Array:
        """`torch_tensors.array` within the file's limits, in the file's byte order."""


class Named(str):
    """A name that stands for itself: a class or a constant that is only referred to."""

    __slots__ = ()


class Function:
    """A name that may be called: `give` says what comes of it."""

    __slots__ = ("give",)

    def __init__(self, give: Callable[[Context, Arguments], object]) -> None:
        self.give = give


class PendingArray:
    """An array that gets its state later."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Array | None = None

    def set_state(self, context: Context, state: object) -> None:
        """Take the state of a numpy array: version, shape, dtype, Fortran order, bytes."""
        _, shape, dtype, fortran, data = _tuple(state)
        self.value = _array(context, data, dtype, shape, "F" if fortran is True else "C")


class PendingDtype:
    """A numpy dtype: a kind of number, whose byte order comes with its state."""

    __slots__ = ("kind", "order")

    def __init__(self, kind: NumberKind) -> None:
        self.kind = kind
        self.order = "<"

    def set_state(self, context: Context, state: object) -> None:
        """Take the state of a numpy dtype: version, byte order, and what records have."""
        order = _tuple(state)[1]
        self.order = ">" if isinstance(order, str) and order == ">" else "<"


NDARRAY = Named("numpy.ndarray")

# numpy has no bfloat16; torch's stands in 16 bits of anything.
_CODES = {
    kind.little.str[1:]: kind for kind in KINDS.values() if kind.name not in ("bfloat16", "bool")
}
_CODES["b1"] = KINDS["bool"]


def _tuple(value: object) -> Arguments:
    if not isinstance(value, tuple):
        raise TypeError
    return value


def _reconstruct(context: Context, arguments: Arguments) -> PendingArray:
    if arguments[0] is not NDARRAY:
        raise ReadError("it holds an array of a class that is not read")
    return PendingArray()


def _dtype(context: Context, arguments: Arguments) -> PendingDtype:
    code = arguments[0]
    if not isinstance(code, str) or code not in _CODES:
        # What is no text is not shown: it may be of any size.
        shown = ascii(code[:20]) if isinstance(code, str) else "no text"
        raise ReadError(f"it holds an array of something else than plain numbers ({shown})")
    return PendingDtype(_CODES[code])


def _array(context: Context, data: object, dtype: object, shape: object, order: object) -> Array:
    if not isinstance(dtype, PendingDtype) or not isinstance(data, bytes):
        raise TypeError
    sizes = _tuple(shape)
    if not isinstance(order, str) or order != "F":
        return context.array(data, dtype.kind, sizes, order=dtype.order)
    # The first dimension changes first: the same numbers as the reversed shape, turned round.
    return context.array(data, dtype.kind, sizes[::-1], order=dtype.order).T.copy()


def _frombuffer(context: Context, arguments: Arguments) -> Array:
    data, dtype, shape, order = arguments
    return _array(context, data, dtype, shape, order)


def _scalar(context: Context, arguments: Arguments) -> object:
    dtype, data = arguments
    return _array(context, data, dtype, (), "C").item()


def _encode(context: Context, arguments: Arguments) -> bytes:
    # How bytes are written in protocol 2.
    text, encoding = arguments
    if not isinstance(text, str) or not isinstance(encoding, str) or encoding != "latin1":
        raise TypeError
    # One text can be named many times, and each call makes a copy of it.
    context.budget.take(len(text))
    return text.encode("latin-1")


def _no_bytes(context: Context, arguments: Arguments) -> bytes:
    if arguments:
        raise TypeError
    return b""


def _both(name: bytes, value: object) -> dict[bytes, object]:
    # numpy.core became numpy._core in version 2.
    return {b"numpy.core." + name: value, b"numpy._core." + name: value}


NAMES: dict[bytes, object] = {
    **_both(b"multiarray\n_reconstruct", Function(_reconstruct)),
    **_both(b"multiarray\nscalar", Function(_scalar)),
    **_both(b"numeric\n_frombuffer", Function(_frombuffer)),
    b"numpy\nndarray": NDARRAY,
    b"numpy\ndtype": Function(_dtype),
    b"_codecs\nencode": Function(_encode),
    b"__builtin__\nbytes": Function(_no_bytes),
    b"builtins\nbytes": Function(_no_bytes),
}
"""What `module\\nname` stands for."""
