"""Whose capture it is: role, rank, step, replica and host, weighed from all that tells them.

In this order, field by field: the user's own expressions (`input.identity`), the file's metadata,
its name, its folders. A metadata rank beats the name because names collide (eight files called
`r0-*`, and a relocated engine trace counts global ranks where the file counts its own). Ranks
inside a rollout engine and ranks of the trainer are different numbers: they are never compared.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rl_insight.data import roles
from rl_insight.data.name_facts import INT32, INT64, NameFacts, whole
from rl_insight.data.names import dump_facts, facts, folder_facts
from rl_insight.data.user_rules import UserRules, compile_rules

__all__ = ["Identity", "UserRules", "certain", "compile_rules", "path_role", "resolve"]

_WHERE = {"metadata": "the file's metadata", "name": "its name", "folder": "its folders"}
# The names whose prefix is verl's worker; flat are those that need no role's folder.
_FLAT = frozenset({"verl-C/D", "nsys"})
_PREFIXED = _FLAT | {"verl-A/B"}


@dataclass(frozen=True, slots=True)
class Identity:
    """Who wrote a capture; None is unknown.

    `rank_id` is as the producer numbers it: inside the engine for a rollout replica, else the
    trainer's global rank. `step_source` is `user`, `metadata`, `name` or `folder`. `order` sorts
    the captures of one lane by their names. `conflicts` are sentences about sources that disagree.
    """

    role: str | None = None
    replica: int | None = None
    rank_id: int | None = None
    global_rank: int | None = None
    world_size: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None
    host: str | None = None
    pid: int | None = None
    step: int | None = None
    step_source: str | None = None
    order: tuple[int, ...] = ()
    conflicts: tuple[str, ...] = ()


def resolve(
    path: str, metadata: Mapping[str, object], rules: UserRules, root_name: str = ""
) -> Identity:
    """Who wrote the capture at `path` (relative to the input root, whose name is `root_name`).

    `metadata` is what the file says: role, rank_id, world_size, host, pid, step, replica, tp, pp,
    dp, ep, global_rank, each missing or None where it does not; other keys are passed over.
    """
    user, wrong = rules.read(path)
    name = facts(path)
    sources = {
        "user": _settled(user),
        "metadata": _settled(_from_metadata(metadata)),
        "name": _settled(name),
        "folder": _settled(folder_facts(path, root_name)),
    }
    replica, _, about_replica = _pick("replica", sources)
    engine = replica is not None or bool(name.rank_is_local)
    comparable = sources
    if engine and any((name.dp, name.pp, name.ep)):
        # Such a name counts the ranks of one parallel group, the file those of the whole engine.
        comparable = {**sources, "name": replace(sources["name"], rank=None)}
    rank, _, about_rank = _pick("rank", comparable)
    rank = sources["name"].rank if rank is None else rank
    step, step_source, about_step = _pick("step", sources)
    world_size, _, about_world = _pick("world_size", sources)
    role, about_role = _role(sources, name)
    told = sources["metadata"]
    global_rank = _first(told.global_rank, name.global_rank)
    if global_rank is None:
        global_rank = _global_rank(rank, engine, role, replica, world_size)
    return Identity(
        role=role,
        replica=replica,
        rank_id=rank,
        global_rank=global_rank,
        world_size=world_size,
        tp=_first(told.tp, name.tp),
        pp=_first(told.pp, name.pp),
        dp=_first(told.dp, name.dp),
        ep=_first(told.ep, name.ep),
        host=user.host or told.host or name.host,
        pid=_first(told.pid, name.pid, sources["folder"].pid),
        step=step,
        step_source=step_source,
        order=_order(name),
        conflicts=(*wrong, *about_role, *about_replica, *about_rank, *about_step, *about_world),
    )


def path_role(path: str, root_name: str = "") -> str | None:
    """The canonical role by the file's name and folders alone."""
    name, folder = facts(path), folder_facts(path, root_name)
    return _role({"name": _settled(name), "folder": _settled(folder)}, name)[0]


def certain(path: str, rules: UserRules) -> Identity:
    """What is known for certain without opening the file: enough to leave it out by a filter.

    That is what the user's expressions say, the step and stage in verl's self-describing names, and
    the folders of an msprobe dump, its rank among them. Never a rank from a file's name (names
    collide), never a whole step's role (its stages are inside).
    """
    told, name, dump = _settled(rules.read(path)[0]), facts(path), dump_facts(path)
    told_by_name = name.grammar == "verl-C/D" and name.replica is None
    name = _settled(name if told_by_name else dump)
    role, replica = told.role, told.replica
    if role is None and name.role is not None and roles.is_stage(name.role):
        role, replica = name.role, _first(replica, name.replica)
    if role in roles.WHOLE_STEP:
        role = None
    # A filter may ask for one replica, and folders may still tell which one this is.
    if role is not None and replica is None and "rollout" in role:
        role = None
    step = _first(told.step, name.step)
    source = "name" if told_by_name else "folder"
    return Identity(
        role=role,
        replica=replica,
        rank_id=_first(told.rank, dump.rank),
        host=told.host,
        step=step,
        step_source=None if step is None else source if told.step is None else "user",
    )


