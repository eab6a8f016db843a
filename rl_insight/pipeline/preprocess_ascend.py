"""Ascend captures: torch_npu's offline analysis makes the result that can be read.

Source: torch_npu, profiler/profiler.py (`analyse`) and analysis/_profiling_parser.py. It makes
`ASCEND_PROFILER_OUTPUT` anew, in the form that the capture was configured for; it prints what goes
wrong and raises nothing, so that only the result tells whether it worked.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rl_insight.data.ascend_captures import captures, packed_words
from rl_insight.data.tree import Tree, scan
from rl_insight.errors import RLInsightError
from rl_insight.pipeline.preprocess_kinds import RawCapture

# Where the user stands are captures, not modules: a `profile.py` there must not be run.
_NOT_FROM_HERE = "import sys; sys.path[:] = [path for path in sys.path if path]\n"
_IS_INSTALLED = f"""\
{_NOT_FROM_HERE}
import importlib.util
sys.exit(importlib.util.find_spec('torch_npu') is None)
"""
_ANALYSE = f"""\
{_NOT_FROM_HERE}
from torch_npu.profiler.profiler import analyse
analyse(profiler_path=sys.argv[1], max_process_number=1)
"""
_ERROR = re.compile(r"error|failed", re.IGNORECASE)


class AscendKind:
    """Folders `*_ascend_pt`, by whatever name."""

    name = "Ascend capture"

    def look(self, tree: Tree) -> Iterator[RawCapture]:
        """All captures, told apart one by one: a folder of them may hold analysed and raw ones."""
        sizes = _sizes(tree)
        for one in captures(tree)[0]:
            folder = one.folder or "."
            if _has_any(one.traces, sizes):
                yield RawCapture(folder, "ready", "analysed already")
            elif _has_any(one.databases, sizes):
                yield RawCapture(folder, "ready", "has a database, which is read as it is")
            elif (packed := packed_words(one.files)) is not None:
                yield RawCapture(folder, "packed", packed)
            elif one.raw:
                yield RawCapture(folder, "raw", "never analysed")
            else:
                why = "cannot be analysed: neither FRAMEWORK nor PROF_* is there"
                yield RawCapture(folder, "hopeless", why)

    def missing(self, python: str) -> str | None:
        """What to do where torch_npu is not installed."""
        try:
            found = subprocess.run([python, "-c", _IS_INSTALLED], check=False).returncode == 0
        except OSError as error:
            return f"--python: {python} cannot be run: {error.strerror or error}"
        if found:
            return None
        return (
            "raw Ascend captures are analysed by torch_npu, which is not installed for "
            f"{python}: run this where the training ran, name the interpreter that has it by "
            "--python, or install torch_npu and the CANN toolkit"
        )

    def command(self, capture: Path, python: str) -> list[str]:
        """A process of its own per capture: one that crashes takes no other with it."""
        # torch_npu refuses a path that is a link.
        return [python, "-c", _ANALYSE, str(capture.resolve())]

    def failure(self, capture: Path, output: str) -> str | None:
        """Whether there is a result now; if not, what torch_npu said last."""
        try:
            tree = scan(capture)
        except RLInsightError as error:
            return str(error)
        sizes = _sizes(tree)
        if any(_has_any([*one.traces, *one.databases], sizes) for one in captures(tree)[0]):
            return None
        said = [line for line in output.splitlines() if _ERROR.search(line)]
        reason = f": {said[-1].strip()}" if said else ""
        return f"the analysis left no result{reason}"


ASCEND = AscendKind()


def _sizes(tree: Tree) -> Mapping[str, int]:
    return {file.path: file.size_bytes for file in tree.files}


def _has_any(results: Iterable[str], sizes: Mapping[str, int]) -> bool:
    """Whether one of `results` has anything in it: a killed analysis leaves empty ones."""
    return any(sizes.get(path) for path in results)
