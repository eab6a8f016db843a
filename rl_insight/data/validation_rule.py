"""What a rule is: it looks at data and returns findings."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from rl_insight.data.findings import Finding, shortened
from rl_insight.data.tree import Tree, scan
from rl_insight.errors import InputError, ReadError
from rl_insight.problems import Severity

_MOST_IN_MESSAGE = 20


class ValidationRule:
    """One check. A subclass has either `findings`, or `check`.

    `findings(data)` tells all that there is to say. `check(data)` says whether the data is good and
    leaves the reason in `self._error_message`; rules that were written for the predecessor of this
    package have it, and work as they are. Each is made of the other where it is missing.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    """The kinds of data that the rule is for: values of `DataEnum`, or a name of your own."""

    _error_message = ""

    def __init_subclass__(cls) -> None:
        own = (cls.findings, cls.check)
        if own == (ValidationRule.findings, ValidationRule.check):
            raise TypeError(f"the rule {cls.__name__} has neither `findings` nor `check`")

    def findings(self, data: object) -> Iterable[Finding]:
        """What there is to say about `data`."""
        if self.check(data):
            return []
        return [self.found("error", self.error_message or "the data does not satisfy this rule")]

    def check(self, data: object) -> bool:
        """Whether `data` is good; `error_message` tells why not."""
        errors = [str(one) for one in self.findings(data) if one.severity == "error"]
        self._error_message = "; ".join(shortened(errors, _MOST_IN_MESSAGE))
        return not errors

    @property
    def error_message(self) -> str:
        """Why the last `check` failed; "" where it did not."""
        return self._error_message

    def found(self, severity: Severity, message: str, path: str = "") -> Finding:
        """A finding of this rule."""
        return Finding(type(self).__name__, severity, message, path)


class TreeRule(ValidationRule):
    """A rule about the files of a folder, which is listed once for all rules of one check.

    A subclass has `look`. `findings` and `check` take the path of the folder, or its listing.
    """

    def look(self, tree: Tree) -> Iterator[Finding]:
        """What there is to say about the files in `tree`."""
        raise NotImplementedError

    def unreadable(self, tree: Tree, path: str, error: ReadError) -> Finding:
        """The finding that a file of `tree` cannot be read."""
        return self.found("error", str(error).removeprefix(f"{tree.absolute(path)} "), path)

    def findings(self, data: object) -> Iterable[Finding]:
        """What there is to say about the folder `data` (str, Path or Tree)."""
        try:
            return list(self.look(listing(data)))
        except InputError as error:
            return [self.found("error", str(error))]


def listing(data: object) -> Tree:
    """The listing of the folder that `data` names; a Tree is one already.

    Raises InputError where it is no path, is missing or cannot be listed.
    """
    if isinstance(data, Tree):
        return data
    if not isinstance(data, str | os.PathLike) or not os.fspath(data):
        raise InputError(f"the data is not a path: it is of the type {type(data).__name__}")
    try:
        return scan(Path(os.fsdecode(data)))
    except InputError as error:
        raise InputError(str(error).removeprefix("input.path: ")) from error
