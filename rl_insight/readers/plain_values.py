"""Values from a file nobody checked, as Python's own kinds of values and numpy arrays."""

from collections.abc import Callable

import numpy as np

from rl_insight.errors import ReadError
from rl_insight.readers.numpy_objects import Named, PendingArray

BYTES_PER_VALUE = 64
"""What Python's smallest objects take, by and large: how many values fit into a limit of bytes."""

_DEEPEST = 64
_AS_THEY_ARE = frozenset({type(None), bool, int, float, str, bytes})


def _unchanged(value: object) -> object:
    return value


def plain(value: object, most: int, convert: Callable[[object], object] = _unchanged) -> object:
    """`value` in lists, tuples and dictionaries of its own, with `most` members in all.

    `convert` may first make other values of those that it knows.

    A file can name one list many times, and that again, until the whole is larger than any memory:
    each place counts. Raises ReadError when there are more, when it is deeper than 64 levels (or
    holds itself), and for values of other kinds.
    """
    return _Walk(most, convert).value(value, 0)


class _Walk:
    def __init__(self, most: int, convert: Callable[[object], object]) -> None:
        self._convert = convert
        self._most = most
        self._left = most

    def value(self, value: object, depth: int) -> object:
        self._left -= 1
        if self._left < 0:
            raise ReadError(f"it holds more than {self._most} values")
        if depth > _DEEPEST:
            raise ReadError(f"its values are nested deeper than {_DEEPEST} levels")
        value = self._convert(value)
        if type(value) in _AS_THEY_ARE or isinstance(value, np.ndarray):
            return value
        deeper = depth + 1
        if isinstance(value, list):
            return [self.value(member, deeper) for member in value]
        if isinstance(value, tuple):
            return tuple(self.value(member, deeper) for member in value)
        if isinstance(value, dict):
            return {
                self.value(key, deeper): self.value(member, deeper) for key, member in value.items()
            }
        if isinstance(value, PendingArray) and value.value is not None:
            return value.value
        if isinstance(value, Named):
            return str(value)
        raise ReadError(
            "it holds something else than numbers, text, lists, dictionaries and tensors"
        )
