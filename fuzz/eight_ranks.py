"""A good run of eight ranks in each form, in which one rank's file is then damaged at random.

Each damage goes through discovery, parsing and the merge. Whatever it is: nothing raises, nothing
hangs, the other seven ranks are complete, and every event before the first damaged byte is kept.
"""

import gzip
import json
import random
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from fuzz.damage import damaged, first_difference
from fuzz.watch import time_limit
from rl_insight.pipeline.parse import parse_unit
from tests import ascend_captures as ascend
from tests import nvtx_exports as nsys
from tests.merged_runs import Row, Tables, merge_all, parse_all

RANKS = 8
VICTIM = 3

_NOW_US = 1_771_730_327_316_353
_EVENTS = 60


@dataclass(frozen=True)
class Content:
    """A file of events: `data` as it stands on disk, `text` unpacked.

    `ends` tells where in the text each event ends; it is empty where that cannot be told, as in a
    database, whose pages stand in any order.
    """

    data: bytes
    text: bytes = b""
    ends: tuple[int, ...] = ()


def _torch_events(rank: int) -> list[str]:
    chance = random.Random(rank)

    def event(cat: str, name: str, start: float, length: float) -> str:
        own = {"ph": "X", "cat": cat, "name": name, "pid": 0 if cat == "kernel" else 4711, "tid": 7}
        # What does not repeat keeps gzip from making the file a handful of bytes.
        args = {"Call stack": chance.randbytes(30).hex()}
        return json.dumps({**own, "ts": _NOW_US + start, "dur": length, "args": args})

    found = [event("user_annotation", "actor_update", 0, 10_000)]
    for number in range(_EVENTS):
        start = 100 * (number + 1)
        found.append(event("user_annotation", f"micro_batch_{number}", start, 90))
        found.append(event("cpu_op", f"aten::mm {number * 7919 % 1009}", start + 1, 40.5))
        found.append(event("kernel", f"gemm_{number * 7919 % 1013}", start + 5.125, 30))
    return found


def _listed(head: str, events: Sequence[str], tail: str, between: str) -> Content:
    text, ends = head, []
    for number, one in enumerate(events):
        text += (between if number else "") + one
        ends.append(len(text))  # all of it is ASCII
    raw = (text + tail).encode()
    return Content(raw, raw, tuple(ends))


def _torch(rank: int) -> Content:
    info = json.dumps({"backend": "nccl", "rank": rank, "world_size": RANKS})
    head = f'{{"schemaVersion": 1, "distributedInfo": {info},\n"traceEvents": [\n'
    return _listed(head, _torch_events(rank), '\n], "traceName": "x.json"}\n', ",\n  ")


def _torch_packed(rank: int) -> Content:
    plain = _torch(rank)
    return Content(gzip.compress(plain.data, mtime=0), plain.text, plain.ends)


def _mstx(rank: int) -> Content:
    events = [*ascend.ANALYSIS, ascend.mstx("actor_update", 50, 20_000)]
    for number in range(_EVENTS):
        start = 100 * (number + 1) + rank
        events.append(ascend.mstx(f"micro_batch_{number}", start, 90))
        events.append(ascend.overlap("Computing", start, 40))
        events.append(ascend.overlap("Free", start + 40, 60))
    return _listed("[", [json.dumps(one) for one in events], "]", ", ")


def _nvtx_rows(rank: int) -> list[nsys.Row]:
    rows = [nsys.details(), nsys.session(), nsys.variable("RANK", f'"{rank}"')]
    rows.append(nsys.text_range(0, 50 * nsys.SECOND, "actor_update"))
    for number in range(_EVENTS):
        start = number * nsys.SECOND // 4
        rows.append(nsys.text_range(start, start + 10_000_000, f"micro_batch_{number}"))
        rows.append(nsys.kernel(start, start + 5_000_000, number))
        rows.append(nsys.string(number, f"gemm_{number}"))
    return rows


def _nvtx(rank: int) -> Content:
    rows = [json.dumps(row, sort_keys=True) for row in _nvtx_rows(rank)]
    return _listed("", rows, "\n", "\n")


def _made(write: Callable[[Path], Path], scratch: Path) -> Content:
    path = write(scratch)
    data = path.read_bytes()
    path.unlink()
    return Content(data)


@dataclass(frozen=True)
class Form:
    """A kind of file: how it is made for a rank, and where it lies in the input folder."""

    name: str
    parser: str
    path: str
    make: Callable[[int, Path], Content]

    def file(self, root: Path, rank: int) -> Path:
        """The file of one rank."""
        return root / self.path.format(rank=rank)


_STAMP = "20260814122731089"
_TORCH = f"actor-rollout-ref_actor-update_step1_rank{{rank}}-of-8_pid10256_{_STAMP}.json"
_ASCEND = f"actor_update/rank{{rank}}_{_STAMP}_ascend_pt/ASCEND_PROFILER_OUTPUT/"
_NSYS = "actor_update/actor_node-1_worker_process_7{rank}.0"

