"""The device activity of a torch capture: kernels, copies and collectives, by device."""

from collections.abc import Sequence

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
from rl_insight.parsers.op_names import LEFT_OUT, NameCodes, OpNames
from rl_insight.parsers.torch_events import (
    COLLECTIVE,
    COMMUNICATION,
    COPY,
    KERNEL,
    MEMORY,
    CollectiveArgs,
    Scalar,
    TorchEvent,
    kernel_class,
)
from rl_insight.problems import Problems

# Collectives that were recorded by themselves name no device; they are the own device's.
_NO_DEVICE: Scalar = None
_MOST_DEVICES = 64
_FURTHER = "further devices"


class TorchDevices:
    """Takes device events, gives the time of the capture's own device."""

    def __init__(self) -> None:
        self.names = OpNames()
        self.collectives = Collectives()
        self._devices: dict[Scalar, DeviceTime] = {}
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
        several = set(owners)
        for owner in several:
            own = at_work
            if len(several) > 1:
                own = own & np.array([one == owner for one in owners])
            self._device(owner).add(starts[own], durations[own], codes[own])

    def own(self, problems: Problems) -> tuple[DeviceTime, Scalar]:
        """The device that was busiest, and its id (None without one).

        A capture belongs to one process with one device. It may still touch another by mistake, or
        copy to a peer's: such devices are left out, and counted.
        """
        unnamed = self._devices.pop(_NO_DEVICE, None)
        if not self._devices:
            return unnamed or DeviceTime(self.names), None
        device_id = max(self._devices, key=lambda key: self._devices[key].total_ns)
        others = [key for key in self._devices if key != device_id]
        if others:
            problems.add(
                "other_devices",
                "warning",
                len(others),
                example=f"device {device_id} is this lane's own; device {others[0]} is left out",
            )
        device = self._devices[device_id]
        if unnamed is not None:
            device.absorb(unnamed)
        return device, device_id

    def _device(self, key: Scalar) -> DeviceTime:
        if key not in self._devices and len(self._devices) >= _MOST_DEVICES:
            key = _FURTHER
        if key not in self._devices:
            self._devices[key] = DeviceTime(self.names)
        return self._devices[key]


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
