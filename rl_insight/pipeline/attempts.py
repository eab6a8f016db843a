"""Trying jobs again that failed.

When a job fails whose outputs are updates, Snakemake brings the outputs from before back as if they
were new, and remembers them as made of what the job was given. So it would never try it again: a
step that was added would stay out of every picture. The number of the attempt, which goes up after
a run that did not end well, is therefore an input of all such jobs.
"""

from pathlib import Path

from rl_insight.pipeline import layout
from rl_insight.pipeline.manifest import write_if_changed


def count(output: Path) -> None:
    """Bring the number of the attempt in `output` up to date."""
    path = output / layout.ATTEMPT
    number = _number(path)
    if number == 0 or (output / layout.UNFINISHED).exists():
        write_if_changed(path, f"{number + 1}\n")


def begin(output: Path) -> None:
    """Note that a run is at work in `output`: one that is killed never says so."""
    (output / layout.UNFINISHED).touch()


def end(output: Path) -> None:
    """Note that the run ended well, and so did all of its jobs."""
    (output / layout.UNFINISHED).unlink(missing_ok=True)


def _number(path: Path) -> int:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return 0
