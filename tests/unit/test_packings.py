"""Suffixes of packers behind the names of captures, and what is said of them."""

import pytest

from rl_insight.data import packings


@pytest.mark.parametrize(
    ("name", "bare", "packing"),
    [
        ("x.json.zst", "x.json", ".zst"),
        ("x.json.gz.zip", "x.json.gz", ".zip"),
        ("x.JSON.TAR.GZ", "x.JSON", ".TAR.GZ"),
        ("x.db.gz", "x.db", ".gz"),
        ("x.db.gz.zip", "x.db", ".gz.zip"),
        ("x.pt.GZ", "x.pt", ".GZ"),
        ("x.json.gz.gz", "x.json.gz", ".gz"),
        ("x.jsonl.gz.GZ.gz", "x.jsonl.gz", ".GZ.gz"),
        ("rank0.tar", "rank0", ".tar"),
        # What is read from a gzip is not packed.
        ("x.json.gz", "x.json.gz", ""),
        ("x.JSONL.GZ", "x.JSONL.GZ", ""),
        ("x.ndjson.gz", "x.ndjson.gz", ""),
        ("x.jsonlines.gz", "x.jsonlines.gz", ""),
        ("x.json", "x.json", ""),
        ("x.gzip", "x.gzip", ""),
        ("gz", "gz", ""),
    ],
)
def test_a_name_is_split_from_what_packs_it(name: str, bare: str, packing: str) -> None:
    assert packings.split(name) == (bare, packing)


def test_gzip_is_a_remedy_only_for_text() -> None:
    assert packings.why_not_read("a/x.json.zst") == (
        "packed as .zst, which is not read: unpack it, or pack it with gzip"
    )
    assert packings.why_not_read("x.json.gz.gz") == "packed as .gz, which is not read: unpack it"
    assert packings.why_not_read("x.db.gz") == "packed as .gz, which is not read: unpack it"
    assert (
        packings.why_not_read("rank0.tar.gz") == "packed as .tar.gz, which is not read: unpack it"
    )
