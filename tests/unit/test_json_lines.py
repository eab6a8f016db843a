"""JSON lines in blocks: every row, whatever the blocks; damage is located and never quoted."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rl_insight.errors import ReadError
from rl_insight.problems import Problems
from rl_insight.readers.json_lines import BlockDecoder, JsonLines, struct_decoder

SECRET = "canary-must-not-leak"


class Row(msgspec.Struct, gc=False):
    n: int | None = None
    name: str | None = None
    value: msgspec.Raw = msgspec.Raw()


class NumberRow(msgspec.Struct, gc=False, tag_field="kind", tag="number"):
    n: int


def read(
    tmp_path: Path, content: bytes | str, block_bytes: int = 1 << 20, **limits: int
) -> tuple[list[Row], Problems]:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    problems = Problems()
    reader = JsonLines(path, Row, problems, block_bytes, **limits)  # type: ignore[arg-type]
    rows = [row for block in reader for row in block]
    assert reader.rows_seen == len(rows)
    return rows, problems


def numbers(rows: list[Row]) -> list[int | None]:
    return [row.n for row in rows]


def told(problems: Problems) -> list[tuple[str, int, int | None]]:
    return [(one.code, one.count, one.offset) for one in problems]


def test_each_line_is_a_row_and_other_columns_are_passed_over(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, '{"n":1,"other":[{"n":5}]}\n{"name":"é","n":2}\n')
    assert [(row.n, row.name) for row in rows] == [(1, None), (2, "é")]
    assert not list(problems)


@pytest.mark.parametrize("block_bytes", [1, 7, 16, 50, 1_000])
def test_rows_are_the_same_whatever_the_blocks(tmp_path: Path, block_bytes: int) -> None:
    lines = [json.dumps({"n": n, "name": "x" * (n % 37)}) for n in range(200)]
    lines.insert(100, "{damaged")
    rows, problems = read(tmp_path, "\n".join(lines), block_bytes)
    assert numbers(rows) == list(range(200))
    assert told(problems) == [("line_undecodable", 1, len("\n".join(lines[:100])) + 1)]


def test_blank_lines_and_windows_line_ends_are_no_rows(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, b'\n{"n":1}\r\n\r\n  \n{"n":2}\n\n')
    assert numbers(rows) == [1, 2]
    assert not list(problems)
    rows, problems = read(tmp_path, b'\n{"n":1}\r\n\r\n  \n{"n":}\n\n{"n":2}')
    assert numbers(rows) == [1, 2]
    assert [one.code for one in problems] == ["line_undecodable"]


def test_the_last_line_needs_no_line_end(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, '{"n":1}\n{"n":2}')
    assert numbers(rows) == [1, 2]
    assert not list(problems)


def test_a_file_that_breaks_off_gives_all_whole_rows_and_says_where(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, '{"n":1}\n{"n":2}\n{"n":3,"na')
    assert numbers(rows) == [1, 2]
    assert told(problems) == [("truncated", 1, 16)]


def test_a_damaged_line_costs_no_other(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, '{"n":1}\nnot json\n[1]\nnull\n{"n":2}\n')
    assert numbers(rows) == [1, 2]
    assert told(problems) == [("line_undecodable", 3, 8)]


def test_control_characters_and_broken_utf8_are_repaired(tmp_path: Path) -> None:
    content = b'{"n":1,"name":"a\x01b"}\n{"n":2,"name":"\xff\xfe"}\n{"n":3}\n'
    rows, problems = read(tmp_path, content)
    assert [(row.n, row.name) for row in rows] == [(1, "a\x01b"), (2, "��"), (3, None)]
    assert told(problems) == [("line_repaired", 2, 0)]


def test_a_field_of_an_odd_type_is_dropped_and_the_row_kept(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, '{"n":[1],"name":"a","value":"v"}\n{"n":2}\n')
    assert [(row.n, row.name, bytes(row.value)) for row in rows] == [
        (None, "a", b'"v"'),
        (2, None, b""),
    ]
    assert told(problems) == [("field_dropped", 1, 0)]


def test_a_line_that_is_too_large_passes_by_without_being_held(tmp_path: Path) -> None:
    content = '{"n":1}\n{"name":"' + "x" * 5_000 + '"}\n{"n":2}\n'
    rows, problems = read(tmp_path, content, 64, max_line_bytes=1_000)
    assert numbers(rows) == [1, 2]
    assert told(problems) == [("line_too_large", 1, 8)]


def test_a_line_larger_than_a_block_is_read(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, '{"name":"' + "x" * 5_000 + '","n":1}\n{"n":2}\n', 64)
    assert numbers(rows) == [1, 2]
    assert not list(problems)


def test_zero_bytes_of_a_file_that_never_reached_the_disk_are_one_damaged_line(
    tmp_path: Path,
) -> None:
    rows, problems = read(tmp_path, b'{"n":1}\n' + b"\0" * 300 + b'\n{"n":2}\n')
    assert numbers(rows) == [1, 2]
    assert told(problems) == [("line_undecodable", 1, 8)]


def test_gzip_is_told_by_its_content_and_may_break_off(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(b'{"n":%d}\n' % n for n in range(5_000)))
    rows, problems = read(tmp_path, packed)
    assert numbers(rows) == list(range(5_000))
    assert not list(problems)
    rows, problems = read(tmp_path, packed[:-200])
    assert 0 < len(rows) < 5_000
    assert "gzip_truncated" in problems


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    assert told(read(tmp_path, b"")[1]) == [("empty_file", 1, 0)]
    assert told(read(tmp_path, b"\n \n")[1]) == [("empty_file", 1, 0)]


def test_a_missing_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="cannot be opened"):
        list(JsonLines(tmp_path / "none", Row, Problems()))


@pytest.mark.parametrize(
    "line",
    [
        b'{"name":"X","value":"TOKEN=%b"',  # breaks off
        b'{"name":"X","value":"TOKEN=%b}',  # its quote is lost
        b'{"name":[],"value":"TOKEN=%b"}',  # an odd name
        b'{"name":"\x01","value":"TOKEN=%b"}',  # repaired
        b"TOKEN=%b",
    ],
)
def test_what_stands_in_a_damaged_line_is_never_told(tmp_path: Path, line: bytes) -> None:
    for after in (b"", b"\n", b'\n{"n":1}\n'):
        _, problems = read(tmp_path, line % SECRET.encode() + after)
        assert len(problems)
        assert all(SECRET not in (one.example or "") for one in problems)


def narrow(first: bytes, last: bytes) -> Iterator[BlockDecoder]:
    if b'"kind":"number"' in first and b'"kind":"number"' in last:
        yield struct_decoder(NumberRow)


def narrowed(tmp_path: Path, content: str) -> list[list[type]]:
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    reader = JsonLines(path, Row, Problems(), 40, narrow=narrow)
    return [[type(row) for row in block] for block in reader]


def test_a_block_of_one_kind_is_read_by_the_decoder_of_that_kind(tmp_path: Path) -> None:
    line = '{"kind":"number","n":1}\n'
    assert narrowed(tmp_path, line * 3) == [[NumberRow]] * 3


def test_a_block_that_does_not_fit_is_read_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    # GIVEN a block that begins and ends with rows of a kind but holds another
    path.write_text('{"kind":"number","n":1}\n{"kind":"x","n":2}\n{"kind":"number","n":3}\n')
    reader = JsonLines(path, Row, Problems(), narrow=narrow)
    assert [(type(row), row.n) for block in reader for row in block] == [
        (Row, 1),
        (Row, 2),
        (Row, 3),
    ]
