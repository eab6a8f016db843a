"""Exports of nsys as killed jobs, full disks and other programs leave them, in every form.

Each input is built from scratch, and drawn beside a sound capture that must stay complete. Checked
is what a person sees: the spans, the status and the sentence, and what `problems` counts. Numbers
are rows of the case list.
"""

import gzip
from pathlib import Path

import pytest

from rl_insight.readers import bytestream
from tests.broken_nvtx import (
    AFTER,
    BEFORE,
    FIRST,
    LAST,
    LINE,
    LINES,
    MIDDLE,
    NAME,
    OFFSET,
    ROWS,
    STAGE,
    WHOLE,
    changed,
    joined,
    kept,
    look,
    look_at_lines,
    with_line,
)
from tests.nvtx_exports import (
    write_database,
)

# -- JSON lines ----------------------------------------------------------------------------------

REPAIRED = {
    "a comma behind": (LINE + b",", "middle"),
    "a comma inside": (changed(b'"middle"', b'"middle",'), "middle"),
    "a control character": (changed(b"middle", b"mid\x01dle"), "mid\x01dle"),
    "a zero byte": (changed(b"middle", b"mid\x00dle"), "mid\x00dle"),
    "a line break": (changed(b"middle", b"mid\ndle"), "mid\ndle"),
    "two line breaks": (changed(b"middle", b"m\nid\ndle"), "m\nid\ndle"),
    "a bare backslash": (changed(b"middle", b"C:\\parts"), "C:\\parts"),
    "no UTF-8": (changed(b"middle", b"mid\xff\xfedle"), "mid\ufffd\ufffddle"),
    "GBK": (changed(b"middle", "训练".encode("gbk")), "ѵ\ufffd\ufffd"),
    "bare inf": (changed(b'"domainId": 0', b'"domainId": inf'), "middle"),
    "bare nan": (changed(b'"domainId": 0', b'"domainId": nan'), "middle"),
    "NaN": (changed(b'"domainId": 0', b'"domainId": NaN'), "middle"),
}


@pytest.mark.parametrize("case", REPAIRED)
def test_a_line_that_is_no_json_is_repaired(tmp_path: Path, case: str) -> None:
    line, name = REPAIRED[case]
    seen = look_at_lines(tmp_path, with_line(line))
    assert seen.spans == [STAGE, FIRST, (name, *MIDDLE[1:]), LAST]
    assert seen.state == ("ok", None)
    assert seen.problems == {"line_repaired": (1, OFFSET)}


LOST = {
    "unescaped quotes": changed(b"middle", b'lib("ns", "IMPL")'),
    "cut in its middle": LINE[:60],
    "a hole of zeros": LINE[:40] + bytes(64) + LINE[80:],
    "garbage": LINE[:40] + bytes(range(200, 256)) + LINE[80:],
    "something else": b"Traceback (most recent call last):",
}


@pytest.mark.parametrize("case", LOST)
def test_a_line_beyond_repair_costs_only_itself(tmp_path: Path, case: str) -> None:
    seen = look_at_lines(tmp_path, with_line(LOST[case]))
    assert seen.spans == [STAGE, FIRST, LAST]
    assert seen.state == (
        "salvaged",
        f"damaged: a line cannot be read, at byte {OFFSET:,}; {kept(9)}",
    )
    assert seen.problems == {"line_undecodable": (1, OFFSET)}


def test_a_hole_of_zeros_over_several_lines_leaves_the_row_behind_it(tmp_path: Path) -> None:
    # GIVEN zeros from within the line of the middle range up to the next line's beginning
    content = joined(BEFORE) + LINE[:30] + bytes(4096) + joined(AFTER)
    seen = look_at_lines(tmp_path, content)
    assert seen.spans == [STAGE, FIRST, LAST]
    assert seen.state[0] == "salvaged"
    assert seen.problems == {"line_undecodable": (1, OFFSET)}


@pytest.mark.parametrize("at", [10, 40, 60, 100])
def test_a_line_in_the_middle_of_another_costs_neither(tmp_path: Path, at: int) -> None:
    # GIVEN a second writer that put its line, without the line break, into another's; a bad line
    # besides, so that lines are looked at one by one
    broken = LINES[6][:at] + LINE + LINES[6][at:]
    seen = look_at_lines(tmp_path, joined([b"%%%", *LINES[:6], broken, *AFTER]))
    assert seen.spans == WHOLE
    assert seen.state == ("salvaged", f"damaged: a line cannot be read, at byte 0; {kept(10)}")
    assert seen.problems == {
        "line_undecodable": (1, 0),
        "line_repaired": (1, 4 + len(joined(LINES[:6]))),
    }


