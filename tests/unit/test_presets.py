"""Which preset a parser feeds, as the table of sources keeps it."""

import pyarrow as pa
import pytest

from rl_insight import presets, tables
from rl_insight.schema import SOURCES


def test_presets_are_kept_beside_other_metadata() -> None:
    table = tables.empty(SOURCES).replace_schema_metadata({b"other": b"1"})

    attached = presets.attach(table, {"b": "timeline", "a": "heatmap"})

    assert presets.of(attached.schema) == {"a": "heatmap", "b": "timeline"}
    assert attached.schema.metadata[b"other"] == b"1"


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"a": 1}', b"\xff", b"[" * 100_000])
def test_metadata_that_is_damaged_tells_nothing(content: bytes) -> None:
    schema = pa.schema([], metadata={b"rl_insight.presets": content})

    assert presets.of(schema) == {}


def test_a_table_that_says_nothing_tells_nothing() -> None:
    assert presets.of(SOURCES) == {}
