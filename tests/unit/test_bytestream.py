import gzip
import os
import random
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_insight.errors import ReadError
from rl_insight.problems import Problem, Problems
from rl_insight.readers import bytestream
from rl_insight.readers.bytestream import ByteStream

# Text that a compressor cannot shrink to nothing, longer than one piece (256 kB).
TEXT = b"".join(b'{"ts":%d,"name":"k%d"},\n' % (i * 37, i % 97) for i in range(20_000))


def read(
    path: Path, target_bytes: int = 100_000, max_bytes: int | None = None
) -> tuple[bytes, Problems]:
    problems = Problems()
    parts = []
    target = bytearray(target_bytes)
    with ByteStream(path, problems, max_bytes) as stream, memoryview(target) as view:
        while True:
            got = stream.readinto(view)
            parts.append(bytes(target[:got]))
            if got < target_bytes:
                break
        assert stream.readinto(view) == 0
    return b"".join(parts), problems


def the_problem(problems: Problems) -> Problem:
    (problem,) = problems
    return problem


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("target_bytes", [1 << 20, 65_537, 1 << 10])
def test_the_first_bytes_decide_and_not_the_name(
    tmp_path: Path, name: str, packed: bool, target_bytes: int
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(TEXT) if packed else TEXT)
    text, problems = read(path, target_bytes)
    assert text == TEXT
    assert len(problems) == 0


@given(
    st.lists(st.binary(max_size=40), min_size=1, max_size=5),
    st.integers(0, 9),
    st.integers(1, 50),
    st.booleans(),
)
@settings(max_examples=100)
def test_gzip_members_follow_one_another(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[bytes],
    level: int,
    target_bytes: int,
    padded: bool,
) -> None:
    path = tmp_path_factory.getbasetemp() / "members.gz"
    padding = bytes(7) if padded else b""
    path.write_bytes(b"".join(gzip.compress(part, level) + padding for part in parts))
    expected = b"".join(parts)
    if expected.startswith((*bytestream._ENCODINGS, b"\xef\xbb\xbf")):
        return
    text, problems = read(path, target_bytes)
    assert text == expected
    assert len(problems) == 0


@pytest.mark.parametrize("cut", [1, 4, 8, 9, 200, 5000])
def test_a_cut_gzip_gives_all_that_it_still_holds(tmp_path: Path, cut: int) -> None:
    packed = gzip.compress(TEXT)[:-cut]
    # The plain decompressor of the standard library, one byte at a time.
    plain = zlib.decompressobj(31)
    expected = b"".join(plain.decompress(packed[at : at + 1]) for at in range(len(packed)))
    path = tmp_path / "cut.json.gz"
    path.write_bytes(packed)

    text, problems = read(path)

    assert expected.startswith(text)
    assert len(text) >= len(expected) - 300  # what the last code words stand for
    problem = the_problem(problems)
    assert (problem.code, problem.offset) == ("gzip_truncated", len(text))


def test_a_cut_gzip_gives_what_waits_inside_the_decompressor(tmp_path: Path) -> None:
    # One code word stands for up to 258 bytes: more comes out than one small target takes.
    packed = gzip.compress(b"a" * 100_000)[:-9]
    whole = zlib.decompressobj(31).decompress(packed)
    path = tmp_path / "cut.json.gz"
    path.write_bytes(packed)
    for target_bytes in (10, 1000, 99_990):
        text, problems = read(path, target_bytes)
        assert len(text) >= len(whole) - 258
        assert the_problem(problems).offset == len(text)


