"""Python's search for reference cycles, held off while events are read."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Inside the block no reference cycle is looked for.

    None runs through events or rows: looking for one at every few hundred costs time only.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
