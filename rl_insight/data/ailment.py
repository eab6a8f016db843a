"""What is wrong with a file, as far as its ends show."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ailment:
    """One thing that is wrong: `code` for machines, `what` for a person, with what to do.

    `harmless` is what is read all the same, `kept` says what is read in spite of it.
    """

    code: str
    what: str
    harmless: bool = False
    kept: str | None = None

    @property
    def text(self) -> str:
        """All of it in one sentence."""
        return self.what if self.kept is None else f"{self.what}; {self.kept}"
