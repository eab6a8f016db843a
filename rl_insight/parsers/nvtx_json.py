"""Rows of an nsys export as JSON lines (`nsys export --type jsonlines`).

One object per row, the table's name in `table`, columns that are null left out, rows in any order.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path

import msgspec
import numpy as np

from rl_insight.parsers import nvtx_environment as environment
from rl_insight.parsers import nvtx_rows as rows
from rl_insight.parsers import nvtx_schema
from rl_insight.parsers.nvtx_names import OPERATOR_SIGN
from rl_insight.parsers.nvtx_numbers import column, ends, whole
from rl_insight.parsers.nvtx_rows import (
    Batch,
    Fact,
    Ranges,
    Strings,
    Work,
)
from rl_insight.problems import Problems
from rl_insight.readers.json_lines import BlockDecoder, JsonLines, struct_decoder
from rl_insight.readers.line_columns import LineShape, shape_of

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


class RangeRow(msgspec.Struct, gc=False, tag_field="table", tag=nvtx_schema.RANGES):
    """The same for a stretch of the file that holds ranges only: a third faster."""

    domainId: Loose = None  # noqa: N815
    end: Loose = None
    eventType: Loose = None  # noqa: N815
    globalTid: Loose = None  # noqa: N815
    start: Loose = None
    text: str | None = None
    textId: Loose = None  # noqa: N815


_TABLE = re.compile(rb'"table"\s*:\s*"([A-Za-z_0-9]{1,99})"')
_MOST_TABLES = 1_000
_RANGE = msgspec.json.Decoder(RangeRow)

# What differs between ranges with a name of their own, besides it.
_VARYING = ("end", "globalTid", "start")


class AlikeRanges:
    """Ranges whose lines are of one shape: what torch's `emit_nvtx` writes, by the million."""

    def __init__(self, like: RangeRow, shape: LineShape) -> None:
        self._like = like
        self._shape = shape

    def __call__(self, buffer: bytearray, start: int, end: int) -> Ranges:
        """The ranges of a block. Raises ValueError unless all lines are of the shape."""
        found = self._shape.columns(buffer, start, end)
        count = len(found)
        # Where all are torch's operators, as is usual, one look at the block tells.
        alike = found.texts.count(OPERATOR_SIGN) == count
        return Ranges(
            starts=found.numbers["start"],
            ends=found.numbers["end"],
            kinds=column([self._like.eventType] * count),
            threads=found.numbers["globalTid"],
            domains=column([self._like.domainId] * count),
            texts=found.texts,
            text_ids=column([self._like.textId] * count),
            operators=np.ones(count, dtype=bool) if alike else None,
        )


class JsonRows:
    """Reads one file once; iterating gives its batches.

    `rows_seen` counts all rows, `tabled` those that name a table: without any the file is no
    export of this kind.
    Iterating raises ReadError when the file cannot be opened.
    """

    def __init__(self, path: Path, problems: Problems) -> None:
        self._lines = JsonLines(path, Row, problems, flat=True, narrow=self._narrow)
        self._ranges = struct_decoder(RangeRow)
        self._others: dict[str, BlockDecoder] = {}
        self.tabled = 0

    @property
    def rows_seen(self) -> int:
        """How many rows were read, of any table."""
        return self._lines.rows_seen

    @property
    def damaged(self) -> set[str]:
        """None is known: what cannot be read may be of any table."""
        return set()

    def __iter__(self) -> Iterator[Batch]:
        for block in self._lines:
            if isinstance(block, Ranges):
                self.tabled += len(block)
                yield block
            elif not isinstance(block[0], Row):
                self.tabled += len(block)
                if isinstance(block[0], RangeRow):
                    yield _ranges(block)
            else:
                yield from self._mixed(block)

    def _mixed(self, block: Sequence[Row]) -> Iterator[Batch]:
        names = [row.table for row in block]
        self.tabled += len(names) - names.count(None)
        present = set(names)
        for table in nvtx_schema.TABLES:
            if table in present:
                own = block
                if len(present) > 1:
                    own = list(compress(block, [name == table for name in names]))
                yield from _batches(table, own)

    def _narrow(self, first: bytes, last: bytes) -> Iterator[BlockDecoder]:
        """The quickest decoders for a block that begins and ends with those lines.

        Tables are written one after the other, so most blocks hold rows of one. Of a table that
        nobody asks for no field is looked at.
        """
        found, other = _TABLE.search(first), _TABLE.search(last)
        if found is None or other is None or found[1] != other[1]:
            return
        table = found[1].decode()
        if table == nvtx_schema.RANGES:
            shape = shape_of(first, _VARYING, "text")
            if shape is not None:
                with contextlib.suppress(msgspec.MsgspecError):
                    yield AlikeRanges(_RANGE.decode(first), shape)
            yield self._ranges
        elif table not in nvtx_schema.TABLES and len(self._others) < _MOST_TABLES:
            if table not in self._others:
                self._others[table] = struct_decoder(_passed_over(table))
            yield self._others[table]


def _passed_over(table: str) -> type[msgspec.Struct]:
    return msgspec.defstruct("OtherRow", [], gc=False, tag_field="table", tag=table)


def _batches(table: str, own: Sequence[Row]) -> Iterator[Batch]:
    if table == nvtx_schema.RANGES:
        yield _ranges(own)
    elif table == nvtx_schema.STRINGS:
        yield _strings(own)
    elif table in rows.ACTIVITY:
        yield _work(table, own)
    elif table in (nvtx_schema.DETAILS, nvtx_schema.SESSION):
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
        ends=ends([row.end for row in own]),
        kinds=column([row.eventType for row in own]),
        threads=column([row.globalTid for row in own]),
        domains=column([row.domainId for row in own]),
        texts=[row.text for row in own],
        text_ids=column([row.textId for row in own]),
    )


def _work(table: str, own: Sequence[Row]) -> Work:
    names: list[Loose] = [None] * len(own)
    if table == nvtx_schema.KERNEL:
        names = [row.shortName if row.demangledName is None else row.demangledName for row in own]
    elif table == nvtx_schema.MEMCPY:
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
