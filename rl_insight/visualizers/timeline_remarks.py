"""What has to be said about single spans: their file was read in part, or nobody knows their time.

A row holds captures of many files. What is true of one of them is said of its own spans only.
"""

from collections.abc import Collection, Sequence

from rl_insight.visualizers import troubles
from rl_insight.visualizers.columns import Columns

Remarks = tuple[str, ...]

_UNMEASURED = "How busy the device was cannot be told: a part of its activity is lost"


def of_spans(
    source: Sequence[str | None],
    clock_note: Sequence[str | None],
    sources: Columns,
    unmeasured: Collection[int] = (),
) -> list[Remarks]:
    """Sentences about each span; `source` and `clock_note` have one entry per span.

    `sources` is the table with at least source_id, status, detail and problems. `unmeasured` are
    the places of the spans of which a part of the device's activity is lost.
    """
    columns = (sources.strings(name) for name in ("source_id", "status", "detail"))
    in_part = {
        source_id: f"Read in part: {detail or 'no reason was recorded'}"
        for source_id, status, detail in zip(*columns, strict=True)
        if status == "salvaged"
    }
    left_out = troubles.left_out(sources)
    made: dict[tuple[str | None, str | None, bool], Remarks] = {}
    keys = [
        (own, note, at in unmeasured)
        for at, (own, note) in enumerate(zip(source, clock_note, strict=True))
    ]
    for key in keys:
        if key not in made:
            own, note, lost = key
            told = (in_part.get(own), left_out.get(own), _UNMEASURED if lost else None, note)
            made[key] = tuple(_sentence(text) for text in told if text)
    return [made[key] for key in keys]


def _sentence(text: str) -> str:
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", "…", "!", "?")) else f"{text}."
