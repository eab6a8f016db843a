"""Notes stay with their table through a Parquet file."""

from pathlib import Path

from rl_insight import notes, tables
from rl_insight.problems import Problem, Problems
from rl_insight.schema import EXPERT_LOAD


def test_notes_come_back_from_the_file(tmp_path: Path) -> None:
    said = Problems()
    said.add("load_kind_disagrees", "warning", 3, example="dump.json of <b>rank0</b> says cumsum")
    tables.write(tmp_path / "x.parquet", notes.attach(tables.empty(EXPERT_LOAD), said))
    (note,) = notes.of(tables.read(tmp_path / "x.parquet", ["step"]).schema)
    assert note == Problem(
        "load_kind_disagrees", "warning", 3, None, "dump.json of <b>rank0</b> says cumsum"
    )


def test_new_notes_replace_the_old_ones() -> None:
    said = Problems()
    said.add("a", "info")
    once = notes.attach(tables.empty(EXPERT_LOAD), said)
    assert notes.of(notes.attach(once, Problems()).schema) == []


def test_damaged_or_missing_notes_are_none() -> None:
    table = tables.empty(EXPERT_LOAD)
    assert notes.of(table.schema) == []
    damaged = table.replace_schema_metadata({b"rl_insight.notes": b"[{]"})
    assert notes.of(damaged.schema) == []
