"""The census of an input folder: what is there, what is damaged, and what is missing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rl_insight.data.coverage import Coverage, coverage
from rl_insight.data.identity import UserRules
from rl_insight.data.names import root_label
from rl_insight.data.tree import File, Tree, scan
from rl_insight.errors import InputError
from rl_insight.parsers import PARSERS
from rl_insight.parsers.garbage import without_collection
from rl_insight.pipeline.check_inputs import Checked, Surroundings, check_input
from rl_insight.pipeline.check_state import State
from rl_insight.pipeline.discovery import Discovery, Filters, Skipped, Wanted, discover_all
from rl_insight.pipeline.preprocess_ascend import ASCEND
from rl_insight.pipeline.preprocess_nsys import NSYS


@dataclass(frozen=True, slots=True)
class Census:
    """What a look at a folder found; `nothing` says why there is no input, if so.

    `root` is the folder, or the one file that was looked at. `oldest` and `newest` are of all its
    `files`. `coverage` is by preset. `unclaimed` are files that no parser knows.
    """

    root: Path
    files: int
    size_bytes: int
    oldest: File | None
    newest: File | None
    inputs: tuple[Checked, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    unclaimed: int = 0
    nothing: str | None = None

    @property
    def lacking(self) -> bool:
        """Whether anything is damaged or missing."""
        bad = any(one.state != "whole" for one in self.inputs)
        bad |= any(row.status in ("empty", "failed") for row in self.skipped)
        return bad or any(found.columns for found in self.coverage.values())


def take_census(
    folder: Path,
    wanted: Mapping[str, Sequence[str]],
    rules: UserRules,
    ranks: frozenset[int] | None = None,
) -> Census:
    """Look at `folder` (or one file); `wanted` has the parsers of each preset, `rules` are
    those of `input.identity`.

    Reads the listing and the ends of files, and writes nothing. `ranks` are the only
    ones that count, None for all. Raises InputError when the folder is missing or cannot be listed.
    """
    tree = scan(folder)
    chosen = {preset: Wanted(names, Filters()) for preset, names in wanted.items()}
    nothing = None
    try:
        found = discover_all(tree, chosen, rules)
    except InputError as error:
        found, nothing = Discovery(), str(error).removeprefix("input.path: ")
    inputs = [
        one
        for one in _look_at_all(found, tree, rules)
        if ranks is None or one.who.rank_id is None or one.who.rank_id in ranks
    ]
    if inputs and not any(one.gives or one.state == "raw" for one in inputs):
        what = "its only input" if len(inputs) == 1 else f"any of its {len(inputs):,} inputs"
        nothing = f"{str(tree.root)!r}: nothing can be read of {what}"
    by_time = sorted(tree.files, key=lambda file: file.mtime_ns)
    claimed = found.inputs() | {row.path for row in found.skipped}
    # The tree of one file is the folder around it, of which the rest was not asked for.
    only = tree.files[0] if len(tree.files) == 1 and not folder.is_dir() else None
    return Census(
        root=tree.root if only is None else tree.absolute(only.path),
        files=len(tree.files),
        size_bytes=sum(file.size_bytes for file in tree.files),
        oldest=by_time[0] if by_time else None,
        newest=by_time[-1] if by_time else None,
        inputs=tuple(inputs),
        skipped=tuple(found.skipped),
        coverage={
            preset: coverage((one.recorded for one in inputs if one.preset == preset), ranks)
            for preset in found.presets
        },
        unclaimed=sum(file.path not in claimed for file in tree.files),
        nothing=nothing,
    )


def _look_at_all(found: Discovery, tree: Tree, rules: UserRules) -> list[Checked]:
    around = Surroundings(
        tree=tree,
        files={file.path: file for file in tree.files},
        raw=_raw(tree, found.found),
        rules=rules,
        root_name=root_label(tree.root),
    )
    jobs = [(PARSERS.get(name), one) for name, some in found.found.items() for one in some]
    # Threads made it slower: reading the ends of small files is mostly Python.
    with without_collection():
        inputs = [check_input(one, parser, around) for parser, one in jobs]
    return sorted(inputs, key=lambda one: one.path)


def _raw(tree: Tree, parsers: Collection[str]) -> dict[str, State]:
    """The captures that cannot be read as they are."""
    kinds = [kind for parser, kind in (("mstx", ASCEND), ("nvtx", NSYS)) if parser in parsers]
    looks = [one for kind in kinds for one in kind.look(tree)]
    return {one.path: one.state for one in looks if one.state != "ready"}
