"""What `rl-insight check` says of files that hold something else, and that a run says the same."""

import gzip
import io
import json
import lzma
import random
import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rl_insight import tables
from rl_insight.data.identity import compile_rules
from rl_insight.data.tree import scan
from rl_insight.main import main
from rl_insight.pipeline.check import Census, take_census
from rl_insight.pipeline.discovery import AUTO, Filters, Wanted, discover_all, parser_names
from rl_insight.pipeline.parse import parse_unit
from rl_insight.pipeline.units import source_id
from rl_insight.schema import SCHEMAS
from rl_insight.table_parts import read_part
from tests.nvtx_exports import text_range

RANK_4 = "actor-rollout-ref_actor-update_step1_rank4-of-8_pid1004_20260814122112000.json.gz"
PAGE = b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head></html>\n"
EVENTS = ",\n".join(
    f'{{"ph": "X", "name": "k{n}", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": {n + 5}, "dur": 2}}'
    for n in range(60)
)
TRACE = f'{{"schemaVersion": 1, "traceEvents": [\n{EVENTS}\n]}}\n'.encode()
NO_LENGTH = b'{"traceEvents": [{"ph": "i", "name": "a", "pid": 1, "tid": 1, "ts": 5}]}'
ROW = json.dumps(text_range(5, 900, "update_actor")).encode()


