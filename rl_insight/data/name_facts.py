"""What one name can say about a capture, and how its numbers are read."""

from dataclasses import dataclass

INT32 = 2**31 - 1
INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class NameFacts:
    """What one name says; None is unknown. `role` and `prefix` are raw labels.

    `rank_is_local` is True when the rank counts inside a rollout engine. `time` orders the captures
    of one process: digits as in the name, local time or Unix time, comparable only among names of
    one grammar. `window` is the part of a capture: `mb0-3`, `part1`, `cycle2`, `range3`.
    """

    grammar: str | None = None
    prefix: str | None = None
    role: str | None = None
    rank: int | None = None
    rank_is_local: bool | None = None
    global_rank: int | None = None
    world_size: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    cp: int | None = None
    ep: int | None = None
    step: int | None = None
    replica: int | None = None
    host: str | None = None
    pid: int | None = None
    time: int | None = None
    window: str | None = None


NOTHING = NameFacts()


def number(text: str | None, largest: int = INT64) -> int | None:
    """`text` as a number; None when there is none, or when it is larger than `largest`."""
    if text is None or len(text) > 19:
        return None
    value = int(text)
    return value if value <= largest else None


def digits(text: str) -> bool:
    """Whether `text` is made of ASCII digits, at least one."""
    return text.isascii() and text.isdigit()


def unix_time(text: str) -> int | None:
    """Unix time in ns of seconds with or without decimals."""
    seconds, _, decimals = text.partition(".")
    if not digits(seconds) or (decimals and not digits(decimals)):
        return None
    return number(seconds + decimals[:9].ljust(9, "0"))


def whole(value: object, largest: int = INT64) -> int | None:
    """A count from 0 to `largest` that stands as a number or, as torch_npu's rank, as text."""
    if isinstance(value, str):
        text = value.strip()
        return number(text, largest) if digits(text) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= largest else None
