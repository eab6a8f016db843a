"""What to say where a filter left out more than was meant: a name mistyped, a step unknown."""

import re
from collections.abc import Collection, Iterable, Sequence

from rl_insight.data import roles
from rl_insight.data.coverage_words import ranges
from rl_insight.plain_text import count

_ROLES = re.compile(r"roles? (.+) (?:is|are) not among the chosen roles")
_STEPS = "step unknown is not among the chosen steps"
_STEP = re.compile(r"step (\d+) is not among the chosen steps")
_MOST_NAMES = 12

_HOW = (
    "put the captures of each step into a folder step_<n>, or let input.identity tell it from the "
    "path (docs/data.md has an example for each profiler)"
)


def told_roles(detail: str | None) -> list[str]:
    """The roles that a capture has, of which its row says that they were not chosen."""
    match = _ROLES.match(detail or "")
    return [] if match is None else match[1].split(", ")


def kind(detail: str | None) -> str | None:
    """The filter that a row says it was left out by: `roles`; None for any other reason."""
    return "roles" if told_roles(detail) else None


def other_steps(details: Sequence[str]) -> list[str]:
    """A line that names the steps which the inputs have, where none was chosen: `details` are the
    reasons of all of them."""
    found = [match[1] for detail in details if (match := _STEP.match(detail))]
    steps = sorted({int(step) for step in found})
    if not steps:
        return []
    noun = "is step" if len(steps) == 1 else "are steps"
    return [f"no input has a chosen step; there {noun} {ranges(steps)}"]


def hints(
    wanted: Collection[str], known: Iterable[tuple[str | None, int | None]], details: Sequence[str]
) -> list[str]:
    """Lines for a person; `wanted` are the chosen roles, empty where all are.

    `known` are the roles of what was drawn or left out, with their replicas; `details` the reasons
    of the sources that were skipped.
    """
    there = {roles.lane_role_label(role, replica) for role, replica in known if role is not None}
    there |= {role for detail in details for role in told_roles(detail)} - {"unknown"}
    result = []
    for name in sorted(wanted):
        if there and not any(roles.matches(role, None, {name}) for role in there):
            listed = ", ".join(sorted(there)[:_MOST_NAMES])
            more = f" and {len(there) - _MOST_NAMES} more" if len(there) > _MOST_NAMES else ""
            result.append(f"no capture has the role {name}; there are {listed}{more}")
    unknown = sum(detail.startswith(_STEPS) for detail in details)
    if unknown:
        result.append(f"step unknown: {count(unknown, 'input')}; {_HOW}")
    return result
