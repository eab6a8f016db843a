"""What has to be said about single spans: their file was read in part, or nobody knows their time.

A row holds captures of many files. What is true of one of them is said of its own spans only.
"""

from collections.abc import Sequence

from rl_insight.visualizers.columns import Columns

Remarks = tuple[str, ...]


def of_spans(
    source: Sequence[str | None], clock_note: Sequence[str | None], sources: Columns
) -> list[Remarks]:
    """Sentences about each span; `source` and `clock_note` have one entry per span.

    `sources` is the table with at least source_id, status and detail.
    """
    columns = (sources.strings(name) for name in ("source_id", "status", "detail"))
    in_part = {
        source_id: f"Read in part: {detail or 'no reason was recorded'}"
        for source_id, status, detail in zip(*columns, strict=True)
        if status == "salvaged"
    }
    made: dict[tuple[str | None, str | None], Remarks] = {}
    for own, note in zip(source, clock_note, strict=True):
        if (own, note) not in made:
            told = (in_part.get(own), note)
            made[own, note] = tuple(_sentence(text) for text in told if text)
    return [made[key] for key in zip(source, clock_note, strict=True)]


def _sentence(text: str) -> str:
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", "…", "!", "?")) else f"{text}."
