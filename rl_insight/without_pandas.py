"""Importing this module lets pyarrow do without pandas in this process.

pyarrow imports pandas wherever it is installed as soon as a column is made from Python values or
given back as such, only to find out whether a value is one of pandas' own. That costs 0.4 s and
50 MB, more than the work of many a job, and no job of the workflow has such values.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NotInstalled(MetaPathFinder):
    """Answers that there is no pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] == "pandas":
            raise ModuleNotFoundError("pandas is kept out of this process", name=fullname)
        return None


sys.meta_path.insert(0, _NotInstalled())
