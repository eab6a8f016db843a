"""Files that the kernel makes up, which a link in the input folder may lead to."""

import os
from typing import Protocol


class _Opened(Protocol):
    def fileno(self) -> int: ...


def holds_bytes(file: _Opened) -> bool:
    """Whether an open file has anything to read, by its size.

    `/proc/kmsg` and its like are regular files of 0 bytes that wait until there is something to
    read, and take it away from those for whom it was.
    Raises OSError as `fstat` does.
    """
    return os.fstat(file.fileno()).st_size > 0
