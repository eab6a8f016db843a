"""A broken export of nsys beside a sound one, and what a person sees of it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.merged_runs import drawn, problems, states
from tests.nvtx_exports import (
    EPOCH,
    PUSH_POP,
    SECOND,
    Row,
    details,
    kernel,
    session,
    string,
    string_range,
    text_range,
    variable,
    write_lines,
)

NAME, SOUND = "worker_process_111.1", "sound/worker_process_222.2.jsonl"
STAGE = ("actor_update", 1.0, 8.0)
FIRST, MIDDLE, LAST = ("first", 2.0, 1.0), ("middle", 4.0, 1.0), ("last", 6.0, 1.0)
WHOLE = [STAGE, FIRST, MIDDLE, LAST]


def capture(rank: int, pid: int) -> list[Row]:
    """A stage, whose name is a string, with three ranges in it, and a kernel; ten rows."""
    return [
        details(),
        session(),
        variable("RANK", f'"{rank}"'),
        string(1, "actor_update"),
        string(2, "gemm"),
        string_range(SECOND, 9 * SECOND, 1, pid=pid),
        text_range(2 * SECOND, 3 * SECOND, "first", pid=pid, kind=PUSH_POP),
        text_range(4 * SECOND, 5 * SECOND, "middle", pid=pid, kind=PUSH_POP),
        text_range(6 * SECOND, 7 * SECOND, "last", pid=pid, kind=PUSH_POP),
        kernel(2 * SECOND, 3 * SECOND, 2, pid=pid),
    ]


ROWS = capture(0, 111)
LINES = [json.dumps(row, sort_keys=True).encode() for row in ROWS]
BEFORE, LINE, AFTER = LINES[:7], LINES[7], LINES[8:]


class Seen(NamedTuple):
    """What a person sees of the broken capture."""

    spans: list[tuple[str | None, float, float]]
    state: tuple[str, str | None]
    problems: dict[str, tuple[int, int | None]]
    examples: dict[str, str | None]


def look(tmp_path: Path, path: str, rank: int | None = 0) -> Seen:
    """Draw the folder `run`; `path` is that of the broken input."""
    root = tmp_path / "run"
    write_lines(root / SOUND, capture(1, 222))
    tables = drawn(root, tmp_path / "out", "nvtx")

    def spans(rank: int | None) -> list[tuple[str | None, float, float]]:
        own = [span for span in tables["spans"] if span["rank_id"] == rank]
        return [
            (one["name"], (one["start_ns"] - EPOCH) / SECOND, one["duration_ns"] / SECOND)
            for one in sorted(own, key=lambda span: (span["start_ns"], span["depth"]))
        ]

    assert spans(1) == WHOLE
    assert states(tables)[SOUND] == ("ok", None)
    assert problems(tables, SOUND) == {}
    (source,) = [row for row in tables["sources"] if row["path"] == path]
    examples = {one["code"]: one["example"] for one in source["problems"]}
    return Seen(spans(rank), states(tables)[path], dict(problems(tables, path)), examples)


def look_at_lines(tmp_path: Path, content: bytes, name: str = f"{NAME}.jsonl") -> Seen:
    path = tmp_path / "run" / "b" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return look(tmp_path, f"b/{name}")


def joined(lines: Sequence[bytes], end: bytes = b"\n") -> bytes:
    return b"\n".join(lines) + end


def with_line(line: bytes) -> bytes:
    """The export with another line in the place of the middle range's."""
    return joined([*BEFORE, line, *AFTER])


def changed(old: bytes, new: bytes) -> bytes:
    assert LINE.count(old) == 1
    return LINE.replace(old, new)


OFFSET = len(joined(BEFORE))


def kept(count: int) -> str:
    return f"the {count:,} rows that could be read are kept"
