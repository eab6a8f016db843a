"""What is fuzzed: each target reads one input of any bytes with one reader, to its end.

A target raises RLInsightError for what cannot be read. Anything else that it raises is a finding,
and so is what it says about its own answer: the asserts in here hold for every input.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from rl_insight import config, config_file
from rl_insight.data import identity, names, roles
from rl_insight.data.user_rules import compile_rules
from rl_insight.errors import RLInsightError
from rl_insight.parsers import PARSERS, Source, nvtx_rows, nvtx_schema
from rl_insight.parsers.nvtx_json import JsonRows
from rl_insight.parsers.nvtx_sqlite import SqliteRows
from rl_insight.parsers.torch_events import TorchEvent, TorchEventExact
from rl_insight.problems import Problems
from rl_insight.readers import arrow_columns, arrow_folder, json_entries, torch_file
from rl_insight.readers.bytestream import ByteStream
from rl_insight.readers.chrome_trace import ChromeTraceReader
from rl_insight.readers.npy import MAGIC as NPY_MAGIC
from rl_insight.readers.torch_zip import MAGIC as ZIP_MAGIC
from rl_insight.schema import SCHEMAS, STATUSES

Target = Callable[[bytes, Path], None]

# Small blocks, so that a small input meets their edges.
_BLOCKS = (64, 700, 4 << 20)
_MOST_BYTES = 16 << 20
_OPTIONS = {"timeline.parser.range_depth": 2}


def _file(data: bytes, folder: Path, name: str = "input") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def bytestream(data: bytes, folder: Path) -> None:
    """All bytes of a file that may be gzip, in pieces; the limit holds."""
    limit = 1 << 20
    room = bytearray(70_000)
    with ByteStream(_file(data, folder), Problems(), max_bytes=limit) as stream:
        total = 0
        while got := stream.readinto(memoryview(room)):
            total += got
    assert total <= limit


def chrome_trace(data: bytes, folder: Path) -> None:
    """A trace, in blocks of several sizes: what is given out is what is counted."""
    path = _file(data, folder)
    for block_bytes in _BLOCKS:
        reader = ChromeTraceReader(
            path,
            TorchEvent,
            ("distributedInfo",),
            TorchEventExact,
            block_bytes,
            max_bytes=_MOST_BYTES,
            max_event_bytes=1 << 20,
        )
        assert sum(len(events) for events in reader) == reader.events_seen


def json_lines(data: bytes, folder: Path) -> None:
    """JSON lines as nsys exports them."""
    for _ in JsonRows(_file(data, folder), Problems()):
        pass


def json_object(data: bytes, folder: Path) -> None:
    """The members of an object of any size."""
    for _, text in json_entries.entries(_file(data, folder), Problems(), 1 << 16, "data"):
        assert text is None or len(text) <= 1 << 16


def sqlite(data: bytes, folder: Path) -> None:
    """A database as nsys exports it; nothing is written beside it."""
    for _ in SqliteRows(_file(data, folder), Problems()):
        pass
    assert [entry.name for entry in folder.iterdir()] == ["input"]


def arrow(data: bytes, folder: Path) -> None:
    """One Parquet or Arrow file of a folder, by columns."""
    path = _file(data, folder)
    wanted = nvtx_rows.COLUMNS[nvtx_schema.RANGES]
    lost: list[str] = []
    for batch in arrow_folder.batches(path, wanted, lost.append):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name == "text":
                assert len(arrow_columns.texts(column, 100)) == len(batch)
            else:
                assert len(arrow_columns.integers(column, nvtx_rows.MISSING)) == len(batch)
    assert all(lost)


def tensor_file(data: bytes, folder: Path) -> None:
    """What `torch.save` or `numpy.save` may have written; torch itself is not asked."""
    if data.startswith((ZIP_MAGIC, NPY_MAGIC)):
        torch_file.read(_file(data, folder), 1 << 20)


def yaml_config(data: bytes, folder: Path) -> None:
    """A configuration file."""
    config.from_mapping(config_file.read(str(_file(data, folder))))


def identities(data: bytes, folder: Path) -> None:
    """Whose capture it is, from a path of any characters, and from a user's expression."""
    text = data.decode("utf-8", "surrogateescape")
    expression, _, path = text.rpartition("\n")
    path = path.replace("\0", "_")
    names.facts(path)
    names.folder_facts(path, path)
    names.dump_facts(path)
    identity.path_role(path, path)
    assert roles.canonical(roles.canonical(path)) == roles.canonical(path)
    roles.split_replica(path)
    # An expression is the user's own and may be slow; only how it is refused is looked at.
    compile_rules([expression] if expression else None)


