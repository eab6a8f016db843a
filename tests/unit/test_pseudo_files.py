"""A link to a file that the kernel makes up is an empty file: `/proc/kmsg` would wait for ever."""

from pathlib import Path

import pytest

from rl_insight.data.fingerprint import fingerprint
from rl_insight.data.tree import File, scan
from rl_insight.errors import ReadError
from rl_insight.problems import Problems
from rl_insight.readers.bytestream import ByteStream
from rl_insight.readers.sqlite import database

# Of 0 bytes like the one that waits, but with something to read for everybody.
MADE_UP = Path("/proc/self/status")

pytestmark = pytest.mark.skipif(not MADE_UP.exists(), reason="there is no /proc here")


@pytest.fixture
def link(tmp_path: Path) -> Path:
    assert MADE_UP.read_bytes() and not MADE_UP.stat().st_size
    path = tmp_path / "rank0.json"
    path.symlink_to(MADE_UP)
    return path


def test_discovery_reads_nothing_of_it(link: Path) -> None:
    tree = scan(link.parent)
    (file,) = tree.files
    assert tree.head(file.path) == b""
    empty = File("empty.json", 0, file.mtime_ns)
    (link.parent / empty.path).touch()
    assert fingerprint(link.parent, file) == fingerprint(link.parent, empty)


def test_the_readers_take_it_for_empty(link: Path) -> None:
    problems = Problems()
    with ByteStream(link, problems) as stream:
        assert stream.readinto(memoryview(bytearray(100))) == 0
    with pytest.raises(ReadError, match="the database is empty"), database(link):
        pass
