"""What a timeline says in words: the labels of its rows, its title, and what is missing."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePosixPath

from rl_insight.plain_text import count
from rl_insight.visualizers import timeline_missing
from rl_insight.visualizers.labels import LABEL_LIMIT, plain, shorten, utc
from rl_insight.visualizers.timeline_model import Lane, Timeline
from rl_insight.visualizers.troubles import TroubleList, losses, summarised

TITLE = "RL Timeline"
_FILE_LIMIT = 28
_NOUN = "file"
_EMPTY = "without timed events"


@dataclass(frozen=True, slots=True)
class Heading:
    """The lines above the picture; `facts` are joined by a dot, `lost` says
    what is missing, damaged or drawn at a doubtful time, and is None if nothing is."""

    title: str
    origin: str
    facts: tuple[str, ...]
    lost: str | None


def role_name(lane: Lane) -> str:
    """`actor_update`, or for a rollout replica `agent_loop_rollout_replica_1`."""
    return lane.role if lane.replica is None else f"{lane.role}_replica_{lane.replica}"


def row_labels(lanes: list[Lane]) -> list[str]:
    """The label of each lane's row, short, no two alike: `actor_update - Rank 2`."""
    seen: Counter[str] = Counter()
    labels = []
    for lane, file in zip(lanes, _files(lanes), strict=True):
        rank = _rank_words(lane, file)
        label = f"{plain(role_name(lane), max(LABEL_LIMIT - len(rank), 16))} - {rank}"
        seen[label] += 1
        labels.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return labels


def row_notes(lane: Lane) -> list[str]:
    """Sentences about a lane that its label has no room for."""
    notes = [] if lane.recorded else ["Nothing was recorded in this lane."]
    if lane.rank_id is None:
        notes.append("The rank is unknown: neither the file nor its name tells it.")
    if len(lane.hosts) > 1:
        names = ", ".join(plain(host, 40) for host in lane.hosts[:4])
        notes.append(f"Seen on {count(len(lane.hosts), 'host')}: {names}.")
    return notes


def clock_words(lane: Lane) -> str | None:
    """A sentence about a lane's clock, where there is anything to doubt about it."""
    note = lane.clock_note
    if not note:
        return None
    return f"{note[0].upper()}{note[1:]}{' (some of its captures)' if lane.clock_is_mixed else ''}."


def heading(timeline: Timeline) -> Heading:
    """Title, origin as a date, and how much is shown."""
    facts = [timeline_missing.rank_words(timeline)] if timeline.ranks else []
    if timeline.unknown_ranks:
        facts.append(f"{count(timeline.unknown_ranks, 'lane')} of unknown rank")
    if timeline.lanes:
        facts.append(count(timeline.recorded_lanes, "lane"))
        facts.append(_step_words(timeline))
    if any(lane.replica is not None for lane in timeline.lanes):
        # Beside a trainer's rank of the same number it reads as if one device had run both.
        facts.append("rollout ranks are counted inside their replica")
    lost = [
        *timeline_missing.losses(timeline.missing),
        *losses(timeline.troubles, _NOUN, _EMPTY),
    ]
    if timeline.misplaced:
        lost.append(_misplaced_words(timeline.misplaced))
    if timeline.clock_doubts:
        clocks = "a doubtful clock" if timeline.clock_doubts == 1 else "doubtful clocks"
        lost.append(f"{count(timeline.clock_doubts, _NOUN)} with {clocks}")
    drawn = timeline_missing.drawn_words(timeline.missing)
    facts += [drawn] if drawn else []
    return Heading(
        title=TITLE,
        origin=_origin_words(timeline),
        facts=tuple(facts),
        lost=", ".join(lost) or None,
    )


def troubles(timeline: Timeline) -> TroubleList | None:
    """What is missing, and the sources that gave less than they should; None when all were well."""
    listed = summarised(timeline.troubles, timeline.sources, _NOUN, _EMPTY)
    if listed is not None and timeline.misplaced:
        summary = f"{_misplaced_words(timeline.misplaced)}, {listed.summary}"
        listed = replace(listed, summary=summary)
    return timeline_missing.added_to(listed, timeline)


