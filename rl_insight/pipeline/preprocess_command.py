"""`rl-insight preprocess`: its help, and its words taken apart."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rl_insight.errors import UsageError
from rl_insight.pipeline.preprocess import Order, preprocess
from rl_insight.pipeline.preprocess_ascend import ASCEND
from rl_insight.pipeline.preprocess_kinds import RawKind
from rl_insight.pipeline.preprocess_nsys import NSYS

KINDS: tuple[RawKind, ...] = (ASCEND, NSYS)

HELP = """\
usage: rl-insight preprocess FOLDER [--jobs N] [--python FILE] [-n]

Exports the raw captures below FOLDER, so that they can be read: Ascend captures that were never
analysed, by torch_npu, and reports of NVIDIA Nsight Systems, by nsys. Results are written into or
beside the captures; what can be read already stays.

  --jobs N         How many at a time. Default: half of the processors.
  --python FILE    The interpreter in which torch_npu is installed. Default: this one.
  -n, --dry-run    Say what would be done, and do nothing.

Exit codes: 0 all can be read now, 1 some cannot, 2 there are no captures, the program that
exports them is missing, or the command is mistaken.
"""

_COUNT = re.compile(r"[1-9][0-9]{0,3}")


def command(words: Sequence[str]) -> int:
    """Run `rl-insight preprocess WORDS`; gives the exit code.

    Raises UsageError for words that mean nothing and where a program is missing, InputError for a
    folder that cannot be listed or holds no captures.
    """
    if "-h" in words or "--help" in words:
        print(HELP, end="")
        return 0
    order = parse(words)
    return preprocess(order, KINDS, print)


def parse(words: Sequence[str]) -> Order:
    """Take the words apart. Raises UsageError for words that mean nothing."""
    folders: list[str] = []
    values = {"--jobs": str(max(1, (os.cpu_count() or 2) // 2)), "--python": sys.executable}
    dry_run = False
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if word in ("-n", "--dry-run"):
            dry_run = True
        elif name in values:
            given = value if equals else next(rest, "")
            if not given:
                raise UsageError(f"{name} needs a value")
            values[name] = given
        elif word.startswith("-"):
            raise UsageError(f"there is no flag {name} of preprocess; see rl-insight preprocess -h")
        else:
            folders.append(word)
    if len(folders) != 1:
        raise UsageError("preprocess needs one folder: rl-insight preprocess FOLDER")
    jobs = values["--jobs"]
    if not _COUNT.fullmatch(jobs):
        raise UsageError(f"--jobs: {jobs!r} is no whole number from 1 to 9999")
    # Path.expanduser raises for a user that does not exist; this leaves the text as it is.
    folder = Path(os.path.expanduser(folders[0]))  # noqa: PTH111
    return Order(folder, int(jobs), values["--python"], dry_run)
