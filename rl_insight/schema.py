"""The Arrow schema of every table: the contract between parsers, analysis and visualizers.

All times are int64 nanoseconds of Unix time, all sizes bytes; unknown is null, never -1 or 0.
Strings that repeat are dictionary columns.

The same schemas hold in the cache (`parsed/`) and in the merged tables (`tables/`); a file of the
cache lacks the columns that hold nothing (`table_parts`). In the cache the identity columns
(role, rank_id, step, replica, host, ...) hold only what the *file itself* says, and times are raw;
the merge settles identity, names and clocks, because a rank may stand behind a gigabyte of events
and a clock offset needs all files of a host.
"""

import pyarrow as pa

LABEL = pa.dictionary(pa.int32(), pa.string())

PROBLEM = pa.struct(
    [
        ("code", pa.string()),
        ("severity", pa.string()),
        ("count", pa.int64()),
        ("offset", pa.int64()),
        ("example", pa.string()),
    ]
)

STATUSES = ("ok", "salvaged", "empty", "failed", "skipped")
CLOCKS = ("utc", "boot", "relative")
KINDS = ("stage", "range")
# Classes of device time, in the order in which they take precedence in a breakdown.
CATEGORIES = ("computing", "communication", "memory")

SOURCES = pa.schema(
    [
        ("source_id", pa.string()),
        ("path", pa.string()),
        ("parser", LABEL),
        ("role", LABEL),
        ("rank_id", pa.int32()),
        ("step", pa.int64()),
        ("status", LABEL),
        ("detail", pa.string()),
        ("problems", pa.list_(PROBLEM)),
        ("size_bytes", pa.int64()),
        ("mtime_ns", pa.int64()),
        ("events", pa.int64()),
    ]
)

# `clock` says what the capture itself tells: Unix time (`utc`), the time since the boot of its host
# (`boot`), or a time of its own (`relative`). In the merged table `clock_offset_ns` is what was
# added to put all lanes on one clock. In the cache nothing has been added yet, and it is the Unix
# time at which the host's boot clock was 0, as the capture tells it (0 or null where it does not):
# captures of one host and boot must agree about that, which only the merge can check.
LANES = pa.schema(
    [
        ("lane_id", pa.string()),
        ("source_id", pa.string()),
        ("role", LABEL),
        ("replica", pa.int32()),
        ("rank_id", pa.int32()),
        ("global_rank", pa.int32()),
        ("world_size", pa.int32()),
        ("tp", pa.int32()),
        ("pp", pa.int32()),
        ("dp", pa.int32()),
        ("ep", pa.int32()),
        ("host", LABEL),
        ("pid", pa.int64()),
        ("device", pa.int32()),
        ("step", pa.int64()),
        ("step_index", pa.int32()),
        ("step_source", LABEL),
        ("capture_start_ns", pa.int64()),
        ("capture_end_ns", pa.int64()),
        ("clock", LABEL),
        ("clock_offset_ns", pa.int64()),
        ("identity_conflicts", pa.list_(pa.string())),
    ]
)

# `role` of a span is the role of its lane, except in a capture of a whole step (lane role `train`
# or `e2e`): there each stage span, and the ranges below it, carry the stage's own role, so that a
# whole-step capture and one capture per stage are drawn and filtered alike.
SPANS = pa.schema(
    [
        ("span_id", pa.string()),
        ("parent_id", pa.string()),
        ("lane_id", pa.string()),
        ("source_id", pa.string()),
        ("role", LABEL),
        ("rank_id", pa.int32()),
        ("replica", pa.int32()),
        ("step", pa.int64()),
        ("host", LABEL),
        ("name", LABEL),
        ("raw_name", LABEL),
        ("domain", LABEL),
        ("kind", LABEL),
        ("depth", pa.int32()),
        ("mini_batch", pa.int32()),
        ("micro_batch", pa.int32()),
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("truncated", pa.bool_()),
        ("tid", LABEL),
    ]
)

