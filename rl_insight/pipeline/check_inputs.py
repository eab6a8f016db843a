"""What `rl-insight check` knows of one input: whose it is, and whether its files are whole.

Only the ends of files are read, and the small JSON files beside a capture.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from rl_insight.data import identity, packings
from rl_insight.data.ailment import Ailment
from rl_insight.data.coverage import Recorded
from rl_insight.data.health import LEFTOVERS, Health, look
from rl_insight.data.identity import Identity, UserRules
from rl_insight.data.tree import File, Tree
from rl_insight.parsers import Found, Parser, mstx_metadata
from rl_insight.parsers.gmm_names import GROUP_LIST
from rl_insight.pipeline.check_state import Ailments, State, state_of, verdict
from rl_insight.problems import LEFTOVER, PACKED_OTHERWISE, Problems
from rl_insight.readers.sqlite import MAGIC as SQLITE_MAGIC

# A string that holds this has a backslash before each quote.
_DISTRIBUTED = re.compile(rb'(?<!\\)"distributedInfo"\s*:\s*(\{[^{}]*\})')

_STATISTICS = Ailment(
    "statistics_only",
    "the dump has statistics and no tensors: dump again with msprobe's task «tensor»",
)
_NOT_EXPORTED: Mapping[tuple[str, State], Ailment] = {
    ("mstx", "raw"): Ailment("not_exported", "was never analysed; rl-insight preprocess does it"),
    ("nvtx", "raw"): Ailment("not_exported", "was not exported; rl-insight preprocess does it"),
    ("mstx", "hopeless"): Ailment(
        "nothing_to_export", "has no result, and neither FRAMEWORK nor PROF_* to make one of"
    ),
    ("nvtx", "hopeless"): Ailment(
        "nothing_to_export", "nsys was ended before it made a report of this recording"
    ),
}
# Those that leave what is packed by its name unopened.
_BY_NAME = ("mstx", "nvtx", "gmm", "sglang")
WORKER_PROCESS = "worker_process"
"""What Ray calls the process of each capture of nsys that tells no role."""

_LEFTOVER = Ailment(LEFTOVER, "was left by a killed writer or copier", harmless=True)


class _Told(msgspec.Struct, gc=False):
    rank: int | str | None = None
    world_size: int | str | None = None


_TOLD = msgspec.json.Decoder(_Told, strict=False)


@dataclass(frozen=True, slots=True)
class Checked:
    """One input: `ailments` pair a relative path with what is wrong there.

    `state` is `raw` for what has to be exported first, `hopeless` for what never can be, `empty`
    and `unreadable` where no file of it can be used, `damaged` where anything is lost, and
    `growing` while it is written. `gives` is False when nothing of it would be drawn. `formats` are
    those of its files, gzip apart: `json.gz`. Sizes in bytes, times in ns.
    """

    path: str
    parser: str
    preset: str
    state: State
    gives: bool
    who: Identity
    formats: tuple[str, ...]
    files: int
    size_bytes: int
    mtime_ns: int
    ailments: tuple[tuple[str, Ailment], ...] = ()

    @property
    def recorded(self) -> Recorded:
        """What it is to the grid of roles, steps and ranks."""
        who = self.who
        role = who.role
        if role is None and self.parser == "nvtx" and who.rank_id is not None:
            # The stages are inside; that the process was recorded is known without them.
            role = WORKER_PROCESS
        # Of what is being written nothing is lost, though nothing may be there yet.
        gives = self.gives or self.state == "growing"
        return Recorded(role, who.replica, who.rank_id, who.step, who.world_size, gives)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all inputs of one folder have in common.

    `raw` has the captures that cannot be read as they are, `files` is the listing by path.
    """

    tree: Tree
    files: Mapping[str, File]
    raw: Mapping[str, State]
    rules: UserRules
    root_name: str


