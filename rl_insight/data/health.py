"""Is a file whole, as far as its two ends show? What lies between them is not looked at.

`look` reads at most 128 kB of a file, of whatever size. What it finds is what killed jobs, full
disks and broken copies leave behind: a file of zero bytes, a gzip without its end, JSON that does
not close, a database that is shorter than it says or that has a journal to be rolled back.

Sources: RFC 1952 (gzip: the last 8 bytes are the CRC and the size of the content modulo 2^32); the
SQLite file format, sections 1.3 and 3; PKWARE's APPNOTE, 4.3.16 (the end of a zip archive); Parquet
and Arrow files end as they begin.
"""

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from rl_insight.data import packings
from rl_insight.data.ailment import Ailment
from rl_insight.data.gzip_ends import GzipEnds, gzip_ends
from rl_insight.problems import PACKED_OTHERWISE
from rl_insight.readers import file_kinds
from rl_insight.readers.file_kinds import FileKind
from rl_insight.readers.gzip_head import GZIP_MAGIC

END_BYTES = 65_536

Format = file_kinds.Format | Literal["json", "json lines", "empty", "zeros", "unreadable"]

_ANY = msgspec.json.Decoder(msgspec.Raw)
_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
_BEHIND_JSON = b" \t\r\n\0"
_LINE_OF_JSON = re.compile(rb"\{[^\n]*\}[ \t\r]*\n[ \t\r\n]*\{")

# How files are named that hold each of these; others say nothing about what is in them.
_SUFFIXES: tuple[tuple[tuple[str, ...], tuple[Format, ...]], ...] = (
    ((".json", ".jsonl", ".ndjson", ".jsonlines"), ("json", "json lines")),
    ((".sqlite", ".sqlite3", ".db", ".db3"), ("sqlite",)),
    ((".pt",), ("zip", "pickle")),
    ((".npy",), ("npy",)),
    ((".parquet",), ("parquet",)),
    ((".arrow",), ("arrow", "arrow stream")),
)
# What packs files, other than gzip.
_PACKERS: tuple[Format, ...] = ("zstd", "xz", "bzip2", "lz4", "lzma", "7z", "rar", "compress")
LEFTOVERS = (".tmp", ".part", ".partial")
"""How a file ends that its writer or copier did not complete."""

# The header of a journal that is to be rolled back.
_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_ZIP_END = b"PK\x05\x06"
# The end of a zip archive has 22 bytes and a comment of at most 65,535.
_ZIP_END_BYTES = 22


@dataclass(frozen=True, slots=True)
class Health:
    """What the ends of a file show. `head` and `tail` are of its text where it is packed, as far as
    they can be seen; `tail` is empty where it cannot."""

    format: Format
    packed: bool = False
    ailments: tuple[Ailment, ...] = ()
    head: bytes = b""
    tail: bytes = b""

    @property
    def damaged(self) -> bool:
        """Whether anything of the file is lost, as far as its ends show."""
        return not all(one.harmless for one in self.ailments)


