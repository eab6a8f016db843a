"""One event of a `trace_view.json`, and what kind of thing it is, whichever process it stands in.

Sources: msprof's analysis/csrc/application/timeline (one `*_assembler.cpp` per process, each with
the arguments of its events) and torch_npu's _trace_event_manager.py (the host's side, which alone
has categories). The rows that name the processes come before or after the events, so that an event
has to be told by itself; only what says nothing (GUESS) waits for its process.
"""

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, ClassVar, Final, Union

import msgspec

from rl_insight.data import roles
from rl_insight.parsers.annotations import batch_of
from rl_insight.parsers.kernel_names import COMMUNICATION, COMPUTING
from rl_insight.parsers.mstx_capture import FREE
from rl_insight.parsers.op_names import OpNames

# A profiler may write anything anywhere: a field of an odd type must not cost its event. What is
# looked up must be hashable, what is only kept may be anything.
Scalar = str | int | float | bool | None


class MstxArgs(msgspec.Struct, gc=False):
    """The arguments that tell kinds of events apart, and those that are used; each costs time."""

    task_type: Scalar = msgspec.field(name="Task Type", default=None)
    sub_task: object = msgspec.field(name="task type", default=None)
    stream: object = msgspec.field(name="Physic Stream Id", default=None)
    event_type: object = None
    domain: object = None
    data_type: object = None
    count: object = None
    name: object = None
    labels: object = None
    sort_index: object = None


class MstxEvent(msgspec.Struct, gc=False):
    """The fields that matter, about in the order of the file; times in µs, as text or numbers."""

    ph: Scalar = None
    name: Scalar = None
    pid: Scalar = None
    tid: Scalar = None
    ts: Scalar = None
    dur: Scalar = None
    cat: Scalar = None
    args: MstxArgs | Scalar | list[msgspec.Raw] = None


class MstxEventExact(MstxEvent, gc=False):
    """The same for a file whose times are numbers with more digits than a double holds."""

    ts: Any = None
    dur: Any = None


class TimedEvent(msgspec.Struct, gc=False, tag="X", tag_field="ph"):
    """A MstxEvent of phase X, decoded quicker."""

    ph: ClassVar = "X"
    name: Scalar = None
    pid: Scalar = None
    tid: Scalar = None
    ts: Any = None
    dur: Any = None
    cat: Scalar = None
    args: MstxArgs | Scalar | list[msgspec.Raw] = None


class NamingEvent(msgspec.Struct, gc=False, tag="M", tag_field="ph"):
    """A MstxEvent of phase M, decoded quicker."""

    ph: ClassVar = "M"
    name: Scalar = None
    pid: Scalar = None
    tid: Scalar = None
    cat: Scalar = None
    args: MstxArgs | Scalar | list[msgspec.Raw] = None


class BeginEvent(msgspec.Struct, gc=False, tag="B", tag_field="ph"):
    """The beginning of a duration, whose end is another event.

    `cat` is None, whatever stands there, or `telling` would pass over it without its end.
    """

    ph: ClassVar = "B"
    cat: ClassVar = None
    name: Scalar = None
    pid: Scalar = None
    tid: Scalar = None
    ts: Any = None
    category: Scalar = msgspec.field(name="cat", default=None)
    args: MstxArgs | Scalar | list[msgspec.Raw] = None


class EndEvent(msgspec.Struct, gc=False, tag="E", tag_field="ph"):
    """The end of a duration."""

    ph: ClassVar = "E"
    cat: ClassVar = None
    name: Scalar = None
    pid: Scalar = None
    tid: Scalar = None
    ts: Any = None


# All other phases of the format (Google, "Trace Event Format"): more than half of a real file.
_PASSED_OVER = [
    msgspec.defstruct(
        f"Phase{number}", [], namespace={"ph": phase}, tag=phase, tag_field="ph", gc=False
    )
    for number, phase in enumerate("CsftiIbneSTpFPNODVvRc()")
]
QUICK_EVENT: Final = Union[(TimedEvent, NamingEvent, BeginEvent, EndEvent, *_PASSED_OVER)]
"""Any event of a healthy file; only those of the first four kinds are made of anything."""

_SAYS_SOMETHING: dict[type, bool] = {
    **dict.fromkeys((TimedEvent, NamingEvent, BeginEvent, EndEvent), True),
    **dict.fromkeys(_PASSED_OVER, False),
}

HOST: Final = 0
RANGE: Final = 1
"""A range that the host recorded."""
DEVICE_RANGE: Final = 2
"""The same as the device saw it, or a range of which nobody knows."""
OVERLAP: Final = 3
"""A row of the overlap analysis, if its process is called so."""
TASK: Final = 4
CALL: Final = 5
"""A call of a collective."""
GUESS: Final = 6
"""A task or call if its process is a device's, else the host's."""
IGNORED: Final = 7

