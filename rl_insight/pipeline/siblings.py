"""Whose a damaged report of nsys is, told by the other reports of its process.

nsys writes one report after the other of a process (`worker_process_<pid>.<n>`), and each of them
tells the rank and the host anew. Where one lost these rows, the others still have them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from rl_insight.data.names import facts

Row = dict[str, object]

_Process = tuple[object, ...]


def infer_from_siblings(lanes: Sequence[Row], paths: Mapping[str, str]) -> None:
    """Fill `rank_id`, `global_rank`, `world_size` and `host` of lanes that tell no rank or no host.

    They come from the reports of the same process in the same folder, each only if all of these
    that tell it agree. A lane of which anything was inferred says so in its `doubts`.
    `lanes` have their own identity already, and `paths` maps a `source_id` to its relative path.
    """
    groups: dict[_Process, list[Row]] = defaultdict(list)
    for row in lanes:
        process = _process(row, paths[str(row["source_id"])])
        if process is not None:
            groups[process].append(row)
    for members in groups.values():
        for row in [row for row in members if row["rank_id"] is None or row["host"] is None]:
            siblings = [one for one in members if one["source_id"] != row["source_id"]]
            _fill(row, siblings)


def _process(row: Row, path: str) -> _Process | None:
    """What the reports of one process have in common; None for what is no such report."""
    name = facts(path)
    if name.grammar != "nsys" or row["pid"] is None:
        return None
    return (PurePosixPath(path).parent, name.prefix, name.host, name.pid, row["pid"])


def _fill(row: Row, siblings: Sequence[Row]) -> None:
    hosts = _told(siblings, "host")
    if len(hosts | _told([row], "host")) > 1:
        return  # Two hosts have a process of that number: nobody knows whose it is.
    ranks = _told(siblings, "rank_id")
    told = []
    if row["rank_id"] is None and len(ranks) == 1:
        (row["rank_id"],) = ranks
        told.append(("rank_inferred", f"rank {row['rank_id']}"))
        for name in ("global_rank", "world_size"):
            values = _told(siblings, name)
            if row[name] is None and len(values) == 1:
                (row[name],) = values
    if row["host"] is None and len(hosts) == 1:
        (row["host"],) = hosts
        told.append(("host_inferred", f"host {row['host']}"))
    doubts = row["doubts"]
    row["doubts"] = [
        *(doubts if isinstance(doubts, list) else []),
        *(
            (code, "info", f"{what}, as other reports of its process ({row['pid']}) tell")
            for code, what in told
        ),
    ]


def _told(rows: Sequence[Row], name: str) -> set[object]:
    return {row[name] for row in rows} - {None}
