"""What the end of a Parquet file says, held against what Arrow reads there; and damage in it."""

import io
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rl_insight.errors import ReadError
from rl_insight.readers.arrow_columns import integers
from rl_insight.readers.arrow_folder import batches
from rl_insight.readers.parquet_footer import row_groups


def written(table: pa.Table, **options: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def events() -> pa.Table:
    number = list(range(2_000))
    texts = [f"name {value % 7}" if value % 3 else None for value in number]
    return pa.table({"start": number, "text": texts, "ends": [[value, 1] for value in number]})


@pytest.mark.parametrize("version", ["1.0", "2.6"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("rows", [2_000, 300])
def test_what_it_says_is_what_arrow_reads(version: str, dictionary: bool, rows: int) -> None:
    raw = written(events(), version=version, use_dictionary=dictionary, row_group_size=rows)
    known = pq.read_metadata(io.BytesIO(raw))
    groups = list(row_groups(io.BytesIO(raw)))
    assert [group.rows for group in groups] == [
        known.row_group(number).num_rows for number in range(known.num_row_groups)
    ]
    for number, group in enumerate(groups):
        of_arrow = [known.row_group(number).column(at) for at in range(known.num_columns)]
        assert [
            (one.column, one.has_dictionary, one.unpacked, one.packed, one.data_page)
            for one in group.chunks
        ] == [
            (
                one.path_in_schema,
                any("DICTIONARY" in name for name in one.encodings),
                one.total_uncompressed_size,
                one.total_compressed_size,
                one.data_page_offset,
            )
            for one in of_arrow
        ]
        assert [one.dictionary_page for one in group.chunks] == [
            one.dictionary_page_offset if one.has_dictionary_page else -1 for one in of_arrow
        ]


def test_a_file_without_row_groups_has_none() -> None:
    file = io.BytesIO()
    pq.ParquetWriter(file, events().schema).close()
    assert list(row_groups(file)) == []


@pytest.mark.parametrize("kept", [0, 4, 8, 11])
def test_a_file_that_breaks_off_says_so(kept: int) -> None:
    with pytest.raises(EOFError, match="breaks off"):
        row_groups(io.BytesIO(written(events())[:kept]))


@pytest.mark.parametrize("length", [0, 1 << 20, 0xFFFF_FFFF])
def test_a_damaged_length_is_refused(length: int) -> None:
    raw = written(events())
    with pytest.raises(ReadError, match=f"has {length} bytes"):
        row_groups(io.BytesIO(raw[:-8] + length.to_bytes(4, "little") + raw[-4:]))


def test_any_damage_is_an_error_of_ours_or_none() -> None:
    raw = written(events(), row_group_size=300)
    length = int.from_bytes(raw[-8:-4], "little")
    chance = random.Random(5)
    refused = 0
    for _ in range(300):
        footer = bytearray(raw[-8 - length : -8])
        for _ in range(chance.choice((1, 4, 40))):
            footer[chance.randrange(length)] = chance.randrange(256)
        try:
            list(row_groups(io.BytesIO(raw[: -8 - length] + footer + raw[-8:])))
        except ReadError as error:
            refused += 1
            assert "damaged" in str(error)
    assert 0 < refused < 300


def _with_long_histogram(raw: bytes) -> bytes:
    """The same file; in its second row group the histogram of definition levels has three items.

    Written is a list of two I64 (0x26) behind the field head 0x19, for a column that may be null.
    """
    length = int.from_bytes(raw[-8:-4], "little")
    footer = raw[-8 - length : -8]
    # 300 rows, of which every third is null, in zigzag: 100 (200) and 200 (400).
    was = b"\x26" + b"\xc8\x01" + b"\x90\x03"
    at = footer.rindex(was)
    changed = footer[:at] + b"\x36" + was[1:] + b"\x00" + footer[at + len(was) :]
    return raw[: -8 - length] + changed + len(changed).to_bytes(4, "little") + raw[-4:]


def test_statistics_that_end_arrows_process_cost_their_row_group_only(tmp_path: Path) -> None:
    # GIVEN two row groups, and in the second a histogram of a wrong length
    number = list(range(600))
    table = pa.table(
        {"start": number, "text": [str(value) if value % 3 else None for value in number]}
    )
    path = tmp_path / "NVTX_EVENTS.parquet"
    path.write_bytes(_with_long_histogram(written(table, row_group_size=300)))
    # (Arrow's own objects for it end the process.)
    asked = f"import pyarrow.parquet as p; p.read_metadata({str(path)!r}).row_group(1).column(1)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=False)
    assert b"histogram size mismatch" in done.stderr
    # WHEN it is read
    lost: list[str] = []
    found = [
        value
        for batch in batches(path, ("start", "text"), lost.append)
        for value in integers(batch.column(0), -1).tolist()
    ]
    # THEN the first is there, and the other is told
    assert found == number[:300]
    (told,) = lost
    assert told.startswith("NVTX_EVENTS.parquet: row group 2 of 2 is lost: ")
    assert "histogram size mismatch" in told
    # AND whoever does not ask for that column loses nothing
    whole = [len(batch) for batch in batches(path, ("start",), lost.append)]
    assert (sum(whole), len(lost)) == (600, 1)