def test_two_lines_without_a_break_are_two_rows(tmp_path: Path) -> None:
    seen = look_at_lines(tmp_path, joined([b"%%%", *LINES[:6], LINES[6] + LINE, *AFTER]))
    assert seen.spans == WHOLE
    assert seen.problems["line_repaired"] == (1, 4 + len(joined(LINES[:6])))


def test_two_half_lines_in_one_cost_their_two_rows(tmp_path: Path) -> None:
    seen = look_at_lines(tmp_path, joined([*LINES[:6], LINES[6][:40] + LINE[50:], *AFTER]))
    offset = len(joined(LINES[:6]))
    assert seen.spans == [STAGE, LAST]
    assert seen.state == (
        "salvaged",
        f"damaged: a line cannot be read, at byte {offset}; {kept(8)}",
    )
    assert seen.problems == {"line_undecodable": (1, offset)}


@pytest.mark.parametrize("open_end", [False, True])
def test_the_rows_of_a_list_are_rows(tmp_path: Path, open_end: bool) -> None:
    content = b"[\n" + b",\n".join(LINES) + (b",\n" if open_end else b"\n]\n")
    seen = look_at_lines(tmp_path, content)
    assert seen.spans == WHOLE
    assert seen.state == ("ok", None)
    # The lines with a bracket or a comma: all twelve but the last row's where the list is closed.
    assert seen.problems == {"line_repaired": (11, 0)}