def _parse(name: str, folder: Path, path: str, *files: str) -> None:
    parsed = PARSERS.get(name).parse(Source("s", path, folder, files or (path,)), _OPTIONS)
    for table_name, parts in parsed.parts.items():
        for part in parts:
            assert part.schema.equals(SCHEMAS[table_name])
    assert parsed.status in STATUSES
    assert parsed.status in ("ok", "skipped") or parsed.detail
    for table_name, table in parsed.tables.items():
        assert table.schema.equals(SCHEMAS[table_name])
        table.validate(full=True)
    if "spans" in parsed.tables and parsed.tables["spans"].num_rows:
        # Whatever the file says, a bar has a length and stays inside the years of int64.
        column = parsed.tables["spans"]["duration_ns"].combine_chunks()
        lengths = np.frombuffer(column.buffers()[1], np.int64, len(column))
        assert (lengths >= 0).all()


def torch(data: bytes, folder: Path) -> None:
    """A capture of the PyTorch profiler, up to its tables."""
    _file(data, folder, "actor_update/prof_rank-0_1.json")
    _parse("torch", folder, "actor_update/prof_rank-0_1.json")


def mstx_text(data: bytes, folder: Path) -> None:
    """A capture of the Ascend profiler as text, up to its tables."""
    _mstx(data, folder, "trace_view.json")


def mstx_database(data: bytes, folder: Path) -> None:
    """The same as a database."""
    _mstx(data, folder, "ascend_pytorch_profiler_0.db")


def _mstx(data: bytes, folder: Path, name: str) -> None:
    path = f"actor_update/a_ascend_pt/ASCEND_PROFILER_OUTPUT/{name}"
    _file(data, folder, path)
    _parse("mstx", folder, "actor_update/a_ascend_pt", path)


def mstx_metadata(data: bytes, folder: Path) -> None:
    """The small files beside such a capture."""
    capture = "actor_update/a_ascend_pt"
    files = [f"{capture}/{name}" for name in ("profiler_info_0.json", "profiler_metadata.json")]
    trace = f"{capture}/ASCEND_PROFILER_OUTPUT/trace_view.json"
    for file in files:
        _file(data, folder, file)
    _file(b'[{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": "5.0", "dur": 1}]', folder, trace)
    _parse("mstx", folder, capture, trace, *files)


def nvtx_lines(data: bytes, folder: Path) -> None:
    """An export of nsys as JSON lines, up to its tables."""
    _file(data, folder, "worker_process_1.jsonl")
    _parse("nvtx", folder, "worker_process_1.jsonl")


def nvtx_database(data: bytes, folder: Path) -> None:
    """The same as a database."""
    _file(data, folder, "worker_process_1.sqlite")
    _parse("nvtx", folder, "worker_process_1.sqlite")


def gmm(data: bytes, folder: Path) -> None:
    """A group list, up to its rows."""
    if data.startswith((ZIP_MAGIC, NPY_MAGIC)):
        stem = "step_1/actor_update/step0/rank0/dump_tensor_data"
        path = f"{stem}/NPU.npu_grouped_matmul.0.forward.kwargs.group_list.pt"
        _file(data, folder, path)
        _parse("gmm", folder, stem, path)


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        bytestream,
        chrome_trace,
        json_lines,
        json_object,
        sqlite,
        arrow,
        tensor_file,
        yaml_config,
        identities,
        torch,
        mstx_text,
        mstx_database,
        mstx_metadata,
        nvtx_lines,
        nvtx_database,
        gmm,
    )
}


def survives(target: Target, data: bytes, folder: Path) -> None:
    """Run `target` on `data`; raises whatever is not ours, and AssertionError for a false answer.

    `folder` is emptied by whoever gave it.
    """
    try:
        target(data, folder)
    except RLInsightError as error:
        assert str(error).strip()
