"""From what a file of a group list holds to a vector of whole numbers, or to why there is none."""

from dataclasses import dataclass

import numpy as np

MOST_EXPERTS = 1 << 20
# Far above what one call can hold, and low enough for sums over all experts to fit 64 bits.
_MOST_TOKENS = 1 << 40

NO_VECTOR = "no_vector"
IMPOSSIBLE = "impossible_load"


class NotALoadError(Exception):
    """The value is no expert load; `code` is NO_VECTOR or IMPOSSIBLE, the text a half sentence."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True)
class Vector:
    """`numbers` are int64, one for each expert; with `pairs` expert and tokens in turn."""

    numbers: np.ndarray
    pairs: bool = False

    @property
    def experts(self) -> int:
        """How many experts it speaks of."""
        return len(self.numbers) // 2 if self.pairs else len(self.numbers)


def vector(value: object) -> Vector:
    """The group list in `value`: an array, or a list of Python numbers, of shape [E] or [E, 2].

    E is the number of experts, at most MOST_EXPERTS. Floats count when they are whole numbers.
    Raises NotALoadError for all else, and for loads that cannot be.
    """
    if value is None:
        raise NotALoadError(NO_VECTOR, "it holds None: the call was given no group list")
    array = _array(value)
    if array.ndim == 0:
        raise NotALoadError(NO_VECTOR, "it holds a single number, no vector")
    if array.size == 0:
        raise NotALoadError(NO_VECTOR, "its vector is empty")
    pairs = array.ndim == 2 and array.shape[1] == 2
    if array.ndim > 1 and not pairs:
        shape = " x ".join(map(str, array.shape))
        raise NotALoadError(IMPOSSIBLE, f"its tensor of {shape} is no group list")
    if len(array) > MOST_EXPERTS:
        raise NotALoadError(
            IMPOSSIBLE, f"it has {len(array)} experts, and {MOST_EXPERTS} is the limit"
        )
    return Vector(_whole(array.reshape(-1)), pairs)


def _array(value: object) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, bool | int | float):
        raise NotALoadError(NO_VECTOR, "it holds a single number, no vector")
    if not isinstance(value, list | tuple):
        raise NotALoadError(IMPOSSIBLE, "it holds neither a tensor nor a list of numbers")
    if len(value) > MOST_EXPERTS:
        raise NotALoadError(
            IMPOSSIBLE, f"it has {len(value)} experts, and {MOST_EXPERTS} is the limit"
        )
    try:
        # Without a given type numpy tells what is in there.
        array = np.array(value if value else [], dtype=None if value else np.int64)
    except ValueError as error:
        raise NotALoadError(IMPOSSIBLE, "its list is no vector") from error
    if array.dtype.kind not in "iuf":
        raise NotALoadError(IMPOSSIBLE, "its list holds something else than numbers")
    return array


def _whole(flat: np.ndarray) -> np.ndarray:
    """`flat` as int64; raises NotALoadError where it cannot be a number of tokens."""
    if flat.dtype.kind not in "iuf":
        raise NotALoadError(IMPOSSIBLE, f"it holds {flat.dtype}, no numbers")
    if flat.dtype == np.int64:
        # As unsigned numbers those below 0 are huge: one look at them all tells both.
        possible = flat.view(np.uint64).max() <= _MOST_TOKENS
    else:
        # Of NaN both are NaN, which compares as false.
        possible = flat.min() >= 0 and flat.max() <= _MOST_TOKENS
    if not possible:
        odd = flat[~((flat >= 0) & (flat <= _MOST_TOKENS))][0]
        raise NotALoadError(IMPOSSIBLE, f"{odd} cannot be a number of tokens")
    if flat.dtype.kind == "f":
        broken = flat[flat != np.floor(flat)]
        if len(broken):
            raise NotALoadError(IMPOSSIBLE, f"{broken[0]} cannot be a number of tokens")
    return flat.astype(np.int64, copy=False)
