"""Which captures of the Ascend profiler lie in an input folder, told by what is in their folders.

The layout is torch_npu's (`_profiler_path_creator.py`, `_path_manager.py`): a capture is a folder
`<worker>_<pid>_<time>_ascend_pt` with the raw data in `FRAMEWORK/` and `PROF_*/`, the file
`profiler_info*.json` and, once it was analysed, `ASCEND_PROFILER_OUTPUT/` with `trace_view.json`,
`ascend_pytorch_profiler*.db`, or both. People rename such folders, and copy single files.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from rl_insight.data import packings
from rl_insight.data.tree import Tree

OUTPUT = "ASCEND_PROFILER_OUTPUT"
METADATA = "profiler_metadata.json"
MEMORY = "operator_memory.csv"

_CAPTURE = "ascend_pt"
_RAW = re.compile(r"FRAMEWORK|PROF_[0-9]+_[0-9]+_[0-9A-Za-z]+")
_INFO = re.compile(r"profiler_info[^/]*\.json")
_DATABASE = re.compile(r"ascend_pytorch_profiler[^/]*\.db")
# What an analysis, a copier or an editor calls a result before it is complete.
_DRAFT = re.compile(
    r"(?:[^/]*[._-])?(?:trace_view_temp\.json|(?:trace_view|ascend_pytorch_profiler)[^/]*"
    r"\.(?:tmp|part))"
)
# Not trace_view_temp.json: the analysis gives its result the final name when it is complete.
_TRACE = re.compile(r"(?:[^/]*[._-])?trace_view(?:(?!_temp)[^/]*)?\.json(?:\.gz)?")
_TRACE_NAMES = ("trace_view.json", "trace_view.json.gz")

# A capture without a result is known by a few of its files: when it changes, they change.
_MOST_WITNESSES = 3


@dataclass(slots=True)
class AscendCapture:
    """One capture: its folder ("" is the input itself), and its files, all relative to the input.

    `databases` and `traces` are the two forms of its result, `packed` are results in a packing that
    is not read, `metadata` the small JSON files beside them, `memory` the list of allocations.
    `raw` tells whether the data is there that an analysis would need, `witnesses` are some of its
    other files.
    """

    folder: str
    databases: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    packed: list[str] = field(default_factory=list)
    metadata: list[str] = field(default_factory=list)
    memory: list[str] = field(default_factory=list)
    witnesses: list[str] = field(default_factory=list)
    raw: bool = False
    output: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """What parsing reads and what decides whether its cache is stale."""
        results = (*self.databases[:1], *self.traces[:1]) or _one_of_each(self.packed)
        return (*results, *self.metadata) or tuple(self.witnesses)

    @property
    def path(self) -> str:
        """How the capture is called: its folder, or where that is the input itself, a file."""
        return self.folder or next(iter(self.files), OUTPUT)


def captures(tree: Tree) -> tuple[list[AscendCapture], list[str]]:
    """The captures in `tree` by their folder, and the results (files) that belong to none.

    A capture whose folder could not be listed as a whole is left to the report about that.
    """
    known: dict[str, AscendCapture] = {}
    others: list[tuple[str, bool]] = []
    for path, is_file in _everything(tree):
        folder = _capture_by_content(path, is_file)
        if folder is None:
            others.append((path, is_file))
        else:
            _add(known.setdefault(folder, AscendCapture(folder)), path, is_file)
    # What is called like a capture and has captures in it is a folder of captures.
    with_captures = {above for folder in known for above in _folders_above(folder)}
    for path, is_file in others:
        folder = _capture_around(path, is_file, known)
        if folder is None:
            folder = _capture_by_name(path, is_file, tree.root.name)
            if folder is None or folder in with_captures:
                continue
        _add(known.setdefault(folder, AscendCapture(folder)), path, is_file)
    for capture in known.values():
        capture.traces.sort(key=lambda path: (_name(path) not in _TRACE_NAMES, path))
    whole = [one for one in known.values() if one.databases or one.traces or not _hidden(tree, one)]
    used = {file for one in whole for file in one.files}
    strays = [file.path for file in tree.files if _is_result(file.name) and file.path not in used]
    twins = {path for one in whole for path in one.traces if _name(path) in _TRACE_NAMES}
    return sorted(whole, key=lambda one: one.folder), [one for one in strays if one not in twins]


def is_database(path: str) -> bool:
    """Whether a file is named like the database of a capture (`analysis.db` is none)."""
    return _DATABASE.fullmatch(_name(path)) is not None


def is_draft(path: str) -> bool:
    """Whether a file is named like a result of a capture whose writer was killed."""
    return _DRAFT.fullmatch(_name(path)) is not None


def is_packed_capture(name: str) -> bool:
    """Whether a file is named like the folder of a capture, but for a packing that is not read."""
    bare, packing = packings.split(name)
    return packing != "" and bare.endswith(_CAPTURE)


def is_packed_result(path: str) -> bool:
    """Whether a file is named like a result of a capture, or the folder of its results, but for a
    packing that is not read."""
    bare, packing = packings.split(_name(path))
    return packing != "" and (bare == OUTPUT or _is_result(bare))


def packed_words(files: Iterable[str]) -> str | None:
    """What there is to say of a capture with these `files` of which the result is packed; None of
    others."""
    packed = next((_name(path) for path in files if is_packed_result(path)), None)
    return packed and f"its result, {packed}, is {packings.why_not_read(packed)}"


def is_raw(folder: str) -> bool:
    """Whether a folder of a capture, by its name, holds data that can be analysed."""
    return _RAW.fullmatch(folder) is not None


def is_trace(path: str) -> bool:
    """Whether a file is named like the trace of a capture."""
    return _TRACE.fullmatch(_name(path)) is not None


def _everything(tree: Tree) -> Iterator[tuple[str, bool]]:
    """All files (True) and all folders without any (False), but for captures that are packed."""
    for file in tree.files:
        if f"{_CAPTURE}." not in file.path or not is_packed_capture(file.name):
            yield file.path, True
    for folder in tree.empty_folders:
        yield folder, False


def _capture_by_content(path: str, is_file: bool) -> str | None:
    """The capture that a file or empty folder belongs to, by the names that torch_npu gives."""
    *folders, name = path.split("/")
    for at, part in enumerate(folders if is_file else [*folders, name]):
        if part == OUTPUT or _RAW.fullmatch(part):
            return "/".join(folders[:at])
    return "/".join(folders) if is_file and _INFO.fullmatch(name) else None


def _capture_around(path: str, is_file: bool, known: Collection[str]) -> str | None:
    """The innermost of the `known` captures that a file lies in.

    Where the input itself is a capture, what lies in other folders of it is not its own.
    """
    around = _folders_above(path) if is_file else [path, *_folders_above(path)]
    folder = next((folder for folder in around if folder in known), None)
    return None if folder == "" and "/" in path else folder


def _folders_above(path: str) -> Iterator[str]:
    """The folders that a file or folder lies in, the innermost first; "" is the input itself."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def _capture_by_name(path: str, is_file: bool, root_name: str) -> str | None:
    """The innermost folder around a file that is called like a capture."""
    parts = path.split("/")
    for at in range(len(parts) - is_file, 0, -1):
        if parts[at - 1].endswith(_CAPTURE):
            return "/".join(parts[:at])
    return "" if root_name.endswith(_CAPTURE) else None


