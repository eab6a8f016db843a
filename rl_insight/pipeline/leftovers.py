"""What a killed run leaves behind: files and folders that never came to their final names.

Nobody reads them, but a page has megabytes, and each crash would leave another.
"""

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from rl_insight.pipeline import layout

# As `files.replacing` names a file (with the process), and the parse step a folder.
_FILE = re.compile(r"\.(?P<name>.+)\.\d+\.tmp")
_FOLDER = re.compile(r"\.(?P<name>.+)\.tmp")

# Of the output folder itself, which may hold other people's files, only what runs write there.
_OWN = re.compile(r"manifest\.json|config\.yaml|live\.js|.+\.(?:html|png)")


def sweep(output: Path) -> None:
    """Remove what dead runs left unfinished in `output`, where no other run is at work."""
    for path in _entries(output):
        found = _FILE.fullmatch(path.name)
        if found and _OWN.fullmatch(found["name"]):
            _remove(path)
    for path in _entries(output / layout.TEMPORARY):
        _remove(path)
    parsed = output / layout.PARSED
    for folder in (output / layout.TABLES, parsed, *_entries(parsed)):
        if folder.is_symlink():
            continue  # the link to the input
        for path in _entries(folder):
            if _FILE.fullmatch(path.name) or _FOLDER.fullmatch(path.name):
                _remove(path)


def _entries(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from sorted(folder.iterdir())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
