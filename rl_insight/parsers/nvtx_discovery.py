"""Which files and folders of an input folder are captures of nsys, and in which form each is read.

A capture is often there in several forms: the report, and what was exported from it. It is read
once, from the form that is quickest to read; the others are said to be skipped.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path, PurePosixPath
from typing import Final

from rl_insight.data import packings
from rl_insight.data.health import LEFTOVERS
from rl_insight.data.names import TORCH_GRAMMARS, facts
from rl_insight.data.tree import File, Tree, scan
from rl_insight.errors import ReadError
from rl_insight.parsers.base import Found
from rl_insight.parsers.nvtx_kinds import OTHER_FORMS, RAW, UNFINISHED, are_messages, are_rows
from rl_insight.parsers.nvtx_packed import (
    DATABASES,
    FOLDER_SUFFIXES,
    LINES,
    is_named,
    packed_capture,
)
from rl_insight.parsers.nvtx_schema import TABLES
from rl_insight.readers.gzip_head import HEAD_BYTES, unpacked
from rl_insight.readers.sqlite import MAGIC, database

_LINES_ALSO_PACKED: Final = (*LINES, *(f"{suffix}.gz" for suffix in LINES))
_FOLDER_FILES: Final = (".parquet", ".arrow")

_KILLED: Final = "left by a killed writer or copier: copy it again, or export it again"
_BEHIND: Final = re.compile(
    r"(?P<name>.+\.(?:sqlite3?|db3?|jsonl|jsonlines|ndjson|nsys-rep)"
    rf"(?:\.gz|{packings.SUFFIX})?)(?:\.tmp|\.part|\.partial)"
)

# SQLite databases and JSON of the Ascend profiler.
_ASCEND: Final = re.compile(r"ascend_pytorch_profiler|analysis\.db|msprof|profiler_")


class Form(IntEnum):
    """The forms of a capture; of several the first is read."""

    DATABASE = 0
    PARQUET = 1
    ARROW = 2
    LINES = 3
    DAMAGED = 4
    """By its name an export, but its first bytes are those of none."""
    PACKED = 5
    """By its name an export, packed in a form that is not read."""
    MESSAGES = 6
    OTHER = 7
    RAW = 8
    PACKED_REPORT = 9
    UNFINISHED = 10


@dataclass(frozen=True, slots=True)
class _Candidate:
    form: Form
    path: str
    files: tuple[str, ...]


def claims(tree: Tree) -> Iterator[Found]:
    """Every capture in `tree` in its best form; with `skip` its other forms."""
    for best, *others in _captures(tree):
        yield Found(best.path, best.files)
        name = PurePosixPath(best.path).name
        why = f"the same capture was exported as {name}, which is read"
        if best.form >= Form.DAMAGED:
            why = f"the same capture is there as {name}, of which another row says what to do"
        for other in others:
            # What is packed may be whole where its other form is not.
            packed = other.form in (Form.PACKED, Form.PACKED_REPORT)
            lost = best.form is Form.DAMAGED and packed
            # A folder may hold both Parquet and Arrow files.
            if other.path != best.path:
                yield Found(other.path, other.files, None if lost else why)
    for file in tree.files:
        found = _BEHIND.fullmatch(file.name)
        if found is not None and is_named(f"{file.folder}/{found['name']}".lstrip("/")):
            yield Found(file.path, (file.path,), _KILLED)


def reports(tree: Tree) -> Iterator[tuple[str, str | None]]:
    """Every report in `tree`, and the export of it that can be read, None where there is none."""
    for forms in _captures(tree):
        best = forms[0]
        exported = best.path if best.form < Form.DAMAGED else None
        yield from ((one.path, exported) for one in forms if one.form is Form.RAW)


def is_export(path: Path) -> bool:
    """Whether the file at `path` is an export that can be read."""
    tree = scan(path)
    return any(forms[0].form < Form.DAMAGED for forms in _captures(tree))


def packed_reports(tree: Tree) -> Iterator[tuple[str, str]]:
    """Every report in `tree` that has to be unpacked first, with the words for that."""
    for forms in _captures(tree):
        path = forms[0].path
        if forms[0].form is Form.PACKED_REPORT and (packed := packed_capture(path)) is not None:
            yield path, packed.why_not_read(path)


def unfinished(tree: Tree) -> Iterator[str]:
    """Every recording in `tree` of which no report was ever made."""
    for forms in _captures(tree):
        if forms[0].form is Form.UNFINISHED:
            yield forms[0].path


def _captures(tree: Tree) -> Iterator[list[_Candidate]]:
    """The forms of each capture in `tree`, the best first, in order of folder and name."""
    captures: dict[tuple[str, str], list[_Candidate]] = defaultdict(list)
    inside = set()
    for folder, files in _folders(tree).items():
        place = PurePosixPath(folder or ".")
        stem = FOLDER_SUFFIXES.sub("", place.name)
        for suffix, own in files.items():
            form = Form.PARQUET if suffix == ".parquet" else Form.ARROW
            complete = [path for path in own if not path.endswith(LEFTOVERS)]
            if all(packings.split(path)[1] for path in complete):
                form = Form.PACKED
            captures[str(place.parent), stem].append(_Candidate(form, str(place), tuple(own)))
            inside.update(own)
    for file in tree.files:
        found = _file(tree, file) if file.path not in inside else None
        if found is not None:
            form, stem = found
            place = PurePosixPath(file.path).parent
            captures[str(place), stem].append(_Candidate(form, file.path, (file.path,)))
    for key in sorted(captures):
        yield sorted(captures[key], key=lambda one: (one.form, one.path))


def _folders(tree: Tree) -> dict[str, dict[str, list[str]]]:
    """The folders that hold tables of nsys as files: the files that matter, by their suffix."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    leftovers, packed = [], []
    for file in tree.files:
        ends = [end for end in LEFTOVERS if file.name.endswith(end)]
        name = file.name.removesuffix(ends[0]) if ends else file.name
        name, packing = packings.split(name)
        stem, dot, suffix = name.rpartition(".")
        if f"{dot}{suffix}" not in _FOLDER_FILES or stem not in TABLES:
            continue
        if packing and not ends:
            packed.append((file, f"{dot}{suffix}"))
        elif ends:
            leftovers.append((file, f"{dot}{suffix}"))
        else:
            found[file.folder][f"{dot}{suffix}"].append(file.path)
    for file, suffix in packed:
        found[file.folder][suffix].append(file.path)
    for file, suffix in leftovers:
        # Beside complete tables only: of nothing else is told whose it is.
        if suffix in found.get(file.folder, {}):
            found[file.folder][suffix].append(file.path)
    return found


