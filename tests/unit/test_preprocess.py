"""`rl-insight preprocess`, with a stand-in for torch_npu that writes what the real one writes."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from rl_insight.errors import InputError, UsageError
from rl_insight.main import main
from rl_insight.pipeline.preprocess import Order
from rl_insight.pipeline.preprocess_command import parse

RAW = ("FRAMEWORK/torch.op_range", "PROF_000001_20260312_ABCDEF/host/start_info")

# torch_npu/profiler/profiler.py: makes the result anew in the form of the capture's configuration,
# prints what goes wrong, and raises nothing.
STAND_IN = """
import json, os, shutil, sqlite3, sys, time
from pathlib import Path

def analyse(profiler_path, max_process_number=1):
    capture = Path(profiler_path)
    assert not capture.is_symlink() and max_process_number >= 1
    print(f"[INFO] profiler.py: Start parsing profiling data: {capture}", flush=True)
    output = capture / "ASCEND_PROFILER_OUTPUT"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    if (capture / "crash").exists():
        os.abort()
    if (capture / "damaged").exists():
        print("[ERROR] profiler.py: Failed to parsing profiling data. bad magic", flush=True)
        return
    (info,) = capture.glob("profiler_info*.json")
    told = json.loads(info.read_text())
    time.sleep(told.get("seconds", 0))
    if "db" in told["config"]["experimental_config"]["_export_type"]:
        path = output / f"ascend_pytorch_profiler_{told['rank_id']}.db"
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE TASK (startNs INTEGER, endNs INTEGER)")
        database.close()
    else:
        (output / "trace_view.json").write_text("[]")
