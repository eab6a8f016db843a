"""Columns of Arrow as numpy arrays and lists, made from Arrow's buffers.

`to_pylist` and `to_numpy` would load pandas where it is installed: a parse job has no use for it.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rl_insight.errors import ReadError
from rl_insight.intervals import IntArray

_LIMIT: Final = float(2**63)


def integers(column: pa.Array, missing: int) -> IntArray:
    """A column of numbers as int64, with `missing` where it is null or holds no whole number.

    Other programs make numbers with decimals of a column that has nulls (pandas), or text.
    Raises ReadError for a column that holds no numbers at all.
    """
    if isinstance(column, pa.DictionaryArray):
        known = np.append(integers(column.dictionary, missing), np.int64(missing))
        return known[_places(column)]
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), missing, np.int64)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        if kind.unit != "ns":
            raise ReadError(f"it holds {kind}, not whole numbers")
        return _plain(column, np.int64, np.int64(missing))
    if pa.types.is_uint64(kind):
        # Beyond int64 such a number looks negative.
        raw = _plain(column, np.uint64, np.uint64(2**63)).view(np.int64)
        return np.where(raw < 0, missing, raw)
    if pa.types.is_integer(kind):
        return _plain(column.cast(pa.int64()), np.int64, np.int64(missing))
    if pa.types.is_floating(kind):
        decimal = _plain(column.cast(pa.float64()), np.float64, np.float64(np.nan))
        whole = (np.floor(decimal) == decimal) & (np.abs(decimal) < _LIMIT)
        return np.where(whole, np.where(whole, decimal, 0).astype(np.int64), missing)
    if pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    if not is_text(column.type):
        raise ReadError(f"it holds {kind}, not whole numbers")
    found = [missing if text is None else _whole(text, missing) for text in texts(column, 40)]
    return np.array(found, np.int64)


def _whole(text: str, missing: int) -> int:
    digits = text.strip()
    number = int(digits) if digits.isascii() and digits.isdigit() else missing
    return number if number < 2**63 else missing


def texts(column: pa.Array, longest: int | None = None) -> list[str | None]:
    """A column of text; None where it is null, and everywhere for a column of another kind.

    Of each text at most `longest` bytes are looked at.
    """
    if isinstance(column, pa.DictionaryArray):
        # Not decoded by Arrow: few long texts may stand in very many rows.
        places = _places(column)
        used, which = np.unique(places, return_inverse=True)
        some = _texts_at(column.dictionary, used[used >= 0], longest)
        known = [None, *some] if len(some) < len(used) else some
        return [known[at] for at in which.tolist()]
    return _texts_at(column, None, longest)


def _texts_at(column: pa.Array, places: IntArray | None, longest: int | None) -> list[str | None]:
    """The texts at `places`, or all."""
    column = _viewed(column)
    if not is_text(column.type):
        return [None] * len(column if places is None else places)
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, offsets, data = column.buffers()
    ends = _items(offsets, np.dtype(np.int64 if wide else np.int32), column, more=1)
    starts, stops = (ends[:-1], ends[1:]) if places is None else (ends[places], ends[places + 1])
    if longest is not None:
        stops = np.minimum(stops, starts + longest)
    raw = memoryview(data or b"")
    result: list[str | None] = [
        str(raw[start:stop], "utf-8", "replace")
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
    ]
    if column.null_count:
        valid = _valid(column) if places is None else _valid(column)[places]
        for at in np.flatnonzero(~valid).tolist():
            result[at] = None
    return result


def are_text(column: pa.Array) -> bool:
    """Whether a column holds text, or nothing at all."""
    if isinstance(column, pa.DictionaryArray):
        return are_text(column.dictionary)
    return pa.types.is_null(column.type) or is_text(_viewed(column).type)


def matching(column: pa.Array, pattern: str, *, ignore_case: bool = False) -> npt.NDArray[np.bool_]:
    """Which texts of a column the regular expression `pattern` (RE2) is found in.

    None of them becomes text of Python. Raises ReadError for a column of another kind.
    """
    if isinstance(column, pa.DictionaryArray):
        known = matching(column.dictionary, pattern, ignore_case=ignore_case)
        return np.append(known, False)[_places(column)]
    column = _viewed(column)
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=bool)
    if not is_text(column.type):
        raise ReadError(f"it holds {column.type}, not text")
    found = pc.match_substring_regex(column, pattern, ignore_case=ignore_case)
    return _bits(found.buffers()[1], found) & _valid(found)


def nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Where a column is null; of decimals that are no number, too: such is null in pandas."""
    found = pc.is_null(column, nan_is_null=True)
    return _bits(found.buffers()[1], found)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of that type holds text, of whatever encoding."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _places(column: pa.DictionaryArray) -> IntArray:
    """Where in its dictionary each value stands; -1, the last place of all, for null."""
    return integers(column.indices, -1)


def _viewed(column: pa.Array) -> pa.Array:
    """The same, where it holds views of texts, as text of the usual kind."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    return column.cast(pa.large_binary()) if pa.types.is_binary_view(column.type) else column


def _plain(column: pa.Array, kind: type[np.generic], missing: np.generic) -> np.ndarray:
    """The values of a column of 64-bit numbers, with `missing` where it is null."""
    values = _items(column.buffers()[1], np.dtype(kind), column)
    return np.where(_valid(column), values, missing) if column.null_count else values


def _items(buffer: pa.Buffer | None, kind: np.dtype, column: pa.Array, more: int = 0) -> np.ndarray:
    """The items of `buffer` that are those of `column`; it may be of any length behind them."""
    if buffer is None or len(column) == 0:
        return np.empty(0, kind)
    return np.frombuffer(buffer, kind, len(column) + more, column.offset * kind.itemsize)


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    bits = column.buffers()[0]
    return np.ones(len(column), dtype=bool) if bits is None else _bits(bits, column)


def _bits(bits: pa.Buffer, column: pa.Array) -> npt.NDArray[np.bool_]:
    whole = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return whole[column.offset : column.offset + len(column)].astype(bool)
