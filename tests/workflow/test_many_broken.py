"""However many files are broken, a run says so in a few lines."""

from pathlib import Path

import pytest

from tests.workflow.conftest import rows, run

pytestmark = pytest.mark.workflow

# What a file holds, how many of them there are, and what their line says.
KINDS = (
    (b"", 120, "the file is empty"),
    (b"<html>the page of a proxy</html>", 90, "it holds HTML or XML"),
    (bytes(4_096), 60, "only zero bytes"),
    (b"\x1f\x8b\x08\x00 cut", 29, "breaks off"),
)
GOOD = (
    '{"distributedInfo": {"rank": 0}, "baseTimeNanoseconds": 1790000000000000000, "traceEvents": ['
    '{"ph": "X", "name": "update_actor", "cat": "user_annotation", "ts": 1, "dur": 9}]}'
)


def test_three_hundred_broken_files_are_told_in_a_line_for_each_kind(tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for content, number, _ in KINDS:
        for _ in range(number):
            (source / f"rank{len(list(source.iterdir()))}.json").write_bytes(content)
    (source / "good.json").write_text(GOOD)
    # One job reads them all: starting 300 is another test's business.
    words = (f"input.path={source}", "timeline.parser.type=torch", "parse.ranks_per_job=300")

    ended = run(output, *words, "--strict")

    assert ended.code == 3, ended.text
    assert ended.text.count("\n") < 30
    assert max(map(len, ended.text.splitlines())) < 1_000
    for _, number, sentence in KINDS:
        (line,) = [line for line in ended.text.splitlines() if sentence in line]
        assert f"{number} inputs, such as" in line
    lost = [row for row in rows(output, "sources") if row["status"] != "ok"]
    assert len(lost) == 299 and all(row["detail"] for row in lost)

    relaxed = run(output, *words)
    assert (relaxed.code, relaxed.jobs) == (0, {})
