"""The manifest: which units a run has, and the small files that say when one is stale.

Written by the main process only. A job needs nothing but its unit file.
"""

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from rl_insight.data.fingerprint import UNREADABLE, fingerprint
from rl_insight.data.names import root_label
from rl_insight.data.tree import File, Tree
from rl_insight.errors import CacheError, ConfigError
from rl_insight.files import replacing
from rl_insight.parsers import Found
from rl_insight.pipeline import layout
from rl_insight.pipeline.discovery import Discovery, Skipped
from rl_insight.pipeline.growing import Growing
from rl_insight.pipeline.unit_file import UnitFile, UnitInput, UnitSource
from rl_insight.pipeline.units import Unit, assign, source_id

_VERSION = 1
_NOTHING_GROWS = Growing()

# What a file system says that has no symbolic links: symlink(2).
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


@dataclass(slots=True)
class Manifest:
    """What one output folder knows about its input.

    `units` are those of this run, `presets` what is drawn from them, `root_name` is the name of the
    input folder (as `names.root_label` gives it). `assigned` maps parser and path to a unit name
    for every path ever seen, `prints` maps a path to [size_bytes, touched_ns, fingerprint] as last
    looked at. `prepared_by` is the process that wrote it.
    """

    units: list[Unit] = field(default_factory=list)
    presets: tuple[str, ...] = ()
    root_name: str = ""
    assigned: dict[str, dict[str, str]] = field(default_factory=dict)
    prints: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    prepared_by: str = ""

    def prepared_by_parent(self) -> bool:
        """Whether the parent of this process wrote it just now, so that nobody need look again."""
        return self.prepared_by == _process(os.getppid())


def load(output: Path) -> Manifest:
    """The manifest in `output`, or an empty one where there is none or it is not readable."""
    try:
        raw: Any = json.loads((output / layout.MANIFEST).read_text("ascii"))
        if raw["version"] != _VERSION:
            return Manifest()
        found = msgspec.convert(raw, Manifest)
        return found if _plainly_named(found) else Manifest()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        # It can be made anew from the input at any time: only packing history is lost.
        return Manifest()


def _plainly_named(found: Manifest) -> bool:
    """Whether all names are such as units and parsers have: they become folders."""
    names = {name for unit in found.units for name in (unit.parser, unit.name)}
    names.update(found.assigned, *(known.values() for known in found.assigned.values()))
    return all(map(layout.is_name, names))


def update(
    output: Path,
    tree: Tree,
    discovery: Discovery,
    per_job: Mapping[str, int | None],
    growing: Growing = _NOTHING_GROWS,
) -> Manifest:
    """Bring the manifest and the unit files in `output` up to `discovery`.

    Files are rewritten only when their content changes, so nothing is stale that need not be.
    `per_job` maps a parser to how many sources one job may hold, None where their sizes decide,
    `growing` tells what is still being written.
    """
    manifest = load(output)
    files = {file.path: file for file in tree.files}
    manifest.units = []
    manifest.presets = discovery.presets
    manifest.root_name = root_label(tree.root)
    manifest.prints = {path: row for path, row in manifest.prints.items() if path in files}
    for parser, found in discovery.found.items():
        known = manifest.assigned.setdefault(parser, {})
        wanted = {one.path: one for one in found}
        unwanted = {one.path: one for one in discovery.filtered.get(parser, ())}
        folders = {one.path: one.pack for one in found if one.pack is not None}
        sizes = {one.path: sum(files[path].size_bytes for path in one.files) for one in found}
        for unit in assign(parser, wanted, per_job[parser], known, unwanted, folders, sizes):
            known.update(dict.fromkeys(unit.sources, unit.name))
            _write_unit(output, unit, wanted | unwanted, tree, files, manifest.prints)
            manifest.units.append(unit)
    _link_input(output, tree.root)
    # What is parsed all the same, beside others of its unit, the merge leaves out by itself.
    parsed = {(unit.parser, path) for unit in manifest.units for path in unit.sources}
    skipped = [row for row in discovery.skipped if (row.parser, row.path) not in parsed]
    write_if_changed(output / layout.SKIPPED, _json(skipped))
    write_if_changed(output / layout.GROWING, _json(sorted(_growing(discovery, growing))))
    manifest.prepared_by = _process(os.getpid())
    write_if_changed(
        output / layout.MANIFEST,
        _json({"version": _VERSION, **msgspec.to_builtins(manifest)}),
    )
    return manifest


