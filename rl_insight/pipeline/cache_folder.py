"""Folders of the cache, which stand under their names whole or not at all."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes `folder`, in place of any that is there, when all is well."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        with contextlib.suppress(FileNotFoundError):
            remove_folder(folder)
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder of the cache; half of it never stands under its name, however this ends.

    Raises FileNotFoundError when there is none.
    """
    doomed = folder.with_name(f".{folder.name}.old.tmp")
    shutil.rmtree(doomed, ignore_errors=True)
    folder.replace(doomed)
    shutil.rmtree(doomed, ignore_errors=True)
