"""Rows of the `collectives` table: who waited for whom comes from here. Neutral to profilers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray

# 24 MB; a training step has some ten thousand.
_MOST = 500_000
_MOST_LABELS = 10_000
_UNKNOWN = -1

# c10/core/ScalarType.h: bytes of one element, by the lower-case name.
_SIZES = {
    "bool": 1,
    "byte": 1,
    "char": 1,
    "short": 2,
    "int": 4,
    "long": 8,
    "half": 2,
    "bfloat16": 2,
    "float": 4,
    "double": 8,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "complexhalf": 4,
    "complexfloat": 8,
    "complexdouble": 16,
}


@dataclass(frozen=True, slots=True)
class Collective:
    """One call: `group` tells process groups apart, `seq` counts its calls, `size` is in bytes."""

    op: str
    group: str | None = None
    seq: int | None = None
    size: int | None = None


class Collectives:
    """Collects calls with their times, in bounded memory."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._labels: dict[str, int] = {}
        self._rows: list[npt.NDArray[np.int64]] = []
        self._count = 0
        self.left_out = 0

    def __len__(self) -> int:
        return self._count

    def add(self, starts: IntArray, durations: IntArray, calls: Sequence[Collective]) -> None:
        """Take calls; sequences of one length, times in ns."""
        room = self._most - self._count
        self.left_out += max(0, len(calls) - room)
        calls = calls[:room]
        if not calls:
            return
        self._count += len(calls)
        rows = np.empty((6, len(calls)), dtype=np.int64)
        rows[0], rows[1] = starts[:room], durations[:room]
        rows[2] = [self._label(call.group) for call in calls]
        rows[3] = [self._label(call.op) for call in calls]
        rows[4] = [_UNKNOWN if call.seq is None else call.seq for call in calls]
        rows[5] = [_UNKNOWN if call.size is None else call.size for call in calls]
        self._rows.append(rows)

    def columns(self) -> dict[str, Sequence[object]]:
        """The columns of the table in order of start, but for `lane_id` and `span_id`."""
        if not self._rows:
            return {}
        rows = np.concatenate(self._rows, axis=1)
        rows = rows[:, np.argsort(rows[0], kind="stable")]
        labels = [*self._labels, None]  # _UNKNOWN is the last
        return {
            "start_ns": rows[0],
            "duration_ns": rows[1],
            "group": [labels[code] for code in rows[2].tolist()],
            "op": [labels[code] for code in rows[3].tolist()],
            "seq": [None if value == _UNKNOWN else value for value in rows[4].tolist()],
            "bytes": [None if value == _UNKNOWN else value for value in rows[5].tolist()],
        }

    def _label(self, text: str | None) -> int:
        if text is None or (len(self._labels) >= _MOST_LABELS and text not in self._labels):
            return _UNKNOWN
        return self._labels.setdefault(text, len(self._labels))


def group_label(name: object, description: object) -> str | None:
    """What tells process groups apart and says what they are for, «mesh_dp (1)».

    Groups of one description differ by their name, which all members of a group share.
    """
    short, long = _text(name), _text(description)
    if long in (None, "undefined"):
        return short
    return long if short is None else f"{long} ({short})"


def message_bytes(elements: object, dtype: object) -> int | None:
    """The size of `elements` of a c10 scalar type; None where either is unknown."""
    count = count_of(elements)
    kind = (_text(dtype) or "").lower()
    size = 1 if kind.startswith("float8") else _SIZES.get(kind)
    if count is None or size is None or count * size >= 2**63:
        return None
    return count * size


def count_of(value: object) -> int | None:
    """`value` as a whole number from 0 to 2**63 - 1, also from text; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < 2**63 else None


def _text(value: object) -> str | None:
    """A label from a profile; cut, since a hostile one has no end."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return None
    return str(value)[:200]
