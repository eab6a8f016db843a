"""The text of `rl-insight --help`, made from the keys of the configuration."""

import textwrap
from collections.abc import Iterator

from rl_insight.config import KEYS, Key
from rl_insight.config_keys import plain

_INTRODUCTION = """\
usage: rl-insight --input-path FOLDER [--flag VALUE | key=value]... [-- SNAKEMAKE OPTIONS]

Shows what a reinforcement-learning run did, from what its profilers left in a folder: a
timeline of every stage on every rank, and a heatmap of how the tokens were spread over
the experts. What was read once is kept, and a second run reads only what is new.

Examples:
  rl-insight --input-path ./profile --profiler-type torch
  rl-insight --input-path ./profile --profiler-type torch --vis-type html,png --rank-list 0-7
  rl-insight input.path=./profile timeline.parser.type=torch timeline.parser.step=3
  rl-insight --input-path ./dump --preset heatmap
  rl-insight config_path=my.yaml output.path=report
  rl-insight --input-path ./profile --profiler-type torch --profile slurm -- --jobs 100

A flag and its key mean the same; keys without a flag are given as key=value.
"""

_RUN = """\
This run:
  --config-path FILE, config_path=FILE
      A YAML file of the keys above. Order: defaults < preset < file < command line.
  --cores N
      How many jobs work at the same time, or all. Default: all.
  --profile DIR
      A Snakemake profile: slurm, or a folder of your own.
  -n, --dry-run
      Say what would be done, and do nothing: a new output folder is not left behind, and one
      that is there gets no more than the plan.
  --unlock
      Release the output folder after a run that was killed.
  --version, -h, --help
  -- OPTIONS
      Everything after -- goes to Snakemake untouched; --report FILE once the run is done.
"""

_COMMANDS = """\
Other commands:
  check FOLDER
      Say what is in a folder, damaged or missing, in seconds; see rl-insight check --help.
  preprocess FOLDER
      Export raw captures, so that they can be read; see rl-insight preprocess --help.
  watch FOLDER
      Draw again whenever a job has left new files, until Ctrl-C; see rl-insight watch --help.
"""

_EXIT_CODES = """\
Exit codes:
  0    drawn; inputs that could not be read are named; the end of a watch by Ctrl-C or SIGTERM
  1    a job failed, or nothing could be drawn
  2    the command line, the configuration or a folder cannot be used
  3    with --strict: drawn, but some input was damaged, empty or failed
  130  a run that was interrupted, or told to end while its jobs ran; what was read is kept
"""

_TITLES = {
    "input": "Input",
    "output": "Output",
    "preset": "What is drawn",
    "timeline": "Timeline",
    "heatmap": "Heatmap of expert load",
    "parse": "Reading",
    "run": "Ending",
    "pipeline": "Compatibility",
}

_WIDTH = 92


def help_text() -> str:
    """The whole help."""
    return "\n".join([_INTRODUCTION, *_groups(), _RUN, _COMMANDS, _EXIT_CODES]).rstrip() + "\n"


def _groups() -> Iterator[str]:
    parts: dict[str, list[Key]] = {}
    for name, key in KEYS.items():
        parts.setdefault(name.partition(".")[0], []).append(key)
    for part, title in _TITLES.items():
        rows = [row for key in parts[part] for row in _rows(key)]
        yield "\n".join([f"{title}:", *rows, ""])


def _rows(key: Key) -> Iterator[str]:
    flag = f"{key.flag}, " if key.flag else ""
    yield f"  {flag}{key.name}"
    values = [] if key.type == "folder" else [plain(key.type)]
    if key.default not in (None, []) and key.choices != (key.default,):
        shown = str(key.default).lower() if isinstance(key.default, bool) else str(key.default)
        values.append(f"default {shown}")
    text = f"{plain(key.description)} [{'; '.join(values)}]" if values else plain(key.description)
    yield textwrap.fill(text, _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
