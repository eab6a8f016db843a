"""What an expression of `input.identity` has to be, for the configuration and for its use."""

import re
from typing import Final

from rl_insight.plain_text import shown

IDENTITY_GROUPS: Final = ("role", "rank", "step", "replica", "host")
"""The named groups that an expression may have."""


def identity_expression(value: object) -> re.Pattern[str]:
    """The regular expression that `value` is.

    Raises ValueError when it is none, has no named group, or has one that means nothing. Its text
    completes the sentence «input.identity: …».
    """
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not a regular expression")
    try:
        pattern = re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{shown(value)} is not a regular expression: {error}") from None
    groups = ", ".join(IDENTITY_GROUPS)
    for group in pattern.groupindex:
        if group not in IDENTITY_GROUPS:
            raise ValueError(f"{shown(value)} names the group {group!r}; allowed are {groups}")
    if not pattern.groupindex:
        raise ValueError(
            f"{shown(value)} has no named group, such as (?P<rank>\\d+); allowed are {groups}"
        )
    return pattern
