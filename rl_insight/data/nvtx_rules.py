"""Rules for exports of Nsight Systems: as JSON lines, SQLite, or folders of Parquet and Arrow."""

from collections.abc import Iterator

from rl_insight.data.data_kinds import DataEnum
from rl_insight.data.findings import Finding
from rl_insight.data.nsys_exports import (
    REPORTS,
    ExportCheck,
    check_database,
    check_lines,
    exports,
    is_database,
)
from rl_insight.data.trace_check import in_words, loss_severity
from rl_insight.data.tree import File, Tree
from rl_insight.data.validation_rule import TreeRule
from rl_insight.errors import ReadError
from rl_insight.plain_text import count

_NVTX = (DataEnum.MULTI_JSON_NVTX,)
_TABLE_FILES = ("NVTX_EVENTS.parquet", "NVTX_EVENTS.arrow")
_NO_EXPORT = "there is no export of Nsight Systems (*.jsonl, *.sqlite) in this folder"
_EXPORT = "run `rl-insight preprocess` on the folder where nsys is installed"


class NvtxJsonFileExistsRule(TreeRule):
    """There is an export, at any depth, and every report was exported."""

    kinds = _NVTX

    def look(self, tree: Tree) -> Iterator[Finding]:
        """An error where there is none, and for reports alone; what is beside exports is told."""
        found = {_stem(file.path) for file in exports(tree)}
        folders = [file.folder for file in tree.files if file.name in _TABLE_FILES]
        found.update(folders)
        for folder in folders:
            yield self.found("info", "a folder with a file per table, which is read", folder)
        reports = [file for file in tree.files if file.name.endswith(REPORTS)]
        for file in reports:
            if _stem(file.path) not in found:
                yield self.found("error", f"it was not exported; {_EXPORT}", file.path)
        if not found and not reports:
            yield self.found("error", _NO_EXPORT)


class NvtxJsonFieldValidRule(TreeRule):
    """Every export can be read to its end and has ranges with names, a clock, and a rank.

    Each file is read once. Of folders with a file per table only the presence is checked.
    """

    kinds = _NVTX

    def look(self, tree: Tree) -> Iterator[Finding]:
        """What there is to say about each export."""
        files = list(exports(tree))
        if not files and not any(file.name in _TABLE_FILES for file in tree.files):
            yield self.found("error", _NO_EXPORT)
        for file in files:
            yield from self._export(tree, file)

    def _export(self, tree: Tree, file: File) -> Iterator[Finding]:
        check = check_database if is_database(file) else check_lines
        try:
            export = check(tree.absolute(file.path))
        except ReadError as error:
            yield self.unreadable(tree, file.path, error)
            return
        for problem in export.problems:
            if problem.code != "empty_file":
                yield self.found(loss_severity(problem), in_words(problem), file.path)
        if export.damage is not None:
            yield self.found("error", f"the database is damaged: {export.damage}", file.path)
        yield from self._ranges(file, export)
        if not export.has_clock:
            text = "it has neither ANALYSIS_DETAILS.startTime nor utcEpochNs: its clock is unknown"
            yield self.found("warning", text, file.path)
        if not export.has_rank:
            text = "no process of it tells a RANK: was a launcher profiled?"
            yield self.found("warning", text, file.path)

    def _ranges(self, file: File, export: ExportCheck) -> Iterator[Finding]:
        ranges = export.ranges
        if not ranges:
            text = "it has no NVTX ranges (NVTX_EVENTS of type 59, 60, 70 or 71)"
            yield self.found("error", text, file.path)
            return
        if export.without_start:
            text = f"{count(export.without_start, 'range')} of {ranges:,} without a start"
            yield self.found("error", text, file.path)
        if export.nameless == ranges or (export.numbered == ranges and not export.strings):
            text = "none of its ranges has a name, neither text nor a textId that StringIds knows"
            yield self.found("error", text, file.path)
        elif export.nameless:
            text = f"{count(export.nameless, 'range')} of {ranges:,} without a name"
            yield self.found("warning", text, file.path)
        if export.open:
            text = f"{count(export.open, 'range')} of {ranges:,} never ended"
            yield self.found("warning", text, file.path)


def _stem(path: str) -> str:
    """The path of a capture without what its form added."""
    folder, slash, name = path.rpartition("/")
    for suffix in (*REPORTS, ".gz", ".jsonl", ".jsonlines", ".ndjson", ".json", ".sqlite"):
        name = name.removesuffix(suffix)
    return folder + slash + name
