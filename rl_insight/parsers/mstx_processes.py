"""The processes of a `trace_view.json`: one for each layer and device, named by rows of their own.

Source: msprof's json_assembler.cpp. `pid` is `<os pid> << 10 | <sort index of the layer> << 5 |
<device>`, the label of a device's process «NPU <device>», in older versions «NPU» alone.
"""

import re
from collections.abc import Iterable

from rl_insight.parsers.collectives import count_of
from rl_insight.parsers.mstx_capture import AscendDevice
from rl_insight.parsers.mstx_events import MstxArgs, MstxEvent, Scalar
from rl_insight.parsers.op_names import OpNames

OVERLAP_ANALYSIS = "Overlap Analysis"
# Between the process, the thread and the hash that tell a group until threads have names.
_AND = "\0"

# «HCCL» until CANN 8.0, «Communication» since.
_DEVICE_LAYERS = frozenset({"Ascend Hardware", "Communication", "HCCL"})
_HOST = "Python"

_LABEL = re.compile(r"NPU\s*([0-9]{1,9})")
_GROUP = re.compile(r"Group (.+) Communication")
_HOST_DEVICE = 31
# Linux numbers no process higher (PID_MAX_LIMIT, include/linux/threads.h).
_LARGEST_PID = 1 << 22
_MOST_THREADS = 10_000
_LONGEST = 200


class Process:
    """One process: what is known of it, and what its events said."""

    def __init__(self, pid: Scalar, names: OpNames) -> None:
        self.pid = pid
        self.name: str | None = None
        self._label: str | None = None
        self._sort_index: int | None = None
        self._threads: dict[str, str] = {}
        self.device = AscendDevice(names)
        """What its events are for certain."""
        self.overlap = AscendDevice(names)
        """What they are if this is the overlap analysis."""
        self.guess = AscendDevice(names)
        """What they are if this is a device's."""

    def describe(self, event: MstxEvent) -> None:
        """Take a row (phase M) that names the process or one of its threads."""
        args = event.args
        if not isinstance(args, MstxArgs):
            return
        if event.name == "process_name" and isinstance(args.name, str):
            self.name = self.name or args.name[:_LONGEST]
        elif event.name == "process_labels" and isinstance(args.labels, str):
            self._label = self._label or args.labels[:_LONGEST]
        elif event.name == "process_sort_index":
            self._sort_index = count_of(args.sort_index)
        elif event.name == "thread_name":
            self._name_thread(event.tid, args.name)

    def _name_thread(self, tid: Scalar, name: object) -> None:
        if isinstance(name, str) and len(self._threads) < _MOST_THREADS:
            self._threads[str(tid)] = name[:_LONGEST]

    def group(self, tid: str) -> str | None:
        """The communication group that a thread, by the text of its number, stands for."""
        match = _GROUP.fullmatch(self._threads.get(tid, ""))
        # Older versions count the groups, each rank for itself.
        return None if match is None or match[1].isdigit() else match[1]

    @property
    def device_number(self) -> int | None:
        """The device that this process is a layer of."""
        match = _LABEL.search(self._label or "")
        if match is not None:
            return int(match[1])
        pid = count_of(self.pid)
        if pid is None or self._sort_index is None or (pid >> 5) & 31 != self._sort_index:
            return None
        return None if pid & 31 == _HOST_DEVICE else pid & 31

    @property
    def encoded_pid(self) -> int | None:
        """The traced process's number that the number of a device's layer holds."""
        pid = count_of(self.pid)
        if pid is None or self.device_number != pid & 31:
            return None
        if self._sort_index is not None and (pid >> 5) & 31 != self._sort_index:
            return None
        return pid >> 10 or None

    @property
    def is_numbered_like_a_layer(self) -> bool:
        """Whether its number holds its sort index, which for 0 would say little."""
        pid = count_of(self.pid)
        return bool(self._sort_index) and pid is not None and (pid >> 5) & 31 == self._sort_index

    @property
    def is_device(self) -> bool:
        """Whether this is a layer of a device, so that events without arguments are its tasks."""
        return self.name in _DEVICE_LAYERS

    @property
    def is_analysis(self) -> bool:
        """Whether this is the overlap analysis; one that has lost its name is known by its rows."""
        return self.name in (OVERLAP_ANALYSIS, None) and self.overlap.is_analysed

    @property
    def is_host(self) -> bool:
        """Whether this is the traced program itself."""
        return self.name == _HOST


def host_pid(processes: Iterable[Process]) -> int | None:
    """The number that the system gave to the process that was traced; None where it is uncertain.

    The program's own rows have that number, and those of a device's layers hold it. Where the
    program's rows are numbered like a layer too, the other layers tell whether that is so.
    """
    layers = list(processes)
    derived = {pid for one in layers if not one.is_host and (pid := one.encoded_pid)}
    host = next((one for one in layers if one.is_host and count_of(one.pid)), None)
    own = None if host is None else count_of(host.pid)
    if host is None or own is None:
        return derived.pop() if len(derived) == 1 else None
    if own not in derived and own >> 10 in derived:
        return own >> 10
    is_doubtful = host.is_numbered_like_a_layer or own > _LARGEST_PID
    return own if own in derived or not is_doubtful else None


def by_device(processes: Iterable[Process]) -> list[tuple[int | None, Process]]:
    """Each process with its device's number: None is unknown, a negative one a further unknown one.

    Where only one device has a number, those without one are layers of the same.
    """
    layers = list(processes)
    known = {one.device_number for one in layers} - {None}
    only = known.pop() if len(known) == 1 else None
    numbers = [only if one.device_number is None else one.device_number for one in layers]
    seen: set[int | None] = set()
    for at, process in enumerate(layers):
        if process.is_analysis:
            # A second analysis is that of a second device.
            if numbers[at] in seen:
                numbers[at] = -1 - at
            seen.add(numbers[at])
    return list(zip(numbers, layers, strict=True))


def group_place(event: MstxEvent, shown: str | None) -> str:
    """Where the group of a collective stands: its name may follow later. `shown` is its hash."""
    return _AND.join((str(event.pid), str(event.tid), shown or ""))


def group_name(place: str | None, processes: Iterable[Process]) -> str | None:
    """The name of the group at `place`; where its thread has none, its hash."""
    pid, _, rest = (place or "").partition(_AND)
    tid, _, shown = rest.partition(_AND)
    named = next((one.group(tid) for one in processes if str(one.pid) == pid), None)
    return named or shown or None