# msprof, overlap_analysis_assembler.cpp. What is not overlapped is communication, too.
_UNITED = {
    "Computing": COMPUTING,
    "Communication": COMMUNICATION,
    "Communication(Not Overlapped)": COMMUNICATION,
}
_FREE = "Free"
_IS_OVERLAP = frozenset((*_UNITED, _FREE))
# Every function of every frame: named by file, line and function, and never a stage.
_CALL_OF_PYTHON = "python_function"
# `record_function` of PyTorch itself; torch_npu makes operations of it.
_ANNOTATION = "user_annotation"
# «AscendCL@aclrtMemcpyAsync», «Node@launch»: the host's calls of CANN's layers.
_CALL_OF_CANN = "@"
# Collectives are recorded as ranges, too, under this domain.
_NOT_STAGES = frozenset({"communication", "hccl"})
_MOST_NAMES = 100_000


class Wanted(dict[object, bool]):
    """Whether a name is that of a stage or a batch, whatever else its event is."""

    def __init__(self, path_role: str | None) -> None:
        super().__init__()
        self._role = None if path_role is None else roles.bare(path_role)

    def __missing__(self, name: object) -> bool:
        wanted = isinstance(name, str) and self._is_wanted(name)
        if len(self) < _MOST_NAMES:
            self[name] = wanted
        return wanted

    def _is_wanted(self, name: str) -> bool:
        role = roles.canonical(name)
        known = role in roles.STAGES or (role == self._role and role not in roles.WHOLE_STEP)
        return known or batch_of(name) != (None, None)


def telling(events: Sequence[MstxEvent], wanted: Wanted, with_host: bool) -> list[MstxEvent]:
    """The events that say something: they describe a process, or have a duration and are not HOST.

    `with_host` adds the latter. Most events of a file with stacks are the host's, so that they are
    passed over here, at once. Halves of a duration (B and E) stay, whoever's they are.
    """
    known: Iterable[MstxEvent]
    halves: list[MstxEvent] = []
    if isinstance(events[0], MstxEvent):
        known = [event for event in events if event.ph == "X" or event.ph == "M"]
        halves = [event for event in events if event.ph == "B" or event.ph == "E"]
    else:
        # Half of all events go here: `compress` and `map` pass them over without a step of Python.
        known = compress(events, map(_SAYS_SOMETHING.__getitem__, map(type, events)))
    told = [
        event
        for event in known
        if (category := event.cat) is None
        or with_host
        or (category != _CALL_OF_PYTHON and wanted[event.name])
        or category == _ANNOTATION
    ]
    return told + halves if halves else told


def completed(begin: MstxEvent | BeginEvent, duration: str | None) -> MstxEvent:
    """A beginning and how long it took (µs) as one event with a duration."""
    category = begin.category if isinstance(begin, BeginEvent) else begin.cat
    return MstxEvent(
        "X", begin.name, begin.pid, begin.tid, begin.ts, duration, category, begin.args
    )


def kinds_of(events: Sequence[MstxEvent], wanted: Wanted) -> list[int]:
    """What each of `events`, which have a duration, is."""
    return [
        TASK
        # Most are: no call for them.
        if (args := event.args).__class__ is MstxArgs
        and args.task_type is not None
        and event.cat is None
        else kind_of(event, wanted)
        for event in events
    ]


def kind_of(event: MstxEvent, wanted: Wanted) -> int:
    """What `event`, which has a duration, is."""
    name = event.name
    if event.cat is not None:
        return RANGE if wanted[name] or event.cat == _ANNOTATION else HOST
    args = event.args
    if isinstance(args, MstxArgs):
        if args.task_type is not None:
            return TASK
        if args.sub_task is not None:
            return IGNORED
        if args.event_type is not None:
            return _kind_of_range(args)
        if args.data_type is not None:
            return CALL
        if args.stream is not None:
            return DEVICE_RANGE if wanted[name] else IGNORED
    if name in _IS_OVERLAP:
        return OVERLAP
    if isinstance(name, str) and _CALL_OF_CANN in name:
        return HOST
    return DEVICE_RANGE if wanted[name] else GUESS


def united_codes(names: OpNames) -> dict[Scalar, int]:
    """The code of each row of the overlap analysis: that of united time of its class, or FREE."""
    return {
        _FREE: FREE,
        **{name: names.united(category) for name, category in _UNITED.items()},
    }


def is_library_domain(domain: object) -> bool:
    """Whether ranges of that mstx domain are a library's own: they are no stages."""
    return isinstance(domain, str) and domain.lower() in _NOT_STAGES


def _kind_of_range(args: MstxArgs) -> int:
    if isinstance(args.event_type, str) and args.event_type.startswith("marker"):
        return IGNORED
    return HOST if is_library_domain(args.domain) else RANGE
