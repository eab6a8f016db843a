"""What a kernel does, told by its name: computing, communication or copying."""

import re

from rl_insight.schema import CATEGORIES

COMPUTING, COMMUNICATION, MEMORY = range(len(CATEGORIES))

# The names of NCCL (both generations), RCCL, HCCL, NVSHMEM and vLLM's own all-reduce.
_COMMUNICATION = re.compile(
    r"^(nccl|rccl|hccl)|ncclKernel|nvshmem|cross_device_reduce", re.IGNORECASE
)
# hta/utils/utils.py, get_memory_kernel: what copies although its category is that of a kernel.
_MEMORY = re.compile(r"^(hip)?(Memcpy|Memset)|^dma")
# A stream that waits for another is not at work (hta leaves these out too; MTIA writes the first).
_WAITING = re.compile(
    r"^(event_(wait|record)|Stream Wait Event|(Context|Stream|Device|Event) Sync)", re.IGNORECASE
)


def kernel_class(name: str) -> int | None:
    """COMPUTING, COMMUNICATION or MEMORY by a kernel's name; None for one that only waits.

    The order, communication before memory before the rest, is that of hta/common/types.py.
    """
    if _COMMUNICATION.search(name):
        return COMMUNICATION
    if _MEMORY.search(name):
        return MEMORY
    return None if _WAITING.search(name) else COMPUTING
