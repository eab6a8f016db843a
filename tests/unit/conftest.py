"""What several unit tests need."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from rl_insight.parsers import PARSERS, Parser
from tests.made_up_parser import NoteParser

_NOBODY = 65_534

AnyParser = TypeVar("AnyParser", bound=Parser)


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


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> NoteParser:
    """The made-up parser `notes`, registered as any parser is."""
    return register(monkeypatch, NoteParser())


@pytest.fixture
def register_parser(monkeypatch: pytest.MonkeyPatch) -> Callable[[Parser], None]:
    """Register a parser for the time of one test."""

    def add(parser: Parser) -> None:
        register(monkeypatch, parser)

    return add


def register(monkeypatch: pytest.MonkeyPatch, parser: AnyParser) -> AnyParser:
    # What is registered before stays: the registry is put back as it was.
    monkeypatch.setattr(PARSERS, "_known", dict(PARSERS._known))
    PARSERS.register(parser.name, parser)
    return parser
