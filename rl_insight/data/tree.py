"""The input folder as a listing: what lies there, without reading it."""

import difflib
import os
import stat
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from rl_insight.errors import InputError
from rl_insight.readers.pseudo_files import holds_bytes

NOT_REGULAR = "not a regular file"

# What every output folder of RL-Insight has (see `rl_insight.pipeline.layout`).
_OUTPUT = frozenset({"manifest.json", "parsed"})


@dataclass(frozen=True, slots=True)
class File:
    """One regular file: `path` relative to the input root with `/`, sizes in bytes, times in ns.

    `ctime_ns` is when anything about it changed; a new name or owner is no other file.
    """

    path: str
    size_bytes: int
    mtime_ns: int
    ctime_ns: int = field(default=0, compare=False)

    @property
    def touched_ns(self) -> int:
        """A number that changes with either time: programs set the one back, no one the other.

        Their sum, since on some file systems the other always stays the same.
        """
        return self.mtime_ns + self.ctime_ns

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
        return tuple(self.path.split("/"))


@dataclass(slots=True)
class Tree:
    """All files below `root`, sorted by path, and what could not be listed."""

    root: Path
    files: list[File]
    empty_folders: list[str] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    companions: list[str] = field(default_factory=list)
    """Files `._x` in which macOS keeps what other disks cannot hold of a file `x`."""
    single: bool = False
    """Whether one file was asked for, and not the folder `root` that holds it."""

    def absolute(self, path: str) -> Path:
        """The absolute path of a relative one."""
        return self.root / path

    def head(self, path: str, size: int = 65_536) -> bytes:
        """The first `size` bytes of a file as they stand on disk; b"" where it cannot be read."""
        try:
            with open(self.root / path, "rb") as file:
                return file.read(size) if holds_bytes(file) else b""
        except OSError:
            return b""


def scan(root: Path, exclude: Path | None = None) -> Tree:
    """List `root`, or the one file that it names.

    Links are followed (not to folders above), but nothing is listed twice: what stands in the tree
    under its own name goes by that name, so that a link `latest` moves no capture. Hidden folders
    (`.git`, `.ipynb_checkpoints`), the folder `exclude` (the output may lie inside the input) and
    the outputs of other runs are passed over. What vanishes meanwhile was never there.
    Raises InputError when `root` is missing or cannot be listed.
    """
    root = root.absolute()
    info = _stat(root)
    if ".." in root.parts:
        root = root.resolve()  # its name may tell the role
    if stat.S_ISREG(info.st_mode):
        own = File(root.name, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        return Tree(root.parent, [own], single=True)
    if not stat.S_ISDIR(info.st_mode):
        raise InputError(f"input.path: {str(root)!r} is neither a folder nor a regular file")
    # A link to a folder above would lead through half of the machine and back.
    above = [_place_of(folder) for folder in root.resolve().parents]
    walk = _Walk(Tree(root, []), {_place(info)}.union(_place_of(exclude), *above))
    walk.run()
    return walk.tree


@dataclass(slots=True)
class _Walk:
    """The state of one scan: `seen` are the folders that are listed, or not to be listed."""

    tree: Tree
    seen: set[tuple[int, int]]
    pending: list[str] = field(default_factory=lambda: [""])
    folder_links: deque[str] = field(default_factory=deque)
    file_links: list[File] = field(default_factory=list)

    def run(self) -> None:
        while self.pending or self.folder_links:
            # Links to folders come last: what they lead to may be listed under its own name.
            folder = self.pending.pop() if self.pending else self._next_link()
            if folder is not None:
                self._list(folder)
        tree = self.tree
        own = {file.path for file in tree.files} if self.file_links else set()
        root = os.path.realpath(tree.root)
        for file in self.file_links:
            target = os.path.realpath(os.path.join(tree.root, file.path))
            if os.path.relpath(target, root) not in own:
                tree.files.append(file)
        tree.files.sort(key=lambda file: file.path)
        tree.empty_folders.sort()
        tree.unreadable.sort()
        tree.companions.sort()

    def _list(self, folder: str) -> None:
        try:
            with os.scandir(os.path.join(self.tree.root, folder)) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            if not folder:
                raise InputError(
                    f"input.path: cannot list {str(self.tree.root)!r}: {error.strerror}"
                ) from error
            if not isinstance(error, FileNotFoundError):
                self._cannot_read(folder, error)
            return
        if not entries and folder:
            self.tree.empty_folders.append(folder)
        if folder and _OUTPUT.issubset(entry.name for entry in entries):
            return
        for entry in entries:
            self._add(entry, f"{folder}/{entry.name}" if folder else entry.name)

    def _add(self, entry: os.DirEntry[str], path: str) -> None:
        try:
            info = entry.stat()
        except FileNotFoundError as error:
            if entry.is_symlink():
                self._cannot_read(path, error)
            return
        except OSError as error:
            self._cannot_read(path, error)
            return
        if stat.S_ISDIR(info.st_mode):
            if entry.name.startswith("."):
                return
            if entry.is_symlink():
                self.folder_links.append(path)
            elif _place(info) not in self.seen:
                self.seen.add(_place(info))
                self.pending.append(path)
        elif stat.S_ISREG(info.st_mode) and entry.name.startswith("._"):
            self.tree.companions.append(path)
        elif stat.S_ISREG(info.st_mode):
            file = File(path, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
            (self.file_links if entry.is_symlink() else self.tree.files).append(file)
        else:
            self.tree.unreadable.append((path, NOT_REGULAR))

    def _next_link(self) -> str | None:
        folder = self.folder_links.popleft()
        places = _place_of(self.tree.root / folder)
        if places <= self.seen:
            return None
        self.seen |= places
        return folder

    def _cannot_read(self, path: str, error: OSError) -> None:
        self.tree.unreadable.append((path, error.strerror or str(error)))


def _place(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def _place_of(folder: Path | None) -> set[tuple[int, int]]:
    """The identity of a folder as a set: empty where there is none."""
    try:
        return set() if folder is None else {_place(folder.stat())}
    except OSError:
        return set()


def _stat(root: Path) -> os.stat_result:
    try:
        return root.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"input.path: there is no folder {str(root)!r}{_nearest(root)}") from error
    except OSError as error:
        raise InputError(f"input.path: cannot read {str(root)!r}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"input.path: {str(root)!r} is no path: {error}") from error


def _nearest(root: Path) -> str:
    try:
        names = [entry.name for entry in root.parent.iterdir()]
    except FileNotFoundError:
        return f" (nor {str(root.parent)!r})"
    except OSError:
        return ""
    near = difflib.get_close_matches(root.name, names, n=1)
    return f"; the nearest is {str(root.parent / near[0])!r}" if near else ""
