"""The device activity of a torch capture: kernels, copies and collectives, by device."""

from collections.abc import Hashable, Sequence
from itertools import compress

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.collectives import (
    Collective,
    Collectives,
    count_of,
    group_label,
    message_bytes,
)
from rl_insight.parsers.device_time import DeviceTime
from rl_insight.parsers.devices import Devices
from rl_insight.parsers.kernel_names import COMMUNICATION, MEMORY, kernel_class
from rl_insight.parsers.op_names import LEFT_OUT, NameCodes, OpNames
from rl_insight.parsers.torch_events import (
    COLLECTIVE,
    COPY,
    KERNEL,
    CollectiveArgs,
    Scalar,
    TorchEvent,
)
from rl_insight.problems import Problems

# Collectives that were recorded by themselves name no device; they are the own device's.
_NO_DEVICE: Scalar = None


class TorchDevices:
    """Takes device events, gives the time of the capture's own device."""

    def __init__(self) -> None:
        self.names = OpNames()
        self.collectives = Collectives()
        self._devices = Devices(self.names)
        self._communication = NameCodes(self.names, lambda name: COMMUNICATION)
        self._codes = {
            KERNEL: NameCodes(self.names, kernel_class),
            COPY: NameCodes(self.names, lambda name: MEMORY),
            COLLECTIVE: self._communication,
        }

    def add(
        self,
        events: Sequence[TorchEvent],
        kinds: npt.NDArray[np.int8],
        starts: IntArray,
        durations: IntArray,
    ) -> None:
        """Take events of the kinds KERNEL, COPY and COLLECTIVE; times in ns."""
        tables = self._codes
        codes = np.array(
            [tables[kind][event.name] for kind, event in zip(kinds.tolist(), events, strict=True)],
            dtype=np.int64,
        )
        called = [index for index, event in enumerate(events) if _calls(event.args)]
        if called:
            called = [index for index in called if kinds[index] != COPY]
            codes[called] = [self._communication[events[index].name] for index in called]
            calls = [call_of(events[index].args, str(events[index].name)) for index in called]
            self.collectives.add(starts[called], durations[called], calls)
        owners: list[Scalar] = [event.pid for event in events]
        if (kinds == COLLECTIVE).any():
            owners = [
                _NO_DEVICE if kind == COLLECTIVE else owner
                for kind, owner in zip(kinds.tolist(), owners, strict=True)
            ]
        at_work = codes != LEFT_OUT
        if not at_work.all():
            owners = list(compress(owners, at_work.tolist()))
            starts, durations, codes = starts[at_work], durations[at_work], codes[at_work]
        self._devices.add(owners, starts, durations, codes)

    def own(self, problems: Problems) -> tuple[DeviceTime, Hashable]:
        """The device that was busiest, and its id (None without one)."""
        return self._devices.own(problems)


def call_of(args: object, fallback: str) -> Collective:
    """The call of a collective by its arguments; `fallback` names it where they do not."""
    if not isinstance(args, CollectiveArgs):
        return Collective(fallback)
    return Collective(
        op=args.op if isinstance(args.op, str) and args.op else fallback,
        group=group_label(args.group, args.description),
        seq=count_of(args.seq),
        size=message_bytes(args.elements, args.dtype),
    )


def _calls(args: object) -> bool:
    return isinstance(args, CollectiveArgs) and args.op is not None
