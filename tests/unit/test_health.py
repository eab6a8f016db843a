"""What the two ends of a file show of its health."""

import gzip
import io
import os
import random
import sqlite3
import zipfile

import pyarrow as pa
import pytest

from rl_insight.data.health import END_BYTES, look

EVENTS = ",".join(f'{{"ph": "X", "name": "k{n}", "ts": {n}, "dur": 1}}' for n in range(200))
TRACE = f'{{"schemaVersion": 1, "traceEvents": [{EVENTS}]}}\n'.encode()


def health(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return look(path)


def codes(folder, name, content):
    return [one.code for one in health(folder, name, content).ailments]


def noise(size):
    """A trace that hardly shrinks: names of random letters."""
    letters = random.Random(7)
    name = "".join(letters.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=size))
    return b'{"traceEvents": [{"name": "%s"}]}' % name.encode()


@pytest.mark.parametrize(
    ("name", "content", "format_", "packed"),
    [
        ("a.json", TRACE, "json", False),
        ("a.json", b"\xef\xbb\xbf[]\n", "json", False),
        ("a.json.gz", gzip.compress(TRACE), "json", True),
        ("a.jsonl", b'{"table": "A"}\n{"table": "B"}\n', "json lines", False),
        ("a.parquet", b"PAR1....PAR1", "parquet", False),
        ("a.arrow", b"ARROW1\0\0....ARROW1", "arrow", False),
        ("a.json", noise(3 * END_BYTES), "json", False),
        ("a.json.gz", gzip.compress(noise(3 * END_BYTES)), "json", True),
        ("a.json.gz", gzip.compress(TRACE) + gzip.compress(b"  \n"), "json", True),
        ("a.json.gz", gzip.compress(noise(3 * END_BYTES)) + gzip.compress(b" "), "json", True),
    ],
)
def test_what_is_whole_is_well(tmp_path, name, content, format_, packed):
    found = health(tmp_path, name, content)
    assert (found.format, found.packed, found.ailments) == (format_, packed, ())
    assert not found.damaged


def test_zero_bytes_and_bytes_of_zero(tmp_path):
    assert codes(tmp_path, "a.json", b"") == ["empty_file"]
    assert codes(tmp_path, "a.json", b"\0" * 9000) == ["zero_bytes"]
    assert codes(tmp_path, "a.json", TRACE * 10 + b"\0" * 2 * END_BYTES) == ["zero_bytes"]
    assert codes(tmp_path, "a.json.gz", gzip.compress(b"")) == ["empty_file"]


@pytest.mark.parametrize("cut", [1, 7, 8, 9, 200])
def test_a_short_gzip_without_its_end(tmp_path, cut):
    found = health(tmp_path, "a.json.gz", gzip.compress(TRACE)[:-cut])
    assert [one.code for one in found.ailments] == ["gzip_cut"]
    assert found.damaged
    assert found.head.startswith(b'{"schemaVersion"')


def test_a_long_gzip_without_its_end_is_told_by_the_size_it_should_say(tmp_path):
    packed = gzip.compress(noise(6 * END_BYTES))
    assert len(packed) > 3 * END_BYTES
    assert codes(tmp_path, "a.json.gz", packed) == []
    found = [codes(tmp_path, "a.json.gz", packed[:-cut]) for cut in range(100, 2100, 100)]
    assert found.count(["gzip_cut"]) >= 19  # four bytes of noise may be such a size by chance


def test_a_gzip_with_a_flipped_byte(tmp_path):
    packed = bytearray(gzip.compress(TRACE))
    packed[-6] ^= 1  # in its CRC
    assert codes(tmp_path, "a.json.gz", bytes(packed)) == ["gzip_damaged"]


@pytest.mark.parametrize(
    "text",
    [
        TRACE[:-200],
        TRACE[: TRACE.rindex(b"}]}") + 1],  # an event closes like the whole does
        b'[{"ph": "X"},\n{"ph": "X"},\n',
        b"{",
        b'{"traceEvents": [' + f"{EVENTS},".encode() * 20,
    ],
)
def test_json_that_does_not_close(tmp_path, text):
    assert codes(tmp_path, "a.json", text) == ["json_open"]


def test_what_is_wrong_with_packed_json_is_seen_too(tmp_path):
    assert codes(tmp_path, "a.json.gz", gzip.compress(TRACE[:-200])) == ["json_open"]


def test_a_last_line_that_is_cut(tmp_path):
    text = b'{"table": "A"}\n{"table": "B"}\n{"tab'
    assert codes(tmp_path, "a.jsonl", text) == ["line_cut"]


