"""Reading one capture of the Ascend profiler, from its database or its text.

A capture that has both is read once, from its database: it has the same tasks with exact times, the
names of the communication groups, and it is quicker to read. Where it is damaged, the text is read.
"""

from collections.abc import Mapping
from pathlib import Path

from rl_insight.data import identity, packings
from rl_insight.data.ascend_captures import (
    OUTPUT,
    is_database,
    is_draft,
    is_raw,
    is_trace,
    packed_words,
)
from rl_insight.errors import ReadError
from rl_insight.parsers import mstx_metadata
from rl_insight.parsers.base import Parsed, Source
from rl_insight.parsers.losses import all_that_could_be_read, lost, why_empty
from rl_insight.parsers.mstx_capture import MstxCapture
from rl_insight.parsers.mstx_metadata import Told
from rl_insight.parsers.mstx_tables import Wanted, build
from rl_insight.parsers.options import range_depth
from rl_insight.problems import JOURNAL_UNREAD, Problems
from rl_insight.shell_words import command_line


def read(source: Source, options: Mapping[str, object]) -> Parsed:
    """What the capture `source` holds; memory does not grow with its size.

    Raises ReadError when it was never analysed, or cannot be read.
    """
    databases = [path for path in source.files if is_database(path)]
    traces = [path for path in source.files if is_trace(path)]
    if not databases and not traces:
        if source.files == (source.path,) and packings.split(source.path)[1]:
            raise ReadError(packings.why_not_read(source.path))
        if not source.files and not any(source.absolute.iterdir()):
            return Parsed("empty", "the capture is an empty folder: nothing was recorded")
        told = mstx_metadata.read(source.root, source.files, Problems())
        why = packed_words(source.files) or _not_analysed(source)
        raise ReadError(why, whose=_whose(told))
    wanted = Wanted(
        source.source_id,
        identity.path_role(source.path, source.root.name),
        range_depth(options),
    )
    problems = Problems()
    told = mstx_metadata.read(source.root, source.files, problems)
    try:
        if not databases:
            return _from_text(source, traces[0], told, wanted, problems)
        if not traces:
            return _from_database(source, databases[0], told, wanted, problems)
        return _from_either(source, databases[0], traces[0], told, wanted, problems)
    except ReadError as error:
        raise ReadError(str(error), whose=_whose(told)) from error


def _from_either(
    source: Source, database: str, trace: str, told: Told, wanted: Wanted, problems: Problems
) -> Parsed:
    """The rows of the database where that is whole, else of the text, else what is left."""
    first: Parsed | None = None
    try:
        first = _from_database(source, database, told, wanted, _copied(problems))
        why = first.detail or ""
    except ReadError as error:
        why = str(error)
    if first is not None and first.status == "ok":
        return first
    try:
        second = _from_text(source, trace, told, wanted, _copied(problems))
        of_text = second.detail or ""
    except ReadError as error:
        if first is None:
            raise ReadError(f"{why}; {error}") from error
        second, of_text = Parsed("failed"), str(error)
    if first is not None and (
        second.status == "failed" or (first.status == "salvaged" and second.status == "empty")
    ):
        first.problems.add("text_unreadable", "warning", example=of_text)
        return first
    second.problems.add("database_unreadable", "warning", example=why)
    return second


def _copied(problems: Problems) -> Problems:
    copy = Problems()
    copy.extend(problems)
    return copy


