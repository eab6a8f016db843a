"""Parquet files, Arrow files and Arrow streams are read alike, by columns, without pandas."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rl_insight.errors import ReadError
from rl_insight.readers import arrow_folder
from rl_insight.readers.arrow_columns import integers, texts
from tests.nvtx_exports import write_folder

MISSING = -(2**63)
# Nothing is lost where a test does not say so.
batches = partial(arrow_folder.batches, lost=pytest.fail)
FORMS = {"parquet": "T.parquet", "arrow": "T.arrow", "stream": "T.arrow"}
ROWS: list[dict[str, object]] = [
    {"table": "T", "number": 1, "name": "a", "other": 1.5},
    {"table": "T", "number": None, "name": None, "other": 2.5},
    {"table": "T", "number": 3, "name": "ü", "other": None},
]


@pytest.fixture(params=FORMS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_folder(tmp_path / "export", ROWS, request.param) / FORMS[request.param]


def test_the_wanted_columns_come_with_null_as_missing(path: Path) -> None:
    (batch,) = batches(path, ("name", "number", "absent"))
    assert batch.schema.names == ["name", "number"]
    assert integers(batch.column("number"), MISSING).tolist() == [1, MISSING, 3]
    assert texts(batch.column("name")) == ["a", None, "ü"]


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_breaks_off_before_its_rows_cannot_be_read(tmp_path: Path, form: str) -> None:
    path = write_folder(tmp_path / "export", ROWS, form) / FORMS[form]
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ReadError, match=rf"^{path.name} cannot be read: "):
        list(batches(path, ("name",)))


def _in_pieces(path: Path, form: str, rows: int = 4_000, each: int = 1_000) -> None:
    """A column of numbers in so many row groups or batches."""
    content = pa.table({"number": list(range(rows))})
    if form == "parquet":
        # Plain, not packed: a number stands in the file as its eight bytes.
        pq.write_table(
            content,
            path,
            row_group_size=each,
            use_dictionary=False,
            compression="none",
            write_page_checksum=True,
        )
        return
    make = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
    with pa.OSFile(str(path), "wb") as file, make(file, content.schema) as writer:
        writer.write_table(content, max_chunksize=each)


def _numbers(path: Path, lost: list[str]) -> list[int]:
    found = arrow_folder.batches(path, ("number",), lost.append)
    return [number for batch in found for number in integers(batch.column(0), MISSING).tolist()]


def test_damage_in_a_row_group_costs_no_other(tmp_path: Path) -> None:
    # GIVEN four groups of rows, and a number of the second that changed
    path = tmp_path / "T.parquet"
    _in_pieces(path, "parquet")
    content = bytearray(path.read_bytes())
    content[content.index((1_500).to_bytes(8, "little")) + 3] ^= 1
    path.write_bytes(content)
    lost: list[str] = []
    # WHEN it is read THEN the page's checksum tells, and the other three are there
    assert _numbers(path, lost) == [*range(1_000), *range(2_000, 4_000)]
    assert len(lost) == 1
    assert lost[0].startswith("T.parquet: row group 2 of 4 is lost: ")
    assert "CRC" in lost[0]


def test_an_arrow_file_without_its_end_is_read_up_to_there(tmp_path: Path) -> None:
    # GIVEN four batches, of which the third is cut in its middle
    path = tmp_path / "T.arrow"
    _in_pieces(path, "arrow")
    content = path.read_bytes()
    path.write_bytes(content[: content.index((2_500).to_bytes(8, "little"))])
    lost: list[str] = []
    assert _numbers(path, lost) == list(range(2_000))
    assert lost == ["T.arrow: it breaks off"]


def test_a_batch_that_points_outside_its_text_costs_no_other(tmp_path: Path) -> None:
    # GIVEN two batches of texts; the offsets of the first are 0, 5, 10
    path = tmp_path / "T.arrow"
    content = pa.table({"text": ["first", "pages", "other", "texts"]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, content.schema) as writer:
        writer.write_table(content, max_chunksize=2)
    raw = path.read_bytes()
    offsets = b"".join(number.to_bytes(4, "little") for number in (0, 5, 10))
    assert raw.count(offsets) == 2
    path.write_bytes(raw.replace(offsets, offsets[:4] + b"\xff\xff\xff\x0f" + offsets[8:], 1))
    lost: list[str] = []
    (batch,) = arrow_folder.batches(path, ("text",), lost.append)
    assert texts(batch.column(0)) == ["other", "texts"]
    assert len(lost) == 1 and lost[0].startswith("T.arrow: batch 1 of 2 is lost: ")


def test_an_empty_file_says_why(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(ReadError, match="it is empty: its writer was killed"):
        list(batches(path, ("name",)))


def test_a_missing_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="cannot be read"):
        list(batches(tmp_path / "none.parquet", ("name",)))


def test_the_batches_before_the_damage_are_good(tmp_path: Path) -> None:
    # GIVEN a stream of two batches, the second of which breaks off
    path = tmp_path / "T.arrow"
    batch = pa.record_batch({"number": list(range(1_000))})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    path.write_bytes(path.read_bytes()[:-500])
    # WHEN it is read
    reader = batches(path, ("number",))
    # THEN the first is there
    assert next(reader).num_rows == 1_000
    with pytest.raises(ReadError):
        next(reader)


def test_a_long_batch_comes_in_pieces(tmp_path: Path) -> None:
    # GIVEN one batch of 150,000 rows, as some programs write a whole table
    content = pa.table({"number": list(range(150_000))})
    path = tmp_path / "T.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, content.schema) as writer:
        writer.write_table(content, max_chunksize=200_000)
    # WHEN it is read
    parts = [integers(batch.column(0), MISSING) for batch in batches(path, ("number",))]
    # THEN it comes in parts, and all rows do
    assert [len(part) for part in parts] == [65_536, 65_536, 18_928]
    assert np.concatenate(parts).tolist() == list(range(150_000))


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_text_that_repeats_is_not_multiplied(tmp_path: Path, form: str) -> None:
    # GIVEN 50,000 rows with one text of a million characters: 50 GB, were each to have its own
    text = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(50_000, np.int32)), pa.array(["x" * 10**6])
    )
    content, path = pa.table({"text": text}), tmp_path / "T"
    if form == "parquet":
        pq.write_table(content, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, content.schema) as writer:
            writer.write_table(content)
    # WHEN it is read
    before = pa.total_allocated_bytes()
    (batch,) = batches(path, ("text",))
    found = texts(batch.column(0))
    # THEN all rows have it, and it stands in memory a few times at most
    assert found.count("x" * 10**6) == 50_000
    assert pa.total_allocated_bytes() - before < 50 * 10**6


def test_long_texts_that_do_not_repeat_come_few_rows_at_a_time(tmp_path: Path) -> None:
    # GIVEN 200 MB of texts in one group of rows: 300 kB when packed
    count, length = 40_000, 5_000
    content = pa.table({"text": [f"{number:06}" + "x" * length for number in range(count)]})
    path = tmp_path / "T.parquet"
    pq.write_table(content, path, compression="zstd", use_dictionary=False, row_group_size=count)
    del content
    # WHEN it is read THEN no batch takes more than some MB, and all rows come
    before = pa.total_allocated_bytes()
    rows = 0
    for batch in batches(path, ("text",)):
        assert pa.total_allocated_bytes() - before < 64 << 20
        assert texts(batch.column(0), 6) == [
            f"{number:06}" for number in range(rows, rows + len(batch))
        ]
        rows += len(batch)
    assert rows == count


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_page_that_unpacks_to_very_much_is_refused(tmp_path: Path, dictionary: bool) -> None:
    # GIVEN 80 MB of texts in one page: 100 kB when packed
    texts = pa.array([f"{number:06}" + "x" * 100_000 for number in range(800)])
    column = pa.DictionaryArray.from_arrays(pa.array(range(800), pa.int32()), texts)
    path = tmp_path / "T.parquet"
    pq.write_table(
        pa.table({"text": column if dictionary else texts}),
        path,
        compression="zstd",
        use_dictionary=dictionary,
        data_page_size=1 << 30,
    )
    assert path.stat().st_size < 1 << 20
    # WHEN it is read THEN that is said, and nothing was unpacked
    before = pa.total_allocated_bytes()
    with pytest.raises(ReadError, match=r"text has 80\d+ bytes when unpacked, and 67108864 is"):
        list(batches(path, ("text",)))
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_no_page_behind_the_first_may_unpack_to_very_much_either(tmp_path: Path) -> None:
    # GIVEN a first page of short texts, and one of 80 MB behind it
    texts = ["short"] * 2_000 + [f"{number:06}" + "x" * 100_000 for number in range(800)]
    path = tmp_path / "T.parquet"
    pq.write_table(
        pa.table({"text": texts}),
        path,
        compression="zstd",
        use_dictionary=False,
        # A page ends where that is full, which is looked at after so many rows.
        data_page_size=1,
        write_batch_size=1_000,
    )
    before = pa.total_allocated_bytes()
    with pytest.raises(ReadError, match=r"text has 80\d+ bytes when unpacked, and 67108864 is"):
        list(batches(path, ("text",)))
    assert pa.total_allocated_bytes() - before < 1 << 20


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_headers_of_all_pages_are_understood(tmp_path: Path, version: str) -> None:
    # GIVEN hundreds of small pages with statistics and checksums in their headers
    path = tmp_path / "T.parquet"
    names = [f"{number % 700:0900}" for number in range(3_000)]
    content = pa.table({"number": list(range(3_000)), "text": names})
    pq.write_table(
        content,
        path,
        data_page_size=64,
        write_batch_size=10,
        data_page_version=version,
        write_page_checksum=True,
    )
    # WHEN it is read THEN all rows come
    found = list(batches(path, ("number", "text")))
    assert [n for one in found for n in integers(one.column(0), MISSING)] == list(range(3_000))
    assert [text for one in found for text in texts(one.column(1))] == names


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_of_two_columns_of_one_name_the_first_is_read(tmp_path: Path, form: str) -> None:
    content = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["number", "number"])
    path = tmp_path / "T"
    if form == "parquet":
        pq.write_table(content, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, content.schema) as writer:
            writer.write_table(content)
    (batch,) = batches(path, ("number",))
    assert integers(batch.column(0), MISSING).tolist() == [1]


def test_reading_does_not_import_pandas(path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from rl_insight.readers.arrow_columns import integers, texts
from rl_insight.readers.arrow_folder import batches
for batch in batches(Path({str(path)!r}), ("name", "number"), print):
    texts(batch.column("name")), integers(batch.column("number"), -1)
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_damaged_length_that_asks_for_more_memory_than_there_is_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_folder(tmp_path / "export", ROWS, "stream") / "T.arrow"

    def fail(file: object) -> None:
        raise MemoryError("malloc of size 4611686018427387904 failed")

    monkeypatch.setattr("pyarrow.ipc.open_stream", fail)
    with pytest.raises(ReadError, match="malloc of size 4611686018427387904 failed"):
        list(batches(path, ("name",)))
