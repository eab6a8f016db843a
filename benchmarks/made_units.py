"""Cache folders as parse jobs leave them, for benchmarks of what comes after."""

from pathlib import Path

import numpy as np

from rl_insight import without_pandas
from rl_insight.part_writer import PartWriter
from rl_insight.pipeline import layout
from rl_insight.pipeline.units import source_id
from rl_insight.schema import SCHEMAS
from rl_insight.table_names import TIMELINE_TABLES
from rl_insight.table_parts import write_part
from rl_insight.tables import Column, table

without_pandas.keep_out()

RANKS, CATEGORIES, ACTIVE, COLLECTIVES = 64, ("computing", "communication", "memory"), 50, 40
OPERATIONS = [f"void kernel_{number}<float>(float const*, int)" for number in range(40)]
CALLS, EXPERTS, DUMPS, DUMPED_RANKS = 144, 128, 20, 16
START_NS, STEP_NS, STAGE_NS = 1_790_000_000_000_000_000, 60_000_000_000, 20_000_000_000


def capture(number: int, spans: int) -> dict[str, dict[str, Column]]:
    """The columns of every table for one made-up capture."""
    step, rank = divmod(number, RANKS)
    name = f"actor-update_step{step + 1}_rank{rank}-of-{RANKS}_pid{4000 + rank}"
    path = f"{name}_20261130090544{number % 1000:03}.json.gz"
    source = source_id(path)
    lane, host = f"{source}-0", f"node-{rank // 8}"
    start = START_NS + step * STEP_NS + rank * 1_000_000
    at = np.arange(spans)
    length = STAGE_NS // spans
    starts = np.where(at == 0, start, start + at * length)
    ids = [f"{lane}-{one}" for one in range(spans)]
    names = ["actor_update", *(f"micro_batch{one % 16}" for one in range(1, spans))]
    broken, with_ops = ids[::4], [one for one in ids[::8] for _ in range(2)]
    active, together = np.arange(len(CATEGORIES) * ACTIVE), np.arange(COLLECTIVES)
    zeros = np.zeros(len(broken), dtype=np.int64)
    return {
        "sources": {
            "source_id": [source],
            "path": [path],
            "parser": ["torch"],
            "status": ["ok"],
            "problems": [[]],
            "size_bytes": [3_000_000 + number],
            "mtime_ns": [start],
            "events": [100_000],
        },
        "lanes": {
            "lane_id": [lane],
            "source_id": [source],
            "rank_id": [rank],
            "world_size": [RANKS],
            "host": [host],
            "pid": [4000 + rank],
            "capture_start_ns": [start],
            "capture_end_ns": [start + STAGE_NS],
            "clock": ["utc"],
            "clock_offset_ns": [0],
        },
        "spans": {
            "span_id": ids,
            "parent_id": [None, *ids[:1] * (spans - 1)],
            "lane_id": [lane] * spans,
            "source_id": [source] * spans,
            "role": ["actor_update"] * spans,
            "rank_id": [rank] * spans,
            "host": [host] * spans,
            "name": names,
            "raw_name": names,
            "domain": ["default"] * spans,
            "kind": ["stage", *["range"] * (spans - 1)],
            "depth": [0, *[1] * (spans - 1)],
            "micro_batch": [None, *(one % 16 for one in range(1, spans))],
            "start_ns": starts,
            "duration_ns": np.where(at == 0, STAGE_NS, length - 1_000 - at % 997),
            "truncated": [False] * spans,
            "tid": [str(4000 + rank)] * spans,
        },
        "breakdown": {
            "span_id": broken,
            "lane_id": [lane] * len(broken),
            "rank_id": [rank] * len(broken),
            "window_ns": zeros + length,
            "device_start_ns": starts[::4] + 100,
            "device_end_ns": starts[::4] + length - 100,
            "computing_ns": zeros + length // 2 + starts[::4] % 977,
            "communication_ns": zeros + length // 4,
            "overlapped_ns": zeros + length // 8,
            "memory_ns": zeros,
            "free_ns": zeros + length // 8 + length // 4 - starts[::4] % 977,
        },
        "activity": {
            "lane_id": [lane] * len(active),
            "category": [CATEGORIES[one // ACTIVE] for one in active],
            "start_ns": start + active % ACTIVE * (STAGE_NS // ACTIVE),
            "duration_ns": 10_000 + active * 7_919 % 100_003,
            "joined_gap_ns": 0 * active,
        },
        "collectives": {
            "lane_id": [lane] * COLLECTIVES,
            "span_id": [ids[one * spans // COLLECTIVES] for one in together],
            "group": ["dp"] * COLLECTIVES,
            "op": ["allreduce"] * COLLECTIVES,
            "seq": together,
            "start_ns": start + together * (STAGE_NS // COLLECTIVES),
            "duration_ns": 50_000 + together * 104_729 % 1_000_003,
            "bytes": 4096 * (together + 1),
        },
        "ops": {
            "span_id": with_ops,
            "category": ["computing", "communication"] * (len(with_ops) // 2),
            "name": [OPERATIONS[one % len(OPERATIONS)] for one in range(len(with_ops))],
            "count": np.arange(len(with_ops)) % 5 + 1,
            "total_ns": np.arange(len(with_ops)) * 7_919 % 100_003,
            "max_ns": np.arange(len(with_ops)) * 7_919 % 100_003 // 2,
        },
    }


def make_captures(root: Path, units: int, sources: int, spans: int) -> None:
    """Write `units` cache folders of so many `sources` each, as parse jobs leave them."""
    for unit in range(units):
        folder = root / layout.unit_folder("torch", f"unit_{unit:05}-{unit:010x}")
        folder.mkdir(parents=True)
        found = [capture(unit * sources + one, spans) for one in range(sources)]
        for name in ("sources", *TIMELINE_TABLES):
            with PartWriter(layout.table(folder, name), SCHEMAS[name]) as writer:
                for columns in found:
                    writer.add(table(SCHEMAS[name], columns[name]))
    (root / "skipped.json").write_text("[]")


def make_loads(root: Path, rows: int) -> None:
    """Write so many `rows` of expert load, as parse jobs of `gmm` leave them."""
    generator = np.random.default_rng(0)
    for unit in range(-(-rows // (CALLS * DUMPS))):
        folder = root / layout.unit_folder("gmm", f"unit_{unit:05}-{unit:010x}")
        folder.mkdir(parents=True)
        places = [divmod(unit * DUMPS + one, DUMPED_RANKS) for one in range(DUMPS)]
        dumps = [f"step_{step + 1}/actor_update/step0/rank{rank}" for step, rank in places]
        ids = [source_id(path) for path in dumps]
        told = {
            "source_id": ids,
            "path": dumps,
            "parser": ["gmm"] * DUMPS,
            "status": ["ok"] * DUMPS,
            "problems": [[]] * DUMPS,
            "events": [CALLS] * DUMPS,
        }
        write_part(layout.table(folder, "sources"), table(SCHEMAS["sources"], told))
        with PartWriter(layout.table(folder, "expert_load"), SCHEMAS["expert_load"]) as writer:
            for source in ids:
                loads = {
                    "source_id": [source] * CALLS,
                    "op_index": np.arange(CALLS),
                    "api": ["npu_grouped_matmul"] * CALLS,
                    "load_kind": ["counts"] * CALLS,
                    "load_kind_from": ["dump.json"] * CALLS,
                    "load": list(generator.integers(0, 4096, (CALLS, EXPERTS))),
                }
                writer.add(table(SCHEMAS["expert_load"], loads))
    (root / "skipped.json").write_text("[]")