def check_input(found: Found, parser: Parser, around: Surroundings) -> Checked:
    """Look at one input; never raises for what is in it."""
    files = [around.files[path] for path in found.files]
    root = os.fspath(around.tree.root)
    looked = [(file, look(f"{root}/{file.path}")) for file in files]
    ailments = [(file.path, one) for file, health in looked for one in health.ailments]
    ailments += [(file.path, _LEFTOVER) for file in files if file.name.endswith(LEFTOVERS)]
    ailments = [*_packed(found, parser, ailments)]
    state, gives = state_of(looked, ailments), False
    # A capture that is the input itself is called by one of its files.
    known = around.raw.get(found.path) or (parser.name == "mstx" and around.raw.get("."))
    if known:
        state = known
        ailments.append((found.path, _NOT_EXPORTED[parser.name, state]))
    elif parser.name == "gmm" and not any(map(_is_group_list, files)):
        state = "hopeless"
        ailments.append((found.path, _STATISTICS))
    else:
        state, gives, ailments = verdict(found, parser, around.tree, looked, ailments)
    return Checked(
        path=found.path,
        parser=parser.name,
        preset=parser.preset,
        state=state,
        gives=gives,
        who=identity.resolve(
            found.path, _metadata(found, parser, around, looked), around.rules, around.root_name
        ),
        formats=tuple(sorted({_format(health) for _, health in looked})),
        files=len(files),
        size_bytes=sum(file.size_bytes for file in files),
        mtime_ns=max((file.mtime_ns for file in files), default=0),
        ailments=tuple(ailments),
    )


def _is_group_list(file: File) -> bool:
    """Whether a file of a dump may hold group lists, be they packed."""
    return file.name.endswith(GROUP_LIST) or packings.split(file.name)[1] != ""


def _packed(found: Found, parser: Parser, ailments: Ailments) -> Iterator[tuple[str, Ailment]]:
    """The `ailments` of an input, and whatever of it is packed by its name and so is not read.

    Of a trace of torch the content decides, and other packages may read what these do not.
    """
    by_name = [file for file in found.files if packings.split(file)[1]]
    if parser.name not in _BY_NAME:
        by_name = []
    for path, one in ailments:
        if path not in by_name or one.code == LEFTOVER:
            yield path, one
    for path in by_name:
        there_too = packings.split(path)[0] in found.files
        yield path, Ailment(PACKED_OTHERWISE, f"is {packings.why_not_read(path)}", there_too)


def _format(health: Health) -> str:
    name = {"json lines": "jsonl"}.get(health.format, health.format)
    return f"{name}.gz" if health.packed else name


def _metadata(
    found: Found, parser: Parser, around: Surroundings, looked: list[tuple[File, Health]]
) -> Mapping[str, object]:
    """What the input says of itself, in the keys of `identity.resolve`."""
    if parser.name == "torch":
        return _of_trace(looked[0][1]) if looked else {}
    if parser.name == "mstx":
        told = mstx_metadata.read(around.tree.root, found.files, Problems())
        names = ("role", "step", "world_size", "tp", "pp", "dp", "ep")
        return {"rank_id": told.rank(Problems()), **{name: getattr(told, name) for name in names}}
    if parser.name == "nvtx":
        from rl_insight.parsers import nvtx_peek  # it needs numpy

        ends = [text for _, health in looked[:1] for text in (health.head, health.tail)]
        return nvtx_peek.told(around.tree.root, found.path, found.files, ends)
    return found.peek() if found.peek is not None else {}


def _of_trace(health: Health) -> Mapping[str, object]:
    """Rank and world size of a trace, which stand before its events or behind them."""
    if health.head.startswith(SQLITE_MAGIC):
        return {}
    before = health.head.partition(b'"traceEvents"')[0]
    # Behind the events there are none: what stands among them is some event's own.
    behind = health.tail.rpartition(b'"ph"')[2]
    for text in (before, behind):
        for match in _DISTRIBUTED.finditer(text):
            try:
                told = _TOLD.decode(match[1])
            except (msgspec.DecodeError, ValueError):
                continue
            return {"rank_id": told.rank, "world_size": told.world_size}
    return {}
