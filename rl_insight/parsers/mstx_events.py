"""One event of a `trace_view.json`, and what kind of thing it is, whichever process it stands in.

Sources: msprof's analysis/csrc/application/timeline (one `*_assembler.cpp` per process, each with
the arguments of its events) and torch_npu's _trace_event_manager.py (the host's side, which alone
has categories). The rows that name the processes come before or after the events, so that an event
has to be told by itself; only what says nothing (GUESS) waits for its process.
"""

from typing import Any, Final

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
    """The arguments that tell kinds of events apart, and those that are used."""

    task_type: Scalar = msgspec.field(name="Task Type", default=None)
    sub_task: object = msgspec.field(name="task type", default=None)
    stream: object = msgspec.field(name="Physic Stream Id", default=None)
    level: object = None
    event_type: object = None
    domain: object = None
    data_type: object = None
    alg_type: object = None
    count: object = None
    name: object = None
    labels: object = None
    sort_index: object = None


class MstxEvent(msgspec.Struct, gc=False):
    """The fields that matter; times in µs, as text or as numbers."""

    ph: Scalar = None
    cat: Scalar = None
    name: Scalar = None
    pid: Scalar = None
    tid: Scalar = None
    ts: Scalar = None
    dur: Scalar = None
    args: MstxArgs | Scalar | list[msgspec.Raw] = None


class MstxEventExact(MstxEvent, gc=False):
    """The same for a file whose times are numbers with more digits than a double holds."""

    ts: Any = None
    dur: Any = None


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


def kind_of(event: MstxEvent, wanted: Wanted) -> int:
    """What `event`, which has a duration, is."""
    if event.cat is not None:
        return RANGE if wanted[event.name] or event.cat == "user_annotation" else HOST
    args = event.args
    if isinstance(args, MstxArgs):
        if args.task_type is not None:
            return TASK
        if args.sub_task is not None:
            return IGNORED
        if args.event_type is not None:
            return _kind_of_range(args)
        if args.data_type is not None or args.alg_type is not None:
            return CALL
        if args.level is not None:
            return HOST
        if args.stream is not None:
            return DEVICE_RANGE if wanted[event.name] else IGNORED
    if event.name in _IS_OVERLAP:
        return OVERLAP
    return DEVICE_RANGE if wanted[event.name] else GUESS


def united_code(name: Scalar, names: OpNames) -> int:
    """The code of a row of the overlap analysis: that of united time of its class, or FREE."""
    category = _UNITED.get(str(name))
    return FREE if category is None else names.united(category)


def is_library_domain(domain: object) -> bool:
    """Whether ranges of that mstx domain are a library's own: they are no stages."""
    return isinstance(domain, str) and domain.lower() in _NOT_STAGES


def _kind_of_range(args: MstxArgs) -> int:
    if isinstance(args.event_type, str) and args.event_type.startswith("marker"):
        return IGNORED
    return HOST if is_library_domain(args.domain) else RANGE