def test_a_file_that_another_packer_made_says_what_unpacks_it(tmp_path):
    # `.json.gz` over zstd is not read, though a plain `.json` of that name is.
    for name in ("a.json.gz", "a.json", "a.json.zst"):
        (one,) = health(tmp_path, name, b"\x28\xb5\x2f\xfd" + bytes(range(200))).ailments
        assert (one.code, one.harmless) == ("packed_otherwise", False)
        assert one.text == "is packed by zstd, which is not read: unpack it with zstd -d"


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.db", b"SQLite format 3\0" + bytes(200)), ("a.npy", b"\x93NUMPY" + bytes(200))],
)
def test_what_is_no_json_is_not_read_from_a_gzip_either(tmp_path, name, content):
    (one,) = health(tmp_path, name, gzip.compress(content)).ailments
    assert (one.code, one.harmless) == ("packed_otherwise", False)
    assert one.text == "is packed by gzip, which is read of JSON only: unpack it with gunzip"


def test_a_page_that_was_saved_for_a_packed_trace_is_not_read_all_the_same(tmp_path):
    for content in (b"<html>502</html>", gzip.compress(b"<html>502</html>")):
        (one,) = health(tmp_path, "a.json.gz", content).ailments
        assert (one.code, one.harmless) == ("wrong_content", False)


def test_a_hole_at_the_beginning_is_not_a_file_of_zeros(tmp_path):
    (one,) = health(tmp_path, "a.json", bytes(2 * END_BYTES) + TRACE).ailments
    assert one.text.startswith("begins with zero bytes")


def test_a_wrong_suffix_is_harmless_and_a_wrong_content_is_not(tmp_path):
    found = health(tmp_path, "a.json", gzip.compress(TRACE))
    assert ([one.code for one in found.ailments], found.damaged) == (["wrong_suffix"], False)
    assert codes(tmp_path, "a.json.gz", TRACE) == ["wrong_suffix"]
    found = health(tmp_path, "a.json", b"version https://git-lfs.github.com/spec/v1\n")
    assert ([one.code for one in found.ailments], found.damaged) == (["wrong_content"], True)
    assert codes(tmp_path, "a.sqlite", b"Killed\n") == ["wrong_content"]


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "a.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 100)
    connection.commit()
    connection.close()
    return path


def test_a_database_that_is_shorter_than_it_says(made):
    assert look(made).ailments == ()
    content = made.read_bytes()
    made.write_bytes(content[:-5000])
    found = look(made)
    assert [one.code for one in found.ailments] == ["database_cut"]
    assert f"{len(content) - 5000:,} of {len(content):,} bytes" in found.ailments[0].text
    made.write_bytes(content[:50])
    assert [one.code for one in look(made).ailments] == ["database_cut"]


def test_a_database_whose_writer_was_killed(made):
    other = sqlite3.connect(made)
    other.execute("PRAGMA cache_size = 1")
    other.execute("UPDATE t SET x = 'y'")  # too much for its cache: it is on the disk, uncommitted
    journal = made.with_name("a.sqlite-journal")
    content, rest = made.read_bytes(), journal.read_bytes()
    other.rollback()
    other.close()
    made.write_bytes(content)
    journal.write_bytes(rest)
    assert [one.code for one in look(made).ailments] == ["hot_journal"]
    journal.write_bytes(b"\0" * 512)  # what a journal that is done with may look like
    assert look(made).ailments == ()


def test_an_archive_without_its_end(tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", b"x" * 1000)
    assert codes(tmp_path, "a.pt", file.getvalue()) == []
    assert codes(tmp_path, "a.pt", file.getvalue()[:-30]) == ["archive_cut"]
    assert codes(tmp_path, "a.parquet", b"PAR1....") == ["table_cut"]


@pytest.mark.parametrize("rows", [0, 3, 40_000])
def test_an_arrow_stream_is_known_by_its_first_message_and_whole_by_its_last(tmp_path, rows):
    sink = pa.BufferOutputStream()
    content = pa.table({"start": list(range(rows))})
    with pa.ipc.new_stream(sink, content.schema) as writer:
        writer.write_table(content)
    stream = sink.getvalue().to_pybytes()
    found = health(tmp_path, "NVTX_EVENTS.arrow", stream)
    assert (found.format, found.ailments) == ("arrow stream", ())
    assert codes(tmp_path, "NVTX_EVENTS.arrow", stream[:-20]) == ["table_cut"]
    # Erased flash is all ones.
    assert codes(tmp_path, "NVTX_EVENTS.arrow", b"\xff" * 9_000) == ["wrong_content"]


def test_a_bomb_is_not_unpacked(tmp_path):
    bomb = gzip.compress(b"{" + b" " * (60 << 20))
    assert len(bomb) <= END_BYTES
    found = health(tmp_path, "a.json.gz", bomb)
    assert len(found.head) <= END_BYTES


def test_what_is_no_file_is_neither_waited_for_nor_raised(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "nothing", "", "a\0b"):
        found = look(tmp_path / name)
        assert (found.format, [one.code for one in found.ailments]) == (
            "unreadable",
            ["unreadable"],
        )
