"""Databases and folders of tables of nsys as killed jobs, full disks and other programs leave them.

Each input is built from scratch, and drawn beside a sound capture that must stay complete. Checked
is what a person sees: the spans, the status and the sentence, and what `problems` counts.
"""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.broken_nvtx import (
    FIRST,
    LAST,
    MIDDLE,
    NAME,
    ROWS,
    STAGE,
    WHOLE,
    changed,
    kept,
    look,
    look_at_lines,
    with_line,
)
from tests.nvtx_exports import (
    DOMAIN,
    MARK,
    PUSH_POP,
    SECOND,
    Row,
    string_range,
    text_range,
    write_database,
    write_folder,
    write_lines,
)

# -- databases -----------------------------------------------------------------------------------

PAGE = 4096
MANY = [
    *ROWS,
    *(
        text_range(20 * SECOND + n, 20 * SECOND + n + 1, "x" * 40, pid=111, kind=PUSH_POP)
        for n in range(5_000)
    ),
]
"""More ranges than fit a page; those behind the first four lie in no stage."""


def database(tmp_path: Path, rows: Sequence[Row] = ROWS) -> Path:
    return write_database(tmp_path / "run" / "b" / f"{NAME}.sqlite", rows)


def leaf_of(content: bytes, number: int) -> tuple[int, int, int]:
    """The page of NVTX_EVENTS with its row of that number: where it stands, and the row ids in it.

    A leaf begins with 13, has the number of its cells at 3 and their places from 8 on; a cell
    begins with its length and the row's id (SQLite, "Database File Format", 1.6).
    """

    def varint(at: int) -> tuple[int, int]:
        value = 0
        while True:
            value = value << 7 | content[at] & 0x7F
            at += 1
            if content[at - 1] < 0x80:
                return value, at

    for page in range(PAGE, len(content), PAGE):
        count = int.from_bytes(content[page + 3 : page + 5], "big")
        if content[page] != 13 or b"x" * 40 not in content[page : page + PAGE] or not count:
            continue
        cells = [page + 8 + 2 * at for at in (0, count - 1)]
        places = [page + int.from_bytes(content[at : at + 2], "big") for at in cells]
        first, last = (varint(varint(place)[1])[0] for place in places)
        if first <= number <= last:
            return page, first, last
    raise AssertionError("no such row")


@pytest.mark.parametrize("damage", ["zeros", "garbage", "one bit"])
def test_a_damaged_page_costs_only_its_own_rows(tmp_path: Path, damage: str) -> None:
    path = database(tmp_path, MANY)
    content = bytearray(path.read_bytes())
    page, first, last = leaf_of(bytes(content), 2_500)
    if damage == "one bit":
        content[page] ^= 4  # the kind of the page
    else:
        content[page : page + PAGE] = bytes(PAGE) if damage == "zeros" else b"\xa5" * PAGE
    path.write_bytes(content)

    seen = look(tmp_path, f"b/{NAME}.sqlite")

    # THEN the rows before and behind are there, and the stage has its name from another table
    assert seen.spans == WHOLE
    # Two rows of DETAILS and SESSION, RANK, a string each for the stage and the kernel, a kernel.
    left = 6 + 5_004 - (last - first + 1)
    assert seen.state == (
        "salvaged",
        f"damaged: NVTX_EVENTS has lost its rows {first:,} to {last:,}: "
        f"database disk image is malformed; {kept(left)}",
    )
    assert seen.problems["table_damaged"] == (1, None)


def test_a_database_that_is_cut_gives_the_rows_before(tmp_path: Path) -> None:
    path = database(tmp_path, MANY)
    content = path.read_bytes()
    page, first, _ = leaf_of(content, 2_500)
    path.write_bytes(content[:page])
    seen = look(tmp_path, f"b/{NAME}.sqlite")
    assert seen.spans == WHOLE
    assert seen.state[0] == "salvaged"
    assert seen.state[1] is not None
    assert seen.state[1].startswith(
        f"damaged: NVTX_EVENTS has lost its rows from {first:,} on: database disk image is "
        f"malformed; the "
    )


@pytest.mark.parametrize("end", ["lock", "hot journal"])
def test_what_only_a_journal_holds_is_told(tmp_path: Path, end: str) -> None:
    path = database(tmp_path)
    journal = f"{path.name}-journal"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        if end == "lock":
            writer.execute("BEGIN EXCLUSIVE")
            writer.execute("INSERT INTO StringIds VALUES (99, 'late')")
        else:
            path.with_name(journal).write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(4000))
        seen = look(tmp_path, f"b/{NAME}.sqlite")
    assert seen.spans == WHOLE
    assert seen.state[0] == "salvaged"
    assert seen.state[1] is not None
    assert seen.state[1].startswith(f"damaged: what is only in {journal} is not read: ")
    assert seen.problems == {"journal_unread": (1, None)}