def _add(capture: AscendCapture, path: str, is_file: bool) -> None:
    inside = path.removeprefix(f"{capture.folder}/") if capture.folder else path
    top, _, rest = inside.partition("/")
    capture.output |= top == OUTPUT
    capture.raw |= _RAW.fullmatch(top) is not None
    if not is_file:
        return
    # Results are also found beside the folder of results, where somebody tidied up.
    near = not rest or (top == OUTPUT and "/" not in rest)
    if near and _name(path) == MEMORY:
        capture.memory.append(path)
    if near and is_database(path):
        capture.databases.append(path)
    elif near and is_trace(path):
        capture.traces.append(path)
    elif near and is_packed_result(path):
        capture.packed.append(path)
    elif (not rest and _INFO.fullmatch(top)) or _is_metadata(top, rest):
        capture.metadata.append(path)
    elif len(capture.witnesses) < _MOST_WITNESSES:
        capture.witnesses.append(path)


def _is_metadata(top: str, rest: str) -> bool:
    # Older versions of torch_npu keep it with the raw data.
    return (rest if top in (OUTPUT, "FRAMEWORK") else top) == METADATA


def _one_of_each(packed: list[str]) -> tuple[str, ...]:
    """Of `packed` results one database, one trace and one folder: a second is another rank's."""
    first: dict[tuple[bool, bool], str] = {}
    for path in sorted(packed):
        bare = packings.split(path)[0]
        first.setdefault((is_database(bare), is_trace(bare)), path)
    return tuple(first.values())


def _is_result(name: str) -> bool:
    return is_database(name) or is_trace(name)


def _hidden(tree: Tree, capture: AscendCapture) -> bool:
    return any(_lies_in(path, capture.folder) for path, _ in tree.unreadable)


def _lies_in(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _name(path: str) -> str:
    return path.rpartition("/")[2]
