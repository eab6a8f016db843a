"""One run at a time in one output folder.

A second run would rewrite unit files and the link to the input under the jobs of the first. The
folder is held by a file lock, which the system releases however its holder ends; Snakemake and its
main process inherit it, so it also holds while they outlive the command line.
"""

import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from rl_insight.errors import UsageError
from rl_insight.pipeline import layout

_SNAKEMAKE_LOCKS = Path(".snakemake", "locks")

# Held until this process ends: a run in the same process may use its folder again.
_held: dict[str, IO[str]] = {}


def occupy(output: Path) -> bool:
    """Hold `output`, an existing folder, until this process and its children end.

    Gives whether Snakemake's own lock was left there by a run that is dead, and may be released.
    Raises UsageError when another run holds the folder.
    """
    key = os.path.realpath(output)
    if key in _held:
        if _is_at(_held[key], output / layout.LOCK):
            return False
        # The folder was deleted and is a new one now: what is held of the old one keeps nobody out.
        _held.pop(key).close()
    file = open(output / layout.LOCK, "a+", encoding="utf-8", errors="replace")  # noqa: SIM115 - held
    file.seek(0)
    owner = file.read(200).split()
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(_at_work(output, owner)) from None
    except OSError:
        # A file system without locks: Snakemake's own lock is all there is.
        file.close()
        return False
    file.truncate(0)
    file.write(f"{os.getpid()} {socket.gethostname()}\n")
    file.flush()
    _held[key] = file
    left = any((output / _SNAKEMAKE_LOCKS).glob("*"))
    # Locks may not reach from one machine to another: only a run of this one is known to be dead.
    return left and owner[1:] == [socket.gethostname()]


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _at_work(output: Path, owner: list[str]) -> str:
    """Why a folder cannot be used, whose lock `owner` (process and host) has taken."""
    told = len(owner) == 2 and owner[0].isascii() and owner[0].isdigit()
    if told and owner[1] == socket.gethostname() and not Path("/proc", owner[0]).exists():
        return (
            f"output.path: jobs of a run that was killed are still at work in {str(output)!r}: "
            f"wait until they end, or end them (process {owner[0]} is gone, "
            "its child is called snakemake)"
        )
    who = f" (process {owner[0]} on {owner[1]})" if told else ""
    return (
        f"output.path: another run is at work in {str(output)!r}{who}: "
        "wait until it ends, or choose another folder"
    )


def inherited() -> tuple[int, ...]:
    """The file descriptors that a child needs to hold the folders too."""
    return tuple(file.fileno() for file in _held.values())
