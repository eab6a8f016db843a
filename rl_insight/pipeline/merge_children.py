"""Processes that answer the batches of a merge, where there are so many units that it pays.

Reading a small file is hundreds of short calls, most of them under Python's lock, so that threads
wait for each other. The children are programs of their own: a fork would copy locks that threads
of Arrow hold, and what `multiprocessing` starts would first run the main program again, which under
Snakemake is the merge.

Both sides write messages: the length of a JSON head, the head, and the Arrow streams whose lengths
it gives. A child ends with its input, and so with the merge however that ends.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import Struct
from typing import IO, Any

import pyarrow as pa

from rl_insight.errors import CacheError, RLInsightError
from rl_insight.pipeline.merge_batch import Batch, answer
from rl_insight.pipeline.unit_tables import Unit

# An interrupt from the terminal reaches all at once, but only the merge has something to say of it.
_PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path.append(sys.argv[1])
from rl_insight import without_pandas
without_pandas.keep_out()
from rl_insight.pipeline.merge_children import serve
serve()
"""
_LENGTH = Struct("<Q")
_PATIENCE_S = 10.0

_Child = subprocess.Popen[bytes]
_Message = tuple[dict[str, Any], dict[str, pa.Table]]


class Children:
    """Some processes that answer batches; whoever asks waits until one of them is free."""

    def __init__(self, children: list[_Child]) -> None:
        self._idle: queue.SimpleQueue[_Child] = queue.SimpleQueue()
        for child in children:
            self._idle.put(child)

    def answer(self, batch: Batch) -> dict[str, pa.Table]:
        """As `merge_batch.answer`, by one of the processes.

        Raises CacheError as that does, and RLInsightError when the process ended or failed.
        """
        child = self._idle.get()
        try:
            return _asked(child, batch)
        finally:
            self._idle.put(child)


@contextlib.contextmanager
def children(number: int) -> Iterator[Children]:
    """Start so many processes, which end with the block."""
    started: list[_Child] = []
    try:
        for _ in range(number):
            started.append(_start())
        yield Children(started)
    finally:
        for child in started:
            # It has nothing that could be lost.
            child.kill()
            child.communicate()


def serve() -> None:
    """Answer what is asked on the standard input until it ends."""
    replies = os.fdopen(os.dup(1), "wb")
    # What else is printed here must not get between the answers.
    os.dup2(2, 1)
    try:
        while (message := _receive(sys.stdin.buffer)) is not None:
            _send(replies, *_answered(*message))
    except (BrokenPipeError, EOFError):
        # The merge has ended, and nobody is there who could be told.
        os._exit(1)


def _start() -> _Child:
    package = Path(__file__).parents[2]
    words = [sys.executable, "-P", "-c", _PROGRAM, str(package)]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=_own_errors()
    )


def _own_errors() -> int | None:
    """Where our own error texts go: a job's go to its log."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def _asked(child: _Child, batch: Batch) -> dict[str, pa.Table]:
    assert child.stdin is not None and child.stdout is not None
    units = [[str(unit.folder), sorted(unit.filled)] for unit in batch.units]
    wanted = None if batch.wanted is None else sorted(batch.wanted)
    content = {} if batch.lanes is None else {"lanes": batch.lanes}
    try:
        _send(child.stdin, {"units": units, "wanted": wanted}, content)
        message = _receive(child.stdout)
        if message is None:
            raise EOFError
    except (BrokenPipeError, EOFError) as error:
        raise RLInsightError(_end_of(child)) from error
    head, answered = message
    if "incomplete" in head:
        raise CacheError(head["incomplete"])
    if "failed" in head:
        raise RLInsightError(
            f"a process that read the cache for the merge failed: {head['failed']}"
        )
    return answered


def _answered(head: Mapping[str, Any], content: Mapping[str, pa.Table]) -> _Message:
    wanted = None if head["wanted"] is None else frozenset(head["wanted"])
    units = [Unit(Path(folder), frozenset(filled)) for folder, filled in head["units"]]
    try:
        return {}, answer(Batch(units, content.get("lanes"), wanted))
    except CacheError as error:
        return {"incomplete": str(error)}, {}
    except Exception:
        return {"failed": traceback.format_exc()}, {}


def _end_of(child: _Child) -> str:
    try:
        status = child.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        how = "stopped answering"
    else:
        how = f"ended with status {status}"
        if status < 0:
            how = f"was ended by {signal.Signals(-status).name}, as it happens when memory runs out"
    return f"a process that read the cache for the merge {how}: run again, with more memory"


def _send(stream: IO[bytes], head: Mapping[str, Any], content: Mapping[str, pa.Table]) -> None:
    streams = {name: _written(table) for name, table in content.items()}
    sizes = [[name, written.size] for name, written in streams.items()]
    # Folders whose names are no UTF-8 have lone surrogates, which JSON escapes and gives back.
    text = json.dumps({**head, "tables": sizes}).encode("ascii")
    stream.write(_LENGTH.pack(len(text)) + text)
    for written in streams.values():
        stream.write(memoryview(written))
    stream.flush()


def _receive(stream: IO[bytes]) -> _Message | None:
    """The next message; None at the end of the stream. Raises EOFError where it ends in one."""
    length = stream.read(_LENGTH.size)
    if not length:
        return None
    (size,) = _LENGTH.unpack(length.ljust(_LENGTH.size, b"\0"))
    head = json.loads(_exactly(stream, size))
    return head, {name: _read(_exactly(stream, size)) for name, size in head.pop("tables")}


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _written(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _read(content: bytes) -> pa.Table:
    # The table lies in `content`; nothing is copied.
    return pa.ipc.open_stream(pa.py_buffer(content)).read_all()
