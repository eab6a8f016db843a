"""Files that are still being written: what changed a moment ago is not final.

Such a file is drawn as far as it goes and marked; it is parsed again once it has changed, and loses
the mark once it has been left alone for long enough.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from rl_insight.data.tree import Tree

# Whoever writes a profile does so without pause: looking again after so long tells. Where more time
# is asked for, nobody waits for it: what is younger is marked unseen.
_LONGEST_WAIT = 2.0


@dataclass(frozen=True, slots=True)
class Growing:
    """What is still being written: relative paths of `files`, and of the `folders` around them."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()

    @classmethod
    def of(cls, files: Iterable[str]) -> "Growing":
        """What grows when these files do."""
        growing = frozenset(files)
        return cls(growing, frozenset(str(up) for one in growing for up in _above(one)))

    def touches(self, path: str, files: Iterable[str] = ()) -> bool:
        """Whether an input, a file or folder at `path` that is read from `files`, is growing."""
        return path in self.files or path in self.folders or not self.files.isdisjoint(files)


def settled(
    look: Callable[[], Tree],
    settle_s: float,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Tree, Growing]:
    """What `look` lists, once more a little later where files are younger than `settle_s` seconds.

    Gives the last listing and what grows: what changed between the two, and what is younger than
    `settle_s` all the same.
    """
    tree = look()
    if not _young(tree, now(), settle_s):
        return tree, Growing()
    before = {file.path: file for file in tree.files}
    sleep(min(settle_s, _LONGEST_WAIT))
    tree = look()
    changed = {file.path for file in tree.files if before.get(file.path) != file}
    return tree, Growing.of(changed | _young(tree, now(), settle_s))


def _young(tree: Tree, now_s: float, settle_s: float) -> set[str]:
    """Files that changed less than `settle_s` seconds ago.

    A clock that is ahead by more than that tells nothing: such a file would be young for ever.
    """
    first, last = (int((now_s + way * settle_s) * 1e9) for way in (-1, 1))
    return {file.path for file in tree.files if first < file.mtime_ns < last}


def _above(path: str) -> Iterable[PurePosixPath]:
    return PurePosixPath(path).parents
