"""Streams the rows of a JSON-lines file in blocks, in bounded memory.

A block ends with a line, decodes as a whole into structs that name only the fields that are needed,
and is gone before the next one comes. Where a block does not decode, its lines are read one by one:
what is damaged is counted and located, all other rows are the same as ever.

No line is ever quoted in a problem: exports hold whole environments, with passwords.
"""

from collections.abc import Callable, Iterable, Iterator, Sized
from pathlib import Path
from typing import Any

import msgspec

from rl_insight.problems import Problems
from rl_insight.readers.bytestream import ByteStream
from rl_insight.readers.json_row import REPAIR_LIMIT, JsonRow
from rl_insight.readers.json_text import SPACE, end_of
from rl_insight.readers.window import Window

BLOCK_BYTES = 1 << 20
MAX_LINE_BYTES = 64 << 20
# Over so many lines a text with line breaks that were not escaped may go.
_MOST_JOINED = 4


BlockDecoder = Callable[[bytearray, int, int], Sized]
"""Decodes the lines in `buffer[start:end]`, in any form that tells how many rows they are.

Raises ValueError, or msgspec's errors, where one does not fit. What it gives may lie in the buffer:
it is gone when the next block is asked for.
"""


def struct_decoder(row_type: type[msgspec.Struct]) -> BlockDecoder:
    """Decodes lines to a list of structs."""
    decoder = msgspec.json.Decoder(row_type)

    def decode(buffer: bytearray, start: int, end: int) -> list[msgspec.Struct]:
        return decoder.decode_lines(memoryview(buffer)[start:end])

    return decode


class JsonLines:
    """Reads one file once; iterating gives the rows, block by block.

    `row_type` is a msgspec.Struct; a line is one JSON object, and a block a list of such structs.
    Blank lines are passed over. With `flat`, for rows whose values are no objects, a line may also
    hold several, with brackets and commas around them. `narrow` may give, from the first and the
    last line of a block, decoders for rows of one kind, each of which must refuse all others; the
    first that does not is used, and the block is what it gives.

    `problems` gets, with byte offsets in the unpacked file: `line_undecodable`, `line_repaired`,
    `line_too_large` (more than `max_line_bytes`; passed by without being held), `field_dropped`
    (of another type than `row_type` says), `truncated` when the last line breaks off, `empty_file`,
    and those of `ByteStream`. `rows_seen` counts the rows given out.

    Iterating raises ReadError when the file cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        row_type: type[msgspec.Struct],
        problems: Problems,
        block_bytes: int = BLOCK_BYTES,
        *,
        flat: bool = False,
        narrow: Callable[[bytes, bytes], Iterable[BlockDecoder]] | None = None,
        max_bytes: int | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.rows_seen = 0
        self._path = path
        self._problems = problems
        self._line = JsonRow(row_type, problems, flat=flat)
        self._block = struct_decoder(row_type)
        self._narrow = narrow
        self._block_bytes = block_bytes
        self._max_bytes = max_bytes
        self._max_line_bytes = max_line_bytes

    def __iter__(self) -> Iterator[Any]:
        with ByteStream(self._path, self._problems, self._max_bytes) as stream:
            window = Window(stream)
            wanted = self._block_bytes
            while window.fill(wanted) or window.unread:
                end = self._end_of_lines(window)
                if end is None:
                    if window.unread >= self._max_line_bytes:
                        self._pass_line(window)
                    # A line that does not fit takes twice the bytes, until it is too large.
                    wanted = max(wanted, min(2 * window.unread, self._max_line_bytes))
                    continue
                wanted = self._block_bytes
                rows = self._rows(window, end)
                window.start = end
                self.rows_seen += len(rows)
                if len(rows):
                    yield rows
                del rows  # or two blocks would be alive while the next one is decoded
            if not self.rows_seen and not len(self._problems):
                self._problems.add("empty_file", "warning", 1, 0)

    def _end_of_lines(self, window: Window) -> int | None:
        """Behind the last line that is whole; None where the window holds no whole line."""
        if window.at_end:
            return window.end
        at = window.buffer.rfind(b"\n", window.start, window.end)
        return at + 1 if at >= 0 else None

    def _rows(self, window: Window, end: int) -> Sized:
        for decode in self._decoders(window, end):
            try:
                return decode(window.buffer, window.start, end)
            except (msgspec.MsgspecError, RecursionError, ValueError):
                continue
        return list(self._one_by_one(window, end))

    def _decoders(self, window: Window, end: int) -> Iterator[BlockDecoder]:
        """What to try for a whole block, the quickest first."""
        if self._narrow is not None:
            buffer, start = window.buffer, window.start
            first = bytes(buffer[start : max(buffer.find(b"\n", start, end), start)])
            last = bytes(buffer[max(buffer.rfind(b"\n", start, end - 1), start) : end])
            yield from self._narrow(first, last)
        yield self._block

    def _one_by_one(self, window: Window, end: int) -> Iterator[msgspec.Struct]:
        start = window.start
        while start < end:
            at = window.buffer.find(b"\n", start, end)
            stop = at if at >= 0 else end
            start = end_of(SPACE, window.buffer, start, stop)
            if start < stop:
                text = bytes(memoryview(window.buffer)[start:stop])
                offset = window.offset(start)
                row = self._line.row(text, offset)
                if row is None and at >= 0:
                    row, stop = self._over_lines(window, start, stop, end)
                if row is not None:
                    yield row
                else:
                    yield from self._line.apart(text, offset, whole=at >= 0)
            start = stop + 1

    def _over_lines(
        self, window: Window, start: int, stop: int, end: int
    ) -> tuple[msgspec.Struct | None, int]:
        """The row of a line that goes on in the next ones, and where it stops: line breaks in a
        text that were not escaped. Without one, where the line itself stops.
        """
        last = stop
        for _ in range(_MOST_JOINED - 1):
            # What begins like a row is one.
            begin = end_of(SPACE, window.buffer, min(last + 1, end), end)
            if begin >= end or window.buffer[begin] == ord("{"):
                break
            at = window.buffer.find(b"\n", last + 1, end)
            last = at if at >= 0 else end
            if last - start > REPAIR_LIMIT:
                break
            text = bytes(memoryview(window.buffer)[start:last])
            row = self._line.patiently(text, window.offset(start))
            if row is not None:
                return row, last
        return None, stop

    def _pass_line(self, window: Window) -> None:
        """Pass by the rest of a line that is too large, up to the next one."""
        why = f"a line of more than {self._max_line_bytes} bytes"
        self._problems.add("line_too_large", "warning", 1, window.offset(window.start), why)
        while True:
            at = window.buffer.find(b"\n", window.start, window.end)
            if at >= 0:
                window.start = at + 1
                return
            window.start = window.end
            if not window.fill(self._block_bytes):
                return
