"""The typed configuration: read it, check it, look things up in it.

The keys themselves are defined in `rl_insight.config_model`. Every error is a ConfigError of one
sentence that names the key, what is wrong with it, and what to write instead.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rl_insight.config_docs import json_schema, markdown_tables, yaml_text
from rl_insight.config_keys import KEYS, SECTIONS, Key
from rl_insight.config_model import PRESETS, Config
from rl_insight.config_values import (
    is_nothing,
    nearest,
    parse_names,
    parse_ranks,
    parse_steps,
)
from rl_insight.errors import ConfigError
from rl_insight.plain_text import shown

__all__ = [
    "KEYS",
    "PRESETS",
    "Config",
    "Key",
    "check_names",
    "from_mapping",
    "get",
    "heatmap_file",
    "json_schema",
    "markdown_tables",
    "nearest_keys",
    "output_folder",
    "parse_names",
    "parse_ranks",
    "parse_steps",
    "presets",
    "resolve",
    "slice_json",
    "to_mapping",
    "yaml_text",
]

# A matplotlib canvas ends at 2^16 pixels; half of that already takes a gigabyte.
LARGEST_WIDTH = 32_000

# The forms in which a heatmap is written; only such an `output.path` names a file.
_PICTURES = (".png", ".html")
_NO_PICTURES = (".jpg", ".jpeg", ".pdf", ".svg")


def from_mapping(nested: Mapping[str, object]) -> Config:
    """The configuration that `nested` (as YAML gives it; dotted keys too) and the defaults make.

    Raises ConfigError for an unknown key and for an impossible value.
    """
    return _build(dict(_flat(nested)))


def resolve(
    settings: Sequence[tuple[str, str]],
    config_path: str | None = None,
    preset: str | None = None,
) -> Config:
    """The configuration of a command line: defaults < preset < file < `settings`.

    `settings` are pairs of a dotted key and its text; of two with the same key the last counts.
    Raises ConfigError as `from_mapping` does, when the file is missing or is no YAML, and when
    nothing names the input folder.
    """
    given: dict[str, object] = {}
    if config_path is not None:
        try:
            given = _each_once(_flat(_read(config_path)))
            _build(given)
        except ConfigError as error:
            text = str(error)
            # The file's own errors name it already.
            raise ConfigError(
                text if text.startswith("Config file") else f"Config file {config_path}: {text}"
            ) from None
    given.update(settings)
    if preset is not None:
        given["preset"] = preset
    config = _build(given)
    if config.input.path is None:
        raise ConfigError(
            "input.path is required: name the folder to read with --input-path FOLDER"
            " (or input.path=FOLDER)"
        )
    return config


def get(config: Config, key: str) -> Any:
    """The value of a dotted key. Raises ConfigError for a key that does not exist."""
    if key not in KEYS:
        raise ConfigError(_unknown(key))
    value: Any = config
    for part in key.split("."):
        value = getattr(value, part)
    return value


def to_mapping(config: Config) -> dict[str, Any]:
    """Plain nested dictionaries, lists and scalars: what `from_mapping` reads back unchanged."""
    plain: dict[str, Any] = msgspec.to_builtins(config)
    return plain


def slice_json(config: Config, keys: Sequence[str]) -> str:
    """The values of some keys as JSON text that is equal if and only if the values are equal."""
    return json.dumps({key: get(config, key) for key in keys}, sort_keys=True)


def check_names(config: Config, known: Mapping[str, Sequence[str]]) -> None:
    """Check keys whose values other packages may extend; `known` lists what is there by key.

    Raises ConfigError for a name that is not in the list of its key.
    """
    for key, names in known.items():
        for name in parse_names(get(config, key)):
            if name in names:
                continue
            there = f"available are {', '.join(names)}" if names else "none is available"
            if name in KEYS[key].choices:
                raise ConfigError(f"{key}: {name} is not part of this installation ({there})")
            near = nearest(name, names)
            hint = f"; did you mean {near}?" if near else _elsewhere(key, name)
            raise ConfigError(f"{key}: {shown(name)} is not known{hint} ({there})")


def _elsewhere(key: str, name: str) -> str:
    """That the same key of another preset takes `name`; nothing where none does."""
    _, _, rest = key.partition(".")
    for other, known in KEYS.items():
        preset, _, rest_of_other = other.partition(".")
        if rest_of_other == rest and other != key and name in known.choices:
            return f"; {other} takes it: --preset {preset}"
    return ""


def output_folder(config: Config) -> Path:
    """The folder that everything is written to."""
    path = Path(config.output.path)
    return path.parent if _names_picture(config) else path


def heatmap_file(config: Config) -> str:
    """The name of the heatmap's PNG inside `output_folder`; its page has the same with .html."""
    if _names_picture(config):
        return Path(config.output.path).with_suffix(".png").name
    return "gmm_heatmap.png"


def presets(config: Config) -> tuple[str, ...]:
    """What is drawn: `timeline`, `heatmap` or both."""
    return ("timeline", "heatmap") if config.preset == "all" else (config.preset,)


