"""The row of one line of JSON, in whatever state the line is."""

from collections.abc import Iterator
from typing import Any

import msgspec

from rl_insight.problems import Problems
from rl_insight.readers.line_pieces import AROUND, Piece, pieces, rest
from rl_insight.readers.repair import repairs

# Repairs look at the text several times, token by token.
REPAIR_LIMIT = 1 << 20
# What stands for a number that cannot be told: no null, which says that there was none.
_NO_NUMBER = '"?"'

# Values stay undecoded text: nothing is kept of those that no field asks for.
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class JsonRow:
    """Decodes lines to structs of `row_type`, one at a time, and counts in `problems` what it did.

    With `flat`, for rows whose values are no objects, a line may also hold several, with brackets
    and commas around them. Codes: `line_undecodable`, `line_repaired`, `field_dropped`,
    `truncated`.
    """

    def __init__(self, row_type: type[msgspec.Struct], problems: Problems, *, flat: bool) -> None:
        self._problems = problems
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(row_type)
        self._names = {field.encode_name for field in msgspec.structs.fields(row_type)}
        self._flat = flat

    def row(self, text: bytes, offset: int) -> msgspec.Struct | None:
        """The row of the line `text`, which begins at `offset`; None where it is none."""
        return self._decoded(text) or self._bare(text, offset) or self.patiently(text, offset)

    def _decoded(self, text: bytes) -> msgspec.Struct | None:
        try:
            row: msgspec.Struct = self._decoder.decode(text)
            return row
        except (msgspec.MsgspecError, RecursionError):
            return None

    def _bare(self, text: bytes, offset: int) -> msgspec.Struct | None:
        """The row of a line with a comma behind it, as those of a list have by the million."""
        bare = text.strip(AROUND) if self._flat else text
        row = self._decoded(bare) if bare != text else None
        if row is not None:
            self._problems.add("line_repaired", "info", 1, offset)
        return row

    def patiently(self, text: bytes, offset: int) -> msgspec.Struct | None:
        """The row of a line that is not as it should be; counts what was dropped or repaired."""
        if _is_utf8(text):
            # Where only a value is of an odd type there is nothing to repair.
            row, dropped = self._relaxed(text)
            if row is not None:
                self._problems.add("field_dropped", "warning", dropped, offset)
                return row
        repaired = text
        if len(text) <= REPAIR_LIMIT:
            # A guess at where a quote belongs may turn one thing into another: only sure repairs.
            repaired = next((new for new, sure in repairs(text, _NO_NUMBER) if sure), text)
        for better in dict.fromkeys((repaired, text)):
            row, dropped = self._relaxed(better)
            if row is not None:
                self._problems.add("line_repaired", "info", int(better != text), offset)
                self._problems.add("field_dropped", "warning", dropped, offset)
                return row
        return None

    def apart(self, text: bytes, offset: int, *, whole: bool) -> Iterator[msgspec.Struct]:
        """The rows inside a line that is none as a whole; counts what is left of it."""
        taken: list[Piece[msgspec.Struct]] = []
        if self._flat and len(text) <= REPAIR_LIMIT:
            taken.extend(pieces(text, self._decoded))
        yield from (piece.row for piece in taken)
        left = rest(text, taken)
        around = self._decoded(left.text) if taken and left.text else None
        if around is not None:
            # Another writer's line stood in the middle of this one.
            yield around
        if around is not None or not left.text:
            self._problems.add("line_repaired", "info", 1, offset)
            return
        code = "line_undecodable" if whole else "truncated"
        self._problems.add(code, "warning", 1, offset + left.at)

    def _relaxed(self, text: bytes) -> tuple[msgspec.Struct | None, int]:
        """The row without the fields that are of another type than they should be, and how many."""
        try:
            fields = _FIELDS.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            return None, 0
        known = {key: raw for key, raw in fields.items() if key in self._names}
        parts = [b"%b:%b" % (msgspec.json.encode(key), bytes(raw)) for key, raw in known.items()]
        good = [part for part in parts if self._decoded(b"{%b}" % part) is not None]
        return self._decoded(b"{%b}" % b",".join(good)), len(parts) - len(good)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
