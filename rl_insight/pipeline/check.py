"""The census of an input folder: what is there, what is damaged, and what is missing."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rl_insight.data import identity, roles
from rl_insight.data.coverage import Coverage, coverage
from rl_insight.data.health import LEFTOVERS
from rl_insight.data.identity import UserRules
from rl_insight.data.names import root_label
from rl_insight.data.tree import File, Tree, scan
from rl_insight.errors import InputError
from rl_insight.parsers import PARSERS, Found
from rl_insight.parsers.garbage import without_collection
from rl_insight.pipeline.check_growing import changed, passed_over, unfinished
from rl_insight.pipeline.check_inputs import Checked, Surroundings, check_input
from rl_insight.pipeline.check_state import State
from rl_insight.pipeline.discovery import (
    Discovery,
    Filters,
    Skipped,
    Wanted,
    discover_all,
    known_to_others,
)
from rl_insight.pipeline.growing import Growing, settled
from rl_insight.pipeline.preprocess_ascend import ASCEND
from rl_insight.pipeline.preprocess_nsys import NSYS


@dataclass(frozen=True, slots=True)
class Census:
    """What a look at a folder found; `nothing` says why there is no input, if so.

    `root` is the folder, or the one file that was looked at. `oldest` and `newest` are of all its
    `files`. `coverage` is by preset. `unclaimed` counts the files that no parser knows, `others` by
    parser those that one knows which was not asked for. `unfinished` are sentences about captures
    of which only a leftover is there.
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
    others: Mapping[str, int] = field(default_factory=dict)
    unfinished: tuple[str, ...] = ()
    nothing: str | None = None

    @property
    def unplaced(self) -> int:
        """Of how many inputs that give something the role or the rank is known only after reading:
        they stand in no grid, so nobody can tell here whether one of them is missing."""
        whose = [one.recorded for one in self.inputs if one.gives]
        return sum(one.role is None or one.rank_id is None for one in whose)

    @property
    def missing(self) -> bool:
        """Whether the grids lack anything, or may."""
        return any(found.columns or found.scattered for found in self.coverage.values())

    @property
    def lacking(self) -> bool:
        """Whether anything is damaged or missing."""
        bad = any(one.state not in ("whole", "growing") for one in self.inputs)
        bad |= any(row.status in ("empty", "failed") for row in self.skipped)
        return bad or any(found.columns for found in self.coverage.values())


def take_census(
    folder: Path,
    wanted: Mapping[str, Sequence[str]],
    rules: UserRules,
    ranks: frozenset[int] | None = None,
    settle_s: float = 0,
) -> Census:
    """Look at `folder` (or one file); `wanted` has the parsers of each preset, `rules` are
    those of `input.identity`.

    Reads the listing and the ends of files, and writes nothing. `ranks` are the only
    ones that count, None for all. What changed less than `settle_s` seconds ago, or meanwhile, is
    still being written; 0 takes everything for final. Raises InputError when the folder is missing
    or cannot be listed.
    """
    tree, at_first = settled(lambda: scan(folder), settle_s)
    chosen = {preset: Wanted(names, Filters()) for preset, names in wanted.items()}
    nothing = None
    try:
        found = discover_all(tree, chosen, rules)
    except InputError as error:
        found, nothing = Discovery(), str(error).removeprefix("input.path: ")
    looked = _look_at_all(found, tree, rules)
    growing = _growing(looked, tree, at_first) if settle_s else at_first
    inputs = [
        one
        for one in (unfinished(one, of, growing) for one, of in looked)
        if ranks is None or one.who.rank_id is None or one.who.rank_id in ranks
    ]
    if inputs and not any(one.gives or one.state == "raw" for one in inputs):
        what = "its only input" if len(inputs) == 1 else f"any of its {len(inputs):,} inputs"
        yet = " yet" if any(one.state == "growing" for one in inputs) else ""
        nothing = f"nothing can be read{yet} of {what}"
    by_time = sorted(tree.files, key=lambda file: file.mtime_ns)
    claimed = found.inputs() | {row.path for row in found.skipped}
    # The tree of one file is the folder around it, of which the rest was not asked for.
    only = tree.files[0] if tree.single else None
    covered = {
        preset: coverage((one.recorded for one in inputs if one.preset == preset), ranks)
        for preset in found.presets
    }
    others = known_to_others(tree, {name for one in chosen.values() for name in one.names})
    unclaimed = {file.path for file in tree.files} - claimed
    return Census(
        root=tree.root if only is None else tree.absolute(only.path),
        files=len(tree.files),
        size_bytes=sum(file.size_bytes for file in tree.files),
        oldest=by_time[0] if by_time else None,
        newest=by_time[-1] if by_time else None,
        inputs=tuple(inputs),
        skipped=tuple(passed_over(row, growing) for row in found.skipped),
        coverage=covered,
        unclaimed=len(unclaimed.difference(*others.values())),
        others={name: number for name, own in others.items() if (number := len(own & unclaimed))},
        unfinished=tuple(_unfinished(found.skipped, covered, rules, root_label(tree.root))),
        nothing=nothing,
    )


def _unfinished(
    skipped: Iterable[Skipped], covered: Mapping[str, Coverage], rules: UserRules, root_name: str
) -> Iterator[str]:
    """What was not completed, of the cells that are missing."""
    cells = {
        (cell.role, cell.replica, cell.step, cell.rank_id)
        for found in covered.values()
        for cell in found.missing
        if not cell.lost
    }
    for row in skipped if cells else ():
        ending = next((end for end in LEFTOVERS if row.path.endswith(end)), None)
        if ending is None:
            continue
        who = identity.resolve(row.path.removesuffix(ending), {}, rules, root_name)
        cell = (who.role, who.replica, who.step, who.rank_id)
        if who.role is not None and cell in cells:
            where = roles.lane_role_label(who.role, who.replica)
            where += "" if who.step is None else f" step {who.step}"
            yield f"{where} rank {who.rank_id}: only an unfinished {ending} is there: {row.path}"


def _growing(looked: Iterable[tuple[Checked, Found]], tree: Tree, at_first: Growing) -> Growing:
    """What grows: what did `at_first`, and the files of what is not whole that changed since."""
    doubtful = {file for one, of in looked if one.state != "whole" for file in of.files}
    later = changed(tree, doubtful)
    return Growing.of(at_first.files | later) if later else at_first


def _look_at_all(found: Discovery, tree: Tree, rules: UserRules) -> list[tuple[Checked, Found]]:
    """All inputs as they look, each with what it was found as, sorted by path."""
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
        inputs = [(check_input(one, parser, around), one) for parser, one in jobs]
    return sorted(inputs, key=lambda pair: pair[0].path)


def _raw(tree: Tree, parsers: Collection[str]) -> dict[str, State]:
    """The captures that were never exported; one that is packed is as any damaged file."""
    kinds = [kind for parser, kind in (("mstx", ASCEND), ("nvtx", NSYS)) if parser in parsers]
    looks = [one for kind in kinds for one in kind.look(tree)]
    return {one.path: one.state for one in looks if one.state != "ready" and one.state != "packed"}
