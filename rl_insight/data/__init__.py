"""What lies in the input folder, whose it is, and whether it is good."""

from rl_insight.data.summary import summary_events

__all__ = ["summary_events"]
