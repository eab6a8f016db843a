"""Which ranges are stages in a capture that names none of the known ones.

Then the outermost ranges of the default domain are: that is what somebody marks who profiles a
training step. Not stages are what libraries and torch put around each of their calls, numbers of
steps and batches (what lies inside those may be), and what is called so often that it is a part
and no stage.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from rl_insight.data import roles
from rl_insight.parsers.annotations import Annotations, batch_of
from rl_insight.parsers.nvtx_capture import DEFAULT_DOMAIN
from rl_insight.parsers.nvtx_names import UNNAMED, operator_name
from rl_insight.problems import Problems

# A timeline of more rows, or of more bars in each, is none of stages.
MOST_ROLES: Final = 16
MOST_CALLS: Final = 1_000
# Stages that account for less of the marked time than this are not what the marks are about.
_LEAST_SHARE: Final = 0.5

_COUNTED: Final = re.compile(
    r"(?:(?:global|train|training|profile|profiling|profiler|optimizer|engine)[-_ ]?)?"
    r"(?:step|iter|iteration|epoch|(?:mini|micro)?[-_ ]?batch|frame|round|warm[-_ ]?up)s?"
    r"[\s_#:=.-]*[0-9]*(?:\s*(?:of|/)\s*[0-9]+)?|[0-9]+",
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(r"(.*?[A-Za-z])[\s_#:=.-]*[0-9]+", re.DOTALL)


@dataclass(slots=True)
class _Calls:
    count: int = 0
    total_ns: int = 0


def names_known(annotations: Annotations, path_role: str | None) -> bool:
    """Whether any of `annotations` names a known stage, or the role of the path."""
    names = {one.name for one in annotations}
    found = {roles.canonical(name) for name in names}
    own = roles.bare(path_role) if path_role is not None else None
    return bool(found & roles.STAGES) or (own in found and own not in roles.WHOLE_STEP)


def top_level(annotations: Annotations, problems: Problems) -> dict[str, str]:
    """The role of each name that is a stage; counts the calls that are none in `problems`."""
    found = _outermost(annotations)
    calls: dict[str, _Calls] = defaultdict(_Calls)
    role_of = _roles(list(found))
    for name, own in found.items():
        calls[role_of[name]].count += own.count
        calls[role_of[name]].total_ns += own.total_ns
    chosen: dict[str, _Calls] = {}
    room = MOST_CALLS
    for role, own in sorted(calls.items(), key=lambda item: (-item[1].total_ns, item[0])):
        if own.count <= room and len(chosen) < MOST_ROLES:
            chosen[role] = own
            room -= own.count
    every = sum(own.total_ns for own in calls.values())
    if sum(own.total_ns for own in chosen.values()) < _LEAST_SHARE * every:
        chosen = {}
    left = [role for role in calls if role not in chosen]
    problems.add(
        "top_level_left_out",
        "info",
        sum(calls[role].count for role in left),
        example=f"{left[0]!r} is called too often to be a stage" if left else None,
    )
    return {name: role for name, role in role_of.items() if role in chosen}


def _outermost(annotations: Annotations) -> dict[str, _Calls]:
    """The ranges of the default domain that lie in no other such on their thread, by name."""
    found: dict[str, _Calls] = defaultdict(_Calls)
    reach: dict[str, int] = {}
    eligible: dict[str, bool] = {}
    for one in annotations:
        if one.name not in eligible:
            eligible[one.name] = _may_be_stage(one.name)
        if one.domain != DEFAULT_DOMAIN or not eligible[one.name]:
            continue
        if one.end_ns <= reach.get(one.tid, one.start_ns):
            continue
        reach[one.tid] = one.end_ns
        found[one.name].count += 1
        found[one.name].total_ns += one.end_ns - one.start_ns
    return found


def _may_be_stage(name: str) -> bool:
    return not (
        name == UNNAMED
        or name in roles.WHOLE_STEP
        or operator_name(name)
        or batch_of(name) != (None, None)
        or _COUNTED.fullmatch(name.strip())
    )


def _roles(names: list[str]) -> dict[str, str]:
    """The role of each name; those that differ only in a number at the end are one role."""
    stems: dict[str, list[str]] = defaultdict(list)
    for name in names:
        numbered = _NUMBERED.fullmatch(name)
        stems[numbered[1] if numbered else name].append(name)
    return {
        name: roles.canonical(stem if len(own) > 1 else name)
        for stem, own in stems.items()
        for name in own
    }
