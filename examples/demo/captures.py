"""Captures of the demo: profile a block, and leave it under the name its producer would give."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from torch.profiler import ProfilerActivity, profile

REPLICA_FOLDER = "agent_loop_rollout_replica_"
TRAINER_PREFIX = "actor-rollout-ref_"


@contextmanager
def capture(path: Callable[[], Path]) -> Iterator[None]:
    """Profile the block as one capture; `path` is asked for its file when the capture has ended."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        yield
    write_trace(profiler, path())


def write_trace(profiler: profile, path: Path) -> None:
    """Export a finished capture to `path` (.json.gz), without the names of this machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = path.with_suffix("")
    profiler.export_chrome_trace(str(raw))
    text = anonymous(raw.read_text(encoding="utf-8"), raw.name)
    raw.unlink()
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def anonymous(text: str, trace_name: str) -> str:
    """Give the trace with a neutral host and trace name; every event stays as it was written.

    Raises RuntimeError if the host's name or an absolute path is still somewhere in it.
    """
    for key, value in (("host_name", "demo-node"), ("traceName", trace_name)):
        text = re.sub(rf'("{key}": ")[^"]*', rf"\g<1>{value}", text)
    host = re.escape(socket.gethostname())
    leak = re.search(rf'"(/|[A-Za-z]:\\)[^"]*"|(?<![\w-]){host}(?![\w-])', text)
    if leak:
        raise RuntimeError(f"{trace_name}: the trace still holds {leak.group()!r}")
    return text


def trainer_path(folder: Path, stage: str, step: int, rank: int, world_size: int) -> Path:
    """Name a trainer's capture that ends now, as VeRL does."""
    stamp = datetime.now().strftime("%Y%m%d%H%M%S%f")[:-3]
    who = f"rank{rank}-of-{world_size}_pid{os.getpid()}_{stamp}"
    return folder / f"{TRAINER_PREFIX}{stage.replace('_', '-')}_step{step}_{who}.json.gz"


def engine_path(folder: Path, replica: int, rank: int) -> Path:
    """Name an engine's capture that ends now, as a vLLM worker does."""
    worker = f"dp0_pp0_tp{rank}_dcp0_ep0_rank{rank}"
    name = f"{worker}.{time.time_ns()}.pt.trace.json.gz"
    return folder / f"{REPLICA_FOLDER}{replica}" / name


def replace_captures(new: Path, output: Path) -> list[Path]:
    """Move the captures from `new` to `output`, in place of an earlier run's; give their paths."""
    for pattern in (f"{TRAINER_PREFIX}*.json.gz", f"{REPLICA_FOLDER}*/*.pt.trace.json.gz"):
        for old in output.glob(pattern):
            old.unlink()
    paths = []
    for capture_path in sorted(new.rglob("*.json.gz")):
        path = output / capture_path.relative_to(new)
        path.parent.mkdir(parents=True, exist_ok=True)
        paths.append(Path(shutil.move(capture_path, path)))
    return paths
