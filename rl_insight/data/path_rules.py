"""Rules about the folder itself, whatever lies in it."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rl_insight.data.data_kinds import FOLDER_KINDS
from rl_insight.data.findings import Finding
from rl_insight.data.tree import NOT_REGULAR, Tree
from rl_insight.data.validation_rule import TreeRule, ValidationRule


class PathExistsRule(ValidationRule):
    """The data is a path, and something is there."""

    kinds = FOLDER_KINDS

    def findings(self, data: object) -> Iterable[Finding]:
        """An error where there is none."""
        if isinstance(data, Tree):
            data = data.root
        if not isinstance(data, str | os.PathLike) or not os.fspath(data):
            kind = type(data).__name__
            return [self.found("error", f"the data is not a path: it is of the type {kind}")]
        path = Path(os.fsdecode(data))
        try:
            path.stat()
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            return [self.found("error", f"the path {str(path)!r} cannot be looked at: {why}")]
        return []


class ReadableRule(TreeRule):
    """Everything in the folder can be listed."""

    kinds = FOLDER_KINDS

    def look(self, tree: Tree) -> Iterator[Finding]:
        """An error for each folder or link that cannot be followed; devices are passed over."""
        for path, why in tree.unreadable:
            if why == NOT_REGULAR:
                yield self.found("info", "it is no regular file and is passed over", path)
            else:
                yield self.found("error", f"it cannot be read: {why}", path)
