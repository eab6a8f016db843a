"""The input folder as a listing: what lies there, without reading it."""

import difflib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from rl_insight.errors import InputError


@dataclass(frozen=True, slots=True)
class File:
    """One regular file: `path` relative to the input root with `/`, sizes in bytes, times in ns."""

    path: str
    size_bytes: int
    mtime_ns: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """The relative folder, "" for the root."""
        return self.path.rpartition("/")[0]

    @property
    def parts(self) -> tuple[str, ...]:
        """The folders and the name."""
        return PurePosixPath(self.path).parts


@dataclass(slots=True)
class Tree:
    """All files below `root`, sorted by path, and what could not be listed."""

    root: Path
    files: list[File]
    empty_folders: list[str] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    def absolute(self, path: str) -> Path:
        """The absolute path of a relative one."""
        return self.root / path

    def head(self, path: str, size: int = 65_536) -> bytes:
        """The first `size` bytes of a file as they stand on disk; b"" where it cannot be read."""
        try:
            with open(self.root / path, "rb") as file:
                return file.read(size)
        except OSError:
            return b""


def scan(root: Path, exclude: Path | None = None) -> Tree:
    """List `root`, or the one file that it names, without following link loops.

    `exclude` is a folder that is passed over: the output may lie inside the input.
    Raises InputError when `root` is missing or cannot be listed.
    """
    root = root.expanduser().absolute()
    if root.is_file():
        info = root.stat()
        return Tree(root.parent, [File(root.name, info.st_size, info.st_mtime_ns)])
    if not root.is_dir():
        raise InputError(f"input.path: there is no folder {str(root)!r}{_nearest(root)}")
    try:
        os.scandir(root).close()
    except OSError as error:
        raise InputError(f"input.path: cannot list {str(root)!r}: {error.strerror}") from error
    tree = Tree(root, [])
    skip = os.path.realpath(exclude) if exclude is not None else None
    seen: set[tuple[int, int]] = set()
    tree.files.extend(_walk(tree, "", skip, seen))
    tree.files.sort(key=lambda file: file.path)
    return tree


def _walk(tree: Tree, folder: str, skip: str | None, seen: set[tuple[int, int]]) -> Iterator[File]:
    pending = [folder]
    while pending:
        current = pending.pop()
        absolute = os.path.join(tree.root, current) if current else str(tree.root)
        if skip is not None and os.path.realpath(absolute) == skip:
            continue
        try:
            info = Path(absolute).stat()
            if (info.st_dev, info.st_ino) in seen:
                continue
            seen.add((info.st_dev, info.st_ino))
            with os.scandir(absolute) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            tree.unreadable.append((current, error.strerror or str(error)))
            continue
        if not entries and current:
            tree.empty_folders.append(current)
        for entry in entries:
            path = f"{current}/{entry.name}" if current else entry.name
            try:
                info = entry.stat()
            except OSError as error:
                tree.unreadable.append((path, error.strerror or str(error)))
                continue
            if stat.S_ISDIR(info.st_mode):
                pending.append(path)
            elif stat.S_ISREG(info.st_mode):
                yield File(path, info.st_size, info.st_mtime_ns)
            else:
                tree.unreadable.append((path, "not a regular file"))


def _nearest(root: Path) -> str:
    parent = root.parent
    if not parent.is_dir():
        return f" (nor {str(parent)!r})"
    near = difflib.get_close_matches(root.name, (entry.name for entry in parent.iterdir()), n=1)
    return f"; the nearest is {str(parent / near[0])!r}" if near else ""
