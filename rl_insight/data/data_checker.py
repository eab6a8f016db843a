"""Carries out all rules for one kind of data: as findings, or all or nothing."""

from typing import ClassVar

from rl_insight.data.data_kinds import DataEnum
from rl_insight.data.findings import FAILED, DataValidationError, Finding
from rl_insight.data.rules import RULES_BY_KIND
from rl_insight.data.tree import Tree
from rl_insight.data.validation_rule import TreeRule, ValidationRule, listing
from rl_insight.errors import InputError

__all__ = ["DataChecker", "DataEnum", "DataValidationError"]


class DataChecker:
    """Checks `data`, which is to be of the kind `data_type`: a DataEnum, its value, or the name of
    a kind that a registered rule is for.

    A kind of folder takes its path (str or Path) or its listing (`rl_insight.data.tree.Tree`),
    `verl_log` the path of a file, the summaries take a pandas DataFrame. A folder is listed once,
    each file is read once, and memory does not grow with them.
    """

    rules: ClassVar[dict[str, list[ValidationRule]]] = RULES_BY_KIND
    """The rules for each kind, in the order in which they are carried out."""

    def __init__(self, data_type: DataEnum | str, data: object) -> None:
        self.data_type = data_type
        self.data = data

    def findings(self) -> list[Finding]:
        """All that the rules have to say, whatever its severity.

        Raises ValueError for a kind that there is no rule for, and PluginError where a rule of
        another package cannot be loaded.
        """
        found: list[Finding] = []
        tree: Tree | None = None
        for rule in self.rules[self.data_type]:
            if not isinstance(rule, TreeRule):
                found += rule.findings(self.data)
                continue
            if tree is None:
                try:
                    tree = listing(self.data)
                except InputError as error:
                    # That there is no such path has been said by the rule about that.
                    if not any(one.severity == "error" for one in found):
                        found.append(rule.found("error", str(error)))
                    break
            found += rule.look(tree)
        return found

    def run(self) -> list[Finding]:
        """All or nothing: raises DataValidationError when any finding is an error.

        Returns the findings that are none. Raises also what `findings` raises.
        """
        found = self.findings()
        errors = [str(one) for one in found if one.severity == "error"]
        if errors:
            raise DataValidationError(FAILED, errors, found)
        return found