"""


@pytest.fixture
def torch_npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "torch_npu" / "profiler"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "profiler.py").write_text(dedent(STAND_IN))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))


def capture(
    folder: Path, *files: str, export: str = "text", rank: int = 0, seconds: float = 0
) -> Path:
    for name in (*RAW, *files):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"raw")
    (folder / f"profiler_info_{rank}.json").write_text(
        f'{{"config": {{"experimental_config": {{"_export_type": ["{export}"]}}}}, '
        f'"rank_id": {rank}, "seconds": {seconds}}}'
    )
    return folder


def result(folder: Path, name: str = "trace_view.json") -> Path:
    return folder / "ASCEND_PROFILER_OUTPUT" / name


def test_raw_captures_are_analysed_in_the_form_that_they_were_configured_for(
    tmp_path: Path, torch_npu: None, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN a run whose trainer exports databases and whose engine exports text
    trainer = capture(tmp_path / "run/actor_update/n1_11_20260312032448000_ascend_pt", export="db")
    engine = capture(tmp_path / "run/agent_loop_rollout_replica_0/whatever_it_is_called")

    # WHEN they are preprocessed
    code = main(["preprocess", str(tmp_path / "run")])

    # THEN each has its result
    assert code == 0
    assert result(trainer, "ascend_pytorch_profiler_0.db").is_file()
    assert result(engine).is_file()
    out = capsys.readouterr().out
    assert "exporting 2 Ascend captures" in out
    assert "exported 2 of 2 Ascend captures" in out


def test_each_capture_of_a_folder_is_told_apart(
    tmp_path: Path, torch_npu: None, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN one role's folder with a capture of each kind; the first is analysed
    role = tmp_path / "run/actor_update"
    analysed = capture(role / "a_ascend_pt", "ASCEND_PROFILER_OUTPUT/trace_view.json")
    database = "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_1.db"
    only_database = capture(role / "b_ascend_pt", database, rank=1)
    raw = capture(role / "c_ascend_pt", rank=2)
    interrupted = capture(role / "d_ascend_pt", rank=3)
    result(interrupted).parent.mkdir()
    result(interrupted).touch()

    code = main(["preprocess", str(tmp_path / "run")])

    # THEN only those without a result are analysed, and nothing that is there is touched
    assert code == 0
    assert result(analysed).read_bytes() == b"raw"
    assert not result(only_database).exists()
    assert result(raw).read_bytes() == result(interrupted).read_bytes() == b"[]"
    out = capsys.readouterr().out
    assert "skipped 1 Ascend capture: analysed already" in out
    assert "skipped 1 Ascend capture: has a database, which is read as it is" in out
    assert "exporting 2 Ascend captures" in out


def test_failures_cost_no_other_capture_and_are_told_at_the_end(
    tmp_path: Path, torch_npu: None, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN a capture whose analysis prints an error, one whose analysis dies, one without raw data
    capture(tmp_path / "run/a_ascend_pt", "damaged")
    capture(tmp_path / "run/b_ascend_pt", "crash")
    (tmp_path / "run/c_ascend_pt/logs").mkdir(parents=True)
    (tmp_path / "run/c_ascend_pt/logs/one.log").touch()
    good = capture(tmp_path / "run/d_ascend_pt")

    code = main(["preprocess", str(tmp_path / "run"), "--jobs", "1"])

    assert code == 1
    assert result(good).is_file()
    told = capsys.readouterr().out.splitlines()[-4:]
    assert told[0].startswith("exported 1 of 3 Ascend captures in ")
    assert told[1:] == [
        "failed: c_ascend_pt: cannot be analysed: neither FRAMEWORK nor PROF_* is there",
        "failed: a_ascend_pt: the analysis left no result: [ERROR] profiler.py: "
        "Failed to parsing profiling data. bad magic",
        "failed: b_ascend_pt: it was killed by signal 6: "
        f"[INFO] profiler.py: Start parsing profiling data: {tmp_path / 'run/b_ascend_pt'}",
    ]


def test_several_captures_are_analysed_at_the_same_time(
    tmp_path: Path, torch_npu: None, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN a capture that is quick and, before it in order, one that takes a while
    capture(tmp_path / "run/a_ascend_pt", seconds=3)
    capture(tmp_path / "run/b_ascend_pt")

    main(["preprocess", str(tmp_path / "run"), "--jobs=2"])

    # THEN the quick one does not wait for the other
    lines = [line for line in capsys.readouterr().out.splitlines() if "/2 " in line]
    assert [line.split(" (")[0] for line in lines] == [
        "1/2 exported b_ascend_pt",
        "2/2 exported a_ascend_pt",
    ]


def test_a_module_where_the_user_stands_is_not_run(
    tmp_path: Path, torch_npu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN modules beside the captures, of names that torch_npu or Python itself would import
    mark = tmp_path / "mark"
    for name in ("torch_npu.py", "sqlite3.py", "shutil.py"):
        (tmp_path / name).write_text(f"open({str(mark)!r}, 'w').close()\n")
    one = capture(tmp_path / "in" / "a_ascend_pt")
    monkeypatch.chdir(tmp_path)
    # WHEN the captures are exported from there
    assert main(["preprocess", "in"]) == 0
    # THEN torch_npu itself did it
    assert (one / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").exists()
    assert not mark.exists()


def test_without_torch_npu_one_sentence_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture(tmp_path / "run/a_ascend_pt")

    code = main(["preprocess", str(tmp_path / "run")])

    assert code == 2
    error = capsys.readouterr().err
    assert error.splitlines() == [
        "error: raw Ascend captures are analysed by torch_npu, which is not installed for "
        f"{sys.executable}: run this where the training ran, name the interpreter that has it by "
        "--python, or install torch_npu and the CANN toolkit (1 Ascend capture to do)"
    ]


def test_where_nothing_is_to_do_torch_npu_is_not_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture(tmp_path / "run/a_ascend_pt", "ASCEND_PROFILER_OUTPUT/trace_view.json")

    assert main(["preprocess", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out == "skipped 1 Ascend capture: analysed already\n"


def test_a_dry_run_says_what_it_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = capture(tmp_path / "run/a_ascend_pt")

    assert main(["preprocess", str(tmp_path / "run"), "-n"]) == 0
    assert capsys.readouterr().out == "would export a_ascend_pt: never analysed\n"
    assert not result(raw).parent.exists()


def test_the_capture_itself_may_be_the_folder(tmp_path: Path, torch_npu: None) -> None:
    raw = capture(tmp_path / "a_ascend_pt")

    assert main(["preprocess", str(raw)]) == 0
    assert result(raw).is_file()


def test_a_capture_behind_a_link_is_analysed_where_it_lies(tmp_path: Path, torch_npu: None) -> None:
    # torch_npu refuses a path that is a link.
    raw = capture(tmp_path / "elsewhere/a_ascend_pt")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/latest_ascend_pt").symlink_to(raw, target_is_directory=True)

    assert main(["preprocess", str(tmp_path / "run")]) == 0
    assert result(raw).is_file()


def test_an_interpreter_that_is_none_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture(tmp_path / "run/a_ascend_pt")

    assert main(["preprocess", str(tmp_path / "run"), "--python", "/no/python"]) == 2
    error = capsys.readouterr().err
    assert "--python: /no/python cannot be run: No such file or directory" in error


def test_a_folder_without_captures_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").touch()

    assert main(["preprocess", str(tmp_path)]) == InputError.exit_code == 2
    assert f"below {str(tmp_path)!r}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "preprocess needs one folder: rl-insight preprocess FOLDER"),
        (["a", "b"], "preprocess needs one folder: rl-insight preprocess FOLDER"),
        (["a", "--jobs"], "--jobs needs a value"),
        (["a", "--jobs", "0"], "--jobs: '0' is no whole number from 1 to 9999"),
        (["a", "--jobs=10000"], "--jobs: '10000' is no whole number from 1 to 9999"),
        (["a", "--jobs=many"], "--jobs: 'many' is no whole number from 1 to 9999"),
        (["a", "--fast"], "there is no flag --fast of preprocess; see rl-insight preprocess -h"),
    ],
)
def test_words_that_mean_nothing_are_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match="^" + sentence.replace("(", r"\(") + "$"):
        parse(words)


def test_words_are_taken_apart() -> None:
    assert parse(["--jobs", "3", "run", "--python=/usr/bin/python3", "--dry-run"]) == Order(
        Path("run"), 3, "/usr/bin/python3", dry_run=True
    )


def test_help_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preprocess", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: rl-insight preprocess FOLDER")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["~nobody-of-that-name/x"], "there is no folder"),
        ([".", "--jobs=" + "9" * 5_000], "--jobs"),
        ([".", "--jobs=0"], "--jobs"),
        ([".", "--jobs=٣"], "--jobs"),
    ],
)
def test_a_mistake_of_the_user_is_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["preprocess", *words]) == 2
    assert sentence in capsys.readouterr().err
