"""The devices that one process was seen to use, of which one is its own. Neutral to profilers."""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.device_time import DeviceTime
from rl_insight.parsers.op_names import OpNames
from rl_insight.problems import Problems

_MOST_DEVICES = 64
_FURTHER = "further devices"


class Devices:
    """Collects device events by the id of their device; None is an unnamed one."""

    def __init__(self, names: OpNames) -> None:
        self._names = names
        self._devices: dict[Hashable, DeviceTime] = {}

    def add(
        self,
        owners: Sequence[Hashable],
        starts: IntArray,
        durations: IntArray,
        codes: npt.NDArray[np.integer],
    ) -> None:
        """Take events; sequences of one length, times in ns, codes of the names given."""
        several = set(owners)
        for owner in several:
            if len(several) == 1:
                self._device(owner).add(starts, durations, codes)
            else:
                own = np.array([one == owner for one in owners], dtype=bool)
                self._device(owner).add(starts[own], durations[own], codes[own])

    def own(self, problems: Problems) -> tuple[DeviceTime, Hashable]:
        """The device that was busiest, and its id (None without one).

        A capture belongs to one process with one device. It may still touch another by mistake, or
        copy to a peer's: such devices are left out, and counted.
        """
        unnamed = self._devices.pop(None, None)
        if not self._devices:
            return unnamed or DeviceTime(self._names), None
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

    def _device(self, key: Hashable) -> DeviceTime:
        if key not in self._devices and len(self._devices) >= _MOST_DEVICES:
            key = _FURTHER
        if key not in self._devices:
            self._devices[key] = DeviceTime(self._names)
        return self._devices[key]
