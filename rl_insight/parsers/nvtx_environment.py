"""The few named values of a capture that are ever read: whose process it is, and on which host.

A capture of nsys holds the whole environment of the launched process, with passwords and tokens,
and so does TARGET_INFO_SYSTEM_ENV. So a value is looked at only when its *name* is in one of the
closed lists here, and of an environment row only whole numbers are taken. Readers apply `LIKE`,
`pattern` or `in` before a value becomes text; nothing else is ever kept or shown.
"""

import re
from collections.abc import Iterator
from typing import Final

from rl_insight.parsers.nvtx_rows import Fact
from rl_insight.parsers.nvtx_schema import CAPTURE, EXPORT, SYSTEM

RANK_NAMES: Final = (
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "SLURM_PROCID",
    "LOCAL_RANK",
)
"""What tells a process's rank, the best first (docs/data.md); LOCAL_RANK counts inside one node."""

WORLD_SIZE: Final = "WORLD_SIZE"
VARIABLES: Final = (*RANK_NAMES, WORLD_SIZE)

HOSTNAME: Final = "Hostname"
DISPLAY_NAME: Final = "DEVICE_DISPLAY_NAME"
PID: Final = "PID"
SCHEMA: Final = "EXPORT_SCHEMA_VERSION"

# Regular expressions of names and values, which Arrow's matching understands too.
VARIABLE_ROW: Final = "^PROCESS_([0-9]{1,9}):ENVIRONMENT_VARIABLE$"
PID_ROW: Final = "^PROCESS_([0-9]{1,9}):PID$"
NUMBER: Final = "^[0-9]{1,10}$"
ASSIGNMENT: Final = f'^({"|".join(VARIABLES)})="?([0-9]{{1,10}})"?$'

_VARIABLE_ROW = re.compile(VARIABLE_ROW)
_PID_ROW = re.compile(PID_ROW)
_ASSIGNMENT = re.compile(ASSIGNMENT, re.IGNORECASE)
# The same as JSON text: the inner quotes are escaped.
_JSON_ASSIGNMENT = re.compile(
    rf'"\s*(?:{"|".join(VARIABLES)})=(?:\\")?[0-9]{{1,10}}(?:\\")?\s*"'.encode(), re.IGNORECASE
)
_NUMBER = re.compile(NUMBER)
_JSON_NUMBER = re.compile(rb'"?[0-9]{1,10}"?')
_PLAIN_TEXT = re.compile(r"[!-~]{1,255}")
_JSON_PLAIN_TEXT = re.compile(rb'"[!-~]{1,255}"')

_NAMED: Final = {(CAPTURE, DISPLAY_NAME), (SYSTEM, HOSTNAME), (EXPORT, SCHEMA)}


def wanted_names(table: str) -> list[str]:
    """The names in `table` whose values are plain text and may be read."""
    return [name for owner, name in _NAMED if owner == table]


def may_pass(table: str, name: object, raw: bytes) -> bool:
    """Whether the value `raw` (JSON text, undecoded) of the row called `name` may be decoded."""
    if not isinstance(name, str):
        return False
    if (table, name) in _NAMED:
        return _JSON_PLAIN_TEXT.fullmatch(raw) is not None
    if table != CAPTURE:
        return False
    if _VARIABLE_ROW.fullmatch(name):
        return _JSON_ASSIGNMENT.fullmatch(raw) is not None
    return _PID_ROW.fullmatch(name) is not None and _JSON_NUMBER.fullmatch(raw) is not None


def facts_in(table: str, name: object, value: object) -> Iterator[Fact]:
    """What the row called `name` says; nothing for any name that is in no list."""
    if not isinstance(name, str) or not isinstance(value, str | int) or isinstance(value, bool):
        return
    text = str(value).strip()
    if (table, name) in _NAMED:
        if _PLAIN_TEXT.fullmatch(text):
            yield Fact(name, text)
        return
    if table != CAPTURE:
        return
    row = _VARIABLE_ROW.fullmatch(name)
    assignment = _ASSIGNMENT.fullmatch(text) if row else None
    if row and assignment:
        yield Fact(assignment[1].upper(), int(assignment[2]), int(row[1]))
        return
    row = _PID_ROW.fullmatch(name)
    if row and _NUMBER.fullmatch(text) and int(text):
        yield Fact(PID, int(text), int(row[1]))
