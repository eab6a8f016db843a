"""Which files of an input folder are torch traces: by their names, else by their first bytes."""

import re
from collections.abc import Iterator

import msgspec

from rl_insight.data import packings
from rl_insight.data.names import TORCH_GRAMMARS, facts
from rl_insight.data.tree import File, Tree
from rl_insight.readers.gzip_head import HEAD_BYTES, unpacked

_SUFFIXES = (".json", ".json.gz")
# What no parser reads, by the suffix behind that of a trace.
_NOT_READ = {
    ".tmp": "left by a killed writer: kineto gives a trace its name when it is complete",
    ".part": "left by a killed writer or copier",
}
_ROTATED = "an older file that was kept beside its successor"
_COPY = "a copy that an editor or a person kept beside the file"
_COPIES = (".bak", ".old", ".orig", "~")
_BEHIND = re.compile(
    rf"(?P<kind>\.json(?:\.gz)?(?:{packings.SUFFIX})?)"
    rf"(?P<end>{'|'.join(map(re.escape, (*_NOT_READ, *_COPIES)))}|\.[0-9]{{1,3}})\Z",
    re.IGNORECASE,
)
# Whole names of VeRL's traces, of which an archiver may have replaced the suffix.
_VERL = frozenset({"verl-A/B", "verl-C/D"})
# Neighbours of profiles that are JSON themselves: Ascend's, msprobe's.
_OTHERS = re.compile(
    r"(profiler_info(_[0-9]+)?|profiler_metadata|dump|stack|construct|debug|communication"
    r"|communication_matrix)\.json"
)
_ASCEND_TRACE = re.compile(r"(trace_view|msprof)[^/]*\.json")
# What stands near the beginning of a trace and of hardly anything else; the zero byte is that of
# UTF-16, which the reader understands.
_SIGNS = (b'"traceEvents"', b'"schemaVersion"', b'"deviceProperties"', b'"ph"', b"\0")
# White space and the mark that some programs put before UTF-8.
_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"


def candidates(tree: Tree) -> Iterator[File]:
    """Every file in `tree` that may be a torch trace by its suffix.

    Captures of torch_npu (`*_ascend_pt`) hold traces of another kind and are passed over.
    """
    for file in tree.files:
        if _may_be_trace(file.name) and "ascend_pt/" not in file.path:
            yield file


def why_not(tree: Tree, file: File) -> str | None:
    """Why `file` is no trace to be read; None for a trace, and in doubt: reading tells.

    A file is opened only when its name says nothing.
    """
    behind = _BEHIND.search(file.name)
    if behind:
        end = behind["end"].lower()
        what = _COPY if end in _COPIES else _ROTATED
        return _NOT_READ.get(end, f"{what}: give it a name in {behind['kind']} to read it")
    name, packing = packings.split(file.name)
    if "async_llm" in name:
        return "vLLM front-end trace: CPU only, no rank"
    if _OTHERS.fullmatch(name):
        return "JSON of another kind: it accompanies a profile"
    if _ASCEND_TRACE.fullmatch(name):
        return "trace of the Ascend profiler: --profiler-type mstx reads its folder"
    grammar = facts(file.path).grammar
    if packing:
        return _why_not_packed(tree, file, name)
    if grammar in TORCH_GRAMMARS or file.size_bytes == 0:
        return None
    text, complete = unpacked(tree.head(file.path, HEAD_BYTES), file.size_bytes)
    text = text.lstrip(_BEFORE_JSON)
    if not text or any(sign in text for sign in _SIGNS):
        return None
    if _are_lines(text):
        return "JSON lines of another kind: they hold no trace events"
    if text[:1] in b"{[":
        return _other_json(text) if complete else None
    # A name that counts ranks is a trace's: that one is broken, and parsing says how.
    return None if grammar is not None else "no trace: it begins neither with { nor with ["


def _are_lines(text: bytes) -> bool:
    """Whether there is a JSON object on the first line and another behind it (exports of nsys)."""
    first, _, rest = text.partition(b"\n")
    if not rest.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(msgspec.json.decode(first), dict)
    except msgspec.MsgspecError:
        return False


def _may_be_trace(whole: str) -> bool:
    name, packing = packings.split(whole)
    if name.lower().endswith(_SUFFIXES) or _BEHIND.search(whole):
        return True
    return packing != "" and "." not in name and facts(name).grammar in _VERL


def _why_not_packed(tree: Tree, file: File, name: str) -> str | None:
    """As `why_not`, of a `file` that is called `name` but for the suffix of a packer.

    What is a trace by its name is claimed though it cannot be unpacked: reading says that its rank
    is lost, and how to get it back. Whether it lies there unpacked too is asked of the folder.
    """
    stem = re.sub(r"\.json(?:\.gz)?\Z", "", name, flags=re.IGNORECASE)
    for twin in (f"{stem}{suffix}" for suffix in _SUFFIXES):
        if not tree.single and tree.absolute(file.path).with_name(twin).is_file():
            return packings.there_too(twin)
    told = facts(file.path)
    if told.grammar in TORCH_GRAMMARS or (told.grammar == "generic" and told.rank is not None):
        return None
    return packings.why_not_read(file.name)


def _other_json(text: bytes) -> str | None:
    """Why complete JSON is no trace; None for `[]` and what does not decode: parsing tells."""
    try:
        content = msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return None
    return None if content == [] else "JSON of another kind: it holds no trace events"