# window = computing + communication - overlapped + memory + free, exactly.
BREAKDOWN = pa.schema(
    [
        ("span_id", pa.string()),
        ("lane_id", pa.string()),
        ("role", LABEL),
        ("rank_id", pa.int32()),
        ("replica", pa.int32()),
        ("step", pa.int64()),
        ("window_ns", pa.int64()),
        ("device_start_ns", pa.int64()),
        ("device_end_ns", pa.int64()),
        ("computing_ns", pa.int64()),
        ("communication_ns", pa.int64()),
        ("overlapped_ns", pa.int64()),
        ("memory_ns", pa.int64()),
        ("free_ns", pa.int64()),
    ]
)

# `joined_gap_ns`: intervals closer than this were joined to keep a lane and category within
# MAX_ACTIVITY_INTERVALS; 0 when nothing had to be joined beyond touching neighbours.
ACTIVITY = pa.schema(
    [
        ("lane_id", pa.string()),
        ("category", LABEL),
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("joined_gap_ns", pa.int64()),
    ]
)
MAX_ACTIVITY_INTERVALS = 2_000

COLLECTIVES = pa.schema(
    [
        ("lane_id", pa.string()),
        ("span_id", pa.string()),
        ("group", LABEL),
        ("op", LABEL),
        ("seq", pa.int64()),
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("bytes", pa.int64()),
    ]
)

OPS = pa.schema(
    [
        ("span_id", pa.string()),
        ("category", LABEL),
        ("name", LABEL),
        ("count", pa.int64()),
        ("total_ns", pa.int64()),
        ("max_ns", pa.int64()),
    ]
)

# What a recorded vector may hold, and what may have told so: the user, msprobe's dump, the numbers
# themselves, the format, or nothing.
LOAD_KINDS = ("counts", "cumsum", "pairs")
LOAD_KIND_SOURCES = ("config", "dump.json", "auto", "format", "assumed")
PHASES = ("forward", "recompute", "backward")

# One row per recorded grouped matmul, or per layer and pass of an inference engine. In the merged
# table `load` is tokens per expert, whatever the file held. In the cache it is the file's own
# vector (pairs one after the other), `load_kind` what the dump or the shape says, and what the
# structure step decides (pass_index, micro_batch, layer, mostly phase) is null. `expert_offset` is
# the global id of the first expert of `load`; null where the same index may mean another expert on
# another rank.
EXPERT_LOAD = pa.schema(
    [
        ("source_id", pa.string()),
        ("step", pa.int64()),
        ("role", LABEL),
        ("rank_id", pa.int32()),
        ("op_index", pa.int64()),
        ("api", LABEL),
        ("pass_index", pa.int64()),
        ("micro_batch", pa.int32()),
        ("phase", LABEL),
        ("layer", pa.int32()),
        ("ep_rank", pa.int32()),
        ("ep_size", pa.int32()),
        ("expert_offset", pa.int64()),
        ("load_kind", LABEL),
        ("load_kind_from", LABEL),
        ("load", pa.list_(pa.int64())),
    ]
)

# One row per step, role, rank, micro-batch and layer, and, with `rank_id` and `micro_batch` null,
# one per step, role and layer over all ranks and micro-batches. Where the structure of a dump
# cannot be told, `layer` is null and `op_index` tells the rows apart.
EXPERT_BALANCE = pa.schema(
    [
        ("step", pa.int64()),
        ("role", LABEL),
        ("rank_id", pa.int32()),
        ("micro_batch", pa.int32()),
        ("layer", pa.int32()),
        ("op_index", pa.int64()),
        ("ranks", pa.int32()),
        ("experts", pa.int32()),
        ("total", pa.int64()),
        ("mean", pa.float64()),
        ("max", pa.int64()),
        ("argmax", pa.int64()),
        ("max_over_mean", pa.float64()),
        ("max_vio", pa.float64()),
        ("cv", pa.float64()),
        ("gini", pa.float64()),
        ("dead_share", pa.float64()),
        ("entropy", pa.float64()),
    ]
)

SCHEMAS: dict[str, pa.Schema] = {
    "sources": SOURCES,
    "lanes": LANES,
    "spans": SPANS,
    "breakdown": BREAKDOWN,
    "activity": ACTIVITY,
    "collectives": COLLECTIVES,
    "ops": OPS,
    "expert_load": EXPERT_LOAD,
    "expert_balance": EXPERT_BALANCE,
}
