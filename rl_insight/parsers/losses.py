"""What the trace reader lost, as one sentence for a person. Neutral to profilers."""

from rl_insight.problems import Problems

# The reader's words for a file that ends before the capture did.
_CUT = ("truncated", "gzip_truncated", "gzip_corrupt", "read_failed", "too_large")
_EMPTY = "empty_file"


def is_cut_short(problems: Problems) -> bool:
    """Whether the file ends before the capture did."""
    return any(code in problems for code in _CUT)


def why_empty(problems: Problems, events: int) -> str:
    """Why a trace of that many events gives nothing to draw."""
    if _EMPTY in problems:
        return "the file is empty"
    if not events:
        return "the trace holds no events"
    if events == 1:
        return "no timed events: its only event has no duration"
    return f"no timed events: none of its {events:,} events has a duration"


def cut_before_events(problems: Problems) -> str:
    """What became of a file that ends before its first event."""
    found = [one for one in problems if one.code in _CUT]
    at = max((one.offset for one in found if one.offset is not None), default=None)
    where = "" if at is None else f" after {_bytes(at)}"
    return f"the file breaks off{where}, before its events"


def lost(problems: Problems, events: int) -> str | None:
    """What the reader lost and how much is there; None when it lost nothing."""
    found = [one for one in problems if one.severity != "info" and one.code != _EMPTY]
    if not found:
        return None
    if not events and is_cut_short(problems):
        return cut_before_events(problems)
    kept = f"the {events:,} events that could be read are kept" if events else "nothing is left"
    if events == 1:
        kept = "the one event that could be read is kept"
    cut = next((one for one in found if one.code in _CUT), None)
    if cut is not None:
        where = "" if cut.offset is None else f" after {_bytes(cut.offset)} of unpacked text"
        return f"the file breaks off{where}; {kept}"
    worst = max(found, key=lambda one: one.count)
    where = "" if worst.offset is None else f", first at byte {worst.offset:,}"
    times = "once" if worst.count == 1 else f"{worst.count:,} times"
    return f"damaged ({worst.code}, {times}{where}); {kept}"


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count:,} bytes"
