"""Reports of NVIDIA Nsight Systems: `nsys export` makes the database that can be read."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from rl_insight.data.tree import Tree
from rl_insight.errors import RLInsightError
from rl_insight.parsers.nvtx_discovery import is_export, packed_reports, reports, unfinished
from rl_insight.parsers.nvtx_kinds import export_command, export_words
from rl_insight.pipeline.preprocess_kinds import RawCapture


class NsysKind:
    """Files `*.nsys-rep`, and what is left of a recording that was killed."""

    name = "nsys report"

    def look(self, tree: Tree) -> Iterator[RawCapture]:
        """All reports; what to do with one that was not exported is the exact command."""
        found = [
            RawCapture(path, "raw", export_command(path))
            if exported is None
            else RawCapture(path, "ready", "exported already")
            for path, exported in reports(tree)
        ]
        why = "nsys was ended before it made a report of this recording"
        found += [RawCapture(path, "hopeless", why) for path in unfinished(tree)]
        found += [RawCapture(path, "packed", why) for path, why in packed_reports(tree)]
        yield from sorted(found, key=lambda one: one.path)

    def missing(self, python: str) -> str | None:
        """What to do where nsys is not on the PATH."""
        if shutil.which("nsys") is not None:
            return None
        return (
            "nsys reports are exported by nsys, which is not on the PATH: run this where it is "
            "installed, or the commands that --dry-run says"
        )

    def command(self, capture: Path, python: str) -> list[str]:
        """The export into a database beside the report."""
        return export_words(str(capture))

    def failure(self, capture: Path, output: str) -> str | None:
        """Whether there is an export that can be read now; if not, what nsys said last."""
        *_, target, _ = export_words(str(capture))
        try:
            if is_export(Path(target)):
                return None
        except RLInsightError:
            pass  # there is none
        said = [line.strip() for line in output.splitlines() if line.strip()]
        return f"nsys left no export{f': {said[-1]}' if said else ''}"


NSYS = NsysKind()
