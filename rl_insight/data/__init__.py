"""What lies in the input folder, whose it is, and whether it is good."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rl_insight.data.data_checker import DataChecker
    from rl_insight.data.data_kinds import DataEnum
    from rl_insight.data.findings import DataValidationError, Finding
    from rl_insight.data.summary import gmm_summary, summary_events

__all__ = [
    "DataChecker",
    "DataEnum",
    "DataValidationError",
    "Finding",
    "gmm_summary",
    "summary_events",
]

# Loaded when asked for: pyarrow takes longer to import than names and folders to look at.
_PLACES = {
    "DataChecker": "data_checker",
    "DataEnum": "data_kinds",
    "DataValidationError": "findings",
    "Finding": "findings",
    "gmm_summary": "summary",
    "summary_events": "summary",
}


def __getattr__(name: str) -> object:
    if name in _PLACES:
        return getattr(import_module(f"rl_insight.data.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