FORMS: tuple[Form, ...] = (
    Form("torch", "torch", _TORCH, lambda rank, _: _torch(rank)),
    Form("torch, packed", "torch", f"{_TORCH}.gz", lambda rank, _: _torch_packed(rank)),
    Form("mstx", "mstx", f"{_ASCEND}trace_view.json", lambda rank, _: _mstx(rank)),
    Form(
        "mstx, database",
        "mstx",
        f"{_ASCEND}ascend_pytorch_profiler_{{rank}}.db",
        lambda rank, scratch: _made(lambda path: ascend.database_in(path, rank), scratch),
    ),
    Form("nvtx", "nvtx", f"{_NSYS}.jsonl", lambda rank, _: _nvtx(rank)),
    Form(
        "nvtx, database",
        "nvtx",
        f"{_NSYS}.sqlite",
        lambda rank, scratch: _made(
            lambda path: nsys.write_database(path / "made", _nvtx_rows(rank)), scratch
        ),
    ),
)


class EightRanks:
    """A good run of one form below `folder`; one rank's file is damaged again and again."""

    def __init__(self, form: Form, folder: Path) -> None:
        self._form = form
        self._root, self._output = folder / "run", folder / "out"
        for rank in range(RANKS):
            path = form.file(self._root, rank)
            path.parent.mkdir(parents=True, exist_ok=True)
            content = form.make(rank, folder / "scratch")
            path.write_bytes(content.data)
            if form.parser == "mstx":
                told = path.parents[1] / f"profiler_info_{rank}.json"
                told.write_text(json.dumps(ascend.info(rank)))
            if rank == VICTIM:
                self._good = content
        self._folders = parse_all(self._root, self._output, [form.parser])
        self._tables = merge_all(self._folders, self._root, self._output)
        states = Counter(row["status"] for row in self._tables["sources"])
        assert states == {"ok": RANKS}, f"the run is not good to begin with: {states}"
        where = form.file(Path(), VICTIM).as_posix()
        (victim,) = [row for row in self._tables["sources"] if where.startswith(row["path"])]
        self._source = victim["source_id"]
        self._unit = _unit_of(self._folders, victim["path"], self._output)

    def survive(self, chance: random.Random, *, limited: bool) -> str:
        """Damage the file once more, and look at what is left; returns the status that it has.

        Raises AssertionError for what is lost, and with `limited` HangError.
        """
        bad = damaged(self._good.data, chance)
        self._form.file(self._root, VICTIM).write_bytes(bad)
        with time_limit(len(bad)) if limited else nullcontext():
            unit_file, folder = self._unit
            parse_unit(unit_file, self._root, folder, {"timeline.parser.range_depth": 2})
            found = merge_all(self._folders, self._root, self._output)
        assert _others(found, self._source) == _others(self._tables, self._source)
        (row,) = [row for row in found["sources"] if row["source_id"] == self._source]
        assert "stumbled" not in (row["detail"] or ""), row["detail"]
        assert row["status"] == "ok" or row["detail"]
        self._check_kept(bad, row, found)
        return str(row["status"])

    def _check_kept(self, bad: bytes, row: Row, found: Tables) -> None:
        """What stands before the damage is there; what gzip can tell from the rest is told."""
        good = self._good
        if not good.ends:
            return
        sound = first_difference(good.data, bad)
        if good.data != good.text:
            sound = _sound_text(good.data[:sound])
            if bad and _whole(bad) != good.text:
                assert row["status"] in ("salvaged", "failed"), row["status"]
        kept = sum(end <= sound for end in good.ends)
        assert row["events"] >= kept, f"{row['events']} events of {kept} before byte {sound}"
        names = {span["name"] for span in found["spans"] if span["source_id"] == self._source}
        text = good.text[: max((end for end in good.ends if end <= sound), default=0)].decode()
        for number in range(_EVENTS):
            if f'"micro_batch_{number}"' in text:
                assert f"micro_batch_{number}" in names, f"micro_batch_{number} before {sound}"


def _others(found: Tables, source: str) -> list[tuple[object, ...]]:
    """All that is drawn of the other ranks, and how their files were."""
    spans = ("source_id", "name", "start_ns", "duration_ns", "role", "rank_id", "kind", "depth")
    states = ("source_id", "status", "detail", "events")
    times = ("category", "start_ns", "duration_ns")
    owners = {lane["lane_id"]: lane["source_id"] for lane in found["lanes"]}
    return [
        *(
            tuple(row[name] for name in names)
            for table, names in (("spans", spans), ("sources", states))
            for row in found[table]
            if row["source_id"] != source
        ),
        *(
            (owners[row["lane_id"]], *(row[name] for name in times))
            for row in found["activity"]
            if owners[row["lane_id"]] != source
        ),
    ]


def _sound_text(packed: bytes) -> int:
    """How much text stands for certain in packed data before its damage.

    The last byte depends on what comes next.
    """
    return max(0, len(zlib.decompressobj(31).decompress(packed)) - 1)


def _whole(packed: bytes) -> bytes | None:
    try:
        return gzip.decompress(packed)
    except (OSError, EOFError, zlib.error):
        return None


def _unit_of(folders: Sequence[Path], path: str, output: Path) -> tuple[Path, Path]:
    """The unit file and the folder of the job that reads the input at `path`."""
    for folder in folders:
        for file in output.rglob(f"{folder.name}.json"):
            if f'"{path}"' in file.read_text():
                return file, folder
    raise AssertionError(f"no job reads {path}")
