"""A YAML file of configuration: its text stays text, and its mistakes are told with the line.

YAML's guesses (`010` is eight, `2024-01-02` a date, `no` false) are not wanted here: each key
knows what its values look like, and a file shall mean what the same text on a command line means.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from rl_insight.errors import ConfigError

# A file that gives every key a value has a few thousand.
_MOST_BYTES = 1_000_000


def read(path: str) -> Mapping[str, object]:
    """The mapping that the file holds; all scalars are text, and null where nothing stands.

    Raises ConfigError when there is no such file, when it cannot be read or is no YAML mapping.
    """
    if not path.strip():
        raise ConfigError("Config file: its path is empty; write --config-path FILE")
    try:
        file = Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"Config file {path}: {error}") from None
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise ConfigError(
                f"Config file {path}: it has more than {_MOST_BYTES:,} bytes, "
                "and is no configuration"
            )
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"Config file not found: {path}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"Config file {path}: it is not text: {error}") from None
    except OSError as error:
        raise ConfigError(f"Config file {path}: it cannot be read: {error.strerror}") from None
    try:
        content = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"Config file {path}{line}: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"Config file {path}: it is not YAML: {error}") from None
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise ConfigError(
            f"Config file {path}: it must hold keys and values such as 'input:' and, indented"
            " below it, 'path: FOLDER'"
        )
    return content


class _Loader(yaml.SafeLoader):
    """SafeLoader without the guessing of types, and with an eye on keys that stand twice."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        """The value of a node; what its tag does not fit is told with its line."""
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            raise yaml.constructor.ConstructorError(
                None, None, f"the value is no {tag}; leave the tag away", node.start_mark
            ) from None


def _scalar(loader: _Loader, node: yaml.ScalarNode) -> str | None:
    # Only a plain scalar has no style: "null" in quotes is the word.
    if node.style is None and node.value in ("", "~", "null", "Null", "NULL"):
        return None
    return str(loader.construct_scalar(node))


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[object, object]:
    seen: dict[object, object] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | None):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be a word", key_node.start_mark
            )
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} stands twice", key_node.start_mark
            )
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


_Loader.add_constructor("tag:yaml.org,2002:str", _scalar)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
