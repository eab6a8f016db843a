"""A process that does without pandas makes and reads tables all the same."""

import subprocess
import sys

PROGRAM = """
import sys
import rl_insight.without_pandas
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
