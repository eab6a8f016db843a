"""Inputs that somebody was writing to while `rl-insight check` looked: unfinished, not damaged."""

from collections.abc import Iterable
from dataclasses import replace

from rl_insight.data.ailment import Ailment
from rl_insight.data.tree import File, Tree
from rl_insight.parsers import Found
from rl_insight.pipeline.check_inputs import Checked
from rl_insight.pipeline.discovery import Skipped
from rl_insight.pipeline.growing import Growing

STILL_GROWING = "still_growing"

_UNFINISHED = "is still being written: look again when it is complete"


def changed(tree: Tree, paths: Iterable[str]) -> set[str]:
    """Those of `paths`, files of `tree`, that are no longer as they were listed."""
    listed = {file.path: file for file in tree.files}
    return {path for path in paths if (was := listed.get(path)) and _now(tree, path) != was}


def unfinished(one: Checked, found: Found, growing: Growing) -> Checked:
    """`one` without the damage that may only be that it is not complete.

    What is wrong with those of its files that nobody writes to stays.
    """
    if not growing.touches(found.path, found.files):
        return one
    kept = [
        (path, ailment)
        for path, ailment in one.ailments
        # What is said of the input as a whole is said of all its files.
        if ailment.harmless or not growing.touches(path, found.files if path == found.path else ())
    ]
    damaged = any(not ailment.harmless for _, ailment in kept)
    writing = [path for path in found.files if path in growing.files] or [found.path]
    kept += [(path, Ailment(STILL_GROWING, _UNFINISHED, harmless=True)) for path in writing]
    return replace(one, state="damaged" if damaged else "growing", ailments=tuple(kept))


def passed_over(row: Skipped, growing: Growing) -> Skipped:
    """`row`, which says of a file under a temporary name that its writer is at work, if he is."""
    return replace(row, reason=_UNFINISHED) if row.path in growing.files else row


def _now(tree: Tree, path: str) -> File | None:
    try:
        info = tree.absolute(path).stat()
    except (OSError, ValueError):
        return None
    return File(path, info.st_size, info.st_mtime_ns)
