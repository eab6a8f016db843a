"""Snakemake's report among the words that go to Snakemake.

With `--report` Snakemake only reports, and fails where the pictures are not there yet: the words
are therefore parted into those of the run and those of the report on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rl_insight.errors import UsageError
from rl_insight.plain_text import shown

_REPORT = "--report"
# So ends a run of Snakemake's own; here it is what always happens.
_AFTER_RUN = "--report-after-run"
# What Snakemake calls it when no name is given.
_UNNAMED = "report.html"
_SUFFIXES = (".html", ".zip")


@dataclass(frozen=True, slots=True)
class Parted:
    """The words of the `run`, those of the report and its file, both None where none is asked for.

    The file is as it was given: relative to the output folder.
    """

    run: tuple[str, ...]
    report: tuple[str, ...] | None = None
    file: Path | None = None


def part(words: Sequence[str]) -> Parted:
    """Take `--report [FILE]` out of the `words` for Snakemake.

    Raises UsageError for a file that Snakemake would refuse once the run is done.
    """
    run: list[str] = []
    file: str | None = None
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            # Behind it there are only targets.
            run += [word, *rest]
            break
        if name == _REPORT:
            if not equals:
                value = rest.pop(0) if rest and not rest[0].startswith("-") else _UNNAMED
            file = value
        elif word != _AFTER_RUN:
            run.append(word)
    if file is None:
        return Parted(tuple(words))
    if Path(file).suffix not in _SUFFIXES:
        raise UsageError(f"--report: {shown(file)} ends neither in .html nor in .zip")
    return Parted(tuple(run), (f"{_REPORT}={file}", *run), Path(file))
