"""The errors that RL-Insight raises on purpose.

Each carries one sentence that names the file or the key and, where there is one, the remedy.
`rl_insight.main` is the only place that prints them and chooses the exit code.
"""

from collections.abc import Mapping


class RLInsightError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the command line ends with."""

    exit_code = 1


class UsageError(RLInsightError):
    """The command line, the configuration or the input path cannot be used as given."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration key is unknown or its value is impossible."""


class InputError(UsageError):
    """The input path is missing, unreadable or holds nothing of the chosen kind."""


class ReadError(RLInsightError):
    """One input file cannot be read; it becomes a `failed` row and costs nobody else's data.

    `whose` is what is known of it all the same: role, rank_id and step, as files beside it tell.
    """

    def __init__(self, *words: object, whose: Mapping[str, object] | None = None) -> None:
        super().__init__(*words)
        self.whose: Mapping[str, object] = whose or {}


class CacheError(RLInsightError):
    """A cached table is missing or damaged; the text says which folder to delete."""


class PluginError(UsageError):
    """A parser or visualizer of that name is not registered, or cannot be loaded."""
