"""From the input folder to units: what each parser claims, and what is left out for certain."""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePosixPath

from rl_insight.config import KEYS, parse_names
from rl_insight.data import identity, roles
from rl_insight.data.identity import UserRules
from rl_insight.data.tree import NOT_REGULAR, Tree
from rl_insight.errors import InputError, PluginError
from rl_insight.parsers import PARSERS, Found, Parser
from rl_insight.pipeline.layout import is_name

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Filters:
    """What the user wants to see; None means all."""

    ranks: frozenset[int] | None = None
    steps: frozenset[int] | None = None
    roles: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """One input that is not parsed: its row in `sources`, with the reason as a sentence."""

    path: str
    parser: str
    reason: str
    status: str = "skipped"


@dataclass(slots=True)
class Discovery:
    """What is to be parsed, by parser, and what is not.

    `presets` are those of which there is any input. `filtered` are inputs like `found` that the
    filters leave out; `skipped` has them too.
    """

    found: dict[str, list[Found]] = field(default_factory=dict)
    filtered: dict[str, list[Found]] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    presets: tuple[str, ...] = ()

    def inputs(self) -> set[str]:
        """All that some parser claims: the inputs themselves and their files."""
        found = [one for some in (self.found, self.filtered) for one in chain(*some.values())]
        return {path for one in found for path in (one.path, *one.files)}

    def add(self, preset: str, other: "Discovery") -> None:
        """Take over what was found for `preset`; what both pass over is told once."""
        own, others = self.inputs(), other.inputs()
        rows = {row.path: row for row in other.skipped if row.path not in own}
        rows |= {row.path: row for row in self.skipped if row.path not in others}
        self.skipped = sorted(rows.values(), key=lambda row: row.path)
        self.found |= other.found
        self.filtered |= other.filtered
        self.presets += (preset,)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parsers that are asked for inputs of one preset, in this order, and its filters."""

    names: Sequence[str]
    filters: Filters


def parser_names(setting: str, preset: str) -> list[str]:
    """The parsers that the setting `timeline.parser.type` or `heatmap.parser.type` stands for.

    Raises PluginError for a name that is not registered or that no folder can have.
    """
    if setting == AUTO:
        names = [name for name in PARSERS.names() if PARSERS.get(name).preset == preset]
    else:
        names = [name.strip() for name in setting.split(",") if name.strip()]
    for name in names:
        own = PARSERS.get(name).name
        if own != name or not is_name(name):
            raise PluginError(
                f"the parser {own!r} cannot be used under the name {name!r}: "
                "both must be the same, of letters, digits, _ and -"
            )
    return names


def discover_all(tree: Tree, wanted: Mapping[str, Wanted], rules: UserRules) -> Discovery:
    """The inputs of every preset that is `wanted`; those of which there are none are left out.

    Raises InputError when there is no input of any, and PluginError as `discover` does.
    """
    result = Discovery()
    for preset, one in wanted.items():
        try:
            result.add(preset, discover(tree, one.names, rules, one.filters))
        except InputError:
            if len(wanted) == 1:
                raise
    if not result.presets:
        names = [name for one in wanted.values() for name in one.names]
        raise InputError(_nothing_found(tree, names, ()))
    return result


def discover(tree: Tree, names: Sequence[str], rules: UserRules, filters: Filters) -> Discovery:
    """Ask the parsers called `names`, in this order, for their inputs in `tree`.

    A path that two parsers claim goes to the first. The filters leave out here only what is
    certain without opening the file; the merge settles the rest.
    Raises InputError when none of them claims anything, and PluginError when one claims a file
    that is not in `tree`.
    """
    result = Discovery()
    listed = {file.path for file in tree.files}
    claimed: set[str] = set()
    passed_over: dict[str, Skipped] = {}
    for name in names:
        # Inputs of one parser may share a file that tells about several of them.
        own: set[str] = set()
        for found in PARSERS.get(name).discover(tree):
            if found.skip is not None:
                passed_over.setdefault(found.path, Skipped(found.path, name, found.skip))
                continue
            if found.path in claimed or found.path in own or not claimed.isdisjoint(found.files):
                continue
            _check(found, name, listed)
            own.update((found.path, *found.files))
            reason = _filtered(found, rules, filters)
            if reason is None:
                result.found.setdefault(name, []).append(found)
            else:
                result.filtered.setdefault(name, []).append(found)
                result.skipped.append(Skipped(found.path, name, reason))
        claimed |= own
    left = [row for path, row in passed_over.items() if path not in claimed]
    if not claimed:
        raise InputError(_nothing_found(tree, names, left))
    result.skipped += [*left, *_not_listed(tree, next(iter(result.found), names[0]), claimed)]
    result.skipped.sort(key=lambda row: row.path)
    return result


def _check(found: Found, name: str, listed: Collection[str]) -> None:
    missing = [path for path in found.files if path not in listed]
    if missing:
        raise PluginError(
            f"the {name} parser claims {missing[0]!r}, which is not in the input folder"
        )


def _not_listed(tree: Tree, parser: str, claimed: Collection[str]) -> Iterator[Skipped]:
    """What no parser was shown: it could not be listed, or a stage's folder is empty.

    About a folder inside one that is `claimed` its own row says what there is to say.
    """
    for path, reason in tree.unreadable:
        status = "skipped" if reason == NOT_REGULAR else "failed"
        yield Skipped(path, parser, f"cannot be read: {reason}", status)
    for path in tree.companions:
        yield Skipped(path, parser, "macOS left this beside a file: it holds no profile")
    for folder in tree.empty_folders:
        place = PurePosixPath(folder)
        inside = any(str(above) in claimed for above in (place, *place.parents))
        if not inside and any(map(_is_stage, place.parts)):
            yield Skipped(folder, parser, "the folder is empty: nothing was recorded", "empty")


def _is_stage(name: str) -> bool:
    return roles.is_stage(name) or name in roles.WHOLE_STEP


def _filtered(found: Found, rules: UserRules, filters: Filters) -> str | None:
    if filters == Filters():
        return None
    known = identity.certain(found.path, rules)
    step, role = known.step, known.role
    ranks, steps, wanted = filters.ranks, filters.steps, filters.roles
    if ranks is not None:
        rank = _peeked_rank(found) if known.rank_id is None else known.rank_id
        if rank is not None and rank not in ranks:
            return f"rank {rank} is not in input.rank_list"
    if steps is not None and step is not None and step not in steps:
        return f"step {step} is not among the chosen steps"
    if wanted is not None and role is not None and not roles.matches(role, known.replica, wanted):
        return f"role {role} is not among the chosen roles"
    return None


def _peeked_rank(found: Found) -> int | None:
    told = found.peek().get("rank_id") if found.peek is not None else None
    return told if isinstance(told, int) else None


def _nothing_found(tree: Tree, names: Sequence[str], passed_over: Sequence[Skipped]) -> str:
    place = tree.absolute(tree.files[0].path) if tree.single else tree.root
    where = f"input.path: {str(place)!r}"
    if not tree.files and not tree.unreadable:
        return f"{where} is empty: there is nothing to read"
    others = _other_kinds(tree, names)
    if others:
        held = ", ".join(f"{_count(count, f'{other.name} input')}" for other, count in others)
        return (
            f"{where} holds no {_either(names)} profile, but {held}: {_choose(others[0][0], names)}"
        )
    endings = Counter(PurePosixPath(file.path).suffix or "no suffix" for file in tree.files)
    common = ", ".join(f"{count} {ending}" for ending, count in endings.most_common(3))
    among = f" among its {_count(len(tree.files), 'file')} ({common})" if tree.files else ""
    if tree.single:
        told = f": {passed_over[0].reason}" if passed_over else ""
        return f"{where} is no {_either(names)} profile{told}"
    reasons = [f"{row.path}: {row.reason}" for row in passed_over]
    reasons += [f"{path}: {reason}" for path, reason in tree.unreadable]
    more = f"; not read: {reasons[0]}" if reasons else ""
    more += f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"{where} holds no {_either(names)} profile{among}{more}"


def known_to_others(tree: Tree, names: Collection[str]) -> dict[str, set[str]]:
    """By parser, the files of what those other than `names` find, to read it or to pass it over."""
    known: dict[str, set[str]] = {}
    for name in PARSERS.names():
        # As below: a broken package of somebody else must not hide what is asked for.
        with contextlib.suppress(PluginError):
            if name not in names:
                found = PARSERS.get(name).discover(tree)
                known[name] = {path for one in found for path in one.files}
    return known


def _other_kinds(tree: Tree, names: Collection[str]) -> list[tuple[Parser, int]]:
    counts = []
    for name in PARSERS.names():
        # This only makes a better error: a broken package of somebody else must not hide it.
        with contextlib.suppress(PluginError):
            if name not in names:
                parser = PARSERS.get(name)
                counts.append((parser, sum(one.skip is None for one in parser.discover(tree))))
    return sorted((pair for pair in counts if pair[1]), key=lambda pair: -pair[1])


def _choose(parser: Parser, names: Collection[str]) -> str:
    """What reads the inputs of `parser`, where `names` were looked for."""
    default = parse_names(str(KEYS[f"{parser.preset}.parser.type"].default))
    # Only the default parsers of a preset are those that its name alone chooses.
    if parser.preset != "timeline" and parser.name not in default:
        of_preset = any(PARSERS.get(name).preset == parser.preset for name in names)
        flag = "" if of_preset else f"preset={parser.preset} "
        return f"choose {flag}{parser.preset}.parser.type={parser.name}"
    if parser.preset != "timeline":
        return f"choose preset={parser.preset} (--preset {parser.preset})"
    return f"choose timeline.parser.type={parser.name} (--profiler-type {parser.name})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _either(names: Iterable[str]) -> str:
    return " or ".join(names)
