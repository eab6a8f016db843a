"""`rl-insight check`: its help, and its words taken apart."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rl_insight.config import KEYS, parse_ranks
from rl_insight.config_model import PRESETS
from rl_insight.data.identity import UserRules, compile_rules
from rl_insight.errors import UsageError
from rl_insight.parsers import PARSERS
from rl_insight.pipeline.check import Census, take_census
from rl_insight.pipeline.check_json import as_json
from rl_insight.pipeline.check_report import report
from rl_insight.pipeline.discovery import AUTO, parser_names

HELP = """\
usage: rl-insight check FOLDER [--json] [--profiler-type NAME] [--preset NAME] [--rank-list RANKS]
                               [--identity REGEX] [--settle SECONDS]

Says what lies below FOLDER, or what one file is, before anything is drawn: which roles, steps and
ranks, in which formats and sizes, what is missing, what is damaged, and what to do about it. It
looks at the beginning and the end of each file only, so it takes seconds where a run takes minutes,
and does not see damage that lies between. It writes nothing.

Of captures of nsys it tells the rank where the file's name has the worker's process id, as Ray's
have; their stages and steps, and ranks below a launcher, are known only once they are read.

  --json                Print one JSON object instead of the table.
  --profiler-type NAME  Look for captures of this kind only: torch, mstx, nvtx. Default: all.
  --preset NAME         Look for what this draws only: timeline, heatmap. Default: all.
  --rank-list RANKS     Look at these ranks only: 0,1,4-7. Default: all.
  --identity REGEX      As input.identity: what in a path is role, rank, step, replica, host.
                        May be given several times.
  --settle SECONDS      What changed less than so many seconds ago is still being written, and not
                        damaged. Default: 1; 0 takes everything for final.

Exit codes: 0 all is there and whole, 1 there is nothing to draw, 2 the command is mistaken,
3 something is damaged, empty or missing.
"""

_VALUES = ("--profiler-type", "--preset", "--rank-list", "--identity", "--settle")


@dataclass(frozen=True, slots=True)
class CheckOrder:
    """What is asked for; `presets` and `profiler_type` say which parsers look."""

    folder: Path
    presets: tuple[str, ...]
    profiler_type: str
    ranks: frozenset[int] | None
    rules: UserRules
    as_json: bool = False
    settle_s: float = 1


def command(words: Sequence[str]) -> int:
    """Run `rl-insight check WORDS`; gives the exit code.

    Raises UsageError for words that mean nothing, InputError for a folder that cannot be listed.
    """
    if "-h" in words or "--help" in words:
        print(HELP, end="")
        return 0
    order = parse(words)
    wanted = {
        preset: parser_names(order.profiler_type if preset == "timeline" else AUTO, preset)
        for preset in order.presets
    }
    census = take_census(order.folder, wanted, order.rules, order.ranks, order.settle_s)
    code = exit_code(census)
    print(as_json(census, code) if order.as_json else "\n".join(report(census)))
    return code


def exit_code(census: Census) -> int:
    """1 there is nothing to draw, 3 something is damaged or missing, else 0."""
    if census.nothing is not None:
        return 1
    return 3 if census.lacking else 0


def parse(words: Sequence[str]) -> CheckOrder:
    """Take the words apart. Raises UsageError for words that mean nothing."""
    folders: list[str] = []
    values = dict.fromkeys(_VALUES, "")
    expressions: list[str] = []
    wants_json = False
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if word == "--json":
            wants_json = True
        elif name in values:
            given = value if equals else next(rest, "")
            if not given:
                raise UsageError(f"{name} needs a value")
            values[name] = given
            expressions += [given] if name == "--identity" else []
        elif word == "--":
            folders += rest
        elif word.startswith("-"):
            raise UsageError(f"there is no flag {name} of check; see rl-insight check -h")
        else:
            folders.append(word)
    if len(folders) != 1:
        raise UsageError("check needs one folder: rl-insight check FOLDER")
    try:
        ranks = parse_ranks(values["--rank-list"] or "all")
    except ValueError as error:
        raise UsageError(f"--rank-list: {error}") from error
    return CheckOrder(
        # Path.expanduser raises for a user that does not exist; this leaves the text as it is.
        folder=Path(os.path.expanduser(folders[0])),  # noqa: PTH111
        presets=_presets(values["--preset"], values["--profiler-type"]),
        profiler_type=_profiler_type(values["--profiler-type"]),
        ranks=ranks,
        rules=compile_rules(expressions),
        as_json=wants_json,
        settle_s=_settle_s(values["--settle"]),
    )


def _settle_s(text: str) -> float:
    key = KEYS["input.settle"]
    try:
        return float(str(key.kind.read(text or key.default)))
    except ValueError as error:
        raise UsageError(f"--settle: {error}") from error


def _presets(preset: str, profiler_type: str) -> tuple[str, ...]:
    if preset not in ("", *PRESETS):
        raise UsageError(f"--preset: {preset!r} is none of {', '.join(PRESETS)}")
    if preset in ("", "all"):
        # Who names a profiler asks for a timeline.
        return ("timeline",) if profiler_type and not preset else ("timeline", "heatmap")
    return (preset,)


def _profiler_type(name: str) -> str:
    known = [one for one in PARSERS.names() if PARSERS.get(one).preset == "timeline"]
    if name not in ("", AUTO, *known):
        raise UsageError(f"--profiler-type: {name!r} is none of {', '.join([AUTO, *known])}")
    return name or AUTO
