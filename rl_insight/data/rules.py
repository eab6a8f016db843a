"""All rules by name, and how others are added.

Another package adds a rule through the entry point group `rl_insight.rules`; a script through
`register_rule`. The rules here are registered the same way.
"""

import difflib
from typing import Final, TypeVar

from rl_insight.data.ascend_rules import (
    AscendResultRule,
    MstxJsonFieldValidRule,
    MstxJsonFileExistsRule,
    ProfilerInfoRule,
    ProfilerMetadataRule,
)
from rl_insight.data.data_kinds import DataEnum
from rl_insight.data.findings import DataValidationError, Finding
from rl_insight.data.frame_rules import (
    GmmSummaryRule,
    MemorySummaryRule,
    ParserOutputValidatorRule,
    SummaryEventRule,
)
from rl_insight.data.gmm_rules import GmmDataRule, GroupListRule
from rl_insight.data.memory_rules import (
    AscendMemoryFieldValidRule,
    AscendMemoryFileExistsRule,
    CallStackTraceRule,
    OperatorMemoryRule,
)
from rl_insight.data.nvtx_rules import NvtxJsonFieldValidRule, NvtxJsonFileExistsRule
from rl_insight.data.path_rules import PathExistsRule, ReadableRule
from rl_insight.data.torch_rules import TorchJsonFieldValidRule, TorchJsonFileExistsRule
from rl_insight.data.validation_rule import TreeRule, ValidationRule
from rl_insight.data.verl_log_rules import VerlLogExistRule, VerlLogKeyParamsRule
from rl_insight.registry import Registry

RULES: Final[Registry[type[ValidationRule]]] = Registry("data rule", "rl_insight.rules")


class _RulesByKind(dict[str, list[ValidationRule]]):
    """The rules for each kind of data, made when they are first asked for."""

    def __missing__(self, kind: str) -> list[ValidationRule]:
        rules = [RULES.get(name) for name in RULES.names()]
        known = dict.fromkeys([*DataEnum, *(str(one) for rule in rules for one in rule.kinds)])
        if kind not in known:
            near = difflib.get_close_matches(str(kind), known, n=1)
            hint = f"; did you mean {str(near[0])!r}?" if near else ""
            text = f"Invalid data type: {str(kind)!r}{hint} (known: {', '.join(known)})"
            raise ValueError(text)
        self[kind] = [rule() for rule in rules if kind in rule.kinds]
        return self[kind]


RULES_BY_KIND: Final = _RulesByKind()
"""What `DataChecker` carries out. Of an unknown kind it raises ValueError, and PluginError where a
rule of another package cannot be loaded."""

Rule = TypeVar("Rule", bound=type[ValidationRule])


def register_rule(rule: Rule) -> Rule:
    """Add a rule, a class, under its own name; to be used as a decorator.

    It is carried out for data of its `kinds`, behind the rules that are there already. One of the
    same name is replaced.
    """
    RULES.register(rule.__name__, rule)
    for kind in {*rule.kinds} & RULES_BY_KIND.keys():
        others = [one for one in RULES_BY_KIND[kind] if type(one).__name__ != rule.__name__]
        RULES_BY_KIND[kind] = [*others, rule()]
    return rule


for _rule in (
    PathExistsRule,
    ReadableRule,
    MstxJsonFileExistsRule,
    MstxJsonFieldValidRule,
    TorchJsonFileExistsRule,
    TorchJsonFieldValidRule,
    NvtxJsonFileExistsRule,
    NvtxJsonFieldValidRule,
    AscendMemoryFileExistsRule,
    AscendMemoryFieldValidRule,
    GmmDataRule,
    GroupListRule,
    VerlLogExistRule,
    VerlLogKeyParamsRule,
    SummaryEventRule,
    GmmSummaryRule,
    MemorySummaryRule,
):
    register_rule(_rule)

__all__ = [
    "RULES",
    "RULES_BY_KIND",
    "AscendMemoryFieldValidRule",
    "AscendMemoryFileExistsRule",
    "AscendResultRule",
    "CallStackTraceRule",
    "DataValidationError",
    "Finding",
    "GmmDataRule",
    "GmmSummaryRule",
    "GroupListRule",
    "MemorySummaryRule",
    "MstxJsonFieldValidRule",
    "MstxJsonFileExistsRule",
    "NvtxJsonFieldValidRule",
    "NvtxJsonFileExistsRule",
    "OperatorMemoryRule",
    "ParserOutputValidatorRule",
    "PathExistsRule",
    "ProfilerInfoRule",
    "ProfilerMetadataRule",
    "ReadableRule",
    "SummaryEventRule",
    "TorchJsonFieldValidRule",
    "TorchJsonFileExistsRule",
    "TreeRule",
    "ValidationRule",
    "VerlLogExistRule",
    "VerlLogKeyParamsRule",
    "register_rule",
]
