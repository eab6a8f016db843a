"""`rl-insight check` where a job is still at work: what is being written is not damaged."""

import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rl_insight.main import main
from rl_insight.pipeline import check
from rl_insight.pipeline.growing import settled

EVENTS = [{"ph": "X", "name": f"k{n}", "pid": 1, "tid": 1, "ts": 5.0 + n, "dur": 2} for n in (1, 2)]
WHOLE = gzip.compress(json.dumps({"traceEvents": EVENTS}).encode(), mtime=0)
CUT = WHOLE[:-20]

Capsys = pytest.CaptureFixture[str]


def trace(root: Path, rank: int, content: bytes = WHOLE, ending: str = ".json.gz") -> Path:
    """A capture that was last written to an hour ago."""
    path = root / f"actor_update/prof_rank-{rank}{ending}"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    hour_ago = time.time() - 3_600
    os.utime(path, (hour_ago, hour_ago))
    return path


def append(path: Path) -> Callable[[float], None]:
    """What somebody writes while one waits."""

    def sleep(_: float) -> None:
        with path.open("ab") as file:
            file.write(b"more")

    return sleep


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[float], None]], None]:
    """Sets what happens instead of sleeping, while one waits for young files."""

    def set_it(sleep: Callable[[float], None]) -> None:
        monkeypatch.setattr(check, "settled", lambda look, s: settled(look, s, sleep=sleep))

    return set_it


def told(capsys: Capsys, root: Path, *words: str) -> tuple[int, str]:
    code = main(["check", str(root), *words])
    return code, capsys.readouterr().out


def as_json(capsys: Capsys, root: Path, *words: str) -> Any:
    return json.loads(told(capsys, root, "--json", *words)[1])


def test_a_file_that_grows_is_still_being_written_and_not_damaged(
    tmp_path: Path, capsys: Capsys, meanwhile: Callable[[Callable[[float], None]], None]
) -> None:
    # GIVEN a capture that is cut since an hour, one that is cut as it is written just now
    trace(tmp_path, 0), trace(tmp_path, 1, CUT)
    growing = trace(tmp_path, 2, CUT)
    growing.touch()
    meanwhile(append(growing))
    # WHEN check looks
    code, out = told(capsys, tmp_path)
    # THEN only the first is damaged, and is to be copied again
    lines = [line.strip() for line in out.splitlines()]
    assert code == 3
    assert any("1 whole, 1 damaged, 1 still being written" in line for line in lines)
    at = lines.index("Still being written:")
    assert lines[at + 1].startswith("actor_update/prof_rank-2.json.gz: is still being written")
    assert any(line.startswith("copy 1 damaged input again") for line in lines)
    (again,) = [line for line in lines if line.startswith("look again")]
    assert "1 input still being written" in again
    assert again.endswith(f": rl-insight check {tmp_path}")
    # AND machines are told by state and code
    growing.touch()
    found = as_json(capsys, tmp_path)
    assert [one["state"] for one in found["inputs"]] == ["whole", "damaged", "growing"]
    (problem,) = found["inputs"][2]["problems"]
    assert set(problem) == {"path", "code", "text", "harmless"}
    assert problem["path"] == "actor_update/prof_rank-2.json.gz"
    assert (problem["code"], problem["harmless"]) == ("still_growing", True)


def test_what_is_being_written_is_neither_lost_nor_a_reason_to_fail(
    tmp_path: Path, capsys: Capsys, meanwhile: Callable[[Callable[[float], None]], None]
) -> None:
    trace(tmp_path, 0)
    growing = trace(tmp_path, 1, b"")
    growing.touch()
    meanwhile(append(growing))
    code, out = told(capsys, tmp_path)
    assert code == 0
    assert "gave nothing" not in out
    assert "copy " not in out


def test_a_new_file_that_is_left_alone_is_judged(
    tmp_path: Path, capsys: Capsys, meanwhile: Callable[[Callable[[float], None]], None]
) -> None:
    trace(tmp_path, 0), trace(tmp_path, 1, CUT).touch()
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        time.sleep(seconds)

    meanwhile(sleep)
    code, out = told(capsys, tmp_path, "--settle", "0.1")
    assert (code, waited) == (3, [0.1])
    assert "copy 1 damaged input again" in out
    assert "still being written" not in out


def test_without_time_to_settle_everything_is_final(
    tmp_path: Path, capsys: Capsys, meanwhile: Callable[[Callable[[float], None]], None]
) -> None:
    path = trace(tmp_path, 0, CUT)
    path.touch()
    meanwhile(append(path))
    (one,) = as_json(capsys, tmp_path, "--settle=0")["inputs"]
    assert one["state"] == "damaged"


def test_a_file_that_changes_while_it_is_looked_at_is_still_being_written(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN files that were old when the folder was listed
    trace(tmp_path, 0, CUT), trace(tmp_path, 1, CUT)
    look = check.check_input

    def slow(*arguments: Any) -> Any:
        seen = look(*arguments)
        if "rank-1" in seen.path:
            append(tmp_path / seen.path)(0)
        return seen

    monkeypatch.setattr(check, "check_input", slow)
    found = as_json(capsys, tmp_path)
    assert [one["state"] for one in found["inputs"]] == ["damaged", "growing"]


def test_of_a_capture_of_several_files_what_lies_still_may_be_damaged(
    tmp_path: Path, capsys: Capsys, meanwhile: Callable[[Callable[[float], None]], None]
) -> None:
    dump = tmp_path / "step_1/actor_update/step0/rank0"
    lists = dump / "dump_tensor_data"
    lists.mkdir(parents=True)
    names = [f"NPU.npu_grouped_matmul.{n}.forward.kwargs.group_list.pt" for n in (0, 1)]
    for name in names:
        (lists / name).write_bytes(b"PK\x03\x04 cut" * 9)
        os.utime(lists / name, (1_700_000_000, 1_700_000_000))
    (lists / names[1]).touch()
    meanwhile(append(lists / names[1]))
    (one,) = as_json(capsys, tmp_path)["inputs"]
    assert one["state"] == "damaged"
    codes = {(problem["path"][-len(names[0]) :], problem["code"]) for problem in one["problems"]}
    assert (names[0], "archive_cut") in codes
    assert (names[1], "still_growing") in codes
    assert (names[1], "archive_cut") not in codes


def test_a_draft_that_grows_has_a_living_writer(
    tmp_path: Path, capsys: Capsys, meanwhile: Callable[[Callable[[float], None]], None]
) -> None:
    trace(tmp_path, 0)
    draft = trace(tmp_path, 1, b"{", ".json.tmp")
    assert "left by a killed writer" in told(capsys, tmp_path)[1]
    draft.touch()
    meanwhile(append(draft))
    out = told(capsys, tmp_path)[1]
    assert "prof_rank-1.json.tmp: is still being written" in out
    assert "killed" not in out


@pytest.mark.parametrize("value", ["soon", "-1"])
def test_a_time_to_settle_that_is_none_is_refused(value: str, capsys: Capsys) -> None:
    assert main(["check", "--settle", value, "."]) == 2
    assert "--settle: " in capsys.readouterr().err