def _from_database(
    source: Source, path: str, told: Told, wanted: Wanted, problems: Problems
) -> Parsed:
    from rl_insight.parsers import mstx_database  # a job reads one of the two forms

    read = mstx_database.read(source.root / path, told, wanted.path_role)
    capture = read.capture
    damage = None if read.damage is None else f"the database is damaged ({read.damage})"
    if damage is None and JOURNAL_UNREAD in capture.problems:
        damage = "the database was still being written: it is read without its journal"
    tables = build(capture, told, wanted)
    if not tables["spans"].num_rows:
        if damage is not None:
            raise ReadError(f"{damage}; nothing could be read of it")
        why = "the database holds no timed events"
        problems.extend(capture.problems)
        return Parsed("empty", why, capture.events, problems, tables)
    problems.extend(capture.problems)
    if damage is not None:
        kept = all_that_could_be_read(capture.events, "row")
        return Parsed("salvaged", f"{damage}; {kept}", capture.events, problems, tables)
    detail = None
    if not any(capture.devices.values()):
        detail = _without_analysis(capture, told)
        problems.add("no_device_tasks", "warning", example=detail)
    return Parsed("ok", detail, capture.events, problems, tables)


def _from_text(source: Source, path: str, told: Told, wanted: Wanted, problems: Problems) -> Parsed:
    from rl_insight.parsers import mstx_text

    read = mstx_text.read(source.root / path, told.role or wanted.path_role)
    capture = read.capture
    if not read.is_trace:
        raise ReadError(f"{source.root / path} is JSON of another kind: it holds no trace events")
    tables = build(capture, told, wanted)
    damage = lost(read.losses, capture.events)
    problems.extend(read.losses)
    problems.extend(capture.problems)
    if not tables["spans"].num_rows:
        why = why_empty(read.losses, capture.events)
        if damage is not None:
            why = f"{why}; {damage}" if capture.events else damage
        # What damage left nothing of was not empty, it was lost.
        status = "empty" if damage is None else "failed"
        return Parsed(status, why, capture.events, problems, tables)
    detail = damage
    if not any(device.is_analysed for device in capture.devices.values()):
        missing = _without_analysis(capture, told, damage is not None)
        problems.add("no_overlap_analysis", "warning", example=missing)
        detail = missing if detail is None else f"{detail}; {missing}"
    return Parsed("ok" if damage is None else "salvaged", detail, capture.events, problems, tables)


def _without_analysis(capture: MstxCapture, told: Told, is_damaged: bool = False) -> str:
    """Why a trace may have no «Overlap Analysis», and what it is drawn from."""
    why = "collected at level_none" if _is_level_none(told) else "collected at level_none?"
    if is_damaged and not _is_level_none(told):
        why = "it may be in what was lost"
    if any(capture.devices.values()):
        return f"no Overlap Analysis ({why}); its tasks say when the device was busy"
    return f"no Overlap Analysis and no device tasks ({why}); it is drawn without a breakdown"


def _is_level_none(told: Told) -> bool:
    return (told.level or "").lower().replace("_", "") == "levelnone"


def _whose(told: Told) -> Mapping[str, object]:
    """What the small files beside a capture tell, also where nothing of it can be read."""
    return {"role": told.role, "rank_id": told.rank(Problems()), "step": told.step}


def _not_analysed(source: Source) -> str:
    """What to do about a capture that has no result; a command stands last, to be copied."""
    folder = source.absolute if source.absolute.is_dir() else source.root
    what = "never analysed: it holds only raw data"
    if (folder / OUTPUT).is_dir():
        what = f"not analysed: its {OUTPUT} holds no result{_but_drafts(folder / OUTPUT)}"
    if not any(is_raw(one.name) for one in folder.iterdir() if one.is_dir()):
        what = what.partition(":")[0] if what.startswith("never") else what
        return f"{what}, and nothing is left to analyse: neither FRAMEWORK nor PROF_* is there"
    command = command_line(["rl-insight", "preprocess", str(source.root)])
    return f"{what}; run this where torch_npu is installed: {command}"


def _but_drafts(output: Path) -> str:
    """The results that an analysis began and never finished, as they stand in a sentence."""
    drafts = sorted(one.name for one in output.iterdir() if is_draft(one.name))
    if not drafts:
        return ""
    more = f" and {len(drafts) - 1} more" if len(drafts) > 1 else ""
    return f" but {drafts[0]}{more}, left by a killed analysis"
