"""What is missing on a timeline, in words: for its title, its list, and what the pointer shows."""

from collections.abc import Sequence

from rl_insight.data.coverage_words import ranges
from rl_insight.plain_text import count
from rl_insight.visualizers.labels import SENTENCE_LIMIT, plain
from rl_insight.visualizers.timeline_model import Gap, Lane, Missing, Timeline
from rl_insight.visualizers.troubles import TroubleList

NOT_RECORDED = "not recorded"
_SHOWN = 100


def rank_words(timeline: Timeline) -> str:
    """`1,024 ranks`, or `1,022 of 1,024 ranks` where nothing is there of two."""
    if not timeline.missing.ranks:
        return count(timeline.ranks, "rank")
    return f"{timeline.ranks:,} of {count(timeline.ranks + timeline.missing.ranks, 'rank')}"


def losses(missing: Missing) -> list[str]:
    """How much is missing, in words; nothing where nothing is."""
    if not missing.cells:
        return []
    return [f"{missing.cells:,} of {count(missing.expected, 'capture')} missing"]


def drawn_words(missing: Missing) -> str | None:
    """How many of the gaps are drawn, where not all are."""
    if not missing.more_gaps:
        return None
    every = len(missing.gaps) + missing.more_gaps
    return f"{len(missing.gaps):,} of {every:,} gaps drawn"


def added_to(listed: TroubleList | None, timeline: Timeline) -> TroubleList | None:
    """The list of troubled sources with what is missing in front of them; None without either."""
    missing = timeline.missing
    if not missing.sentences:
        return listed
    summary = losses(missing) or ["what is missing cannot be told of every role"]
    if missing.ranks:
        summary.insert(0, rank_words(timeline))
    shown = tuple(
        (("missing" if missing.cells else "unclear"), "", plain(sentence, SENTENCE_LIMIT))
        for sentence in missing.sentences[:_SHOWN]
    )
    rest = len(missing.sentences) - len(shown)
    more = [f"… and {rest:,} more of what is missing."] if rest else []
    more += _undrawn(missing)
    if listed is not None:
        summary.append(listed.summary)
        more += [listed.more] if listed.more else []
    return TroubleList(
        ", ".join(summary),
        shown + (listed.shown if listed else ()),
        " ".join(more) or None,
        calm=not missing.cells and (listed is None or listed.calm),
    )


def about(gap: Gap, lane: Lane) -> str:
    """What a gap is: `not recorded: actor_update, step 2, rank 1`."""
    kind = "nothing could be used" if gap.reasons else NOT_RECORDED
    role = plain(lane.role if lane.replica is None else f"{lane.role}_replica_{lane.replica}")
    parts = [role]
    if gap.steps:
        parts.append(_listed("step", gap.steps))
    elif gap.captures:
        parts.append(_listed("capture", [capture + 1 for capture in gap.captures]))
    return f"{kind}: {', '.join([*parts, f'rank {lane.rank_id}'])}"


def _undrawn(missing: Missing) -> list[str]:
    lines = []
    if missing.more_gaps:
        lines.append(f"{drawn_words(missing)}: the others are only counted.")
    if missing.unplaced:
        lines.append(
            f"{count(missing.unplaced, 'missing capture')} cannot be drawn: no other rank shows "
            "when it would have been."
        )
    return lines


def _listed(noun: str, numbers: Sequence[int]) -> str:
    return f"{noun}{'' if len(numbers) == 1 else 's'} {ranges(numbers)}"
