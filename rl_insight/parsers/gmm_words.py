"""What came of a dump, as a status and one sentence for a person."""

from rl_insight.parsers.base import Parsed
from rl_insight.parsers.gmm_discovery import DUMP
from rl_insight.parsers.gmm_dump import Dump
from rl_insight.parsers.gmm_vector import IMPOSSIBLE, NO_VECTOR
from rl_insight.plain_text import count
from rl_insight.problems import LEFTOVER, PACKED_OTHERWISE, Problems

_LIST = "group list"
# Each costs a row, and what the sentence calls it.
_LOST = ("unreadable", IMPOSSIBLE, LEFTOVER, PACKED_OTHERWISE)
_WHAT = {LEFTOVER: "a file of a killed writer", PACKED_OTHERWISE: "nothing of it can be read"}
_DAMAGED = {
    "dump_damaged": "its damaged dump.json may not tell what they hold",
    "stack_damaged": "its damaged stack.json may not tell their phase",
}


def settle(parsed: Parsed, dump: Dump | None, missing: int) -> None:
    """Fill `status` and `detail` of a dump that gave `parsed.events` rows.

    `missing` is how many group lists its dump.json names that have no file.
    """
    problems = parsed.problems
    example = f"named in {DUMP}, but there is no such file"
    problems.add("group_list_missing", "warning", missing, example=example)
    lost = [one for one in problems if one.code in _LOST and one.severity != "info"]
    damaged = [words for code, words in _DAMAGED.items() if code in problems]
    if not parsed.events:
        parsed.status, parsed.detail = _nothing(problems, dump, bool(lost or damaged))
        return
    sentences = []
    if lost:
        many = count(sum(one.count for one in lost), _LIST)
        first = f"{many} left out, the first {lost[0].example}"
        sentences.append(f"{first}; the {_kept(parsed.events)}")
    if "group_list_missing" in problems:
        sentences.append(_no_file(missing))
    if damaged:
        sentences.append("; ".join(damaged))
    if sentences:
        parsed.status, parsed.detail = "salvaged", "; ".join(sentences)
    elif NO_VECTOR in problems:
        many = count(problems.count(NO_VECTOR), _LIST)
        parsed.detail = f"{many} without numbers left out: {_example(problems, NO_VECTOR)}"


def _nothing(problems: Problems, dump: Dump | None, damage: bool) -> tuple[str, str | None]:
    """Why there is no row."""
    if damage:
        worst = next(one for one in problems if one.code in (*_LOST, *_DAMAGED))
        many = f", the first of {worst.count} such" if worst.count > 1 else ""
        what = _WHAT.get(worst.code, "nothing is left")
        return "failed", f"{what}: {worst.example}{many}"
    if NO_VECTOR in problems:
        example = _example(problems, NO_VECTOR)
        return "empty", f"none of its group lists holds a vector: {example}"
    if dump is None:
        return "empty", "it holds no group list"
    if dump.named:
        return "failed", _no_file(dump.named)
    if dump.described:
        return "empty", (
            'the dump has statistics only, not the group lists: set "task" to "tensor" in '
            "msprobe's configuration"
        )
    calls = count(dump.entries, "call")
    return "empty", f"no grouped matmul with a group list is among the {calls} in {DUMP}"


def _no_file(number: int) -> str:
    return f"{count(number, _LIST)} named in {DUMP} {'has' if number == 1 else 'have'} no file"


def _kept(number: int) -> str:
    return "one that could be read is kept" if number == 1 else f"other {number:,} are kept"


def _example(problems: Problems, code: str) -> str | None:
    return next((one.example for one in problems if one.code == code), None)