def test_what_a_log_holds_is_read(tmp_path: Path) -> None:
    path = database(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("UPDATE NVTX_EVENTS SET text = 'late' WHERE text = 'middle'")
        seen = look(tmp_path, f"b/{NAME}.sqlite")
    assert seen.spans == [STAGE, FIRST, ("late", *MIDDLE[1:]), LAST]
    assert (seen.state, seen.problems) == (("ok", None), {})


BEYOND = {
    "zero bytes": (0, b"", "empty", "the file is empty"),
    "a first page of zeros": (
        PAGE,
        bytes(PAGE),
        "failed",
        "it begins with zero bytes: the data never reached the disk",
    ),
    "cut in its head": (20, None, "failed", "the database cannot be read: file is not a database"),
}


@pytest.mark.parametrize("case", BEYOND)
def test_a_database_without_its_first_page_says_so(tmp_path: Path, case: str) -> None:
    size, head, status, sentence = BEYOND[case]
    path = database(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:size] if head is None else head + (content[size:] if size else b""))
    seen = look(tmp_path, f"b/{NAME}.sqlite")
    assert (seen.spans, seen.state) == ([], (status, sentence))


def test_a_database_that_names_no_table_any_more_is_damaged(tmp_path: Path) -> None:
    # GIVEN a first page, a leaf of the list of tables, that says it has no rows
    path = database(tmp_path)
    content = bytearray(path.read_bytes())
    content[100:108] = b"\x0d" + bytes(7)
    path.write_bytes(content)
    seen = look(tmp_path, f"b/{NAME}.sqlite")
    said = "the database cannot be read: the list of its tables is lost"
    assert (seen.spans, seen.state) == ([], ("failed", said))


# -- folders of tables ---------------------------------------------------------------------------

SUFFIX = {"parquet": "parquet", "arrow": "arrow", "stream": "arrow"}


def folder(tmp_path: Path, form: str, rows: Sequence[Row] = ROWS) -> tuple[Path, str]:
    """The export as a folder, and its path in the input."""
    name = f"{NAME}_{'pqtdir' if form == 'parquet' else 'arwdir'}"
    return write_folder(tmp_path / "run" / "b" / name, rows, form), f"b/{name}"


CUT = {
    "parquet": "cannot be read: it breaks off, and what tells where its rows are stands at its end",
    "arrow": "cannot be read: it breaks off",
}


@pytest.mark.parametrize("form", CUT)
def test_a_table_that_is_cut_costs_no_other(tmp_path: Path, form: str) -> None:
    # GIVEN a table of kernels of which only the beginning is there
    place, path = folder(tmp_path, form)
    table = place / f"CUPTI_ACTIVITY_KIND_KERNEL.{SUFFIX[form]}"
    table.write_bytes(table.read_bytes()[:64])
    seen = look(tmp_path, path)
    assert seen.spans == WHOLE
    assert seen.state == ("salvaged", f"damaged: {table.name} {CUT[form]}; {kept(9)}")
    assert seen.problems == {"table_damaged": (1, None)}


def test_an_arrow_file_without_its_end_still_gives_its_rows(tmp_path: Path) -> None:
    place, path = folder(tmp_path, "arrow")
    table = place / "NVTX_EVENTS.arrow"
    table.write_bytes(table.read_bytes()[:-10])
    seen = look(tmp_path, path)
    assert seen.spans == WHOLE
    assert seen.state == ("salvaged", f"damaged: NVTX_EVENTS.arrow: it breaks off; {kept(10)}")
    assert seen.problems == {"table_damaged": (1, None)}


def test_a_damaged_row_group_costs_only_its_own_rows(tmp_path: Path) -> None:
    # GIVEN a row group for each range, and another start in the third, of the middle one
    place, path = folder(tmp_path, "parquet")
    table = place / "NVTX_EVENTS.parquet"
    pq.write_table(
        pq.read_table(table),
        table,
        row_group_size=1,
        use_dictionary=False,
        compression="none",
        write_statistics=False,
        write_page_checksum=True,
    )
    content = table.read_bytes()
    start = (4 * SECOND).to_bytes(8, "little")
    assert content.count(start) == 1
    table.write_bytes(content.replace(start, (3 * SECOND).to_bytes(8, "little")))
    seen = look(tmp_path, path)
    assert seen.spans == [STAGE, FIRST, LAST]
    assert seen.state[0] == "salvaged"
    assert seen.state[1] is not None
    assert seen.state[1].startswith("damaged: NVTX_EVENTS.parquet: row group 3 of 4 is lost: ")
    assert seen.state[1].endswith(kept(9))
    assert seen.problems == {"table_damaged": (1, None)}


