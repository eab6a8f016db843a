"""`input.identity`: the user's own regular expressions for whose a capture is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rl_insight.data.name_facts import INT32, INT64, NameFacts, whole
from rl_insight.errors import ConfigError
from rl_insight.identity_expressions import identity_expression


@dataclass(frozen=True, slots=True)
class UserRules:
    """The compiled expressions; of several the first that tells a field counts."""

    patterns: tuple[re.Pattern[str], ...] = ()

    def read(self, path: str) -> tuple[NameFacts, tuple[str, ...]]:
        """What the expressions find in the relative `path`, and a sentence per impossible value."""
        told: dict[str, str] = {}
        for pattern in self.patterns:
            match = pattern.search(path)
            for group, text in (match.groupdict() if match else {}).items():
                if text:
                    told.setdefault(group, text)
        rank = whole(told.get("rank"), INT32)
        step = whole(told.get("step"), INT64)
        replica = whole(told.get("replica"), INT32)
        wrong = tuple(
            f"input.identity finds the {group} {told[group]!r}, which is no number that fits; "
            "it is passed over"
            for group, value in (("rank", rank), ("step", step), ("replica", replica))
            if group in told and value is None
        )
        facts = NameFacts(
            role=told.get("role"), rank=rank, step=step, replica=replica, host=told.get("host")
        )
        return facts, wrong


def compile_rules(expressions: str | Sequence[object] | None) -> UserRules:
    """The rules of `input.identity`: one regular expression, a list of them, or nothing.

    Raises ConfigError when one is no expression, has no named group, or has one that means nothing.
    """
    if not expressions:
        return UserRules()
    listed = [expressions] if isinstance(expressions, str) else expressions
    return UserRules(tuple(_compiled(expression) for expression in listed))


def _compiled(expression: object) -> re.Pattern[str]:
    try:
        return identity_expression(expression)
    except ValueError as error:
        raise ConfigError(f"input.identity: {error}") from None
