"""What a file of nsys is, told by its first bytes, and what to do with one that is no export."""

import re
from pathlib import PurePosixPath
from typing import Final

import msgspec

from rl_insight.shell_words import command_line

RAW: Final = (".nsys-rep", ".qdrep")
UNFINISHED: Final = ".qdstrm"
OTHER_FORMS: Final = (".h5", ".hdf", ".arrows")
"""Forms of export that nsys writes and that are not read."""

# The tables of an export: those that are always there, and the families of the others.
_TABLE: Final = (
    r"StringIds|ThreadNames|PROCESSES|ProcessStreams|DIAGNOSTIC_EVENT|PROFILER_OVERHEAD"
    r"|(?:NVTX|ANALYSIS|META_DATA|TARGET_INFO|CUPTI_ACTIVITY|ENUM|OSRT|CUDA|CUBLAS|CUDNN|GPU|SCHED"
    r"|COMPOSITE|SAMPLING|NIC|NET|MPI|UCX|GENERIC|PERF|VULKAN|OPENGL)_[A-Za-z0-9_]+"
)
_IS_TABLE: Final = re.compile(_TABLE)
_TABLE_SIGN: Final = re.compile(rf'"table"\s*:\s*"(?:{_TABLE})"'.encode())
# `nsys export --type json` writes protobuf messages, a line for each: events, then names (NVIDIA's
# exporter documentation, «JSON and Text Format Description»).
_MESSAGE: Final = re.compile(
    rb'\{\s*(?:"Type"\s*:\s*"?\d+"?\s*,\s*)?"(?:[A-Z][A-Za-z]*Event)"\s*:\s*\{'
    rb'|\{\s*"type"\s*:\s*"(?:String|ThreadName|Stream)"'
    rb'|\{\s*"data"\s*:\s*\[\s*"\[Unknown\]"'
)
_LINES_LOOKED_AT: Final = 50


class _Probe(msgspec.Struct, gc=False):
    table: str | None = None


_PROBE: Final = msgspec.json.Decoder(_Probe)


def are_rows(text: bytes) -> bool:
    """Whether `text` begins like an export as JSON lines: rows that name a table of nsys."""
    for line in text.splitlines()[:_LINES_LOOKED_AT]:
        try:
            table = _PROBE.decode(line).table
        except (msgspec.MsgspecError, RecursionError):
            # The last line is cut; and one that is damaged says nothing about the others.
            if line.lstrip().startswith(b"{") and _TABLE_SIGN.search(line):
                return True
            continue
        if table is not None and _IS_TABLE.fullmatch(table):
            return True
    return False


def are_messages(text: bytes) -> bool:
    """Whether `text` begins like an export of the older kind, `nsys export --type json`."""
    lines = text.lstrip(b"\xef\xbb\xbf \t\r\n").splitlines()
    return bool(lines) and _MESSAGE.match(lines[0]) is not None


def export_command(path: str) -> str:
    """The command that exports the report at `path`, which may have any suffix of nsys."""
    return command_line(export_words(path))


def export_words(path: str) -> list[str]:
    """The same as a list of arguments."""
    place = PurePosixPath(path)
    stem = place.name
    for suffix in (*RAW, UNFINISHED, ".json", ".json.gz", *OTHER_FORMS):
        if stem.endswith(suffix):
            stem = stem.removesuffix(suffix)
            break
    report = place.with_name(place.name if place.name.endswith(RAW) else f"{stem}{RAW[0]}")
    target = place.with_name(f"{stem}.sqlite")
    words = ["nsys", "export", "--type", "sqlite", "--force-overwrite=true"]
    return [*words, "-o", no_flag(str(target)), no_flag(str(report))]


def no_flag(path: str) -> str:
    """`path` such that no program takes it for a flag."""
    return f"./{path}" if path.startswith("-") else path
