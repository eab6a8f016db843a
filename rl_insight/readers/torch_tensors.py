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
    """A kind of number: torch's name, numpy's code of its bytes, and of what is made of it."""

    name: str
    stored: str
    result: str

    @property
    def size(self) -> int:
        """Bytes of one number in the file."""
        return int(self.stored[1:])


KINDS = {
    kind.name: kind
    for kind in (
        NumberKind("bool", "u1", "?"),
        *(NumberKind(f"int{8 * size}", f"i{size}", f"i{size}") for size in (1, 2, 4, 8)),
        *(NumberKind(f"uint{8 * size}", f"u{size}", f"u{size}") for size in (1, 2, 4, 8)),
        # In half the bits, a sum of counts soon overflows or stands still.
        NumberKind("bfloat16", "u2", "f4"),
        NumberKind("float16", "f2", "f4"),
        NumberKind("float32", "f4", "f4"),
        NumberKind("float64", "f8", "f8"),
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
    size: Sequence[object],
    stride: Sequence[object] | None = None,
    offset: object = 0,
    order: str = "<",
) -> Array:
    """A contiguous array of its own, in this machine's byte order, of the numbers in `data`.

    `size`, `stride` and `offset` count numbers, not bytes; without `stride` the last dimension
    changes first. `order` is the byte order of `data`, `<` or `>`. Half-precision numbers come as
    float32, which holds each of them. Raises ReadError for numbers outside of `data`.
    """
    sizes = _counts(size)
    count = math.prod(sizes)
    # A dimension of 0 makes the others harmless to memory, but not to numpy.
    budget.take(math.prod(filter(None, sizes)) * np.dtype(kind.result).itemsize)
    strides = _packed(sizes) if stride is None else _counts(stride)
    (start,) = _counts([offset])
    if len(strides) != len(sizes):
        raise ReadError("a tensor has another number of strides than of dimensions")
    last = start + sum((length - 1) * step for length, step in zip(sizes, strides, strict=True))
    if not count:
        return np.empty(sizes, kind.result)
    if (last + 1) * kind.size > len(data):
        raise ReadError("a tensor reaches beyond the end of its data")
    view: Array = np.ndarray(
        sizes,
        order + kind.stored,
        data,
        start * kind.size,
        # Where there is but one, the step to the next is any number.
        tuple(
            step * kind.size if length > 1 else 0
            for length, step in zip(sizes, strides, strict=True)
        ),
    )
    if kind.name == "bfloat16":
        # The upper half of a float32.
        upper = np.array(view, "u4", order="C", ndmin=1) << np.uint32(16)
        return upper.view("f4").reshape(sizes)
    return np.array(view, kind.result, order="C")


def _counts(values: Sequence[object]) -> tuple[int, ...]:
    if len(values) > _MOST_DIMENSIONS:
        raise ReadError(f"a tensor has more than {_MOST_DIMENSIONS} dimensions")
    counts = tuple(value for value in values if type(value) is int and value >= 0)
    if len(counts) != len(values):
        raise ReadError("a tensor has a size, stride or offset that is no positive number")
    return counts


def _packed(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(sizes[at + 1 :]) for at in range(len(sizes)))
