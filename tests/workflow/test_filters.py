"""A filter that changes parses only what was not parsed before."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.conftest import rows, run

pytestmark = pytest.mark.workflow

Captures = Callable[[str], Path]


def test_a_wider_filter_parses_only_what_is_new(captures: Captures, tmp_path: Path) -> None:
    source, output = captures("*actor-update_step*"), tmp_path / "out"
    words = ("--input-path", str(source), "--profiler-type", "torch")

    one = run(output, *words, "timeline.parser.step=1", "--rank-list", "0,2")
    assert one.code == 0, one.text
    assert {(row["step"], row["rank_id"]) for row in rows(output, "spans")} == {(1, 0), (1, 2)}
    filtered = [row for row in rows(output, "sources") if row["status"] == "skipped"]
    assert len(filtered) == 6

    both = run(output, *words)
    assert one.jobs["parse"] + both.jobs["parse"] == 8, (one.jobs, both.jobs)
    assert both.jobs["parse"] >= 4
    assert len({(row["step"], row["rank_id"]) for row in rows(output, "spans")}) == 8

    narrow = run(output, *words, "timeline.parser.role=critic_update")
    assert narrow.jobs["parse"] == 0
    assert narrow.code == 1, "nothing is left to draw"
