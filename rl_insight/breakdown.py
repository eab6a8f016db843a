"""What a device did in a window of time: computing, communication, copies, nothing.

window = computing + communication - overlapped + memory + free, exactly (integers).

Definition: the intervals of each class are united. Computing and communication count in full,
`overlapped` is their intersection, `memory` is the part of the copies that neither covers, and
`free` is what nothing covers. This is the breakdown of HolisticTraceAnalysis
(hta/analyzers/breakdown_analysis.py), except that there the window is that of the device's first to
last activity, here that of the stage.
"""

from dataclasses import dataclass

from rl_insight.intervals import EMPTY, Intervals, clip, merged, overlap


@dataclass(frozen=True, slots=True)
class Busy:
    """United intervals of one device by class, in nanoseconds; the classes may overlap."""

    computing: Intervals = EMPTY
    communication: Intervals = EMPTY
    memory: Intervals = EMPTY


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The breakdown of one window, in nanoseconds.

    `device_start_ns` and `device_end_ns` are the first and last activity inside the window, None
    where there is none.
    """

    window_ns: int = 0
    device_start_ns: int | None = None
    device_end_ns: int | None = None
    computing_ns: int = 0
    communication_ns: int = 0
    overlapped_ns: int = 0
    memory_ns: int = 0
    free_ns: int = 0

    def __add__(self, later: "Breakdown") -> "Breakdown":
        """The breakdown of this window and the `later` one that follows it, together."""
        return Breakdown(
            self.window_ns + later.window_ns,
            later.device_start_ns if self.device_start_ns is None else self.device_start_ns,
            self.device_end_ns if later.device_end_ns is None else later.device_end_ns,
            self.computing_ns + later.computing_ns,
            self.communication_ns + later.communication_ns,
            self.overlapped_ns + later.overlapped_ns,
            self.memory_ns + later.memory_ns,
            self.free_ns + later.free_ns,
        )


def measure(busy: Busy, low: int, high: int) -> Breakdown:
    """The breakdown of the window [low, high)."""
    computing = clip(busy.computing, low, high)
    communication = clip(busy.communication, low, high)
    memory = clip(busy.memory, low, high)
    overlapped = overlap(computing, communication)
    active = merged(computing, communication, memory)
    at_work = computing.total + communication.total - overlapped
    return Breakdown(
        window_ns=high - low,
        device_start_ns=int(active.starts[0]) if len(active) else None,
        device_end_ns=int(active.ends[-1]) if len(active) else None,
        computing_ns=computing.total,
        communication_ns=communication.total,
        overlapped_ns=overlapped,
        memory_ns=active.total - at_work,
        free_ns=(high - low) - active.total,
    )
