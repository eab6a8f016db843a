"""A fingerprint tells whether a file has changed without reading it whole."""

import gzip
import os
import random
from pathlib import Path

import pytest

from rl_insight.data.fingerprint import fingerprint
from rl_insight.data.tree import File

DAY_NS = 86_400_000_000_000


def put(path: Path, content: bytes, mtime_ns: int = DAY_NS) -> str:
    """The fingerprint of `path` with this content and time."""
    path.write_bytes(content)
    os.utime(path, ns=(mtime_ns, mtime_ns))
    return fingerprint(path.parent, File(path.name, len(content), mtime_ns))


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def test_the_same_file_has_the_same_fingerprint_under_any_name(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    first = put(tmp_path / "a.json", noise(300_000))
    assert put(tmp_path / "copy" / "b.json", noise(300_000)) == first


@pytest.mark.parametrize("at", [0, 65_535, 65_536, 234_463, 234_464, 299_999])
def test_a_changed_byte_near_either_end_changes_it(tmp_path: Path, at: int) -> None:
    content = bytearray(noise(300_000))
    before = put(tmp_path / "a.json", bytes(content))
    content[at] ^= 1
    in_the_middle = 65_536 <= at < 300_000 - 65_536
    assert (put(tmp_path / "a.json", bytes(content)) == before) is in_the_middle


@pytest.mark.parametrize("size", [1, 65_536, 65_537, 100_000, 131_072])
def test_a_file_of_up_to_twice_64_kib_is_read_whole(tmp_path: Path, size: int) -> None:
    content = bytearray(noise(size))
    seen = {put(tmp_path / "a.json", bytes(content))}
    for at in {0, size // 2, size - 1}:
        content[at] ^= 1
        seen.add(put(tmp_path / "a.json", bytes(content)))
    assert len(seen) == 1 + len({0, size // 2, size - 1})


def test_a_change_in_the_middle_alone_shows_in_the_time(tmp_path: Path) -> None:
    content = bytearray(noise(300_000))
    before = put(tmp_path / "a.json", bytes(content))
    content[150_000] ^= 1
    assert put(tmp_path / "a.json", bytes(content), DAY_NS + 1) != before


def test_a_gzip_that_was_copied_or_touched_is_the_same_but_any_change_shows_in_its_crc(
    tmp_path: Path,
) -> None:
    # GIVEN a gzip of much more than its two ends, under a name that does not say so
    content = bytearray(noise(400_000))
    before = put(tmp_path / "a.json", gzip.compress(bytes(content), mtime=0))
    # WHEN only its time changes THEN it is the same
    assert put(tmp_path / "a.json", gzip.compress(bytes(content), mtime=0), 2 * DAY_NS) == before
    # WHEN one byte in the middle changes THEN it is another, at the same size and time
    content[200_000] ^= 1
    changed = gzip.compress(bytes(content), mtime=0)
    assert put(tmp_path / "a.json", changed) != before


def test_a_file_that_grew_or_shrank_is_another(tmp_path: Path) -> None:
    seen = {put(tmp_path / "a.json", b"\0" * size) for size in (0, 1, 65_536, 65_537, 10**6)}
    assert len(seen) == 5


def test_a_file_that_cannot_be_read_differs_from_one_that_can(ordinary_folder: Path) -> None:
    path = ordinary_folder / "a.json"
    readable = put(path, b"x")
    path.chmod(0)
    closed = fingerprint(ordinary_folder, File("a.json", 1, DAY_NS))
    gone = fingerprint(ordinary_folder, File("b.json", 1, DAY_NS))
    assert len({readable, closed, gone}) == 3


def test_a_file_may_be_called_anything(tmp_path: Path) -> None:
    assert put(tmp_path / os.fsdecode(b"-{a}*\n\xff"), b"x") == put(tmp_path / "a", b"x")
