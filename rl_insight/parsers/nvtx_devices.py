"""The device activity of an nsys capture: kernels, copies, graph launches, and collectives."""

import re
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final

import numpy as np
import numpy.typing as npt

from rl_insight.intervals import IntArray
from rl_insight.parsers.collectives import Collective, Collectives
from rl_insight.parsers.devices import Devices
from rl_insight.parsers.extent import Extent
from rl_insight.parsers.kernel_names import COMMUNICATION, COMPUTING, kernel_class
from rl_insight.parsers.nvtx_rows import (
    ACTIVITY,
    MISSING,
    MOST_PROCESSES,
    Work,
    distinct,
    process_of,
)
from rl_insight.parsers.nvtx_schema import GRAPH, KERNEL, MEMCPY, MEMSET
from rl_insight.parsers.op_names import OpNames

# ENUM_CUDA_MEMCPY_OPER; named as kineto does.
_COPIES: Final = {
    1: "Memcpy HtoD",
    2: "Memcpy DtoH",
    3: "Memcpy HtoA",
    4: "Memcpy AtoH",
    5: "Memcpy AtoA",
    6: "Memcpy AtoD",
    7: "Memcpy DtoA",
    8: "Memcpy DtoD",
    9: "Memcpy HtoH",
    10: "Memcpy PtoP",
}
_NAMES: Final = {
    KERNEL: "(unnamed)",
    MEMCPY: "Memcpy",
    MEMSET: "Memset",
    GRAPH: "CUDA graph",
}

# `ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs…)`, before NCCL 2.20
# `ncclKernel_AllReduce_…`; point-to-point is `…_SendRecv`.
_COLLECTIVE: Final = re.compile(r"(?:nccl|rccl)(?:Dev)?Kernel_([A-Za-z]+)")
_LONGEST_NAME: Final = 1_000


class ProcessDevices:
    """What one process did on its devices; times in ns since the capture began."""

    def __init__(self, names: OpNames) -> None:
        self.devices = Devices(names)
        self.collectives = Collectives()
        self.extent = Extent()

    def add(
        self, owners: Sequence[int | None], starts: IntArray, durations: IntArray, codes: IntArray
    ) -> None:
        """Take events; sequences of one length."""
        self.extent.add_block(starts, starts + durations)
        self.devices.add(owners, starts, durations, codes)

    def keep(self, earliest: int, latest: int) -> int:
        """Forget that anything was outside of these times (ns); returns how many events that were.

        They are among `devices` and `collectives` all the same, and no rows (`LaneRows.within`).
        """
        return self.extent.keep(earliest, latest)


class NvtxDevices:
    """Collects device activity by process id (MISSING where a row tells none)."""

    def __init__(self) -> None:
        self.names = OpNames()
        self.processes: dict[int, ProcessDevices] = {}
        self.unnamed = 0
        self.left_out = 0
        """How many events were not kept: of processes beyond MOST_PROCESSES."""

    def add(self, work: Work, strings: Mapping[int, str]) -> None:
        """Take rows with a start and an end not before it; `strings` tells how kernels are called.

        Counts in `unnamed` the kernels whose name is not among them.
        """
        if len(work) == 0:
            return
        codes, ops = self._codes(work, strings)
        processes = np.where(work.processes == MISSING, MISSING, process_of(work.processes))
        durations = work.ends - work.starts
        owners = [None if device == MISSING else device for device in work.devices.tolist()]
        taken = 0
        for process in distinct(processes):
            if process not in self.processes:
                if len(self.processes) >= MOST_PROCESSES:
                    continue
                self.processes[process] = ProcessDevices(self.names)
            known = self.processes[process]
            own = processes == process
            taken += int(own.sum())
            several = not own.all()
            devices = list(compress(owners, own.tolist())) if several else owners
            known.add(devices, work.starts[own], durations[own], codes[own])
            for op, chosen in ops.items():
                called = own & chosen
                known.collectives.add(
                    work.starts[called], durations[called], [Collective(op)] * int(called.sum())
                )
        self.left_out += len(work) - taken

    def _codes(
        self, work: Work, strings: Mapping[int, str]
    ) -> tuple[IntArray, dict[str, npt.NDArray[np.bool_]]]:
        """The code of each row, and which rows are a collective, by what it is called."""
        numbers, which = np.unique(work.names, return_inverse=True)
        codes = np.empty(len(numbers), np.int64)
        ops: dict[str, npt.NDArray[np.bool_]] = {}
        for at, number in enumerate(numbers.tolist()):
            category, name = ACTIVITY[work.table], _NAMES[work.table]
            if work.table == MEMCPY:
                name = _COPIES.get(number, name)
            elif work.table == KERNEL and number in strings:
                name = strings[number][:_LONGEST_NAME]
                category = kernel_class(name) or COMPUTING
            elif work.table == KERNEL:
                self.unnamed += int((which == at).sum())
            if category == COMMUNICATION:
                op = collective_op(name)
                ops[op] = ops.get(op, False) | (which == at)
            codes[at] = self.names.code(category, name)
        return codes[which], ops


def collective_op(kernel: str) -> str:
    """The operation of a kernel that communicates: `AllReduce`; else the kernel's own name."""
    found = _COLLECTIVE.search(kernel)
    return found[1] if found else kernel.partition("(")[0]
