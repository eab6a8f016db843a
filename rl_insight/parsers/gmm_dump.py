"""What dump.json says of the group lists of a rank: their kind, or their very numbers.

msprobe writes one entry for each call, with its arguments: a tensor comes as its type, shape and
some statistics (`data_name` names its file), a number as `{"type": "int", "value": 1}`, a list
element by element, None as null; the file may have hundreds of megabytes.

Sources: msprobe, core/dump/data_dump/{json_writer,data_processor/base}.py; the argument
`group_list_type` and its default: torch_npu.npu_grouped_matmul.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from rl_insight.data.name_facts import whole
from rl_insight.errors import ReadError
from rl_insight.parsers.gmm_calls import CallNumbers
from rl_insight.parsers.gmm_names import KINDS, Call, call, may_have_group_list, takes_type
from rl_insight.problems import Problems
from rl_insight.readers.json_entries import entries
from rl_insight.readers.json_members import decode_loosely

# The entry of one call: with 10,000 weights it has some megabytes.
_LONGEST_ENTRY = 8 << 20

_KEYS = ("group_list", "group_list_type")


class _Arguments(msgspec.Struct, gc=False):
    group_list: Any = None
    group_list_type: Any = msgspec.UNSET


class _Entry(msgspec.Struct, gc=False):
    input_kwargs: _Arguments | None = None


_ENTRY = msgspec.json.Decoder(_Entry)


@dataclass(slots=True)
class Dump:
    """What one dump.json tells.

    `kinds` has 1 + the place in KINDS for each call that says what its group list holds. Of the
    `entries`, one for each call, `described` have a tensor as group list, `lists` a list whose
    numbers stand there. `files` has 1 for each call whose tensor has a file, `named` is their
    number. `task` is msprobe's.
    """

    task: str | None = None
    kinds: CallNumbers = field(default_factory=CallNumbers)
    files: CallNumbers = field(default_factory=CallNumbers)
    entries: int = 0
    described: int = 0
    named: int = 0
    lists: int = 0

    def kind(self, one: Call) -> str | None:
        """What the group list of a call holds, if the dump says it."""
        found = self.kinds.get(one)
        return KINDS[found - 1] if found else None


def read(path: Path, problems: Problems) -> Dump:
    """What the dump.json at `path` says; what is damaged in it is a problem, never an error."""
    dump = Dump()
    for key, text in _entries(path, problems):
        if key == "task" and text is not None:
            dump.task = _text(text)
        one = call(key)
        if one is None:
            continue
        dump.entries += 1
        arguments = _arguments(key, text, problems)
        if arguments is None:
            continue
        given = arguments.group_list
        if isinstance(given, list):
            dump.lists += 1
        elif isinstance(given, dict):
            dump.described += 1
            if given.get("data_name") and not dump.files.get(one):
                dump.named += 1
                dump.files.put(one, 1)
        kind = _kind(one, arguments, problems)
        if kind is not None:
            dump.kinds.put(one, 1 + kind)
    return dump


def lists(path: Path) -> Iterator[tuple[Call, list[Any]]]:
    """The calls whose group list stands in the dump.json at `path`, with its elements."""
    problems = Problems()  # `read` has told them
    for key, text in _entries(path, problems):
        one = call(key)
        arguments = None if one is None else _arguments(key, text, problems)
        if one is not None and arguments is not None and isinstance(arguments.group_list, list):
            yield one, [_value(element) for element in arguments.group_list]


def _entries(path: Path, problems: Problems) -> Iterator[tuple[str, bytes | None]]:
    own = Problems()
    try:
        yield from entries(path, own, _LONGEST_ENTRY, inside="data")
    except ReadError as error:
        problems.add("dump_damaged", "warning", example=str(error))
    for one in own:
        if one.severity != "info":
            example = f"{path.name}: {one.example}"
            problems.add("dump_damaged", one.severity, one.count, one.offset, example)


def _arguments(key: str, text: bytes | None, problems: Problems) -> _Arguments | None:
    """The arguments of a call that takes a group list; None of another call."""
    if text is None:
        if may_have_group_list(key.encode("utf-8", "replace")):
            example = f"{key} has more than {_LONGEST_ENTRY} bytes"
            problems.add("dump_damaged", "warning", example=example)
        return None
    if b'"group_list"' not in text:
        return None
    try:
        return _ENTRY.decode(text).input_kwargs
    except msgspec.MsgspecError:
        pass
    # JSON of Python may say NaN.
    try:
        entry = decode_loosely(text)
    except ValueError as error:
        problems.add("dump_damaged", "warning", example=f"{key}: {error}")
        return None
    kwargs = entry.get("input_kwargs") if isinstance(entry, dict) else None
    if not isinstance(kwargs, dict):
        return None
    return _Arguments(**{name: kwargs[name] for name in _KEYS if name in kwargs})


def _kind(one: Call, arguments: _Arguments, problems: Problems) -> int | None:
    """The place in KINDS, which is the number that the call was given."""
    given = arguments.group_list_type
    if given is msgspec.UNSET or given is None:
        return 0 if takes_type(one.api) else None
    kind = whole(_value(given))
    if kind is None or kind >= len(KINDS):
        example = f"group_list_type of {one.api} {one.number} is {given!r:.100}"
        problems.add("odd_group_list_type", "warning", example=example)
        return None
    return kind


def _value(described: object) -> object:
    return described.get("value") if isinstance(described, Mapping) else described


def _text(text: bytes) -> str | None:
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.MsgspecError:
        return None