def test_a_wrong_checksum_costs_at_most_the_last_byte(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 0xFF
    path = tmp_path / "checksum.json.gz"
    path.write_bytes(packed)

    text, problems = read(path)

    assert text in (TEXT, TEXT[:-1])
    problem = the_problem(problems)
    assert (problem.code, problem.severity) == ("gzip_corrupt", "warning")
    assert problem.offset == len(text)


@pytest.mark.parametrize("where", [0.05, 0.5, 0.95])
def test_bytes_before_damage_come_out(tmp_path: Path, where: float) -> None:
    packed = gzip.compress(TEXT)
    place = int(len(packed) * where)
    before = len(zlib.decompressobj(31).decompress(packed[:place]))
    damaged = bytearray(packed)
    damaged[place : place + 300] = random.Random(5).randbytes(300)
    path = tmp_path / "damaged.json.gz"
    path.write_bytes(damaged)

    text, problems = read(path)

    # Where the damage begins inside a code word, that word's bytes may be lost.
    assert text[: before - 1] == TEXT[: before - 1]
    problem = the_problem(problems)
    assert (problem.code, problem.offset) == ("gzip_corrupt", len(text))


def test_no_flipped_bit_goes_unnoticed_or_raises(tmp_path: Path) -> None:
    text = TEXT[:800]
    packed = gzip.compress(text, mtime=0)
    path = tmp_path / "flipped.json.gz"
    for bit in range(16, 8 * len(packed)):  # behind the magic
        flipped = bytearray(packed)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        read_text, problems = read(path, target_bytes=500)
        assert read_text == text or len(problems), bit


def test_what_follows_the_packed_data_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trailing.json.gz"
    path.write_bytes(gzip.compress(TEXT) + b"End of job\n")
    text, problems = read(path)
    assert text == TEXT
    problem = the_problem(problems)
    assert (problem.code, problem.offset) == ("gzip_trailing", len(TEXT))


@pytest.mark.parametrize("packed", [False, True])
def test_the_limit_ends_a_stream_that_goes_on(tmp_path: Path, packed: bool) -> None:
    bomb = bytes(50_000_000)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(bomb, 1) if packed else bomb)

    text, problems = read(path, max_bytes=1_000_000)

    assert text == bomb[:1_000_000]
    problem = the_problem(problems)
    assert (problem.code, problem.offset) == ("too_large", 1_000_000)


def test_a_stream_that_just_fits_the_limit_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "fits.json.gz"
    path.write_bytes(gzip.compress(TEXT))
    text, problems = read(path, max_bytes=len(TEXT))
    assert text == TEXT
    assert len(problems) == 0


@pytest.mark.parametrize("packed", [False, True])
def test_a_byte_order_mark_is_passed_over_and_counted(tmp_path: Path, packed: bool) -> None:
    marked = b"\xef\xbb\xbf" + TEXT
    path = tmp_path / "bom.json"
    path.write_bytes(gzip.compress(marked) if packed else marked)
    text, problems = read(path)
    assert text == TEXT
    assert len(problems) == 0
    with ByteStream(path, problems) as stream:
        assert stream.origin == 3


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("target_bytes", [7, 100_000])
@pytest.mark.parametrize("first", ["{", "["])
@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-32-be with a mark"])
def test_utf32_becomes_utf8(
    tmp_path: Path, encoding: str, first: str, target_bytes: int, packed: bool
) -> None:
    written = first + '"name": "größer 🚀"}\n' * 10
    raw = written.encode(encoding.split()[0])
    if "mark" in encoding:
        raw = b"\0\0\xfe\xff" + raw
    path = tmp_path / "utf32.json"
    path.write_bytes(gzip.compress(raw) if packed else raw)
    text, problems = read(path, target_bytes)
    assert text.decode() == written
    assert the_problem(problems).code == "utf32"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("target_bytes", [7, 100_000])
def test_utf16_becomes_utf8(tmp_path: Path, encoding: str, target_bytes: int) -> None:
    written = '{"name": "größer 🚀"}\n' * 10
    path = tmp_path / "utf16.json"
    path.write_bytes(written.encode(encoding))
    text, problems = read(path, target_bytes)
    assert text.decode() == written
    assert the_problem(problems).code == "utf16"


@pytest.mark.parametrize("content", [b"", b"{", b"\x1f", b"\x1f\x8b", b"\xef\xbb"])
def test_hardly_any_bytes_are_no_trouble(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tiny.json"
    path.write_bytes(content)
    text, problems = read(path)
    assert text == (b"" if content == bytestream.GZIP_MAGIC else content)
    assert [problem.code for problem in problems] == (
        ["gzip_truncated"] if content == bytestream.GZIP_MAGIC else []
    )


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"gone\.json cannot be opened: No such file"):
        ByteStream(tmp_path / "gone.json", Problems())
    with pytest.raises(ReadError, match=r"cannot be opened: Is a directory"):
        ByteStream(tmp_path, Problems())


def test_a_disk_that_fails_midway_ends_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TEXT)
    problems = Problems()
    with ByteStream(path, problems) as stream:
        target = memoryview(bytearray(1000))
        assert stream.readinto(target) == 1000

        def fail(target: memoryview) -> int:
            raise OSError(5, os.strerror(5))

        monkeypatch.setattr(stream, "_read_into", fail)
        assert stream.readinto(target) == 0
        assert stream.readinto(target) == 0
    problem = the_problem(problems)
    assert (problem.code, problem.offset, problem.example) == (
        "read_failed",
        1000,
        "Input/output error",
    )
