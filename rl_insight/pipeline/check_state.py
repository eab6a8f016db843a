"""Whether an input is whole, and whether anything would be drawn of it."""

from dataclasses import replace
from typing import Literal

from rl_insight.data import packings
from rl_insight.data.ailment import Ailment
from rl_insight.data.health import Health
from rl_insight.data.tree import File, Tree
from rl_insight.parsers import Found, Parser
from rl_insight.parsers.gmm_names import GROUP_LIST
from rl_insight.pipeline import check_small
from rl_insight.problems import LEFTOVER, PACKED_OTHERWISE

State = Literal["whole", "growing", "damaged", "empty", "raw", "hopeless", "unreadable"]

Looked = list[tuple[File, Health]]
Ailments = list[tuple[str, Ailment]]
"""Pairs of a relative path and what is wrong there."""

_USABLE: tuple[State, ...] = ("whole", "damaged")


def state_of(looked: Looked, ailments: Ailments) -> State:
    """The state of an input as far as the ends of its files show."""
    formats = {health.format for _, health in looked}
    if formats and formats <= {"unreadable"}:
        return "unreadable"
    if formats <= {"empty", "zeros"}:
        return "empty"
    return "whole" if all(one.harmless for _, one in ailments) else "damaged"


def verdict(
    found: Found,
    parser: Parser,
    tree: Tree,
    looked: Looked,
    ailments: Ailments,
) -> tuple[State, bool, Ailments]:
    """State, whether anything is drawn of it, and ailments of an input that is to be parsed.

    Where its ends leave that open, the run's own parser tells.
    """
    state = state_of(looked, ailments)
    if check_small.is_doubtful(parser, looked):
        told = check_small.outcome(parser, found, tree.root)
        ailments = _as_told(found.path, told, ailments, of_one_file=len(looked) == 1)
        if told.status == "empty":
            return "empty", False, ailments
        if not told.gives:
            return "damaged", False, ailments
        return (
            "damaged" if any(not one.harmless for _, one in ailments) else "whole",
            True,
            ailments,
        )
    if len(looked) != 1 or not (file := looked[0][0]).size_bytes:
        gives = state in _USABLE and not _all_packed(parser, looked)
        return state, gives, ailments
    health = looked[0][1]
    if _has(ailments, PACKED_OTHERWISE):
        return "damaged", False, ailments
    if parser.name == "torch" and (health.format == "zeros" or _has(ailments, "wrong_content")):
        gives = check_small.trace_follows(tree.absolute(file.path))
        if gives and state == "empty":
            state = "damaged"
        return state, gives, ailments
    if parser.name == "nvtx" and health.format == "other":
        # Text of UTF-16 has a zero beside each letter.
        return state, b"table" in health.head.replace(b"\0", b""), ailments
    return state, state in _USABLE, ailments


def _as_told(
    path: str,
    told: check_small.Outcome,
    ailments: Ailments,
    *,
    of_one_file: bool,
) -> Ailments:
    """The ailments in agreement with what a run would say."""
    detail = told.detail
    if told.gives:
        # What a file is called is nobody's loss once it is read.
        kept = [(p, one) for p, one in ailments if one.code != "wrong_content" or not of_one_file]
        if told.status == "ok":
            # An Arrow stream may end without saying so.
            kept = [(p, one) for p, one in kept if one.code != "table_cut"]
        if told.status == "salvaged" and detail and all(one.harmless for _, one in kept):
            kept.append((path, Ailment("partly_read", detail)))
        return kept
    if detail is None:
        return ailments
    if not of_one_file:
        return [*ailments, (path, Ailment("gave_nothing", detail))]
    kept = [(p, one) for p, one in ailments if one.code == LEFTOVER]
    own = [one for _, one in ailments if not one.harmless]
    if told.status == "empty":
        return [*kept, (path, own[0] if own else Ailment("no_events", detail))]
    if not own:
        return [*kept, (path, Ailment("wrong_content", detail))]
    first = own[0]
    if first.code == "wrong_content" or first.kept is not None:
        # What its ends promised does not hold.
        first = replace(first, what=detail, kept=None)
    elif first.what.removeprefix("is ") in detail:
        first = replace(first, what=detail)
    else:
        first = replace(first, what=f"{first.what}; {detail}")
    return [*kept, (path, first)]


def _all_packed(parser: Parser, looked: Looked) -> bool:
    """Whether all results among several files are packed, by their names, in what is not read."""
    packed = any(packings.split(file.name)[1] for file, _ in looked)
    if parser.name == "gmm":
        return packed and not any(file.name.endswith(GROUP_LIST) for file, _ in looked)
    if parser.name == "nvtx":
        return all(packings.split(file.name)[1] for file, _ in looked)
    # A packed result is among the files of a capture where there is no other.
    return packed and parser.name == "mstx"


def _has(ailments: Ailments, code: str) -> bool:
    return any(one.code == code for _, one in ailments)
