"""Let pyarrow do without pandas in this process.

pyarrow imports pandas wherever it is installed as soon as a column is made from Python values or
given back as such, only to find out whether a value is one of pandas' own. That costs 0.4 s and
50 MB, more than the work of many a job, and no job of the workflow has such values.
"""

import sys


class _NotInstalled:
    """A finder of modules (`sys.meta_path`) that answers that there is no pandas.

    Not derived from `importlib.abc.MetaPathFinder`: importing that takes 30 ms.
    """

    @staticmethod
    def find_spec(fullname: str, path: object, target: object = None) -> None:
        if fullname.partition(".")[0] == "pandas":
            raise ModuleNotFoundError("pandas is kept out of this process", name=fullname)


_FINDER = _NotInstalled()


def keep_out() -> None:
    """From now on pandas cannot be imported; call it before the first table is made."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def let_in() -> None:
    """From now on pandas can be imported again: another package may work with it."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
