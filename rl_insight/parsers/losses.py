"""What the trace reader lost, as one sentence for a person. Neutral to profilers."""

from rl_insight.problems import (
    JOURNAL_UNREAD,
    LEFTOVER,
    PACKED_OTHERWISE,
    READ_FAILED,
    Problem,
    Problems,
)

# The reader's words for a file that ends before the capture did.
_CUT = ("truncated", "gzip_truncated", "gzip_corrupt", READ_FAILED, "too_large")
_EMPTY = "empty_file"
# What costs one event each.
_SINGLE = ("line_undecodable", "line_too_large", "event_undecodable", "event_too_large")
# So few, or one in so many, change no breakdown that anybody reads.
_A_FEW, _SHARE = 10, 1_000
# What a count of them is called: of one, of several.
_WORDS = {
    "line_undecodable": ("a line cannot be read", "lines cannot be read"),
    "line_too_large": ("a line is too long to be read", "lines are too long to be read"),
    "event_undecodable": ("an event cannot be read", "events cannot be read"),
    "event_too_large": ("an event is too large to be read", "events are too large to be read"),
    "field_dropped": ("a value cannot be read", "values cannot be read"),
    "metadata_damaged": ("the metadata is damaged", "parts of the metadata are damaged"),
    "metadata_undecodable": (
        "a value of the metadata cannot be read",
        "values of the metadata cannot be read",
    ),
    "metadata_too_large": (
        "a value of the metadata is too large",
        "values of the metadata are too large",
    ),
    "events_not_a_list": ("its events are no list", "lists of events are none"),
    "trailing_data": (
        "something follows the end of the trace",
        "parts follow the end of the trace",
    ),
    "gzip_trailing": (
        "something else follows the packed data",
        "parts follow the packed data that are something else",
    ),
    "leading_data": ("something else stands before the trace",) * 2,
    "concatenated": ("a second trace follows the first", "more traces follow the first"),
}
_NO_TIME = ("no_time", "zero_time", "negative_time", "bad_timestamp")
# Those of which the example says what is damaged.
_OF_TABLES = (
    "table_damaged",
    "table_missing",
    "column_missing",
    "column_odd",
    JOURNAL_UNREAD,
    LEFTOVER,
    PACKED_OTHERWISE,
)


def is_cut_short(problems: Problems) -> bool:
    """Whether the file ends before the capture did."""
    return any(code in problems for code in _CUT)


def is_in_part(problems: Problems, count: int) -> bool:
    """Whether more is lost than a few of the file's `count` events, or whatever it holds.

    Then nobody knows how long the device was busy: events come in the order of the file, not of
    time, so that what is lost may be from anywhere.
    """
    if is_cut_short(problems) or JOURNAL_UNREAD in problems:
        return True
    left = (LEFTOVER, PACKED_OTHERWISE)
    if any(one.code in left and one.severity != "info" for one in problems):
        return True
    single = sum(problems.count(code) for code in _SINGLE)
    return single > max(_A_FEW, count // _SHARE)


def why_empty(problems: Problems, events: int) -> str:
    """Why a trace of that many events gives nothing to draw."""
    if _EMPTY in problems:
        return "the file is empty"
    if not events:
        return "the trace holds no events"
    impossible = [one for one in problems if one.code in _NO_TIME]
    if impossible:
        count = sum(one.count for one in impossible)
        such = next((f", such as {one.example}" for one in impossible if one.example), "")
        return f"no timed events: {count:,} of its {events:,} events have an impossible time{such}"
    if events == 1:
        return "no timed events: its only event has no duration"
    return f"no timed events: none of its {events:,} events has a duration"


def cut_before_events(problems: Problems, noun: str = "event") -> str:
    """What became of a file that ends before its first event, or whatever `noun` it holds."""
    found = [one for one in problems if one.code in _CUT]
    at = max((one.offset for one in found if one.offset is not None), default=None)
    where = "" if at is None else f" after {_bytes(at)}"
    return f"the file breaks off{where}, before its {noun}s"


def lost(
    problems: Problems, count: int, noun: str = "event", writer: str | None = None
) -> str | None:
    """What the reader lost and how much is there; None when it lost nothing.

    `count` is how many events, or whatever `noun` the file holds, could be read; `writer` says
    which version of the profiler wrote it, where that is known.
    """
    found = [one for one in problems if one.severity != "info" and one.code != _EMPTY]
    if not found:
        return None
    if not count and is_cut_short(problems):
        return cut_before_events(problems, noun)
    kept = all_that_could_be_read(count, noun)
    cut = next((one for one in found if one.code in _CUT), None)
    if cut is not None and cut.code == "too_large":
        return f"{cut.example}; {kept}"
    if cut is not None:
        where = "" if cut.offset is None else f" after {_bytes(cut.offset)} of unpacked text"
        return f"the file breaks off{where}; {kept}"
    worst = max(found, key=lambda one: one.count)
    damage = worst.example if worst.code in _OF_TABLES else _in_words(worst)
    return f"damaged: {damage}{f' ({writer})' if writer else ''}; {kept}"


def all_that_could_be_read(count: int, noun: str = "event") -> str:
    """What is left of a damaged file: `the 7 events that could be read are kept`."""
    if count == 1:
        return f"the one {noun} that could be read is kept"
    return f"the {count:,} {noun}s that could be read are kept" if count else "nothing is left"


def _in_words(problem: Problem) -> str:
    """What happened, how often and where: `3 lines cannot be read, the first at byte 1,168`."""
    number = problem.count
    what = problem.code.replace("_", " ")
    words = f"{what}, {number:,} times" if number > 1 else what
    if problem.code in _WORDS:
        one, several = _WORDS[problem.code]
        words = one if number == 1 else f"{number:,} {several}"
    if problem.offset is None:
        return words
    return f"{words}, {'at' if number == 1 else 'the first at'} byte {problem.offset:,}"


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count:,} bytes"