def _misplaced_words(files: int) -> str:
    clock = "its clock is" if files == 1 else "their clocks are"
    return f"{count(files, _NOUN)} drawn out of time: {clock} days off"


def nothing_to_draw(timeline: Timeline) -> str:
    """Why there is no picture, in one or two sentences."""
    if not timeline.sources:
        return "No spans to draw: no input file was found for this timeline."
    failed, empty = timeline.troubled("failed"), timeline.troubled("empty")
    # Whatever was left out on purpose could not have been drawn.
    files = timeline.sources - timeline.troubled("skipped")
    if failed and failed == files:
        if files == 1:
            return "No spans to draw: the only input file could not be read."
        return f"No spans to draw: none of {count(files, 'input file')} could be read."
    if empty and empty == files:
        if files == 1:
            return "No spans to draw: the only input file held no timed events."
        return f"No spans to draw: none of {count(files, 'input file')} held timed events."
    if failed or empty:
        parts = [f"{failed:,} could not be read"] if failed else []
        parts += [f"{empty:,} held no timed events"] if empty else []
        return f"No spans to draw: of {count(files, 'input file')}, {' and '.join(parts)}."
    return (
        f"No spans to draw: {count(timeline.sources, 'input file')} gave no stage or range. "
        "A filter on ranks, roles or steps may have left nothing."
    )


def _rank_words(lane: Lane, file: str) -> str:
    if lane.rank_id is not None:
        return f"Rank {lane.rank_id}"
    process = f", {shorten(lane.process, 24)}" if lane.process else ""
    return f"Rank ? (unknown: {file}{process})"


def _files(lanes: list[Lane]) -> list[str]:
    """For each lane its file's name; in rows of unknown rank that share one, what differs."""
    paths = [PurePosixPath(lane.sources[0] if lane.sources else "unknown file") for lane in lanes]
    names = [plain(path.name, _FILE_LIMIT) for path in paths]
    alike: dict[tuple[str, str], set[PurePosixPath]] = defaultdict(set)
    for lane, path, name in zip(lanes, paths, names, strict=True):
        if lane.rank_id is None:
            alike[role_name(lane), name].add(path)
    different: dict[PurePosixPath, str] = {}
    for group in alike.values():
        if len(group) > 1:
            different.update(_differences(group))
    return [
        different.get(path, name) if lane.rank_id is None else name
        for lane, path, name in zip(lanes, paths, names, strict=True)
    ]


def _differences(paths: Collection[PurePosixPath]) -> dict[PurePosixPath, str]:
    """What tells paths apart whose names are shown alike: `node1/…/trace.json`, or `…17_x.json`."""
    names = [path.name for path in paths]
    if len(set(names)) > 1:
        # Too long to be shown whole: from where they differ, which is near the end.
        start = _shared(names)
        return {path: plain(f"…{path.name[start:]}", _FILE_LIMIT) for path in paths}
    tail = _shared([path.parts[::-1] for path in paths])
    head = _shared([path.parts[:-tail] for path in paths])
    found = {}
    for path in paths:
        folder = "/".join(path.parts[head:-tail])
        gap = "…/" if tail > 1 else ""
        short = f"{plain(folder, 24)}/{gap}{plain(path.name, 20)}"
        found[path] = short if folder else plain(path.name, _FILE_LIMIT)
    return found


def _shared(sequences: Collection[Sequence[str]]) -> int:
    """With how many equal items all of them begin."""
    columns = zip(*sequences, strict=False)
    return sum(1 for _ in takewhile(lambda items: len(set(items)) == 1, columns))


def _step_words(timeline: Timeline) -> str:
    steps = timeline.steps
    if not steps:
        return "steps unknown"
    if len(steps) == 1:
        return f"1 step ({steps[0]})"
    contiguous = steps[-1] - steps[0] == len(steps) - 1
    return f"{len(steps):,} steps" + (f" ({steps[0]}–{steps[-1]})" if contiguous else "")


def _origin_words(timeline: Timeline) -> str:
    if not len(timeline.spans):
        return ""
    if timeline.origin_ns is None:
        return "the first capture (no wall clock known)"
    return utc(timeline.origin_ns)
