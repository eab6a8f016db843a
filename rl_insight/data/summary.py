"""The documented DataFrames, for scripts that know them from the command line's predecessors."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rl_insight.data import roles

if TYPE_CHECKING:
    import pandas as pd

# The documented frames know no null rank.
UNKNOWN_RANK = -1


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
