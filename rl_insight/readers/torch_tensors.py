"""Tensors as torch stores them (numbers in a row, with offset, size and strides), to numpy arrays.

Kinds of numbers are called as torch calls them: `int64`, `bfloat16`. Complex numbers, quantised
numbers and those of 8 bits with a fraction (`float8_*`) count nothing and are not read.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rl_insight.errors import ReadError

Array = NDArray[np.generic]

# numpy's own limit was 32 before version 2.
_MOST_DIMENSIONS = 32

EXACT_INTEGERS = {"bfloat16": 1 << 8, "float16": 1 << 11, "float32": 1 << 24, "float64": 1 << 53}
"""Up to where a kind of number with a fraction still holds each whole number."""


@dataclass(frozen=True, slots=True)
class NumberKind:
    """A kind of number: torch's name, what its bytes are to numpy, and what is made of it."""

    name: str
    little: np.dtype[np.generic]
    big: np.dtype[np.generic]
    result: np.dtype[np.generic]


def _kind(name: str, stored: str, result: str) -> NumberKind:
    return NumberKind(name, np.dtype("<" + stored), np.dtype(">" + stored), np.dtype(result))


KINDS = {
    kind.name: kind
    for kind in (
        _kind("bool", "u1", "?"),
        *(_kind(f"int{8 * size}", f"i{size}", f"i{size}") for size in (1, 2, 4, 8)),
        *(_kind(f"uint{8 * size}", f"u{size}", f"u{size}") for size in (1, 2, 4, 8)),
        # In half the bits, a sum of counts soon overflows or stands still.
        _kind("bfloat16", "u2", "f4"),
        _kind("float16", "f2", "f4"),
        _kind("float32", "f4", "f4"),
        _kind("float64", "f8", "f8"),
    )
}
"""The kinds of numbers that are read, by torch's name."""


class Budget:
    """How many bytes may still be taken, so that a small file cannot ask for a lot of memory."""

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def take(self, size: int) -> None:
        """Raises ReadError when less than `size` bytes are left."""
        self.left -= size
        if self.left < 0:
            raise ReadError(f"its tensors take more than the limit of {self.limit} bytes")


def array(
    data: memoryview | bytes,
    kind: NumberKind,
    budget: Budget,
    size: Sequence[int],
    stride: Sequence[int] | None = None,
    offset: int = 0,
    order: str = "<",
) -> Array:
    """A contiguous array of its own, in this machine's byte order, of the numbers in `data`.

    `size`, `stride` and `offset` count numbers, not bytes; without `stride` the last dimension
    changes first. `order` is the byte order of `data`, `<` or `>`. Half-precision numbers come as
    float32, which holds each of them. Raises ReadError for numbers outside of `data`.
    """
    if len(size) > _MOST_DIMENSIONS:
        raise ReadError(f"a tensor has more than {_MOST_DIMENSIONS} dimensions")
    if stride is None:
        stride = _packed(size)
    elif len(stride) != len(size):
        raise ReadError("a tensor has another number of strides than of dimensions")
    dtype = kind.big if order == ">" else kind.little
    width = dtype.itemsize
    steps = []
    count = taken = 1
    last = _count(offset)
    for length, step in zip(map(_count, size), map(_count, stride), strict=True):
        count *= length
        # A dimension of 0 makes the others harmless to memory, but not to numpy.
        taken *= length or 1
        last += (length - 1) * step
        # Where there is but one number, the step to the next is anything.
        steps.append(step * width if length > 1 else 0)
    budget.take(taken * kind.result.itemsize)
    if not count:
        return np.empty(size, kind.result)
    if (last + 1) * width > len(data):
        raise ReadError("a tensor reaches beyond the end of its data")
    view: Array = np.ndarray(size, dtype, data, offset * width, steps)
    if kind.name == "bfloat16":
        # The upper half of a float32.
        upper = np.array(view, np.uint32, order="C", ndmin=1) << np.uint32(16)
        return upper.view(np.float32).reshape(size)
    return np.array(view, kind.result, order="C")


def _count(value: int) -> int:
    if type(value) is not int or value < 0:
        raise ReadError("a tensor has a size, stride or offset that is no positive number")
    return value


def _packed(size: Sequence[int]) -> list[int]:
    lengths = list(map(_count, size))
    return [math.prod(lengths[at + 1 :]) for at in range(len(lengths))]