def database(*statements: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    return connection.serialize()


def archive() -> bytes:
    with io.BytesIO() as held:
        with zipfile.ZipFile(held, "w") as packed:
            packed.writestr("readme.txt", "hello")
        return held.getvalue()


def npy() -> bytes:
    with io.BytesIO() as held:
        np.save(held, np.arange(9))
        return held.getvalue()


CONTENTS: dict[str, bytes] = {
    "page": PAGE,
    "quota": b'{"error": "quota"}',
    "xml": b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>',
    "text": b"Killed\n",
    "log": b"[2026-08-14 12:27:31] INFO rank 4 starts\n" * 3,
    "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
    "noise": random.Random(5).randbytes(3_000),
    "zeros": bytes(3_000),
    "a zero": b"\0",
    "spaces": b" \n" * 40,
    "brace": b"{",
    "list": b"[]",
    "object": b"{}",
    "numbers": b"[1, 2, 3]",
    "null": b"null",
    "other lines": b'{"a": 1}\n{"a": 2}\n',
    "no events": b'{"traceEvents": []}',
    "no length": NO_LENGTH,
    "events are text": b'{"traceEvents": "none"}',
    "utf16": TRACE.decode().encode("utf-16"),
    "trace": TRACE,
    "trace behind a line": b"[W] rank 4 warns\n" + TRACE,
    "trace behind zeros": bytes(5_000) + TRACE,
    "half a trace": TRACE[: len(TRACE) // 2],
    "head of a trace": TRACE[:24],
    "bare events": EVENTS.replace(",\n", "\n").encode(),
    "row": ROW,
    "rows": (ROW + b"\n") * 3,
    "text behind rows": (ROW + b"\n") * 3 + b"Killed\n",
    "rows behind text": b"Generating rows\n" + (ROW + b"\n") * 3,
    "database": database("CREATE TABLE t (x)"),
    "a view alone": database("CREATE VIEW v AS SELECT 1"),
    "database of no rows": database("CREATE TABLE NVTX_EVENTS (start, end, eventType)"),
    "half a database": database("CREATE TABLE t (x)")[:3_000],
    "zip": archive(),
    "xz": lzma.compress(TRACE),
    "npy": npy(),
    "pickle": b"\x80\x02K\x05.",
    "program": b"\x7fELF\x02\x01\x01" + bytes(200),
    "parquet": b"PAR1" + bytes(90) + b"PAR1",
}
CONTENTS |= {
    f"{name}, packed": gzip.compress(content, mtime=0) for name, content in CONTENTS.items()
}
CONTENTS |= {
    "half a gzip": gzip.compress(TRACE, mtime=0)[:200],
    "begun gzip": gzip.compress(TRACE, mtime=0)[:12],
    "packed twice": gzip.compress(gzip.compress(TRACE, mtime=0), mtime=0),
    "gzip of nothing": gzip.compress(b"", mtime=0),
    "gzip and text": gzip.compress(TRACE, mtime=0) + b"Killed\n",
}

CAPTURE = "actor_update/node_1_20260814_ascend_pt/ASCEND_PROFILER_OUTPUT"
PLACES = {
    "torch.json.gz": RANK_4,
    "torch.json": RANK_4.removesuffix(".gz"),
    "torch.json.zst": RANK_4.removesuffix(".gz") + ".zst",
    "torch.tgz": RANK_4.removesuffix(".json.gz") + ".tgz",
    "nvtx.sqlite": "worker_process_70000.1.sqlite",
    "nvtx.jsonl": "worker_process_70000.1.jsonl",
    "nvtx.jsonl.gz": "worker_process_70000.1.jsonl.gz",
    "mstx.json": f"{CAPTURE}/trace_view.json",
    "mstx.db": f"{CAPTURE}/ascend_pytorch_profiler_0.db",
    "gmm.pt": "step_1/actor_update/step0/rank0/dump_tensor_data/"
    "NPU.npu_grouped_matmul.0.forward.kwargs.group_list.pt",
}
PACKED = {
    "nvtx.sqlite.gz": f"{PLACES['nvtx.sqlite']}.gz",
    "nvtx.jsonl.zst": f"{PLACES['nvtx.jsonl']}.zst",
    "nvtx.nsys-rep.gz": "worker_process_70000.1.nsys-rep.gz",
    "mstx.json.zst": f"{PLACES['mstx.json']}.zst",
    "mstx.db.gz": f"{PLACES['mstx.db']}.gz",
    "mstx.tar.gz": "actor_update/node_1_20260814_ascend_pt.tar.gz",
    "gmm.pt.gz": f"{PLACES['gmm.pt']}.gz",
    "gmm.rank.zip": "step_1/actor_update/step0/rank0.zip",
    "gmm.sglang.pt.gz": "expert_distribution_recorder_1773285904.123456.pt.gz",
}


def census(root: Path, preset: str) -> Census:
    return take_census(root, {preset: parser_names(AUTO, preset)}, compile_rules([]))


def statuses(root: Path, preset: str, output: Path) -> dict[str, str]:
    """What a run makes of each of its inputs."""
    wanted = {preset: Wanted(parser_names(AUTO, preset), Filters())}
    found = discover_all(scan(root), wanted, compile_rules([])).found
    told = {}
    for parser, inputs in found.items():
        unit = output.with_suffix(".json")
        sources = [
            {
                "source_id": source_id(one.path),
                "path": one.path,
                "files": [{"path": path, "fingerprint": "1:abc"} for path in one.files],
            }
            for one in inputs
        ]
        unit.write_text(json.dumps({"parser": parser, "sources": sources}))
        parse_unit(unit, root, output, {})
        rows = read_part(output / "sources.parquet", SCHEMAS["sources"])
        for row in tables.concat(SCHEMAS["sources"], [rows]).to_pylist():
            told[row["path"]] = row["status"]
    return told


@pytest.mark.parametrize("kind", [*PLACES, *PACKED])
def test_of_what_is_seen_whole_a_check_says_what_a_run_does(kind: str, tmp_path: Path) -> None:
    preset = "heatmap" if kind.startswith("gmm") else "timeline"
    both = set()
    for number, (name, content) in enumerate(CONTENTS.items()):
        root = tmp_path / str(number)
        path = root / {**PLACES, **PACKED}[kind]
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        found = census(root, preset)
        if not found.inputs:  # passed over, by the run too: both ask the same discovery
            continue
        told = statuses(root, preset, tmp_path / "parsed")
        checked = {one.path: one.gives for one in found.inputs}
        gave = {path: status in ("ok", "salvaged") for path, status in told.items()}
        assert checked == gave, (name, told)
        for one in found.inputs:
            if one.state == "whole":
                assert told[one.path] == "ok", name
            if told[one.path] != "ok":
                assert any(not ailment.harmless for _, ailment in one.ailments), name
            both.add(one.gives)
    assert False in both
    # None of these is a database of Ascend, and what is packed by its name is not read.
    assert (True in both) == (kind != "mstx.db" and kind not in PACKED)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PAGE, "is no trace: it holds HTML or XML"),
        (gzip.compress(PAGE, mtime=0), "is no trace: it holds HTML or XML"),
        (
            gzip.compress(b'{"error": "quota"}', mtime=0),
            "JSON of another kind: it holds no trace events",
        ),
        (CONTENTS["noise"], "is no trace: it holds no JSON object or list; it starts with "),
        (CONTENTS["pointer"], "is no trace: it holds a Git LFS pointer; the file itself was never"),
    ],
)
def test_a_page_in_place_of_a_trace_is_no_trace(
    content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / RANK_4).write_bytes(content)
    (one,) = census(tmp_path, "timeline").inputs
    ((path, ailment),) = one.ailments
    assert (one.state, one.gives, path, ailment.code) == ("damaged", False, RANK_4, "wrong_content")
    assert ailment.text.startswith(said)
    assert main(["check", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "actor_update step 1: none of 1 rank, rank 4 gave nothing" in out
    assert "nothing can be read of its only input" in out
    assert "draw " not in out
    # Beside a trace that is whole there is something to draw.
    (tmp_path / RANK_4.replace("rank4", "rank5")).write_bytes(gzip.compress(TRACE))
    assert main(["check", str(tmp_path)]) == 3


@pytest.mark.parametrize("content", [gzip.compress(TRACE, mtime=0)[:20], TRACE[:30]])
def test_of_what_gives_nothing_it_is_not_said_that_anything_is_read(
    content: bytes, tmp_path: Path
) -> None:
    # The ends of a cut file promise that what is complete in it is read: there nothing is.
    path = RANK_4 if content[:2] == b"\x1f\x8b" else RANK_4.removesuffix(".gz")
    (tmp_path / path).write_bytes(content)
    (one,) = census(tmp_path, "timeline").inputs
    assert not one.gives
    ((_, ailment),) = one.ailments
    assert "read" not in ailment.text.replace("cannot be read", "").replace("could be read", "")


@pytest.mark.parametrize(
    ("content", "gives"),
    [
        (PAGE + bytes(range(1, 256)) * 900, False),
        (random.Random(5).randbytes(200_000), False),
        (bytes(200_000), False),
        (bytes(200_000) + TRACE, True),
        (b"[W] rank 4 warns\n" * 9_000 + TRACE * 30, True),
    ],
)
def test_of_larger_files_the_first_megabytes_tell(
    content: bytes, gives: bool, tmp_path: Path
) -> None:
    for name in (RANK_4, RANK_4.removesuffix(".gz")):
        (tmp_path / name).write_bytes(content)
    found = census(tmp_path, "timeline").inputs
    told = statuses(tmp_path, "timeline", tmp_path / "parsed")
    assert [one.gives for one in found] == [gives] * 2
    assert {status in ("ok", "salvaged") for status in told.values()} == {gives}
    assert "whole" not in {one.state for one in found}


def test_different_garbage_has_a_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank, content in enumerate((PAGE, PAGE, b'{"error": "quota"}', TRACE)):
        (tmp_path / RANK_4.replace("rank4", f"rank{rank}")).write_bytes(gzip.compress(content))
    assert main(["check", str(tmp_path)]) == 3
    out = capsys.readouterr().out
    lines = [line.strip() for line in out.splitlines()]
    (at,) = [at for at, line in enumerate(lines) if line.startswith("2 times: ")]
    assert "HTML" in lines[at]
    assert lines[at + 1 : at + 3] == [RANK_4.replace("rank4", f"rank{rank}") for rank in (0, 1)]
    assert "pid1004_20260814122112000.json.gz: JSON of another kind" in out


def test_a_run_names_a_file_once(tmp_path: Path) -> None:
    (tmp_path / RANK_4).write_bytes(PAGE)
    unit = tmp_path / "unit.json"
    files = [{"path": RANK_4, "fingerprint": "1:abc"}]
    sources = [{"source_id": source_id(RANK_4), "path": RANK_4, "files": files}]
    unit.write_text(json.dumps({"parser": "torch", "sources": sources}))
    parse_unit(unit, tmp_path, tmp_path / "parsed", {})
    part = read_part(tmp_path / "parsed" / "sources.parquet", SCHEMAS["sources"])
    (row,) = tables.concat(SCHEMAS["sources"], [part]).to_pylist()
    assert (row["status"], row["detail"]) == ("failed", "is no trace: it holds HTML or XML")
