"""What lies in the input folder, whose it is, and whether it is good."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rl_insight.data.summary import gmm_summary, summary_events

__all__ = ["gmm_summary", "summary_events"]


def __getattr__(name: str) -> object:
    # Loaded when asked for: pyarrow takes longer to import than names and folders to look at.
    if name in __all__:
        from rl_insight.data import summary

        return getattr(summary, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
