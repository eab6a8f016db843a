"""What the values of the configuration may look like, and the one way in which each is written.

A value comes from a command line, where everything is text, or from YAML, where `rank_list: 0` is
a number, `[0, 1]` a list and `"0,1"` text. Each `Kind` reads all of these and gives the canonical
form, so that two spellings of one thing never count as a change. Whatever it refuses it refuses
with ValueError, whose text completes the sentence «<key>: …».
"""

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rl_insight.config_values import nearest, parse_intervals, parse_names, write_intervals
from rl_insight.identity_expressions import IDENTITY_GROUPS, identity_expression
from rl_insight.plain_text import shown

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value: how it is described, checked in an editor, and read."""

    text: str
    schema: Mapping[str, object]
    read: Callable[[object], object]
    choices: tuple[str, ...] = ()
    many: bool = field(default=False)
    """Whether several values may stand in one, separated by commas."""


def path_kind(what: str) -> Kind:
    """A path; `~` is the home folder."""
    text = text_kind(what)

    def read(value: object) -> str:
        # A shell leaves the ~ in input.path=~/run alone. Path.expanduser() raises where there is
        # no such user, os.path leaves the name as it is.
        return os.path.expanduser(str(text.read(value)))  # noqa: PTH111

    return Kind(what, text.schema, read)


def text_kind(what: str) -> Kind:
    """Free text such as a path; it must not be empty nor hold control characters."""

    def read(value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float | Path):
            raise ValueError(f"{shown(value)} is not a {what}")
        text = str(value)
        if not text.strip():
            raise ValueError("it is empty")
        if any(ord(character) < 32 for character in text):
            raise ValueError(f"{shown(text)} holds a control character")
        try:
            # Bytes of a path that are no UTF-8 come as surrogates too, but of a range of their own.
            text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise ValueError(f"{shown(text)} holds half a character") from None
        return text

    return Kind(what, {"type": "string"}, read)


def choice(*choices: str) -> Kind:
    """Exactly one of `choices`."""

    def read(value: object) -> str:
        return _one_of(value, choices)

    return Kind(_listed(choices), {"enum": list(choices)}, read, choices)


def name_kind(*choices: str) -> Kind:
    """One name; `choices` are the documented ones, but another package may add more."""

    def read(value: object) -> str:
        names = _names(value)
        if len(names) != 1:
            raise ValueError(f"exactly one name is needed, not {shown(value)}")
        return names[0]

    return Kind(_listed(choices), {"type": "string"}, read, choices)


def names_kind(*choices: str) -> Kind:
    """Names separated by commas, or a list of them; `choices` are the documented ones."""

    def read(value: object) -> str:
        names = _names(value)
        if not names:
            raise ValueError("it names nothing")
        return ",".join(names)

    what = f"{_listed(choices)}; several by comma" if choices else "names, several by comma"
    schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    return Kind(what, schema, read, choices, many=True)


def numbers_kind(what: str, everything: str | None) -> Kind:
    """`0,1,4-7` as text, number or list; `all` gives `everything`."""

    def read(value: object) -> str | None:
        text = ",".join(_items(value))
        if text.strip().lower() == "all":
            return everything
        try:
            return write_intervals(parse_intervals(text))
        except ValueError as error:
            raise ValueError(f"{error} (allowed are all or numbers such as 0,1,4-7)") from None

    schema = {
        "anyOf": [
            {"type": "string"},
            {"type": "integer", "minimum": 0},
            {"type": "array", "items": {"type": ["integer", "string"]}},
        ]
    }
    return Kind(what, schema, read, many=True)


def whole(low: int, high: int, word: str | None = None) -> Kind:
    """A whole number from `low` to `high`, or `word`."""
    what = f"whole number from {low} to {high}" + (f", or `{word}`" if word else "")

    def read(value: object) -> int | str:
        text = str(value).strip()
        if word is not None and text.lower() == word:
            return word
        if isinstance(value, bool) or not re.fullmatch(r"[+-]?\d{1,18}(\.0+)?", text, re.ASCII):
            raise ValueError(f"{shown(value)} is not a {what.replace('`', '')}")
        number = int(text.partition(".")[0])
        if not low <= number <= high:
            raise ValueError(f"{number} is not a {what.replace('`', '')}")
        return number

    schema: dict[str, object] = {"type": "integer", "minimum": low, "maximum": high}
    return Kind(what, {"anyOf": [schema, {"const": word}]} if word else schema, read)


def number(low: float, high: float) -> Kind:
    """A number from `low` to `high`; a whole one stays whole."""
    what = f"number from {low:g} to {high:g}"

    def read(value: object) -> float:
        try:
            text = str(value)
            # float() takes digits of any script.
            given = math.nan if isinstance(value, bool) or not text.isascii() else float(text)
        except ValueError:
            given = math.nan
        if not low <= given <= high:
            raise ValueError(f"{shown(value)} is not a {what}")
        return int(given) if given.is_integer() else given

    return Kind(what, {"type": "number", "minimum": low, "maximum": high}, read)


def switch() -> Kind:
    """True or false."""

    def read(value: object) -> bool:
        word = str(value).strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise ValueError(f"{shown(value)} is neither true nor false")

    return Kind("`true` or `false`", {"type": "boolean"}, read)


def identity_kind() -> Kind:
    """One regular expression, or a list of them, with named groups of `IDENTITY_GROUPS`."""
    groups = ", ".join(IDENTITY_GROUPS)

    def read(value: object) -> list[str]:
        expressions = [value] if isinstance(value, str) else value
        if not isinstance(expressions, Sequence):
            raise ValueError(f"{shown(value)} is not a regular expression, nor a list of them")
        return [identity_expression(item).pattern for item in expressions]

    schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    return Kind(f"regular expressions with named groups of {groups}", schema, read)


def _items(value: object) -> list[str]:
    """The text of a value, or of each item of a list."""
    if isinstance(value, bool):
        raise ValueError(f"{shown(value)} is neither text nor a list")
    if isinstance(value, str | int | float):
        return [str(value)]
    if not isinstance(value, Sequence | frozenset | set):
        raise ValueError(f"{shown(value)} is neither text nor a list")
    return [text for item in value for text in _items(item)]


def _names(value: object) -> tuple[str, ...]:
    return parse_names(",".join(_items(value)))


def _one_of(value: object, choices: Sequence[str]) -> str:
    for name in choices:
        if str(value).strip().lower() == name.lower():
            return name
    near = nearest(str(value), choices)
    hint = f"; did you mean {near}?" if near else ""
    allowed = "the only value is" if len(choices) == 1 else "allowed are"
    raise ValueError(f"{shown(value)} is not known{hint} ({allowed} {', '.join(choices)})")


def _listed(choices: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in choices)
