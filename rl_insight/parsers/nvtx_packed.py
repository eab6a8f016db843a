"""Which files are captures of nsys that a person packed in a form that is not read: by their names.

A report has a suffix of nsys's own. Exports and folders of tables have those of all the world, and
count only under the name that Ray or nsys gave; of Ray's an archiver may have replaced the suffix.
"""

import re
from dataclasses import dataclass
from typing import Final

from rl_insight.data import packings
from rl_insight.data.names import facts
from rl_insight.parsers.nvtx_kinds import OTHER_FORMS, RAW, UNFINISHED

DATABASES: Final = (".sqlite", ".sqlite3", ".db", ".db3")
LINES: Final = (".jsonl", ".jsonlines", ".ndjson", ".json")
FOLDER_SUFFIXES: Final = re.compile(r"[_.](pqtdir|arwdir|parquetdir|arrowdir|parquet|arrow)\Z")

# The name that nsys gives where nobody else does.
_DEFAULT_NAME: Final = re.compile(r"report[0-9]+\.")
_REPORTS: Final = (*RAW, UNFINISHED)
_EXPORTS: Final = (*DATABASES, *LINES, *OTHER_FORMS)
_WORKER: Final = re.compile(r"(?:.*_)?worker_process_[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class PackedCapture:
    """A packed capture: `stem` is what all its forms are called, `is_report` whether it is to be
    exported once it is unpacked."""

    stem: str
    is_report: bool

    def why_not_read(self, path: str) -> str:
        """What its row says, given the path of the file."""
        why = packings.why_not_read(path)
        if not self.is_report:
            return why
        return f"a report {why}, and run rl-insight preprocess on the input folder"


def is_named(path: str) -> bool:
    """Whether the last name of `path` is one that Ray or nsys gives."""
    return facts(path).grammar == "nsys" or bool(_DEFAULT_NAME.match(path.rpartition("/")[2]))


def packed_capture(path: str) -> PackedCapture | None:
    """What the file at `path` is by its name; None where it is nothing of nsys that was packed."""
    bare, packing = packings.split(path.rpartition("/")[2])
    if not packing:
        return None
    report = next((suffix for suffix in _REPORTS if bare.endswith(suffix)), None)
    if report is not None:
        return PackedCapture(bare.removesuffix(report), is_report=True)
    stem = FOLDER_SUFFIXES.sub("", bare)
    if stem == bare:
        suffix = next((one for one in _EXPORTS if bare.endswith(one)), None)
        if suffix is None and not _WORKER.fullmatch(bare):
            return None
        stem = bare.removesuffix(suffix or "")
    named = facts(path).grammar == "nsys" or _DEFAULT_NAME.match(f"{stem}.")
    return PackedCapture(stem, is_report=False) if named else None
