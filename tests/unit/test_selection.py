"""What a run asked for, kept in the file of its captures."""

import pyarrow as pa
import pytest

from rl_insight import selection
from rl_insight.selection import Selection


def test_what_was_asked_for_is_kept_beside_other_metadata() -> None:
    table = pa.table({"x": [1]}, metadata={"own": "kept"})

    attached = selection.attach(table, {3, 1}, None, {"actor_update", "角色"})

    wanted = Selection(frozenset({1, 3}), None, frozenset({"actor_update", "角色"}))
    assert selection.of(attached.schema) == wanted
    assert attached.schema.metadata[b"own"] == b"kept"


@pytest.mark.parametrize("content", [None, b"", b"[1]", b'{"ranks": "x"}', b"[" * 100_000, b"\xff"])
def test_a_table_that_does_not_tell_was_asked_for_everything(content: bytes | None) -> None:
    metadata = {} if content is None else {b"rl_insight.selection": content}

    assert selection.of(pa.schema([], metadata=metadata)) == Selection()
