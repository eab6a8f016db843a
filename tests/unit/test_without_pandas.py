"""A process that does without pandas makes and reads tables all the same."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from rl_insight import without_pandas
without_pandas.keep_out()
import pyarrow as pa
rows = pa.array([1, None]).to_pylist() + pa.table({"a": [{"b": 1}]}).to_pylist()
assert rows == [1, None, {"a": {"b": 1}}], rows
import pyarrow.compute as pc
assert pc.fill_null(pa.array([1, None]), 2).to_numpy(zero_copy_only=False).tolist() == [1, 2]
try:
    import pandas
except ModuleNotFoundError as error:
    print(error.name, "pandas" in sys.modules, len(sys.meta_path))
"""


def test_pyarrow_works_and_pandas_is_not_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    plain = "import sys; print(len(sys.meta_path))"
    finders = subprocess.run([sys.executable, "-c", plain], capture_output=True, text=True).stdout
    assert done.stdout.split() == ["pandas", "False", str(int(finders) + 1)], done.stderr


def test_pandas_is_there_once_it_is_let_in_although_arrow_looked_for_it_in_vain() -> None:
    program = """
import sys
from rl_insight import without_pandas
without_pandas.keep_out()
import pyarrow as pa
made = pa.table({"a": [1, 2]})
assert "pandas" not in sys.modules
without_pandas.let_in()
print(made.to_pandas()["a"].sum())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "3\n", done.stderr


@pytest.mark.parametrize("parser", ["torch", "mstx", "nvtx", "auto"])
def test_who_only_looks_at_the_input_waits_neither_for_numpy_nor_for_arrow(
    parser: str, tmp_path: Path
) -> None:
    # The command line and Snakemake both look, and on a cluster so does every job.
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rank0_ascend_pt").mkdir()
    (tmp_path / "in" / "rank0_ascend_pt" / "trace_view.json").write_text("[]")
    (tmp_path / "in" / "rank1.pt.trace.json").write_text('{"traceEvents": []}')
    (tmp_path / "in" / "worker_process_7.jsonl").write_text('{"table": "StringIds"}\n')
    program = f"""
import sys
from pathlib import Path
import rl_insight.main, rl_insight.pipeline.run
from rl_insight import config
from rl_insight.pipeline.workflow import Run
values = {{"input.path": {str(tmp_path / "in")!r}, "output.path": {str(tmp_path / "out")!r},
          "timeline.parser.type": {parser!r}, "input.settle": 0}}
found = Run.prepare(values, main_process=True)
assert found.manifest.units and found.pictures()
print(*sorted({{"numpy", "pyarrow", "pandas"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_a_check_of_sound_traces_waits_neither_for_numpy_nor_for_arrow(tmp_path: Path) -> None:
    event = '{"ph": "X", "name": "k", "cat": "kernel", "pid": 0, "tid": 7, "ts": 5, "dur": 2}'
    (tmp_path / "rank0.pt.trace.json").write_text(f'{{"traceEvents": [{event}]}}')
    program = f"""
import sys
from rl_insight.main import main
assert main(["check", {str(tmp_path)!r}]) == 0
print(*sorted({{"numpy", "pyarrow", "pandas"}} & sys.modules.keys()), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (0, ""), done.stdout


def test_a_job_ends_with_its_work_whatever_happens_while_the_process_goes_down() -> None:
    program = (
        "import atexit, os; atexit.register(os.abort);"
        "from rl_insight.pipeline.job import work; work(print, 'done')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_a_job_that_fails_ends_as_failed() -> None:
    program = "from rl_insight.pipeline.job import work; work(int, 'x')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ValueError" in done.stderr


def test_a_job_that_crashes_while_it_imports_its_step_says_so() -> None:
    # As where the processor has not what a library was compiled for.
    program = "from rl_insight.pipeline.job import work; import os; os.abort()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode < 0
    assert done.stderr.startswith("Fatal Python error: Aborted\n")
