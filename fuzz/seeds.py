"""Where fuzzing starts: a few small inputs for each target, made from scratch, none of a recording.

The bytes depend on nothing but this file and the versions of the libraries that write them.
"""

import gzip
import io
import json
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.ascend_captures import BUSY, database_in, info, mstx
from tests.nvtx_exports import (
    SECOND,
    activity,
    details,
    kernel,
    session,
    string,
    string_range,
    text_range,
    variable,
    write_database,
    write_lines,
)
from tests.torch_archives import longs, pickled, tensor, torch_file

NOW_US = 1_771_730_327_316_353

EXPORT = [
    string(38, "actor_update"),
    string(39, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)"),
    details(),
    session(),
    variable("RANK", '"3"'),
    string_range(SECOND, 5 * SECOND, 38),
    text_range(2 * SECOND, 3 * SECOND, "micro_batch_0"),
    text_range(2 * SECOND, None, "open"),
    kernel(SECOND, 2 * SECOND, 39),
    activity("MEMCPY", 3 * SECOND, 4 * SECOND, copyKind=1),
]


def trace_events(count: int = 12) -> list[dict[str, object]]:
    """Annotations, operators, kernels and a collective, as kineto writes them."""
    own = {"pid": 4711, "tid": 4711}
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "ts": 0.0, **own, "args": {"name": "python"}},
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": "actor_update",
            **own,
            "ts": NOW_US,
            "dur": 10_000.25,
            "args": {"External id": 3},
        },
    ]
    for number in range(count):
        at = NOW_US + 10 * number + 0.125
        events.append(
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": f'aten::op "{number}"\\',
                **own,
                "ts": at,
                "dur": 5.5,
                "args": {"Call stack": "a;b", "dims": [[1, 2], []]},
            }
        )
        args = {"Collective name": "allreduce", "In msg nelems": 64, "dtype": "Float", "Seq": 1}
        events.append(
            {
                "ph": "X",
                "cat": "kernel",
                "name": "ncclDevKernel_AllReduce",
                "pid": 0,
                "tid": 7,
                "ts": at + 2,
                "dur": 4,
                "args": args,
            }
        )
    return events


def trace(count: int = 12, indent: int | None = None) -> bytes:
    """A whole trace as JSON."""
    document = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
        "traceEvents": trace_events(count),
        "baseTimeNanoseconds": 0,
    }
    return json.dumps(document, indent=indent).encode()


def _traces() -> list[bytes]:
    whole = trace()
    return [
        whole,
        trace(2, indent=2),
        gzip.compress(whole, mtime=0),
        json.dumps(trace_events(3)).encode("utf-16"),
        json.dumps(trace_events(3)).encode()[:-1],
        b'{"traceEvents": [',
        b"[]",
    ]


def _made(write: Callable[[Path], object]) -> bytes:
    """The file that `write` leaves at the path that it is given."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made"
        write(path)
        return path.read_bytes()


def _lines() -> list[bytes]:
    whole = _made(lambda path: write_lines(path, EXPORT))
    return [whole, gzip.compress(whole, mtime=0), b"", b"{}\n[]\n"]


def _databases() -> list[bytes]:
    plain = _made(lambda path: write_database(path, EXPORT))
    small = _made(lambda path: write_database(path, EXPORT[:6]))

    def empty(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute("VACUUM")
        connection.close()

    return [plain, small, _made(empty), b"SQLite format 3\0"]


def _ascend_database() -> bytes:
    def write(path: Path) -> None:
        database_in(path.parent / "capture").rename(path)

    return _made(write)


def _arrow() -> list[bytes]:
    own = [row for row in EXPORT if row["table"] == "NVTX_EVENTS"]
    names = ("start", "end", "eventType", "globalTid", "domainId", "text", "textId")
    table = pa.table({name: [row.get(name) for row in own] for name in names})
    found = []
    for compression in ("NONE", "SNAPPY", "GZIP"):
        file = io.BytesIO()
        pq.write_table(table, file, compression=compression)
        found.append(file.getvalue())
    for make in (pa.ipc.new_file, pa.ipc.new_stream):
        file = io.BytesIO()
        with make(file, table.schema) as writer:
            writer.write_table(table)
        found.append(file.getvalue())
    return found


def _tensors() -> list[bytes]:
    def saved(array: np.ndarray) -> bytes:
        file = io.BytesIO()
        np.save(file, array)
        return file.getvalue()

    data = {"0": longs(10, 25, 30)}
    return [
        torch_file(pickled(tensor((3,), (1,))), data),
        torch_file(pickled([tensor((3,), (1,)), {"a": (None, 1.5, "x")}]), data),
        torch_file(pickled([10, 25, 30])),
        saved(np.arange(6, dtype=np.int32).reshape(2, 3)),
        saved(np.array([1.5, 2.5])),
    ]


_CONFIG = b"""\
input:
  path: profiles
  identity: ['(?P<role>\\w+)_(?P<rank>\\d+)', "x: y"]
output: {path: out}
timeline:
  parser: {type: auto, range_depth: 2}
  visualizer: &a {type: html}
heatmap: {parser: {step: 1, role: *a}}
"""

_NAMES = (
    b"actor-rollout-ref_actor-update_step1_rank0-of-16_tp0-pp0-dp0_pid10256_20260814122731089.json.gz",
    b"rollout-replica4-globalrank8_engine.json.gz",
    b"(?P<role>[a-z_]+)/prof_rank-(?P<rank>\\d+)\nactor_update/prof_rank-0_031847.json.gz",
    b"step_1/actor_update/step0/rank0/dump_tensor_data/a.pt",
    b"agent_loop_rollout_replica_0/dp0_pp0_tp1_dcp0_ep0_rank1.1796029543122563233.pt.trace.json.gz",
    b"actor_node-1.local_worker_process_70000.3.jsonl",
)


def _bytestreams() -> list[bytes]:
    text = trace()
    return [gzip.compress(text, mtime=0), text, gzip.compress(b"", mtime=0) * 2, b"\xff\xfe{\0}\0"]


def seeds() -> dict[str, list[bytes]]:
    """The inputs that each target starts from."""
    traces, lines, databases, tensors = _traces(), _lines(), _databases(), _tensors()
    capture = json.dumps([*BUSY, mstx("update_actor", 90, 120)]).encode()
    metadata = {"role": "actor_update", "step": 1, "parallel_group_info": {"a": {"b": [0, 1]}}}
    return {
        "bytestream": _bytestreams(),
        "chrome_trace": traces,
        "json_lines": lines,
        "json_object": [json.dumps({"data": {"a": [1, {}], "b": "x"}, "z": None}).encode(), b"{}"],
        "sqlite": databases,
        "arrow": _arrow(),
        "tensor_file": tensors,
        "yaml_config": [_CONFIG, b"a: 1\n", b"{}"],
        "identities": list(_NAMES),
        "torch": traces,
        "mstx_text": [capture, capture[:-1], b"[]"],
        "mstx_database": [_ascend_database(), b"SQLite format 3\0"],
        "mstx_metadata": [json.dumps(info(3)).encode(), json.dumps(metadata).encode()],
        "nvtx_lines": lines,
        "nvtx_database": databases,
        "gmm": tensors,
    }
