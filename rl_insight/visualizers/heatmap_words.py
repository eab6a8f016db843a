"""What a heatmap says in words: title, what is shown, how it was read, and what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rl_insight.plain_text import count
from rl_insight.schema import PHASES
from rl_insight.visualizers.heatmap_cells import Block
from rl_insight.visualizers.heatmap_model import UNKNOWN, Heatmap, LayerBalance, LoadKind
from rl_insight.visualizers.labels import SENTENCE_LIMIT, plain, shorten

TITLE = "GMM expert load"
_RECORDED_AS = {"gmm": "group_list", "sglang": "expert distribution recorder"}
_TOLD_BY = {
    "config": "set by heatmap.parser.group_list_type",
    "dump.json": "told by dump.json",
    "auto": "told by the numbers",
    "format": "told by the format",
    "assumed": "assumed",
}
_SHOWN_NOTES = 4
_SHOWN_ROLES = 3


@dataclass(frozen=True, slots=True)
class Heading:
    """The lines above the picture.

    `facts` say what is shown, `reading` how it was read, `key` is the figure to remember; `notes`
    are whole sentences; `lost` is None when all was read.
    """

    title: str
    facts: tuple[str, ...]
    reading: tuple[str, ...]
    key: str | None
    notes: tuple[str, ...]
    lost: str | None


def heading(heatmap: Heatmap) -> Heading:
    """All that stands above the picture of a heatmap that has rows."""
    ranks = heatmap.ranks
    who = f"rank={ranks[0]}" if len(ranks) == 1 else f"ranks={len(ranks)}" if ranks else "rank=?"
    rows = heatmap.rows
    title = (
        f"{_name(heatmap)} {who} — {count(len(rows), 'snapshot')}, {count(rows.experts, 'expert')}"
    )
    return Heading(
        title=title,
        facts=(_step_words(heatmap), _role_words(heatmap), _layer_words(heatmap), *_view(heatmap)),
        reading=(_kind_words(heatmap.kinds), *_reading(heatmap)),
        key=_key(heatmap),
        notes=notes(heatmap, _SHOWN_NOTES),
        lost=_lost(heatmap),
    )


def block_label(block: Block, limit: int) -> str:
    """`step 3 · actor_update · rank 5`, the role shortened where it is longer than `limit`."""
    parts = [_numbers("step", block.steps), plain(block.role or "unknown role", limit)]
    parts.append(_numbers("rank", block.ranks))
    if block.recording:
        parts.append(f"recording {block.recording}")
    if block.micro_batch is not None:
        unknown = block.micro_batch == UNKNOWN
        parts.append("batch ?" if unknown else f"batch {block.micro_batch}")
    if block.phase is not None:
        parts.append("phase ?" if block.phase == UNKNOWN else PHASES[block.phase])
    return " · ".join(parts)


def joined(blocks: Sequence[Block]) -> Block:
    """One block that stands for neighbouring `blocks` of one role."""
    return Block(
        steps=tuple(dict.fromkeys(step for block in blocks for step in block.steps)),
        role=blocks[0].role,
        ranks=tuple(dict.fromkeys(rank for block in blocks for rank in block.ranks)),
        micro_batch=None,
        phase=None,
    )


def nothing_to_draw(heatmap: Heatmap) -> str:
    """Why there is no picture, in one or two sentences."""
    head = "No expert load to draw: "
    if heatmap.recorded:
        hidden = heatmap.of_other_phases + heatmap.of_other_batches
        if hidden:
            return (
                f"{head}none of {count(heatmap.recorded, 'recorded call')} belongs to the "
                f"{heatmap.view.phase} phase. heatmap.visualizer.phase=all draws every phase."
            )
        return f"{head}none of {count(heatmap.recorded, 'recorded call')} holds an expert."
    if not heatmap.sources:
        return f"{head}no group list was found."
    failed = heatmap.troubled("failed")
    read = heatmap.sources - heatmap.troubled("skipped")
    if failed and failed == read:
        if read == 1:
            return f"{head}the only input could not be read."
        return f"{head}none of {count(read, 'input')} could be read."
    if failed:
        return f"{head}{failed:,} of {count(read, 'input')} could not be read, the rest is empty."
    return (
        f"{head}{count(heatmap.sources, 'input')} gave no group list. "
        "A filter on ranks, roles or steps may have left nothing."
    )


def notes(heatmap: Heatmap, most: int) -> tuple[str, ...]:
    """What is missing, and what the structure step decided or doubted, gravest first: at most so
    many sentences of each."""
    rank = {"error": 0, "warning": 1}
    lacking = [f"Missing: {plain(words, SENTENCE_LIMIT)}" for words in heatmap.missing[:most]]
    if (more := len(heatmap.missing) - most) > 0:
        lacking.append(f"+{count(more, 'more line')} of what is missing")
    sentences = []
    for note in sorted(heatmap.notes, key=lambda note: rank.get(note.severity, 2)):
        words = plain(note.example or str(note.code), SENTENCE_LIMIT)
        times = f" (and {note.count - 1:,} more such)" if note.count > 1 else ""
        sentences.append(shorten(words, SENTENCE_LIMIT) + times)
    rest = len(sentences) - most
    if rest > 0:
        return (
            *lacking,
            *sentences[:most],
            f"+{count(rest, 'more note')} in tables/expert_load.parquet",
        )
    return (*lacking, *sentences)


def _lost(heatmap: Heatmap) -> str | None:
    """How many inputs gave nothing, or not all that they should have."""
    inputs = count(heatmap.sources, "input")
    kinds = (("failed", "not read"), ("salvaged", "read in part"))
    numbers = [(heatmap.troubled(status), words) for status, words in kinds]
    # Of how many is said once.
    told = [f"{number:,} {words}" for number, words in numbers if number]
    if not told:
        return None
    first, _, words = told[0].partition(" ")
    return ", ".join([f"{first} of {inputs} {words}", *told[1:]])


def _name(heatmap: Heatmap) -> str:
    recorded = [_RECORDED_AS.get(name, name) for name in heatmap.recorders]
    return f"{TITLE} ({', '.join(recorded)})" if recorded else TITLE


def _numbers(what: str, numbers: Sequence[int | None]) -> str:
    """`rank 3`, `ranks 0–7`, `8 ranks` where they have gaps, `rank ?` where it is unknown."""
    known = sorted(number for number in numbers if number is not None)
    if not known:
        return f"{what} ?"
    if len(numbers) == 1:
        return f"{what} {known[0]}"
    if len(known) == len(numbers) == known[-1] - known[0] + 1:
        return f"{what}s {known[0]}–{known[-1]}"
    return f"{len(numbers):,} {what}s"


def _step_words(heatmap: Heatmap) -> str:
    steps: list[int | None] = list(dict.fromkeys(part.step for part in heatmap.segments))
    known = [step for step in steps if step is not None]
    if not known:
        return "step unknown"
    return _numbers("step", known) + (", and without a step" if len(known) < len(steps) else "")


def _role_words(heatmap: Heatmap) -> str:
    roles = heatmap.roles
    if not roles:
        return "role unknown"
    shown = [plain(role, 40) for role in roles[:_SHOWN_ROLES]]
    more = f" +{len(roles) - _SHOWN_ROLES} more" if len(roles) > _SHOWN_ROLES else ""
    return f"{', '.join(shown)}{more}"


def _layer_words(heatmap: Heatmap) -> str:
    layer = heatmap.rows.layer
    known = {int(number) for number in layer.tolist()} - {UNKNOWN}
    unknown = int((layer == UNKNOWN).sum())
    words = [count(len(known), "layer")] if known else []
    if unknown:
        words.append(
            f"{count(unknown, 'row')} by op index, as the order of the calls tells no layers"
        )
    return ", ".join(words)


def _view(heatmap: Heatmap) -> list[str]:
    """Which phase and micro-batch is shown, where any is known, and what is left out."""
    phases = heatmap.phases
    words = []
    if phases:
        words.append(f"{', '.join(phases)} phase{'s' if len(phases) > 1 else ''}")
    left_out = []
    if heatmap.of_other_phases:
        left_out.append("phase=all")
    if heatmap.of_other_batches:
        words.append("first micro-batch")
        left_out.append("micro_batch=all")
    if left_out:
        hidden = heatmap.of_other_phases + heatmap.of_other_batches
        keys = ", .".join(left_out)
        words.append(f"{count(hidden, 'more call')} with heatmap.visualizer.{keys}")
    return words


def _kind_words(kinds: Sequence[LoadKind]) -> str:
    if len(kinds) == 1:
        return f"the files hold {_one_kind(kinds[0])}"
    parts = [f"{_one_kind(kind)} in {count(kind.rows, 'call')}" for kind in kinds[:3]]
    more = f" +{len(kinds) - 3} more" if len(kinds) > 3 else ""
    return f"the files hold {'; '.join(parts)}{more}"


def _one_kind(kind: LoadKind) -> str:
    told = _TOLD_BY.get(kind.told_by or "", plain(kind.told_by or "unknown why", 40))
    return f"{plain(kind.kind or 'unknown numbers', 40)} ({told})"


def _reading(heatmap: Heatmap) -> list[str]:
    passes = heatmap.rows.passes
    words = []
    if (passes > 1).any():
        low, high = int(passes[passes > 1].min()), int(passes.max())
        number = count(high, "pass", "passes") if low == high else f"{low:,} to {high:,} passes"
        words.append(f"tokens of {number} are summed per layer")
    if heatmap.without_loads:
        words.append(f"{count(heatmap.without_loads, 'call')} without any expert")
    return words


def _key(heatmap: Heatmap) -> str | None:
    """The layer whose tokens are spread worst, and what is usual."""
    known = [(row.max_over_mean, row) for row in heatmap.balance if row.max_over_mean is not None]
    if not known or all(row.experts <= 1 for _, row in known):
        return None
    worst, row = max(known, key=lambda one: one[0])
    usual = median(ratio for ratio, _ in known)
    ranks = " over all ranks" if row.ranks > 1 else ""
    return (
        f"Fullest expert of a layer{ranks}: median {usual:.2f} × the layer's mean, "
        f"highest {worst:.2f} × ({_place(row, heatmap)})"
    )


def _place(row: LayerBalance, heatmap: Heatmap) -> str:
    parts = []
    if len(heatmap.steps) > 1 and row.step is not None:
        parts.append(f"step {row.step}")
    if len(heatmap.roles) > 1:
        parts.append(plain(row.role or "unknown role", 32))
    if row.layer is not None:
        parts.append(f"layer{row.layer}")
    elif row.op_index is not None:
        parts.append(f"op{row.op_index}")
    if row.argmax is not None:
        parts.append(f"expert {row.argmax}")
    return " · ".join(parts)
