"""What was lost or doubted while reading one source, counted and located.

A problem is a row of the `problems` column of the `sources` table: a code for machines, a
severity, how often it happened, where it happened first and one example for a person.
"""

from collections.abc import Iterator
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