@pytest.mark.parametrize("form", SUFFIX)
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty: its writer was killed"),
        (bytes(4_000), "it begins with zero bytes: the data never reached the disk"),
    ],
)
def test_an_empty_table_costs_no_other(tmp_path: Path, form: str, content: bytes, why: str) -> None:
    place, path = folder(tmp_path, form)
    table = place / f"ANALYSIS_DETAILS.{SUFFIX[form]}"
    table.write_bytes(content)
    seen = look(tmp_path, path)
    # Without the uptime at its beginning the date is that of the session.
    assert seen.spans == WHOLE
    assert seen.state == ("salvaged", f"damaged: {table.name} cannot be read: {why}; {kept(9)}")


@pytest.mark.parametrize("form", SUFFIX)
def test_a_missing_table_of_names_is_told(tmp_path: Path, form: str) -> None:
    place, path = folder(tmp_path, form)
    (place / f"StringIds.{SUFFIX[form]}").unlink()
    seen = look(tmp_path, path)
    # The stage has no name to be known by: what it held is drawn.
    assert seen.spans == [FIRST, MIDDLE, LAST]
    assert seen.state == (
        "salvaged",
        f"damaged: StringIds, the table of the names, is missing or empty; {kept(8)}",
    )
    assert seen.problems == {
        "table_missing": (1, None),
        "unnamed_range": (1, None),
        "unnamed_kernel": (1, None),
    }


@pytest.mark.parametrize("form", SUFFIX)
def test_a_missing_table_of_ranges_is_told(tmp_path: Path, form: str) -> None:
    place, path = folder(tmp_path, form)
    (place / f"NVTX_EVENTS.{SUFFIX[form]}").unlink()
    seen = look(tmp_path, path)
    # The lane is drawn from its kernel.
    assert seen.spans == [(None, 2.0, 1.0)]
    assert (seen.state, seen.problems) == (("ok", None), {"no_ranges": (1, None)})
    assert seen.examples["no_ranges"] == (
        "recorded without --trace=nvtx, or the table NVTX_EVENTS is missing"
    )


@pytest.mark.parametrize("form", SUFFIX)
@pytest.mark.parametrize("written_again", [False, True])
def test_a_table_that_was_not_completed_is_told(
    tmp_path: Path, form: str, written_again: bool
) -> None:
    place, path = folder(tmp_path, form)
    table = place / f"NVTX_EVENTS.{SUFFIX[form]}"
    left = table.with_name(f"{table.name}.tmp")
    left.write_bytes(table.read_bytes()[:100])
    if not written_again:
        table.unlink()
    seen = look(tmp_path, path)
    assert seen.problems["leftover"] == (1, None)
    if written_again:
        assert (seen.spans, seen.state) == (WHOLE, ("ok", None))
        return
    assert seen.state == (
        "salvaged",
        f"damaged: {left.name} was not completed by its writer; {kept(6)}",
    )


@pytest.mark.parametrize("form", SUFFIX)
def test_a_folder_of_nothing_but_damage_has_failed(tmp_path: Path, form: str) -> None:
    place, path = folder(tmp_path, form)
    for table in place.iterdir():
        table.write_bytes(b"")
    seen = look(tmp_path, path)
    assert seen.spans == []
    assert seen.state == (
        "failed",
        f"ANALYSIS_DETAILS.{SUFFIX[form]} cannot be read: it is empty: its writer was killed",
    )


# -- times that cannot have been, in every form --------------------------------------------------


def _lines(tmp_path: Path, rows: Sequence[Row]) -> str:
    write_lines(tmp_path / "run" / "b" / f"{NAME}.jsonl", rows)
    return f"b/{NAME}.jsonl"


def _database(tmp_path: Path, rows: Sequence[Row]) -> str:
    database(tmp_path, rows)
    return f"b/{NAME}.sqlite"


def _parquet(tmp_path: Path, rows: Sequence[Row]) -> str:
    return folder(tmp_path, "parquet", rows)[1]


def _arrow(tmp_path: Path, rows: Sequence[Row]) -> str:
    return folder(tmp_path, "arrow", rows)[1]


