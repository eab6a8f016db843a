"""One event of a torch profiler (kineto) trace, and what kind of thing its category says it is.

Sources: libkineto/src/output_json.cpp (the fields), libkineto/include/ActivityType.h (the
categories), torch/csrc/distributed/c10d/ParamCommsUtils.hpp (the arguments of collectives).
"""

from typing import Any, Final

import msgspec

# A profiler may write anything anywhere: a field of an odd type must not cost its event. What is
# looked up must be hashable, what is only kept may be anything.
Scalar = str | int | float | bool | None


class CollectiveArgs(msgspec.Struct, gc=False):
    """The arguments of a kernel that belongs to a collective; all None for any other event."""

    op: object = msgspec.field(name="Collective name", default=None)
    elements: object = msgspec.field(name="In msg nelems", default=None)
    dtype: object = None
    group: object = msgspec.field(name="Process Group Name", default=None)
    description: object = msgspec.field(name="Process Group Description", default=None)
    seq: object = msgspec.field(name="Seq", default=None)


class TorchEvent(msgspec.Struct, gc=False):
    """The fields that matter, in the order in which kineto writes them; times in µs."""

    ph: Scalar = None
    cat: Scalar = None
    name: Scalar = None
    pid: Scalar = None
    tid: Scalar = None
    ts: Scalar = None
    dur: Scalar = None
    args: CollectiveArgs | Scalar | list[msgspec.Raw] = None


class TorchEventExact(TorchEvent, gc=False):
    """The same for a file whose times have more digits than a double holds: they come as text."""

    ts: Any = None
    dur: Any = None


# Kinds of events. From KERNEL to COLLECTIVE they are device activity; PROJECTION and PROFILER are
# no activity of their own.
HOST: Final = 0
ANNOTATION: Final = 1
KERNEL: Final = 2
COPY: Final = 3
COLLECTIVE: Final = 4
PROJECTION: Final = 5
PROFILER: Final = 6
UNSORTED: Final = 7

_KINDS: dict[Scalar, int] = {
    None: UNSORTED,
    "user_annotation": ANNOTATION,
    # Kernels of every kind of device, also those that kineto's plugins for XPU and HPU write.
    # `hpu_op`, `*_runtime` and `*_driver` are the host's side of them (kineto_shim.cpp).
    "kernel": KERNEL,
    "Kernel": KERNEL,  # before kineto's categories were unified (2021)
    "mtia_ccp_events": KERNEL,
    "gpu_memcpy": COPY,
    "gpu_memset": COPY,
    "Memcpy": COPY,
    "Memset": COPY,
    "collective_comm": COLLECTIVE,
    # A host range drawn a second time above the kernels that it launched.
    "gpu_user_annotation": PROJECTION,
    # «PyTorch Profiler (0)» covers the whole capture.
    "Trace": PROFILER,
}


_MOST_CATEGORIES = 1_000


class _Kinds(dict[Scalar, int]):
    def __missing__(self, category: Scalar) -> int:
        # Kept, since a call costs ten times a look-up; a hostile file has categories without end.
        if len(self) < _MOST_CATEGORIES:
            self[category] = HOST
        return HOST


KIND: Final = _Kinds(_KINDS)
"""The kind of an event by its category: HOST for an unknown one, UNSORTED for none."""


def kind_without_category(event: TorchEvent) -> int:
    """The kind of an UNSORTED event: the profiler's own span is known by its row, too."""
    return PROFILER if event.pid == "Spans" else HOST
