"""What was lost or doubted while reading one source, counted and located.

A problem is a row of the `problems` column of the `sources` table: a code for machines, a
severity, how often it happened, where it happened first and one example for a person.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Severity = Literal["info", "warning", "error"]
SEVERITIES: tuple[str, ...] = get_args(Severity)

# An example is shown to people and stored per source: a hostile name must not fill the table.
EXAMPLE_LIMIT = 200

CLOCK = "clock_"
"""How codes begin that say when a capture was: a doubt of its own beside whatever was lost."""

CLOCK_FAR = "clock_far"
"""A capture that its clock puts days away from the others of its step."""

JOURNAL_UNREAD = "journal_unread"
"""A database that is read as it stands, although a journal belongs to it."""

LEFTOVER = "leftover"
"""A file that its writer or copier did not complete: mere information beside a whole one."""

PACKED_OTHERWISE = "packed_otherwise"
"""A file that a person packed in a form that no reader here unpacks."""

READ_FAILED = "read_failed"
"""The system read the file only in part: a disk or a network failed."""

# Why events were left out, as a count of them is said: of one, of several.
_LEFT_OUT = {
    "zero_time": ("event at time 0", "events at time 0"),
    "no_time": ("event without a time", "events without a time"),
    "bad_timestamp": ("event without a time", "events without a time"),
    "negative_time": ("event before time 0", "events before time 0"),
    "negative_duration": ("event that ends before it starts", "events that end before they start"),
    "impossible_duration": ("event that lasts too long", "events that last too long"),
    "outside_capture": ("event far outside the capture", "events far outside the capture"),
}
LEFT_OUT = frozenset(_LEFT_OUT)
"""The codes of events that were read and are not drawn, since their time cannot be."""


def explained(code: str, count: int, example: str | None) -> str | None:
    """What a person is told of a problem: its example, and of events that were left out also why
    and how many: `20 events at time 0 were left out, such as 'gemm': ts 0, dur 35`.
    """
    if code not in _LEFT_OUT:
        return example
    one, several = _LEFT_OUT[code]
    text = f"1 {one} was left out" if count == 1 else f"{count:,} {several} were left out"
    # Strays were counted by the thousand: none of them is at hand, and the example repeats it.
    if example is None or code == "outside_capture":
        return text
    return f"{text}: {example}" if count == 1 else f"{text}, such as {example}"


@dataclass(slots=True)
class Problem:
    """One kind of trouble in one source.

    `offset` is the byte offset of the first occurrence in the decompressed file, or None.
    """

    code: str
    severity: Severity
    count: int
    offset: int | None
    example: str | None


class Problems:
    """The problems of one source, merged by code."""

    def __init__(self) -> None:
        self._by_code: dict[str, Problem] = {}

    def add(
        self,
        code: str,
        severity: Severity,
        count: int = 1,
        offset: int | None = None,
        example: str | None = None,
    ) -> None:
        """Count `count` more of `code`; the first offset and example and the worst severity stay.

        A `count` of 0 is no problem at all.
        Raises ValueError for a severity that is not one of `SEVERITIES`, and for a negative count.
        """
        if severity not in SEVERITIES:
            raise ValueError(f"severity {severity!r} is not one of {', '.join(SEVERITIES)}")
        if count < 0:
            raise ValueError(f"a problem cannot be counted {count} times")
        if count == 0:
            return
        if example is not None and len(example) > EXAMPLE_LIMIT:
            example = example[: EXAMPLE_LIMIT - 1] + "…"
        known = self._by_code.get(code)
        if known is None:
            self._by_code[code] = Problem(code, severity, count, offset, example)
            return
        known.count += count
        if known.offset is None:
            known.offset = offset
        if known.example is None:
            known.example = example
        if SEVERITIES.index(severity) > SEVERITIES.index(known.severity):
            known.severity = severity

    def add_left(self, code: str, left: Sequence[tuple[str, bool]]) -> None:
        """Count files that are `left` unread: of each an example, and whether the same was read.

        Where all were it is mere information; else those count that are lost, and they alone.
        """
        lost = [example for example, done in left if not done]
        for example in lost or [example for example, _ in left]:
            self.add(code, "warning" if lost else "info", example=example)

    def extend(self, others: "Problems") -> None:
        """Add all problems of `others`."""
        for other in others:
            self.add(other.code, other.severity, other.count, other.offset, other.example)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._by_code.values())

    def __len__(self) -> int:
        return len(self._by_code)

    def __contains__(self, code: object) -> bool:
        return code in self._by_code

    def count(self, code: str) -> int:
        """How often `code` was counted; 0 when never."""
        known = self._by_code.get(code)
        return known.count if known else 0
