"""What stands on the command line: flags, `key=value` words, and what goes to Snakemake."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rl_insight.config import KEYS, nearest_keys
from rl_insight.config_values import nearest
from rl_insight.errors import UsageError
from rl_insight.plain_text import shown

# Flags of the configuration's keys, of which those of a switch need no value.
_KEY_FLAGS = {key.flag: key for key in KEYS.values() if key.flag}

# Flags that belong to this run only, with the word that stands for their value in the help.
RUN_FLAGS = {"--config-path": "FILE", "--cores": "N", "--profile": "DIR"}
_SWITCHES = {
    "-n": "dry_run",
    "--dry-run": "dry_run",
    "--unlock": "unlock",
}
_ACTIONS: dict[str, Literal["help", "version"]] = {
    "-h": "help",
    "--help": "help",
    "--version": "version",
}

# What other programs call these.
_OTHER_NAMES = {
    "-c": "--cores",
    "-j": "--cores",
    "--jobs": "--cores",
    "-i": "--input-path",
    "--input": "--input-path",
    "-o": "--output-path",
    "--output": "--output-path",
    "--config": "--config-path",
    "--configfile": "--config-path",
    "--ranks": "--rank-list",
    "--dryrun": "--dry-run",
    "-V": "--version",
    "-v": "--version",
}


@dataclass(slots=True)
class Arguments:
    """A command line, taken apart; values of configuration keys are not checked yet."""

    action: Literal["run", "help", "version"] = "run"
    settings: list[tuple[str, str]] = field(default_factory=list)
    config_path: str | None = None
    preset: str | None = None
    cores: int | None = None
    """None is all of the machine."""
    profile: str | None = None
    dry_run: bool = False
    unlock: bool = False
    snakemake_args: tuple[str, ...] = ()


def parse(argv: Sequence[str]) -> Arguments:
    """Take a command line apart.

    Raises UsageError, naming the nearest flag, for a flag or a word that means nothing.
    """
    result = Arguments()
    words = iter(argv)
    for word in words:
        if word == "--":
            result.snakemake_args = tuple(words)
        elif word.startswith("-") and word != "-":
            _flag(word, words, result)
        elif "=" in word:
            _set(result, *_split(word))
        else:
            raise UsageError(_unexpected(word))
    return result


def _flag(word: str, words: Iterator[str], result: Arguments) -> None:
    name, equals, value = word.partition("=")
    if name in _SWITCHES or name in _ACTIONS:
        if equals:
            raise UsageError(f"{name} takes no value")
        if name in _ACTIONS:
            # Asking for help wins over everything else, whatever order they stand in.
            result.action = _ACTIONS[name]
        else:
            setattr(result, _SWITCHES[name], True)
    elif name in RUN_FLAGS:
        _set(result, name[2:].replace("-", "_"), value if equals else _next(name, words))
    elif name in _KEY_FLAGS:
        key = _KEY_FLAGS[name]
        if not equals:
            value = "true" if isinstance(key.default, bool) else _next(name, words)
        _set(result, key.name, value)
    else:
        raise UsageError(_unknown_flag(name, f"={value}" if equals else ""))


def _next(name: str, words: Iterator[str]) -> str:
    value = next(words, None)
    if value is None or value == "--" or value.split("=")[0] in _known_flags():
        raise UsageError(f"{name} needs a value")
    return value


def _split(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name.strip(), value


def _set(result: Arguments, name: str, value: str) -> None:
    if name == "config_path":
        result.config_path = value
    elif name == "preset":
        result.preset = value
    elif name == "cores":
        result.cores = _cores(value)
    elif name == "profile":
        result.profile = value
    else:
        result.settings.append((name, value))


def _cores(value: str) -> int | None:
    if value.strip().lower() == "all":
        return None
    # Not isdecimal(): it takes digits of any script. No number of cores has more than seven.
    if re.fullmatch(r"[0-9]{1,7}", value.strip()) and 1 <= int(value) <= 1_000_000:
        return int(value)
    raise UsageError(f"--cores: {shown(value)} is neither a whole number from 1 nor all")


def _unknown_flag(name: str, value: str) -> str:
    text = f"there is no flag {name}"
    keys = nearest_keys(name.lstrip("-"))
    close = _OTHER_NAMES.get(name) or nearest(name.replace("_", "-"), _known_flags(), cutoff=0.7)
    if close and "." not in name:
        return f"{text}; did you mean {close}?"
    if keys:
        return f"{text}; did you mean {keys[0]}{value or '=…'}?"
    return f"{text}; options for Snakemake stand after --, see --help for all others"


def _known_flags() -> list[str]:
    return [*_KEY_FLAGS, *RUN_FLAGS, *_SWITCHES, *_ACTIONS]


def _unexpected(word: str) -> str:
    # Not by pathlib: it raises where a word is too long to name a file.
    if os.path.exists(word):  # noqa: PTH110
        yaml = Path(word).is_file() and Path(word).suffix in (".yaml", ".yml")
        flag = "--config-path" if yaml else "--input-path"
        return f"unexpected word {word!r}; did you mean {flag} {word}?"
    text = f"unexpected word {shown(word)}"
    close = nearest(f"--{word}", _known_flags(), cutoff=0.8)
    if close:
        return f"{text}; did you mean {close}?"
    keys = nearest_keys(word)
    return f"{text}; did you mean {keys[0]}=…?" if keys else f"{text}; see --help"
