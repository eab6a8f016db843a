"""One wall clock for all lanes.

Lanes whose capture knows Unix time stay as they are. Lanes that know only a clock of their own
(counting from an unknown start) are shifted together, so that the first of them begins with the
first lane that knows the time; alone, they keep their own times. Nothing else is ever shifted.
"""

from collections.abc import Sequence


def offsets(clocks: Sequence[str | None], starts_ns: Sequence[int | None]) -> list[int]:
    """What to add to each lane's times, in ns, from its `clock` and raw capture start."""
    known = [at for clock, at in zip(clocks, starts_ns, strict=True) if clock == "utc" and at]
    relative = [
        at
        for clock, at in zip(clocks, starts_ns, strict=True)
        if clock == "relative" and at is not None
    ]
    if not known or not relative:
        return [0] * len(clocks)
    shift = min(known) - min(relative)
    return [shift if clock == "relative" else 0 for clock in clocks]