FORMS: dict[str, Callable[[Path, Sequence[Row]], str]] = {
    "lines": _lines,
    "sqlite": _database,
    "parquet": _parquet,
    "arrow": _arrow,
}
DAY = 24 * 3600 * SECOND
ODD = {
    "start -1": (-1, 5 * SECOND, "no_time"),
    "no start: a pop without its push": (None, 5 * SECOND, "no_time"),
    "end before start": (4 * SECOND, 3 * SECOND, "negative_duration"),
    "longer than a week": (4 * SECOND, 8 * DAY, "impossible_duration"),
    "far outside the capture": (3 * DAY, 3 * DAY + SECOND, "outside_capture"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", ODD)
def test_a_time_that_cannot_be_costs_its_range_and_is_counted(
    tmp_path: Path, form: str, case: str
) -> None:
    start, end, code = ODD[case]
    odd = text_range(0, end, "odd", pid=111, kind=PUSH_POP)
    odd["start"] = start
    if form == "lines" and start is None:
        del odd["start"]
    seen = look(tmp_path, FORMS[form](tmp_path, [*ROWS, odd, odd]))
    assert (seen.spans, seen.state) == (WHOLE, ("ok", None))
    assert seen.problems == {code: (2, None)}


@pytest.mark.parametrize("form", FORMS)
def test_56_a_range_that_never_ended_ends_with_the_capture(tmp_path: Path, form: str) -> None:
    # GIVEN a range that was open at the end, a mark and a domain, which have no end
    rows = [
        *ROWS,
        text_range(8 * SECOND, None, "open", pid=111),
        text_range(5, None, "CCCL", pid=111, kind=DOMAIN, domainId=3),
        text_range(7 * SECOND, None, "mark", pid=111, kind=MARK),
        string_range(50 * SECOND, None, 1, pid=111),
    ]
    seen = look(tmp_path, FORMS[form](tmp_path, rows))
    # THEN what was open lasts up to the end of the capture, of 100 s; the first lies in no stage
    assert seen.spans == [*WHOLE, ("actor_update", 50.0, 50.0)]
    assert seen.state == ("ok", None)
    assert seen.problems == {"open_range": (2, None)}


@pytest.mark.parametrize("value", [b"inf", b"nan", b"99999999999999999999999", b'"soon"', b"5.5"])
def test_an_end_that_is_no_number_is_not_taken_for_an_open_range(
    tmp_path: Path, value: bytes
) -> None:
    line = changed(b'"end": 5000000000', b'"end": ' + value)
    seen = look_at_lines(tmp_path, with_line(line))
    assert seen.spans == [STAGE, FIRST, LAST]
    assert seen.state == ("ok", None)
    assert seen.problems["no_time"] == (1, None)
    assert "open_range" not in seen.problems


@pytest.mark.parametrize("value", ["'soon'", "x'05'", "5.5", "1e300"])
def test_an_end_that_is_no_number_in_a_database_is_not_open_either(
    tmp_path: Path, value: str
) -> None:
    change = f"UPDATE NVTX_EVENTS SET \"end\" = {value} WHERE text = 'middle';"
    write_database(tmp_path / "run" / "b" / f"{NAME}.sqlite", ROWS, change)
    seen = look(tmp_path, f"b/{NAME}.sqlite")
    assert (seen.spans, seen.state) == ([STAGE, FIRST, LAST], ("ok", None))
    assert seen.problems == {"no_time": (1, None)}


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_of_ends_that_are_decimals_those_that_are_no_number_are_open(
    tmp_path: Path, form: str
) -> None:
    # GIVEN a table that went through pandas, where null is NaN, and an infinite end
    rows = [*ROWS, string_range(50 * SECOND, None, 1, pid=111)]
    place, path = folder(tmp_path, form, rows)
    table = place / f"NVTX_EVENTS.{SUFFIX[form]}"
    ends = [9.0 * SECOND, 3.0 * SECOND, float("inf"), 7.0 * SECOND, float("nan")]
    raw = pa.BufferReader(table.read_bytes())
    content = pq.read_table(raw) if form == "parquet" else pa.ipc.open_file(raw).read_all()
    at = content.schema.get_field_index("end")
    content = content.set_column(at, "end", pa.array(ends))
    if form == "parquet":
        pq.write_table(content, table)
    else:
        with pa.OSFile(str(table), "wb") as file, pa.ipc.new_file(file, content.schema) as writer:
            writer.write_table(content)
    seen = look(tmp_path, path)
    assert seen.spans == [STAGE, FIRST, LAST, ("actor_update", 50.0, 50.0)]
    assert seen.state == ("ok", None)
    assert seen.problems == {"no_time": (1, None), "open_range": (1, None)}
