"""Files that somebody writes to while a run looks at them."""

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.workflow.conftest import rows, run

pytestmark = pytest.mark.workflow

Captures = Callable[[str], Path]


@contextmanager
def written_to(path: Path, content: bytes) -> Iterator[None]:
    """A process that has half of `content` in `path` and goes on, a byte after the other."""
    stop = threading.Event()
    half = len(content) // 2
    path.write_bytes(content[:half])

    def write() -> None:
        with path.open("ab", buffering=0) as file:
            for at in range(half, len(content) - 64):
                if stop.wait(0.02):
                    return
                file.write(content[at : at + 1])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def test_a_growing_capture_is_drawn_and_marked_and_read_again_when_it_is_complete(
    captures: Captures, tmp_path: Path
) -> None:
    # GIVEN four captures, the last of which is still being packed
    source, output = captures("*actor-update_step1_*"), tmp_path / "out"
    words = ("--input-path", str(source), "--profiler-type", "torch", "--settle", "0.5")
    *_, last = sorted(source.iterdir())
    content = last.read_bytes()

    # WHEN a run looks at them meanwhile
    with written_to(last, content):
        early = run(output, *words)

    # THEN all are drawn, this one as far as it goes, and only it is marked
    assert early.code == 0, early.text
    assert early.jobs["parse"] == 4
    assert "it was still being written" in early.text
    found = {row["path"]: row for row in rows(output, "sources")}
    marked = [
        path
        for path, row in found.items()
        if "still_growing" in {problem["code"] for problem in row["problems"]}
    ]
    assert marked == [last.name]
    assert found[last.name]["status"] == "salvaged"

    # WHEN it is complete, THEN it alone is read again
    last.write_bytes(content)
    complete = run(output, *words)
    assert complete.jobs == Counter({"parse": 1, "merge": 1, "timeline_html": 1}), complete.text
    row = next(row for row in rows(output, "sources") if row["path"] == last.name)
    assert (row["status"], row["detail"]) == ("ok", None)
    assert "still_growing" not in {problem["code"] for problem in row["problems"]}
    assert run(output, *words).jobs == Counter()


def test_captures_that_were_copied_just_now_are_complete(
    captures: Captures, tmp_path: Path
) -> None:
    # A copy is as young as a file that grows; a second run must not have anything to do.
    source, output = tmp_path / "copied", tmp_path / "out"
    shutil.copytree(captures("*actor-update_step1_*"), source, copy_function=shutil.copyfile)
    words = ("--input-path", str(source), "--profiler-type", "torch", "--settle", "1")
    first = run(output, *words)
    assert first.jobs == Counter({"parse": 4, "merge": 1, "timeline_html": 1}), first.text
    assert "growing" not in first.text
    assert run(output, *words).jobs == Counter()


def test_captures_from_a_clock_that_is_ahead_are_drawn_and_not_read_again(
    captures: Captures, tmp_path: Path
) -> None:
    # GIVEN four captures, one of which is dated an hour from now, and one in another century
    source, output = captures("*actor-update_step1_*"), tmp_path / "out"
    first, second, *_ = sorted(source.iterdir())
    for path, moment in ((first, time.time() + 3_600), (second, 4_000_000_000)):
        os.utime(path, (moment, moment))
    words = ("--input-path", str(source), "--profiler-type", "torch")
    # WHEN they are drawn, and drawn again
    done, again = run(output, *words), run(output, *words)
    # THEN all four are there, and there was nothing to do
    assert done.code == 0, done.text
    assert {row["status"] for row in rows(output, "sources")} == {"ok"}
    assert {row["rank_id"] for row in rows(output, "spans")} == {0, 1, 2, 3}
    assert not again.jobs, again.text
