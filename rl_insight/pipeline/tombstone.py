"""What becomes of a unit whose parse job was killed: the others are drawn without it.

A parse job never fails for its input, so one that left no cache was killed: by the system for its
memory, by the scheduler for its time, by hand, or by a library that crashed, which its log tells.
Its unit gets a cache folder that holds nothing but `failed` rows and a marker, and the next run
removes that folder first and so tries it again.
"""

from collections.abc import Sequence
from pathlib import Path

from rl_insight.parsers import PARSERS
from rl_insight.pipeline import layout
from rl_insight.pipeline.cache_folder import remove_folder
from rl_insight.pipeline.crash import crash_in
from rl_insight.pipeline.units import Unit, source_id


def clear(output: Path, units: Sequence[Unit]) -> None:
    """Remove the tombstones of earlier runs, and what they could not read although it was there."""
    for unit in units:
        folder = output / layout.unit_folder(unit.parser, unit.name)
        if any((folder / mark).exists() for mark in (layout.TOMBSTONE, layout.UNREAD)):
            # Without its marker, what is left of it would pass for what the job wrote.
            remove_folder(folder)


def lay(output: Path, units: Sequence[Unit], since_ns: int) -> int:
    """Lay a tombstone for each unit whose job began after `since_ns` and left nothing.

    Gives how many. A job that never began (the scheduler refused it, the disk was full before) is
    no reason to draw without it.
    """
    killed = [unit for unit in units if _was_killed(output, unit, since_ns)]
    for unit in killed:
        _lay(output, unit)
    return len(killed)


def _was_killed(output: Path, unit: Unit, since_ns: int) -> bool:
    if (output / layout.unit_folder(unit.parser, unit.name)).exists():
        return False
    try:
        log = (output / _log(unit)).stat()
    except OSError:
        return False
    return log.st_mtime_ns >= since_ns


def _lay(output: Path, unit: Unit) -> None:
    detail = _why(unit, crash_in(output / _log(unit)))
    rows = [
        {
            "source_id": source_id(path),
            "path": path,
            "parser": unit.parser,
            "status": "failed",
            "detail": detail,
            "problems": [],
            "events": 0,
        }
        for path in unit.sources
    ]
    # Hardly any run comes here: the others need not wait for Arrow.
    from rl_insight import tables
    from rl_insight.pipeline.parse import write_folder
    from rl_insight.schema import SCHEMAS

    content = {name: tables.empty(SCHEMAS[name]) for name in PARSERS.get(unit.parser).tables}
    content["sources"] = tables.from_rows(SCHEMAS["sources"], rows)
    folder = output / layout.unit_folder(unit.parser, unit.name)
    # Marked from the beginning: without its marker it would pass for what the job wrote.
    write_folder(folder, content, layout.TOMBSTONE)


def _why(unit: Unit, crash: str | None) -> str:
    if crash is None:
        return (
            "its parse job did not finish (killed: out of memory, out of time, or by hand; or the "
            f"disk is full); see {_log(unit)}; the next run tries it again"
        )
    count = len(unit.sources)
    what = "it" if count == 1 else f"one of the {count} captures of its parse job, maybe another,"
    return (
        f"its parse job crashed ({crash}): {what} cannot be read by this version, and another run "
        f"will not help; please report it, with {_log(unit)} and the file"
    )


def _log(unit: Unit) -> Path:
    return layout.LOGS / "parse" / unit.parser / f"{unit.name}.log"