SAME = {
    "empty lines": b"\n\n" + b"\n\n \t\r\n".join(LINES) + b"\n\n",
    "Windows lines": b"\r\n".join(LINES) + b"\r\n",
    "no last line break": joined(LINES, b""),
    "a byte order mark": b"\xef\xbb\xbf" + joined(LINES),
    "an integer beyond 64 bits": joined(
        [*BEFORE, changed(b'{"dom', b'{"c": 18446744073709551616, "dom'), *AFTER]
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_what_harms_nothing_is_not_told(tmp_path: Path, case: str) -> None:
    seen = look_at_lines(tmp_path, SAME[case])
    assert (seen.spans, seen.state, seen.problems) == (WHOLE, ("ok", None), {})


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_text_of_windows_is_read(tmp_path: Path, encoding: str) -> None:
    seen = look_at_lines(tmp_path, joined(LINES).decode().encode(encoding))
    assert (seen.spans, seen.state) == (WHOLE, ("ok", None))
    assert seen.problems == {encoding.replace("-", "")[:5]: (1, 0)}


def test_a_last_line_that_is_cut_is_told(tmp_path: Path) -> None:
    offset = len(joined(LINES[:-1]))
    seen = look_at_lines(tmp_path, joined(LINES)[:-30])
    assert seen.spans == WHOLE
    assert seen.state == (
        "salvaged",
        f"the file breaks off after {offset:,} bytes of unpacked text; {kept(9)}",
    )
    assert seen.problems == {"truncated": (1, offset)}


def test_a_gzip_that_is_cut_gives_what_it_holds(tmp_path: Path) -> None:
    # GIVEN an export stored in pieces, so that where it is cut can be told: 5 bytes for each
    # stored block and 10 for the header (RFC 1951, 3.2.4)
    whole = gzip.compress(joined(LINES), 0)
    cut = len(joined(LINES[:8])) + 20
    seen = look_at_lines(tmp_path, whole[: 10 + 5 + cut], f"{NAME}.jsonl.gz")
    assert seen.spans == [STAGE, FIRST, MIDDLE]
    assert seen.state == (
        "salvaged",
        f"the file breaks off after {cut:,} bytes of unpacked text; {kept(8)}",
    )
    assert seen.problems == {"gzip_truncated": (1, cut), "truncated": (1, cut - 20)}


def test_what_follows_a_gzip_is_told(tmp_path: Path) -> None:
    content = gzip.compress(joined(LINES)) + b"junk"
    seen = look_at_lines(tmp_path, content, f"{NAME}.jsonl.gz")
    assert seen.spans == WHOLE
    size = len(joined(LINES))
    assert seen.state == (
        "salvaged",
        f"damaged: something else follows the packed data, at byte {size:,}; {kept(10)}",
    )


def test_a_gzip_that_goes_on_for_hours_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN an export with a million zeros behind it, packed to some kilobytes
    monkeypatch.setattr(bytestream, "FREE_BYTES", 10_000)
    content = gzip.compress(joined(LINES) + bytes(1_000_000))
    assert 1_000 < len(content) < 3_000
    limit = 100 * len(content)
    # WHEN it is drawn THEN the rows before are kept, and the sentence tells what to do
    seen = look_at_lines(tmp_path, content, f"{NAME}.jsonl.gz")
    assert seen.spans == WHOLE
    assert seen.state == (
        "salvaged",
        f"its {len(content):,} bytes unpack to more than {limit:,}, which only damage or intent "
        f"does; to read all of it, unpack it with gunzip; {kept(10)}",
    )
    assert seen.problems["too_large"] == (1, limit)


def test_a_gzip_of_traces_may_be_as_large_as_it_is(tmp_path: Path) -> None:
    # The limits that the docs name; a hundred times is thrice what the densest traces reach.
    assert (bytestream.FREE_BYTES, bytestream.MOST_TIMES) == (16 * 2**30, 100)


NOTHING = {
    "zero bytes": (b"", "empty", "the file is empty"),
    "empty lines": (b"\n\n\n", "empty", "the file is empty"),
    "only zeros": (
        bytes(4096),
        "failed",
        "it holds only zero bytes: the data never reached the disk",
    ),
    "a login page": (b"<!DOCTYPE html><html></html>", "failed", "it holds HTML or XML"),
    "text": (b"API_TOKEN=0123456789\n" * 3, "failed", "it holds no JSON lines"),
    "cut at once": (
        LINES[0][:20],
        "failed",
        "the file breaks off after 0 bytes, before its rows",
    ),
    "another's lines": (
        b'{"loss": 1}\n{"loss": 2}\n',
        "failed",
        "JSON lines of another kind: no row names a table",
    ),
}


@pytest.mark.parametrize("case", NOTHING)
def test_a_file_without_rows_says_what_it_is(tmp_path: Path, case: str) -> None:
    content, status, sentence = NOTHING[case]
    seen = look_at_lines(tmp_path, content)
    assert seen.spans == []
    assert seen.state[0] == status
    assert seen.state[1] is not None and seen.state[1].startswith(sentence)
    assert "0123456789" not in str(seen)


# -- names that do not fit -----------------------------------------------------------------------


def test_the_content_counts_and_not_the_name(tmp_path: Path) -> None:
    write_database(tmp_path / "run" / "b" / f"{NAME}.jsonl", ROWS)
    seen = look(tmp_path, f"b/{NAME}.jsonl")
    assert (seen.spans, seen.state) == (WHOLE, ("ok", None))


@pytest.mark.parametrize("name", [f"{NAME}.sqlite", f"{NAME}.jsonl.gz"])
def test_lines_under_another_name_are_read(tmp_path: Path, name: str) -> None:
    seen = look_at_lines(tmp_path, joined(LINES), name)
    assert (seen.spans, seen.state) == (WHOLE, ("ok", None))


LEFT = "left by a killed writer or copier: copy it again, or export it again"
PACKED = "a database that was packed by gzip: unpack it with gunzip"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (f"{NAME}.sqlite.tmp", LEFT),
        (f"{NAME}.jsonl.gz.part", LEFT),
        ("report1.nsys-rep.tmp", LEFT),
        (f"{NAME}.sqlite.zst.part", LEFT),
    ],
)
def test_what_is_not_read_is_told(tmp_path: Path, name: str, why: str) -> None:
    seen = look_at_lines(tmp_path, b"SQLite format 3\0", name)
    assert (seen.spans, seen.state) == ([], ("skipped", why))


def test_a_packed_database_under_a_plain_name_is_told(tmp_path: Path) -> None:
    content = gzip.compress(b"SQLite format 3\0" + bytes(200))
    seen = look_at_lines(tmp_path, content, f"{NAME}.sqlite")
    assert (seen.spans, seen.state) == ([], ("failed", PACKED))


def test_an_empty_file_of_the_name_that_nsys_gives_is_told(tmp_path: Path) -> None:
    seen = look_at_lines(tmp_path, b"", "report1.sqlite")
    assert (seen.spans, seen.state) == ([], ("empty", "the file is empty"))
