"""The keys of the configuration as a flat table, read off the structures of the model."""

import re
import typing
from dataclasses import dataclass
from typing import Any

import msgspec

from rl_insight.config_kinds import Kind
from rl_insight.config_model import Config, Section


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the configuration."""

    name: str
    """Dotted, as in `timeline.parser.type`."""
    default: object
    type: str
    """The values that it takes, in words; code in backquotes."""
    description: str
    choices: tuple[str, ...]
    """The documented values, where they can be listed."""
    flag: str | None
    """The command line's flag, such as `--profiler-type`."""
    optional: bool
    """Whether null is a value."""
    kind: Kind


def _keys(section: type[Section], prefix: str) -> dict[str, Key]:
    keys = {}
    hints = typing.get_type_hints(section, include_extras=True)
    for item in msgspec.structs.fields(section):
        name = prefix + item.name
        hint = hints[item.name]
        if isinstance(hint, type) and issubclass(hint, Section):
            keys.update(_keys(hint, f"{name}."))
            continue
        meta: Any = hint.__metadata__[0]
        kind: Kind = meta.extra["kind"]
        default = item.default if item.default is not msgspec.NODEFAULT else item.default_factory()
        optional = type(None) in typing.get_args(hint.__origin__)
        keys[name] = Key(
            name=name,
            default=default,
            type=kind.text,
            description=meta.description,
            choices=kind.choices,
            flag=meta.extra["flag"],
            optional=optional,
            kind=kind,
        )
    return keys


KEYS: dict[str, Key] = _keys(Config, "")

SECTIONS: dict[str, str] = {}
"""Title of each part of the configuration that holds keys, by its dotted name."""


def _sections(section: type[Section], prefix: str) -> None:
    for name, hint in typing.get_type_hints(section).items():
        if isinstance(hint, type) and issubclass(hint, Section):
            SECTIONS[prefix + name] = (hint.__doc__ or "").strip()
            _sections(hint, f"{prefix}{name}.")


_sections(Config, "")


def plain(text: str) -> str:
    """`text` without the backquotes that mark code, for terminals and comments."""
    return re.sub(r"`([^`]*)`", r"\1", text)
