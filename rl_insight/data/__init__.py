"""What lies in the input folder, whose it is, and whether it is good."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rl_insight.data.summary import summary_events

__all__ = ["summary_events"]


def __getattr__(name: str) -> object:
    # Loaded when asked for: pyarrow takes longer to import than names and folders to look at.
    if name == "summary_events":
        from rl_insight.data.summary import summary_events

        return summary_events
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