def read_skipped(path: Path) -> list[Skipped]:
    """The inputs that discovery left out.

    Raises CacheError when the file is damaged.
    """
    try:
        raw: Any = json.loads(path.read_text("ascii"))
        return msgspec.convert(raw, list[Skipped])
    except (OSError, ValueError, RecursionError) as error:
        raise CacheError(f"{path}: damaged ({error}); delete it and run again") from error


def read_growing(path: Path) -> frozenset[str]:
    """The ids of the sources that were still being written.

    Raises CacheError when the file is damaged.
    """
    try:
        return msgspec.convert(json.loads(path.read_text("ascii")), frozenset[str])
    except (OSError, ValueError, RecursionError) as error:
        raise CacheError(f"{path}: damaged ({error}); delete it and run again") from error


def write_if_changed(path: Path, text: str) -> bool:
    """Write `text` to `path` unless it stands there already; whole or not at all."""
    try:
        if path.read_text("ascii") == text:
            return False
    except (OSError, ValueError):
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(text, "ascii")
    return True


def _growing(discovery: Discovery, growing: Growing) -> Iterator[str]:
    """The ids of the sources that grow, but for those that are filtered away."""
    for found in discovery.found.values():
        yield from (source_id(one.path) for one in found if growing.touches(one.path, one.files))
    filtered = {one.path for found in discovery.filtered.values() for one in found}
    for row in discovery.skipped:
        if row.path not in filtered and growing.touches(row.path):
            yield source_id(row.path)


def _write_unit(
    output: Path,
    unit: Unit,
    found: Mapping[str, Found],
    tree: Tree,
    files: Mapping[str, File],
    prints: dict[str, tuple[int, int, str]],
) -> None:
    sources = tuple(
        UnitSource(source_id(path), path, _prints(found[path].files, tree, files, prints))
        for path in unit.sources
    )
    write_if_changed(
        output / layout.unit_file(unit.parser, unit.name),
        _json(UnitFile(unit.parser, sources)),
    )


def _prints(
    paths: Iterable[str],
    tree: Tree,
    files: Mapping[str, File],
    prints: dict[str, tuple[int, int, str]],
) -> tuple[UnitInput, ...]:
    inputs = []
    for path in paths:
        file = files[path]
        known = prints.get(path)
        if known is None or known[:2] != (file.size_bytes, file.touched_ns):
            known = (file.size_bytes, file.touched_ns, fingerprint(tree.root, file))
            # One that cannot be read is looked at each time: rights change, size and time do not.
            if known[2].startswith(UNREADABLE):
                prints.pop(path, None)
            else:
                prints[path] = known
        inputs.append(UnitInput(path, known[2]))
    return tuple(inputs)


def _link_input(output: Path, root: Path) -> None:
    link = output / layout.INPUT_LINK
    if link.is_symlink() and link.readlink() == root:
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir() and not link.is_symlink():
        raise CacheError(
            f"{link} is a folder, not the link to the input that was there (copied with its links "
            "followed?): delete it and run again"
        )
    with replacing(link) as temporary:
        temporary.unlink(missing_ok=True)
        try:
            temporary.symlink_to(root, target_is_directory=True)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            raise ConfigError(
                f"output.path: {str(output)!r} lies on a file system without symbolic links (FAT, "
                "exFAT and some network shares have none), and the jobs reach the input by one: "
                "choose a folder elsewhere"
            ) from error


def _json(content: object) -> str:
    # Not by msgspec: a path that is not UTF-8 has no place in its JSON. Not indented: five times
    # as fast, which counts for 300,000 files.
    return json.dumps(msgspec.to_builtins(content)) + "\n"


def _process(pid: int) -> str:
    """A process, told apart from a later one of its number where the system says when it began.

    In a container almost every process has the same number, and 0 stands for a parent outside.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        # proc(5): the 22nd field; the second is the program's name in parentheses.
        began = stat.rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        began = ""
    return f"{os.uname().nodename}:{pid}:{began}"
