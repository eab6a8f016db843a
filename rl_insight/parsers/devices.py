"""The devices that one process was seen to use, of which one is its own. Neutral to profilers."""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.device_time import DeviceTime
from rl_insight.parsers.op_names import OpNames
from rl_insight.problems import Problems

_MOST_DEVICES = 64
_MOST_COUNTED = 100_000
_FURTHER = "further devices"


class Devices:
    """Collects device events by the id of their device; None is an unnamed one."""

    def __init__(self, names: OpNames) -> None:
        self._names = names
        self._devices: dict[Hashable, DeviceTime] = {}
        self._slots: dict[Hashable, int] = {}
        # Ids that have no slot of their own; bounded, since what writes so many writes anything.
        self._further: set[Hashable] = set()

    def add(
        self,
        owners: Sequence[Hashable],
        starts: IntArray,
        durations: IntArray,
        codes: npt.NDArray[np.integer],
    ) -> None:
        """Take events; sequences of one length, times in ns, codes of the names given."""
        slots: dict[Hashable, int] = {}
        for owner in dict.fromkeys(owners):
            key = self._known(owner)
            slots[owner] = self._slots.setdefault(key, len(self._slots))
        keys = list(self._slots)
        several = set(slots.values())
        if len(several) == 1:
            self._devices[keys[several.pop()]].add(starts, durations, codes)
            return
        of_each = np.fromiter((slots[owner] for owner in owners), np.int64, len(owners))
        for slot in sorted(several):
            own = of_each == slot
            self._devices[keys[slot]].add(starts[own], durations[own], codes[own])

    def own(self, problems: Problems) -> tuple[DeviceTime, Hashable]:
        """The device that was busiest, and its id (None without one).

        A capture belongs to one process with one device. It may still touch another by mistake, or
        copy to a peer's: such devices are left out, and counted.
        """
        if self._further:
            problems.add(
                "devices_joined",
                "warning",
                len(self._further),
                example=f"more than {_MOST_DEVICES} devices: the further ones count as one",
            )
        unnamed = self._devices.pop(None, None)
        if not self._devices:
            return unnamed or DeviceTime(self._names), None
        # The further ones are nobody's own device, however busy they are together.
        device_id = max(
            self._devices, key=lambda key: (key != _FURTHER, self._devices[key].total_ns)
        )
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

    def _known(self, key: Hashable) -> Hashable:
        """`key`, or what it is counted as when there are too many."""
        named = len(self._devices) - (None in self._devices) - (_FURTHER in self._devices)
        if key is not None and key not in self._devices and named >= _MOST_DEVICES:
            if len(self._further) < _MOST_COUNTED:
                self._further.add(key)
            key = _FURTHER
        if key not in self._devices:
            self._devices[key] = DeviceTime(self._names)
        return key
