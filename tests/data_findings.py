"""What rules found, in a form that tests compare."""

from collections.abc import Iterable
from pathlib import Path

from rl_insight.data import DataChecker, Finding


def told(findings: Iterable[Finding]) -> list[tuple[str, str, str]]:
    """Severity, path and sentence of each finding."""
    return [(one.severity, one.path, one.message) for one in findings]


def found(kind: str, folder: Path) -> list[tuple[str, str, str]]:
    """All that the rules for `kind` have to say about a folder."""
    return told(DataChecker(kind, folder).findings())