def nearest_keys(key: str) -> tuple[str, ...]:
    """The keys that `key` was most likely meant to be, best first, at most two.

    Compares part by part from the end, so that a missing beginning does not matter.
    """
    import difflib

    parts = key.lower().replace("-", "_").split(".")
    ranked = []
    for name in KEYS:
        own = name.split(".")[-len(parts) :]
        if len(own) == len(parts):
            ratios = [
                difflib.SequenceMatcher(None, a, b).ratio() for a, b in zip(parts, own, strict=True)
            ]
            if min(ratios) >= 0.6:
                ranked.append((sum(ratios) / len(ratios), name))
    if not ranked:
        if len(parts) > 1:
            return ()
        # input_path, timeline_parser_type, profiler-type: other separators, or a flag's name.
        words = {name.replace(".", "_"): name for name in KEYS}
        words |= {k.flag[2:].replace("-", "_"): k.name for k in KEYS.values() if k.flag}
        close = nearest(parts[0], words)
        return (words[close],) if close else ()
    best = max(score for score, _ in ranked)
    return tuple(name for score, name in ranked if score == best)[:2]


def _names_picture(config: Config) -> bool:
    path = Path(config.output.path)
    return config.preset != "timeline" and path.suffix.lower() in _PICTURES and not path.is_dir()


def _flat(nested: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Dotted keys and values of nested mappings; sections are told from values by `KEYS`."""
    if not isinstance(nested, Mapping):
        raise ConfigError(f"the configuration is {shown(nested)}, not a mapping of keys to values")
    for own, value in nested.items():
        name = f"{prefix}{own}"
        if isinstance(value, Mapping) and name not in KEYS:
            # A misspelt section is named with its keys: the nearest right one is found so.
            if not value and name not in SECTIONS:
                raise ConfigError(_unknown(name))
            yield from _flat(value, f"{name}.")
        elif name in SECTIONS:
            if value is not None:
                raise ConfigError(
                    f"{name}: this is a section, not a value; its keys are {_keys_of(name)}"
                )
        else:
            yield name, value


def _each_once(pairs: Iterator[tuple[str, object]]) -> dict[str, object]:
    given: dict[str, object] = {}
    for name, value in pairs:
        if name in given:
            raise ConfigError(f"{name}: it stands twice, in dotted and in nested spelling")
        given[name] = value
    return given


def _build(given: Mapping[str, object]) -> Config:
    """The configuration of dotted keys and values; fills in defaults and the preset."""
    nested: dict[str, Any] = {}
    for name, value in given.items():
        key = KEYS.get(name)
        if key is None:
            if name in SECTIONS:
                raise ConfigError(
                    f"{name}: this is a section, not a value; its keys are {_keys_of(name)}"
                )
            raise ConfigError(_unknown(name))
        *sections, last = name.split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = _value(key, value)
    if given.get("preset") is None or is_nothing(given["preset"]):
        heatmap = any(name.startswith("heatmap.") for name in given)
        nested["preset"] = "heatmap" if heatmap else "timeline"
    config = msgspec.convert(nested, Config)
    _check_whole(config)
    return config


def _value(key: Key, value: object) -> object:
    if value is None or value in ("null", "~") or (key.optional and is_nothing(value)):
        return key.default
    if key.name == "preset" and str(value).strip().lower() not in PRESETS:
        raise ConfigError(f"Unknown preset: {value}. Supported presets: {', '.join(PRESETS)}")
    if isinstance(value, Mapping):
        raise ConfigError(f"{key.name}: this is one value, not a section")
    try:
        return key.kind.read(value)
    except ValueError as error:
        raise ConfigError(f"{key.name}: {error}") from None


def _check_whole(config: Config) -> None:
    """What single values cannot tell."""
    visualizer = config.timeline.visualizer
    width = visualizer.width * visualizer.scale
    if width > LARGEST_WIDTH:
        raise ConfigError(
            f"timeline.visualizer.width: {visualizer.width} × scale {visualizer.scale:g} is"
            f" {width:.0f} pixels; at most {LARGEST_WIDTH} can be drawn"
        )
    path = Path(config.output.path)
    if config.preset != "timeline" and path.suffix.lower() in _NO_PICTURES and not path.is_dir():
        raise ConfigError(
            f"output.path: a heatmap is written as {' or '.join(_PICTURES)}, not as"
            f" {path.suffix}; did you mean {path.with_suffix('.png')}?"
        )


def _unknown(name: str) -> str:
    near = nearest_keys(name)
    if near:
        return f"{name}: there is no such key; did you mean {' or '.join(near)}?"
    tops = ", ".join(section for section in SECTIONS if "." not in section)
    return f"{name}: there is no such key; keys begin with {tops}"


def _keys_of(section: str) -> str:
    return ", ".join(name for name in KEYS if name.startswith(f"{section}."))


def _read(config_path: str) -> Mapping[str, object]:
    from rl_insight.config_file import read

    return read(config_path)
