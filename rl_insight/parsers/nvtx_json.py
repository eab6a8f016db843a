"""Rows of an nsys export as JSON lines (`nsys export --type jsonlines`).

One object per row, the table's name in `table`, columns that are null left out, rows in any order.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers import nvtx_environment as environment
from rl_insight.parsers import nvtx_rows as rows
from rl_insight.parsers.nvtx_rows import (
    MISSING,
    Batch,
    Fact,
    Ranges,
    Strings,
    Work,
    column,
    whole,
)
from rl_insight.problems import Problems
from rl_insight.readers.json_lines import JsonLines

# What is only looked at must not cost its row, whatever it is.
Loose = int | float | str | None

_NO_VALUE = msgspec.Raw()
_TEXT = msgspec.json.Decoder(str | int)


class Row(msgspec.Struct, gc=False):
    """The columns that matter of any table, in the alphabetical order in which they are written.

    A field that is looked for where it stands is found without a search: twice as fast. `value`
    stays undecoded text, since most values of such a file are nobody's business.
    """

    copyKind: Loose = None  # noqa: N815 - the exporter's names
    demangledName: Loose = None  # noqa: N815
    deviceId: Loose = None  # noqa: N815
    domainId: Loose = None  # noqa: N815
    duration: Loose = None
    end: Loose = None
    eventType: Loose = None  # noqa: N815
    globalPid: Loose = None  # noqa: N815
    globalTid: Loose = None  # noqa: N815
    id: Loose = None
    name: Loose = None
    shortName: Loose = None  # noqa: N815
    start: Loose = None
    startTime: Loose = None  # noqa: N815
    stopTime: Loose = None  # noqa: N815
    systemClockNs: Loose = None  # noqa: N815
    table: str | None = None
    text: str | None = None
    textId: Loose = None  # noqa: N815
    utcEpochNs: Loose = None  # noqa: N815
    value: msgspec.Raw = _NO_VALUE


class RangeRow(msgspec.Struct, gc=False, tag_field="table", tag=rows.RANGES):
    """The same for a stretch of the file that holds ranges only: a third faster."""

    domainId: Loose = None  # noqa: N815
    end: Loose = None
    eventType: Loose = None  # noqa: N815
    globalTid: Loose = None  # noqa: N815
    start: Loose = None
    text: str | None = None
    textId: Loose = None  # noqa: N815


class PlainRow(msgspec.Struct, gc=False, tag_field="table", tag=rows.RANGES):
    """The same for push/pop ranges of the default domain with a name of their own.

    That is all that torch's `emit_nvtx` writes, by the million: half the time of `RangeRow`.
    """

    end: int
    eventType: Literal[59]  # noqa: N815
    globalTid: int  # noqa: N815
    start: int
    text: str
    domainId: Literal[0] = 0  # noqa: N815


_TABLE = re.compile(rb'"table"\s*:\s*"([A-Za-z_0-9]{1,99})"')
_PLAIN = re.compile(rb'"eventType"\s*:\s*59\b(?:(?!"textId").)*"text"')
_MOST_TABLES = 1_000
# Rows from which numpy's fixed costs no longer count.
_TOGETHER = 16_384


class _Plain:
    """The columns of several blocks of plain rows."""

    def __init__(self) -> None:
        self._numbers: list[npt.NDArray[np.int64]] = []
        self.texts: list[str] = []

    def take(self, block: Sequence[PlainRow]) -> None:
        # At once: numbers that have just been decoded are still in the caches.
        numbers = np.empty((3, len(block)), np.int64)
        numbers[0] = _whole_numbers([row.start for row in block])
        numbers[1] = _whole_numbers([row.end for row in block])
        numbers[2] = _whole_numbers([row.globalTid for row in block])
        self._numbers.append(numbers)
        self.texts += [row.text for row in block]

    def ranges(self) -> Ranges:
        count = len(self.texts)
        starts, ends, threads = np.concatenate(self._numbers, axis=1)
        return Ranges(
            starts,
            ends,
            kinds=np.full(count, 59, np.int64),
            threads=threads,
            domains=np.zeros(count, np.int64),
            texts=self.texts,
            text_ids=np.full(count, MISSING, np.int64),
        )


def _whole_numbers(values: Sequence[int]) -> IntArray:
    try:
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:
        return column(values)


class JsonRows:
    """Reads one file once; iterating gives its batches.

    `rows_seen` counts all rows, `tabled` those that name a table: without any the file is no
    export of this kind.
    Iterating raises ReadError when the file cannot be opened.
    """

    def __init__(self, path: Path, problems: Problems) -> None:
        self._lines: JsonLines[Any] = JsonLines(path, Row, problems, narrow=self._narrow)
        self._decoders: dict[type[msgspec.Struct], msgspec.json.Decoder[Any]] = {}
        self._others: dict[str, type[msgspec.Struct]] = {}
        self.tabled = 0

    @property
    def rows_seen(self) -> int:
        """How many rows were read, of any table."""
        return self._lines.rows_seen

    def __iter__(self) -> Iterator[Batch]:
        plain = _Plain()
        for block in self._lines:
            if isinstance(block[0], PlainRow):
                self.tabled += len(block)
                plain.take(block)
                if len(plain.texts) > _TOGETHER:
                    yield plain.ranges()
                    plain = _Plain()
                continue
            if not isinstance(block[0], Row):
                self.tabled += len(block)
                if isinstance(block[0], RangeRow):
                    yield _ranges(block)
                continue
            names = [row.table for row in block]
            self.tabled += len(names) - names.count(None)
            present = set(names)
            for table in rows.TABLES:
                if table in present:
                    own = block
                    if len(present) > 1:
                        own = list(compress(block, [name == table for name in names]))
                    yield from _batches(table, own)
        if plain.texts:
            yield plain.ranges()

    def _narrow(self, first: bytes, last: bytes) -> Iterator[msgspec.json.Decoder[Any]]:
        """The quickest decoders for a block that begins and ends with those lines.

        Tables are written one after the other, so most blocks hold rows of one. Of a table that
        nobody asks for no field is looked at.
        """
        found, other = _TABLE.search(first), _TABLE.search(last)
        if found is None or other is None or found[1] != other[1]:
            return
        table = found[1].decode()
        if table == rows.RANGES:
            if _PLAIN.search(first) and _PLAIN.search(last):
                yield self._decoder(PlainRow)
            yield self._decoder(RangeRow)
        elif table not in rows.TABLES and len(self._others) < _MOST_TABLES:
            if table not in self._others:
                self._others[table] = _passed_over(table)
            yield self._decoder(self._others[table])

    def _decoder(self, kind: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
        if kind not in self._decoders:
            self._decoders[kind] = msgspec.json.Decoder(kind)
        return self._decoders[kind]


def _passed_over(table: str) -> type[msgspec.Struct]:
    return msgspec.defstruct("OtherRow", [], gc=False, tag_field="table", tag=table)


def _batches(table: str, own: Sequence[Row]) -> Iterator[Batch]:
    if table == rows.RANGES:
        yield _ranges(own)
    elif table == rows.STRINGS:
        yield _strings(own)
    elif table in rows.ACTIVITY:
        yield _work(table, own)
    elif table in (rows.DETAILS, rows.SESSION):
        for row in own:
            for name in rows.COLUMNS[table]:
                value = whole(getattr(row, name))
                if value is not None:
                    yield Fact(name, value)
    else:
        for row in own:
            if environment.may_pass(table, row.name, bytes(row.value)):
                yield from environment.facts_in(table, row.name, _TEXT.decode(row.value))


def _ranges(own: Sequence[Row | RangeRow]) -> Ranges:
    return Ranges(
        starts=column([row.start for row in own]),
        ends=column([row.end for row in own]),
        kinds=column([row.eventType for row in own]),
        threads=column([row.globalTid for row in own]),
        domains=column([row.domainId for row in own]),
        texts=[row.text for row in own],
        text_ids=column([row.textId for row in own]),
    )


def _work(table: str, own: Sequence[Row]) -> Work:
    names: list[Loose] = [None] * len(own)
    if table == rows.KERNEL:
        names = [row.shortName if row.demangledName is None else row.demangledName for row in own]
    elif table == rows.MEMCPY:
        names = [row.copyKind for row in own]
    return Work(
        table=table,
        starts=column([row.start for row in own]),
        ends=column([row.end for row in own]),
        devices=column([row.deviceId for row in own]),
        processes=column([row.globalPid for row in own]),
        names=column(names),
    )


def _strings(own: Sequence[Row]) -> Strings:
    ids: list[int] = []
    values: list[str] = []
    for row in own:
        number = whole(row.id)
        try:
            value = msgspec.json.decode(row.value)
        except msgspec.MsgspecError:
            continue
        if number is not None and isinstance(value, str):
            ids.append(number)
            values.append(value)
    return Strings(ids, values)
