"""What a kind of raw capture is to `rl-insight preprocess`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from rl_insight.data.tree import Tree

State = Literal["raw", "ready", "packed", "hopeless"]


@dataclass(frozen=True, slots=True)
class RawCapture:
    """One capture of a kind: `path` is relative to the input.

    `state` is `raw` (to be exported), `ready` (it can be read as it is), `packed` (to be unpacked
    by hand) or `hopeless`; `why` says so for a person: what it has, or what it lacks.
    """

    path: str
    state: State
    why: str


class RawKind(Protocol):
    """One profiler whose captures have to be exported before they can be read."""

    name: str
    """What its captures are called: «Ascend capture»."""

    def look(self, tree: Tree) -> Iterator[RawCapture]:
        """All captures of this kind in `tree`, in order of their path."""
        ...

    def missing(self, python: str) -> str | None:
        """What has to be installed, and where, in one sentence; None when nothing is missing.

        `python` is the interpreter that the user named, or this one.
        """
        ...

    def command(self, capture: Path, python: str) -> list[str]:
        """The command, as a list of arguments, that exports the capture at that absolute path."""
        ...

    def failure(self, capture: Path, output: str) -> str | None:
        """Why the export gave nothing, after a command that ended well; None when it did.

        `output` is what the command printed.
        """
        ...