def _file(tree: Tree, file: File) -> tuple[Form, str] | None:
    """The form of a file and the name of its capture; None where it is none of nsys."""
    name = file.name
    for suffixes, form in (
        (RAW, Form.RAW),
        ((UNFINISHED,), Form.UNFINISHED),
        (OTHER_FORMS, Form.OTHER),
        (DATABASES, Form.DATABASE),
        (_LINES_ALSO_PACKED, Form.LINES),
    ):
        if not name.endswith(suffixes):
            continue
        suffix = max((one for one in suffixes if name.endswith(one)), key=len)
        named = is_named(file.path)
        if form in (Form.RAW, Form.UNFINISHED) or (form is Form.OTHER and named):
            known: Form | None = form
        elif form is Form.OTHER or (not named and _of_others(file)):
            return None
        else:
            content = _database(tree, file) if form is Form.DATABASE else _lines(tree, file)
            known = Form.DAMAGED if content is None and named else content
        return None if known is None else (known, name.removesuffix(suffix))
    packed = packed_capture(file.path)
    if packed is None:
        return None
    return (Form.PACKED_REPORT if packed.is_report else Form.PACKED), packed.stem


def _of_others(file: File) -> bool:
    """Whether a name is that of another profiler's file, so that it need not be opened."""
    if "ascend_pt/" in file.path or _ASCEND.match(file.name):
        return True
    return facts(file.path).grammar in TORCH_GRAMMARS


def _database(tree: Tree, file: File) -> Form | None:
    if tree.head(file.path, len(MAGIC)) != MAGIC:
        return None
    marks = ", ".join("?" * len(TABLES))
    named = f"name COLLATE NOCASE IN ({marks})"
    query = f"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND {named}"
    try:
        with database(tree.absolute(file.path)) as connection:
            (count,) = connection.execute(query, TABLES).fetchone()
    except ReadError:
        return None
    return Form.DATABASE if count else None


def _lines(tree: Tree, file: File) -> Form | None:
    text, _ = unpacked(tree.head(file.path, HEAD_BYTES), file.size_bytes)
    if are_rows(text):
        return Form.LINES
    return Form.MESSAGES if are_messages(text) else None
