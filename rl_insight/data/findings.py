"""What a rule found, and the error that all findings together may make."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rl_insight.errors import RLInsightError
from rl_insight.plain_text import without_escapes
from rl_insight.problems import Severity

FAILED = "Data validation failed"

_MOST_SHOWN = 50
_LONGEST = 500
# What a terminal or a log would not show in its place: controls, separators of lines, marks that
# turn the direction of writing, and halves of characters (names of files that are no UTF-8).
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule has to say about one source.

    `severity` is `error` where the source breaks the documented contract or something of it is
    lost, `warning` where something about it is in doubt, `info` where all is well and yet worth
    knowing. `path` is the source, relative to the folder that was checked; "" is that folder
    itself. `message` is one sentence for a person.
    """

    rule: str
    severity: Severity
    message: str
    path: str = ""

    def __str__(self) -> str:
        return one_line(f"{self.path}: {self.message}" if self.path else self.message)


class DataValidationError(RLInsightError):
    """Some data is not what it should be: `errors` are all sentences, the text shows the first.

    `findings` are what they were made of, and whatever else the rules had to say.
    """

    def __init__(
        self,
        message: str = FAILED,
        errors: Iterable[str] = (),
        findings: Iterable[Finding] = (),
    ) -> None:
        self.message = message
        self.errors = list(errors)
        self.findings = list(findings)
        super().__init__(message, self.errors, self.findings)

    def __str__(self) -> str:
        return self.message + "".join(f"\n  - {line}" for line in shortened(self.errors))


def shortened(lines: Sequence[str], most: int = _MOST_SHOWN) -> list[str]:
    """The first `most` lines, and how many there are beside them."""
    left = len(lines) - most
    return [*lines[:most], f"… and {left:,} more"] if left > 0 else list(lines)


def one_line(text: str) -> str:
    """`text`, of which parts come from files, as it may stand in a terminal: one line, not long."""
    text = _UNSEEN.sub("�", without_escapes(text))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
