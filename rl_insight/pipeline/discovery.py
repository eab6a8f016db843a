"""From the input folder to units: what each parser claims, and what is left out for certain."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from rl_insight.data import identity, roles
from rl_insight.data.identity import UserRules
from rl_insight.data.tree import Tree
from rl_insight.errors import InputError
from rl_insight.parsers import PARSERS, Found, Parser

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Filters:
    """What the user wants to see; None means all."""

    ranks: frozenset[int] | None = None
    steps: frozenset[int] | None = None
    roles: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """One input that is not parsed, with the reason as a sentence."""

    path: str
    parser: str
    reason: str


@dataclass(slots=True)
class Discovery:
    """What is to be parsed, by parser, and what is not."""

    found: dict[str, list[Found]] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)


def parser_names(setting: str, preset: str) -> list[str]:
    """The parsers that the setting `timeline.parser.type` or `heatmap.parser.type` stands for.

    Raises PluginError for a name that is not registered.
    """
    if setting == AUTO:
        return [name for name in PARSERS.names() if PARSERS.get(name).preset == preset]
    names = [name.strip() for name in setting.split(",") if name.strip()]
    for name in names:
        PARSERS.get(name)
    return names


def discover(tree: Tree, names: Sequence[str], rules: UserRules, filters: Filters) -> Discovery:
    """Ask the parsers called `names`, in this order, for their inputs in `tree`.

    A path that two parsers claim goes to the first. The filters leave out here only what is
    certain without opening the file; the merge settles the rest.
    Raises InputError when none of them claims anything.
    """
    result = Discovery()
    taken: set[str] = set()
    passed_over: dict[str, Skipped] = {}
    for name in names:
        for found in PARSERS.get(name).discover(tree):
            if found.skip is not None:
                passed_over.setdefault(found.path, Skipped(found.path, name, found.skip))
                continue
            if taken.intersection(found.files):
                continue
            taken.update(found.files)
            reason = _filtered(found.path, rules, filters)
            if reason is None:
                result.found.setdefault(name, []).append(found)
            else:
                result.skipped.append(Skipped(found.path, name, reason))
    result.skipped += [row for path, row in passed_over.items() if path not in taken]
    result.skipped.sort(key=lambda row: row.path)
    if not result.found and not any(row.path in taken for row in result.skipped):
        raise InputError(_nothing_found(tree, names))
    return result


def _filtered(path: str, rules: UserRules, filters: Filters) -> str | None:
    known = identity.certain(path, rules)
    rank, step, role = known.rank_id, known.step, known.role
    if None not in (filters.ranks, rank) and rank not in filters.ranks:
        return f"rank {rank} is not in input.rank_list"
    if None not in (filters.steps, step) and step not in filters.steps:
        return f"step {step} is not among the chosen steps"
    if None not in (filters.roles, role) and not roles.matches(role, known.replica, filters.roles):
        return f"role {role} is not among the chosen roles"
    return None


def _nothing_found(tree: Tree, names: Sequence[str]) -> str:
    where = f"input.path: {str(tree.root)!r}"
    if not tree.files:
        return f"{where} is empty: there is nothing to read"
    others = _other_kinds(tree, names)
    if others:
        held = ", ".join(f"{count} {name} input{'s'[: count != 1]}" for name, count in others)
        return (
            f"{where} holds no {_either(names)} profile, but {held}: "
            f"choose timeline.parser.type={others[0][0]} (--profiler-type {others[0][0]})"
        )
    endings = Counter(PurePosixPath(file.path).suffix or "no suffix" for file in tree.files)
    common = ", ".join(f"{count} {ending}" for ending, count in endings.most_common(3))
    return f"{where} holds no {_either(names)} profile among its {len(tree.files)} files ({common})"


def _other_kinds(tree: Tree, names: Collection[str]) -> list[tuple[str, int]]:
    counts = [
        (name, _claims(PARSERS.get(name), tree)) for name in PARSERS.names() if name not in names
    ]
    return sorted(((n, c) for n, c in counts if c), key=lambda pair: -pair[1])


def _claims(parser: Parser, tree: Tree) -> int:
    return sum(found.skip is None for found in parser.discover(tree))


def _either(names: Iterable[str]) -> str:
    return " or ".join(names)
