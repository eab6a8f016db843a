"""What several unit tests need."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_NOBODY = 65_534


@pytest.fixture
def ordinary_folder() -> Iterator[Path]:
    """An empty folder, in a test that runs without the rights of root: chmod means something."""
    # pytest's own folders are closed to everybody but the one who started it.
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    if root:
        os.chown(folder, _NOBODY, -1)
        os.seteuid(_NOBODY)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        for path in folder.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        shutil.rmtree(folder)
