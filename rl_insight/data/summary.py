"""The documented DataFrames, for scripts that know them from the command line's predecessors."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight.data import roles

if TYPE_CHECKING:
    import pandas as pd

# The documented frames know no null rank.
UNKNOWN_RANK = -1


def gmm_summary(expert_load: pa.Table) -> "pd.DataFrame":
    """One row per expert of every grouped matmul in the `expert_load` table.

    Columns: `role`, `rank_id` (-1 where it is unknown), `step`, `stage` (number of the call),
    `expert_index` (place in the recorded vector, from 0) and `load` (tokens), sorted by step, role,
    rank_id, stage and expert_index. A row of the table without a step or a stage has -1 there.
    """
    import numpy as np
    import pandas as pd

    keys = pa.table(
        {
            "step": pc.fill_null(expert_load["step"], -1),
            "role": expert_load["role"].cast(pa.string()),
            "rank_id": pc.fill_null(expert_load["rank_id"], UNKNOWN_RANK),
            "stage": pc.fill_null(expert_load["op_index"], -1),
        }
    )
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.schema.names])
    keys = keys.take(order)
    lists = expert_load["load"].take(order).combine_chunks()
    experts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    first = np.cumsum(experts) - experts

    each = {name: np.repeat(keys[name].to_numpy(), experts) for name in keys.schema.names}
    return pd.DataFrame(
        {
            **{name: each[name] for name in ("role", "rank_id", "step", "stage")},
            "expert_index": np.arange(int(experts.sum())) - np.repeat(first, experts),
            "load": pc.list_flatten(lists).to_numpy(zero_copy_only=False),
        }
    )


def summary_events(spans: pa.Table) -> "pd.DataFrame":
    """One row per stage span of the `spans` table, in order of their start.

    Columns: `name`, `role` (of a rollout replica with its number, as its folder is called),
    `domain`, `start_time_ms`, `end_time_ms`, `duration_ms` (float milliseconds of Unix time, which
    is exact to about 0.2 µs; use the table itself for nanoseconds), `rank_id` (-1 where it is
    unknown) and `tid`.
    """
    import pandas as pd

    stages = spans.filter(pc.equal(spans["kind"].cast(pa.string()), "stage")).sort_by("start_ns")
    start = stages["start_ns"].to_numpy()
    duration = stages["duration_ns"].to_numpy()
    labels = [
        None if role is None else roles.lane_role_label(role, replica)
        for role, replica in zip(
            stages["role"].to_pylist(), stages["replica"].to_pylist(), strict=True
        )
    ]
    return pd.DataFrame(
        {
            "name": stages["name"].to_pylist(),
            "role": labels,
            "domain": stages["domain"].to_pylist(),
            "start_time_ms": start / 1e6,
            "end_time_ms": (start + duration) / 1e6,
            "duration_ms": duration / 1e6,
            "rank_id": pc.fill_null(stages["rank_id"], UNKNOWN_RANK).to_pylist(),
            "tid": stages["tid"].to_pylist(),
        }
    )
