"""The manifest: which units a run has, and the small files that say when one is stale.

Written by the main process only. A job needs nothing but its unit file.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rl_insight.data.fingerprint import fingerprint
from rl_insight.data.tree import File, Tree
from rl_insight.errors import CacheError
from rl_insight.files import replacing
from rl_insight.parsers import Found
from rl_insight.pipeline import layout
from rl_insight.pipeline.discovery import Discovery, Skipped
from rl_insight.pipeline.units import Unit, assign, source_id

_VERSION = 1


@dataclass(slots=True)
class Manifest:
    """What one output folder knows about its input.

    `units` are those of this run. `assigned` maps parser and path to a unit name for every path
    ever seen, `prints` maps a path to [size_bytes, mtime_ns, fingerprint] as last looked at.
    `prepared_by` is the process that wrote it: its child need not look again.
    """

    units: list[Unit] = field(default_factory=list)
    assigned: dict[str, dict[str, str]] = field(default_factory=dict)
    prints: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    prepared_by: int = 0


def load(output: Path) -> Manifest:
    """The manifest in `output`, or an empty one where there is none or it is not readable."""
    try:
        raw: Any = json.loads((output / layout.MANIFEST).read_text("ascii"))
        if raw["version"] != _VERSION:
            return Manifest()
        return Manifest(
            units=[Unit(u["parser"], u["name"], tuple(u["sources"])) for u in raw["units"]],
            assigned=raw["assigned"],
            prints={path: (row[0], row[1], row[2]) for path, row in raw["prints"].items()},
            prepared_by=raw["prepared_by"],
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        # It can be made anew from the input at any time: only packing history is lost.
        return Manifest()


def update(output: Path, tree: Tree, discovery: Discovery, per_job: Mapping[str, int]) -> Manifest:
    """Bring the manifest and the unit files in `output` up to `discovery`.

    Files are rewritten only when their content changes, so nothing is stale that need not be.
    `per_job` maps a parser to how many sources one job may hold.
    """
    manifest = load(output)
    files = {file.path: file for file in tree.files}
    manifest.units = []
    manifest.prints = {path: row for path, row in manifest.prints.items() if path in files}
    for parser, found in discovery.found.items():
        known = manifest.assigned.setdefault(parser, {})
        by_path = {one.path: one for one in found}
        for unit in assign(parser, by_path, per_job[parser], known):
            known.update(dict.fromkeys(unit.sources, unit.name))
            _write_unit(output, unit, by_path, tree, files, manifest.prints)
            manifest.units.append(unit)
    _link_input(output, tree.root)
    write_if_changed(output / layout.SKIPPED, _json([asdict(row) for row in discovery.skipped]))
    manifest.prepared_by = os.getpid()
    write_if_changed(
        output / layout.MANIFEST,
        _json({"version": _VERSION, **asdict(manifest)}),
    )
    return manifest


def read_unit(path: Path) -> tuple[str, list[Found]]:
    """The parser and the sources of a unit file.

    Raises CacheError when it is damaged.
    """
    try:
        raw: Any = json.loads(path.read_text("ascii"))
        sources = [
            Found(one["path"], tuple(file["path"] for file in one["files"]))
            for one in raw["sources"]
        ]
        return raw["parser"], sources
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CacheError(f"{path}: damaged ({error}); delete it and run again") from error


def read_skipped(path: Path) -> list[Skipped]:
    """The inputs that discovery left out.

    Raises CacheError when the file is damaged.
    """
    try:
        raw: Any = json.loads(path.read_text("ascii"))
        return [Skipped(row["path"], row["parser"], row["reason"]) for row in raw]
    except (OSError, ValueError, KeyError, TypeError) as error:
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


def _write_unit(
    output: Path,
    unit: Unit,
    found: Mapping[str, Found],
    tree: Tree,
    files: Mapping[str, File],
    prints: dict[str, tuple[int, int, str]],
) -> None:
    sources = [
        {
            "source_id": source_id(path),
            "path": path,
            "files": list(_prints(found[path].files, tree, files, prints)),
        }
        for path in unit.sources
    ]
    write_if_changed(
        output / layout.unit_file(unit.parser, unit.name),
        _json({"parser": unit.parser, "sources": sources}),
    )


def _prints(
    paths: Iterable[str],
    tree: Tree,
    files: Mapping[str, File],
    prints: dict[str, tuple[int, int, str]],
) -> Iterable[dict[str, object]]:
    for path in paths:
        file = files[path]
        known = prints.get(path)
        if known is None or known[:2] != (file.size_bytes, file.mtime_ns):
            known = (file.size_bytes, file.mtime_ns, fingerprint(tree.root, file))
            prints[path] = known
        yield {"path": path, "fingerprint": known[2]}


def _link_input(output: Path, root: Path) -> None:
    link = output / layout.INPUT_LINK
    if link.is_symlink() and link.readlink() == root:
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    with replacing(link) as temporary:
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(root, target_is_directory=True)


def _json(content: object) -> str:
    return json.dumps(content, indent=1) + "\n"
