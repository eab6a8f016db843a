"""`rl-insight watch`: its help, its words taken apart, and the loop that looks and draws."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rl_insight.data.tree import Tree, scan
from rl_insight.errors import CacheError, InputError, RLInsightError
from rl_insight.files import replacing
from rl_insight.pipeline import layout
from rl_insight.pipeline.endings import endings_interrupt
from rl_insight.pipeline.terminal import duration, printable
from rl_insight.pipeline.watch import Retries, Watcher, rest_s
from rl_insight.plain_text import count

HELP = """\
usage: rl-insight watch FOLDER [--flag VALUE | key=value]... [-- SNAKEMAKE OPTIONS]

Draws what lies below FOLDER, and draws again whenever new files there are complete, until Ctrl-C.
It takes all flags and keys of a run (rl-insight --help). FOLDER may still be empty, or missing.

A file is complete once nobody has written to it for --settle SECONDS. Files that come together are
drawn together; one that still grows is waited for, but for no longer than half a minute. Pages that
are open in a browser load themselves again and keep what they show.

Exit codes: 0 after Ctrl-C, or when told to end (SIGTERM, a closed terminal): a watch has no other
end. 2 the command is mistaken.
"""


def path_and_words(words: Sequence[str]) -> list[str]:
    """The words of a run that mean the same: the folder may stand alone in front."""
    if not words or words[0].startswith("-"):
        return list(words)
    first, *rest = words
    # A folder may have an equals sign in its name, as a key and its value have.
    if "=" in first and not os.path.exists(first):  # noqa: PTH110 - it may be too long for a path
        return list(words)
    return ["--input-path", first, *rest]


def watch(root: Path, output: Path, settle_s: float, draw: Callable[[], int]) -> int:
    """Call `draw` whenever there is something new and complete below `root`; gives the exit code.

    `draw` makes the pages in `output`, says how it went and gives an exit code. What it raises for
    its input is said, and waited out; what is asked for wrongly ends the watch. Once something was
    drawn nothing is asked for wrongly: whatever fails (a full disk, a lost file system) is tried
    again, also when nothing new comes.
    """
    watcher = Watcher(settle_s)
    retries = Retries()
    was_drawn = False
    _say(f"Watching {printable(str(root), 1_000)} for new files; Ctrl-C ends it.")
    try:
        with endings_interrupt():
            while True:
                began = time.monotonic()
                tree = _listed(root, output)
                if watcher.due(tree, time.time()) or retries.due(began):
                    news = watcher.draw(tree, time.time())
                    what = f"{count(news, 'file')} new, changed or gone" if news else "once more"
                    _say(f"{time.strftime('%H:%M:%S')} {what}.")
                    code = _drawn(draw, was_drawn)
                    well = code != RLInsightError.exit_code
                    was_drawn = was_drawn or (well and code is not None)
                    if (wait_s := retries.after(well, time.monotonic())) is not None:
                        _say(f"Trying again in {duration(wait_s)}, or when there is something new.")
                    tell_pages(output, watching=True)
                    began = time.monotonic()
                time.sleep(rest_s(time.monotonic() - began))
    except KeyboardInterrupt:
        _say("No longer watching; the same command goes on from here.")
        return 0
    finally:
        tell_pages(output, watching=False)


def _listed(root: Path, output: Path) -> Tree:
    try:
        return scan(root, exclude=output)
    except InputError:
        # It may not be there yet, or no longer.
        return Tree(root, [])


def _drawn(draw: Callable[[], int], was_drawn: bool) -> int | None:
    """Draw; gives the exit code of a run that ended so, None where there is nothing to draw."""
    try:
        return draw()
    except InputError as error:
        _say(f"Nothing to draw yet: {printable(str(error), 2_000)}")
        return None
    except RLInsightError as error:
        if not was_drawn and not isinstance(error, CacheError):
            raise
        _say(f"error: {printable(str(error), 2_000)}")
        return RLInsightError.exit_code


def tell_pages(output: Path, watching: bool) -> None:
    """Leave beside the pages which state they are in, for those that are open in a browser."""
    if not output.is_dir():
        return
    stamps = {}
    for page in output.glob("*.html"):
        with contextlib.suppress(OSError):
            info = page.stat()
            stamps[page.name] = f"{info.st_mtime_ns} {info.st_size}"
    told = json.dumps(stamps if watching else None)
    with contextlib.suppress(OSError), replacing(output / layout.LIVE) as temporary:
        # A script, since a page that was opened as a file may not read any other.
        temporary.write_text(f"rlInsightLive({told});\n", "ascii")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
