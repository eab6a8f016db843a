"""Opens an export of nsys in whatever form it has, by its content."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Protocol

from rl_insight.data import packings
from rl_insight.data.health import LEFTOVERS
from rl_insight.errors import ReadError
from rl_insight.parsers.base import Source
from rl_insight.parsers.nvtx_kinds import (
    OTHER_FORMS,
    RAW,
    UNFINISHED,
    are_messages,
    export_command,
    no_flag,
)
from rl_insight.parsers.nvtx_packed import packed_capture
from rl_insight.parsers.nvtx_rows import Batch
from rl_insight.problems import LEFTOVER, PACKED_OTHERWISE, Problems
from rl_insight.readers.gzip_head import HEAD_BYTES, unpacked
from rl_insight.readers.not_json import named_format
from rl_insight.readers.pseudo_files import holds_bytes
from rl_insight.readers.sqlite import MAGIC
from rl_insight.shell_words import command_line


class Rows(Protocol):
    """The rows of an export; iterating gives its batches, and may raise ReadError."""

    @property
    def rows_seen(self) -> int:
        """How many rows were read, of any table."""
        ...

    @property
    def tabled(self) -> int:
        """How many of them name their table; only JSON lines may hold others."""
        ...

    @property
    def damaged(self) -> set[str]:
        """The tables of which rows are lost, where that is known."""
        ...

    def __iter__(self) -> Iterator[Batch]: ...


def open_rows(source: Source, problems: Problems) -> Rows:
    """The rows of `source`; `problems` gets what is lost while they are read.

    Raises ReadError where it is no export, with the command that makes one.
    """
    path = source.absolute
    # Each form is imported when it is read: a job starts in half the time.
    if path.is_dir():
        from rl_insight.parsers.nvtx_arrow import ArrowRows

        leftovers = [f for f in source.files if f.endswith(LEFTOVERS)]
        packed_tables = [f for f in source.files if packings.split(f)[1]]
        unread = {*leftovers, *packed_tables}
        tables = {PurePosixPath(f).stem: source.root / f for f in source.files if f not in unread}

        def left(paths: Sequence[str], why: Callable[[str], str]) -> list[tuple[str, bool]]:
            names = [PurePosixPath(path).name for path in paths]
            # Complete, the table was written again, or unpacked.
            return [(why(name), name.partition(".")[0] in tables) for name in names]

        packed = left(packed_tables, lambda name: f"{name} is {packings.why_not_read(name)}")
        if not tables and packed:
            raise ReadError(f"its tables are packed: {packed[0][0]}")
        problems.add_left(PACKED_OTHERWISE, packed)
        unfinished = left(leftovers, lambda name: f"{name} was not completed by its writer")
        problems.add_left(LEFTOVER, unfinished)
        return ArrowRows(tables, problems)
    capture = packed_capture(source.path)
    if capture is not None:
        raise ReadError(capture.why_not_read(source.path))
    if source.path.endswith(RAW):
        raise ReadError(
            "a report that was not exported: run rl-insight preprocess on the input folder, or "
            f"there: {export_command(source.path)}"
        )
    if source.path.endswith(UNFINISHED):
        raise ReadError(
            "nsys was ended before it made a report of this: run "
            f"{command_line(['QdstrmImporter', '-i', no_flag(source.path)])}, "
            f"then {export_command(source.path)}"
        )
    if source.path.endswith(OTHER_FORMS):
        raise ReadError(f"this form of export is not read: {export_command(source.path)}")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES) if holds_bytes(file) else b""
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror or error}") from error
    if head.startswith(MAGIC):
        from rl_insight.parsers.nvtx_sqlite import SqliteRows

        return SqliteRows(path, problems)
    text, _ = unpacked(head, len(head))
    if text.startswith(MAGIC):
        raise ReadError("a database that was packed by gzip: unpack it with gunzip")
    if are_messages(text):
        raise ReadError(
            "an export of the older kind (--type json), which is not read: "
            f"{export_command(source.path)}"
        )
    if text.startswith(b"[{") and b"\n" not in text.strip():
        raise ReadError(
            f"it holds one JSON list instead of a row per line: {export_command(source.path)}"
        )
    from rl_insight.parsers.nvtx_json import JsonRows

    return JsonRows(path, problems)


def what_instead(source: Source) -> str | None:
    """What a file is of which no row could be read; None for a folder and what begins as JSON.

    Nothing is quoted of it: exports hold whole environments.
    """
    try:
        with source.absolute.open("rb") as file:
            head = file.read(HEAD_BYTES) if holds_bytes(file) else b""
    except OSError:
        return None
    text, _ = unpacked(head, len(head))
    if text.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"", b"{", b"["):
        return None
    known = named_format(text)
    if known is None and not text[: len(MAGIC)].strip(b"\0"):
        return "it begins with zero bytes: the data never reached the disk"
    return known or "it holds no JSON lines"