def look(file: Path | str) -> Health:
    """Look at the ends of the file at that path. Never raises, and never waits for a pipe."""
    path = os.fspath(file)  # of ten thousand files, Path objects would take a tenth of the time
    try:
        head, tail, size = _ends(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return Health("unreadable", ailments=(Ailment("unreadable", f"cannot be read: {why}"),))
    if not size:
        what = "has 0 bytes: its writer was killed or the disk was full"
        return Health("empty", ailments=(Ailment("empty_file", what),))
    if not head.strip(b"\0"):
        what = "holds only zero bytes: the data never reached the disk; copy it again"
        if tail.strip(b"\0"):
            what = "begins with zero bytes: its beginning never reached the disk; copy it again"
        return Health("zeros", ailments=(Ailment("zero_bytes", what),), head=head)
    if head.startswith(GZIP_MAGIC):
        return _packed(path, gzip_ends(head, tail, size))
    known = _format(head)
    ailments = [*_CHECKS[known](path, head, tail, size)] if known in _CHECKS else []
    if size > len(head) and not tail.strip(b"\0"):
        what = "ends in zero bytes: its end never reached the disk; copy it again"
        ailments = [Ailment("zero_bytes", what)]
    return Health(known, False, (*ailments, *_misnamed(path, known, False, head)), head, tail)


def _ends(path: str) -> tuple[bytes, bytes, int]:
    """The first and the last END_BYTES of a file, and its size."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(0, "not a regular file")
        head = os.pread(descriptor, END_BYTES, 0)
        if info.st_size <= END_BYTES:
            return head, head, info.st_size
        return head, os.pread(descriptor, END_BYTES, info.st_size - END_BYTES), info.st_size
    finally:
        os.close(descriptor)


def _packed(path: str, ends: GzipEnds) -> Health:
    known = _format(ends.head) if ends.head else "other"
    ailments: list[Ailment] = []
    if ends.wrong is not None:
        ailments.append(ends.wrong)
    elif ends.tail and known in ("json", "json lines"):
        # Only what is seen whole shows its end.
        ailments += _CHECKS[known](path, ends.head, ends.tail, 0)
    if ends.complete and not ends.head:
        ailments.append(Ailment("empty_file", "is a gzip of 0 bytes: its writer wrote nothing"))
    by_name = packings.split(_name(path))[1] != ""
    if known in ("json", "json lines") or by_name or (ends.head and ends.wrong is None):
        ailments += _misnamed(path, known, True, ends.head)
    return Health(known, True, tuple(ailments), ends.head, ends.tail)


def _format(head: bytes) -> Format:
    known = file_kinds.by_magic(head)
    if known is not None:
        return known.format
    text = head.lstrip(_BEFORE_JSON)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or head[1:2] == b"\0":
        # UTF-16 or UTF-32: the reader understands it, its ends would be misread here.
        return "other"
    if _LINE_OF_JSON.match(text):
        return "json lines"
    return "json" if text[:1] in (b"{", b"[") else "other"


def _json(path: str, head: bytes, tail: bytes, size: int) -> list[Ailment]:
    opened = head.lstrip(_BEFORE_JSON)[:1]
    closing = b"}" if opened == b"{" else b"]"
    text = tail.rstrip(_BEHIND_JSON)
    if text.endswith(closing) and not (head == tail and _is_open(head)):
        return []
    last = ascii(text[-12:].decode("utf-8", "replace"))
    what = f"its JSON does not close: it ends with {last}; the writer was killed, or a copy was cut"
    return [Ailment("json_open", what, kept="what is complete in it is read")]


def _is_open(text: bytes) -> bool:
    """Whether JSON that is seen whole ends before its end: an event closes like the whole."""
    try:
        _ANY.decode(text.lstrip(_BEFORE_JSON).rstrip(_BEHIND_JSON))
    except (msgspec.DecodeError, RecursionError) as error:
        return "truncated" in str(error)
    return False


def _json_lines(path: str, head: bytes, tail: bytes, size: int) -> list[Ailment]:
    if tail.rstrip(_BEHIND_JSON).endswith(b"}"):
        return []
    what = "its last line is cut: the export was stopped"
    return [Ailment("line_cut", what, kept="the lines before it are read")]


def _sqlite(path: str, head: bytes, tail: bytes, size: int) -> list[Ailment]:
    found = []
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    # The number of pages counts only where the writer that changed the file last kept it.
    kept = pages and head[24:28] == head[92:96]
    whole = (65_536 if page == 1 else page) * pages
    if len(head) < 100 or (kept and size < whole):
        missing = f"{size:,} of {whole:,} bytes" if len(head) >= 100 else f"{size:,} bytes"
        what = f"the database is cut: {missing} are there; copy or export it again"
        found.append(Ailment("database_cut", what))
    if _begins(path, "-journal", _JOURNAL_MAGIC):
        what = (
            "its writer was killed in the middle of a change, which "
            f"{_name(path)}-journal still holds; keep the two together, or export it again"
        )
        found.append(Ailment("hot_journal", what))
    if _begins(path, "-wal", b"\x37\x7f\x06"):
        what = f"what was written last is only in {_name(path)}-wal; keep the two together"
        found.append(Ailment("journal_unmerged", what, harmless=True))
    return found


def _zip(path: str, head: bytes, tail: bytes, size: int) -> list[Ailment]:
    if size >= _ZIP_END_BYTES and _ZIP_END in tail:
        return []
    return [Ailment("archive_cut", "the archive has no end: it was cut; copy or dump it again")]


def _same_ends(magic: bytes) -> Callable[[str, bytes, bytes, int], list[Ailment]]:
    def check(path: str, head: bytes, tail: bytes, size: int) -> list[Ailment]:
        if tail.endswith(magic) and size > len(magic):
            return []
        return [Ailment("table_cut", "the table has no end: it was cut; export it again")]

    return check


_CHECKS: dict[Format, Callable[[str, bytes, bytes, int], list[Ailment]]] = {
    "json": _json,
    "json lines": _json_lines,
    "sqlite": _sqlite,
    "zip": _zip,
    "parquet": _same_ends(b"PAR1"),
    "arrow": _same_ends(b"ARROW1"),
    "arrow stream": _same_ends(file_kinds.STREAM_END),
}


def _begins(path: str, suffix: str, magic: bytes) -> bool:
    """Whether the file beside `path` with that suffix begins with `magic`."""
    try:
        return _ends(f"{path}{suffix}")[0].startswith(magic)
    except (OSError, ValueError):
        return False


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _misnamed(path: str, known: Format, packed: bool, head: bytes) -> list[Ailment]:
    """What a name promises that the content does not keep."""
    name = _name(path).lower()
    kind = file_kinds.kind_of(head)
    if known in _PACKERS and kind is not None:
        what = f"is packed by {known}, which is not read: {kind.remedy}"
        return [Ailment(PACKED_OTHERWISE, what)]
    bare, packing = packings.split(name)
    # Whether what is behind `.gz` can be read is for the parser to say that claims the file.
    if packing and packing != ".gz" and known not in ("json", "json lines"):
        return [Ailment(PACKED_OTHERWISE, f"is {packings.why_not_read(name)}")]
    bare = bare.removesuffix(".gz")
    text = packings.may_be_gzip(bare)
    for suffixes, formats in _SUFFIXES:
        if bare.endswith(suffixes) and known not in formats:
            return [Ailment("wrong_content", f"holds {_words(known, kind)}")]
        if bare == name and bare.endswith(suffixes) and packed and not text:
            what = "is packed by gzip, which is read of JSON only: unpack it with gunzip"
            return [Ailment(PACKED_OTHERWISE, what)]
    if name.endswith(".gz") != packed:
        what = "packed by gzip, which its name does not say" if packed else "not packed by gzip"
        return [Ailment("wrong_suffix", f"is {what}", True, kept="it is read all the same")]
    return []


def _words(known: Format, kind: FileKind | None) -> str:
    """What a file holds whose name says something else."""
    words, remedy = (None, None) if kind is None else (kind.words, kind.remedy)
    told = words or ("something else" if known == "other" else known)
    told += ", which its name does not say"
    return told if remedy is None else f"{told}; {remedy}"