def _from_metadata(metadata: Mapping[str, object]) -> NameFacts:
    def integer(key: str, largest: int = INT32) -> int | None:
        return whole(metadata.get(key), largest)

    def text(key: str) -> str | None:
        value = metadata.get(key)
        return value.strip() or None if isinstance(value, str) else None

    return NameFacts(
        role=text("role"),
        rank=integer("rank_id"),
        global_rank=integer("global_rank"),
        world_size=integer("world_size"),
        tp=integer("tp"),
        pp=integer("pp"),
        dp=integer("dp"),
        ep=integer("ep"),
        step=integer("step", INT64),
        replica=integer("replica"),
        host=text("host"),
        pid=integer("pid", INT64),
    )


def _settled(told: NameFacts) -> NameFacts:
    """`told` with its role in the canonical form and the replica number out of it."""
    if told.role is None:
        return told
    role, replica = roles.split_replica(told.role)
    return replace(told, role=role, replica=_first(told.replica, replica))


def _pick(
    field: str, sources: Mapping[str, NameFacts]
) -> tuple[int | None, str | None, tuple[str, ...]]:
    """The first source's value of `field`, that source, and a sentence if others differ."""
    values = {
        source: value
        for source, told in sources.items()
        if (value := getattr(told, field)) is not None
    }
    if not values:
        return None, None, ()
    source = next(iter(values))
    return values[source], source, _disagreement(field.replace("_", " "), values)


def _disagreement(what: str, values: Mapping[str, object]) -> tuple[str, ...]:
    """Says that the first of `values` (by source) is used although others differ."""
    first, *others = values
    differing = [source for source in others if values[source] != values[first]]
    # Who writes an expression does so because the rest is wrong, and need not be told.
    if first == "user" or not differing:
        return ()
    listed = ", ".join(f"{values[source]} in {_WHERE[source]}" for source in differing)
    return (f"{what} {values[first]} in {_WHERE[first]}, {listed}; the {first} is used",)


def _role(sources: Mapping[str, NameFacts], name: NameFacts) -> tuple[str | None, tuple[str, ...]]:
    values = {source: told.role for source, told in sources.items() if told.role is not None}
    folder = values.get("folder")
    if folder is not None and name.grammar == "nsys" and not _is_role(folder):
        # Nothing puts these reports below a role's folder: it is who gathered them that named it.
        del values["folder"]
        folder = None
    if "user" not in values and folder is not None and "/" in folder:
        # A parent tells two engines of one role apart, and nothing else does.
        values = {s: folder if role == roles.bare(folder) else role for s, role in values.items()}
    # verl's prefix names the worker of a capture that has no stage. A flat name needs no folder,
    # so it says more than a folder of unknown meaning; elsewhere it is the last resort.
    worker = roles.canonical(name.prefix) if name.prefix and name.grammar in _PREFIXED else None
    if worker and (not values or (list(values) == ["folder"] and _is_flat(name, folder))):
        return worker, ()
    if not values:
        return None, ()
    # An unknown folder is a save_path as likely as a role: no reason to doubt what else is told.
    doubts = {s: role for s, role in values.items() if s != "folder" or roles.is_stage(role)}
    return next(iter(values.values())), _disagreement("role", doubts) if doubts else ()


def _is_flat(name: NameFacts, folder: str | None) -> bool:
    known = folder is not None and (roles.is_stage(folder) or folder in roles.WHOLE_STEP)
    return name.grammar in _FLAT and not known


def _is_role(folder: str) -> bool:
    """Whether a folder is called like a role that is known, or is that of a replica."""
    return roles.is_stage(folder) or folder in roles.WHOLE_STEP | roles.WORKERS


def _global_rank(
    rank: int | None,
    engine: bool,
    role: str | None,
    replica: int | None,
    world_size: int | None,
) -> int | None:
    """The trainer's own rank; for an engine verl's `replica * world_size + rank`."""
    if not engine or rank is None:
        return rank
    # Other engines than the policy's stand on GPUs that are counted elsewhere.
    if role != "agent_loop_rollout" or replica is None or world_size is None:
        return None
    found = replica * world_size + rank
    return found if rank < world_size and found <= INT32 else None


def _order(name: NameFacts) -> tuple[int, ...]:
    window = re.findall("[0-9]+", name.window or "")
    return (name.time or 0, *(int(text) for text in window if len(text) <= 19))


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
