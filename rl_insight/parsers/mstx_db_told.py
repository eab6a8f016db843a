"""What the database of an Ascend capture says of itself."""

import json

from rl_insight.parsers.collectives import count_of
from rl_insight.parsers.mstx_metadata import WANTED, Told, take_device_map, take_metadata
from rl_insight.parsers.mstx_queries import AscendDatabase
from rl_insight.problems import Problems
from rl_insight.readers.table_rows import TableQuery

_LONGEST_HOST = 200


def take(told: Told, database: AscendDatabase, problems: Problems) -> None:
    """Add to `told` the host, ranks and groups that the database tells."""
    if database.has("HOST_INFO", "hostName"):
        (name,) = database.first("HOST_INFO", "hostName") or (None,)
        if isinstance(name, str) and name.strip():
            told.host = name.strip()[:_LONGEST_HOST]
    if database.has("RANK_DEVICE_MAP", "rankId"):
        device = database.optional("RANK_DEVICE_MAP", "deviceId")
        rows = database.rows(TableQuery("RANK_DEVICE_MAP", f"rankId, {device}"))
        take_device_map(told, [(rank, number) for rank, number in rows], problems)
    if database.has("META_DATA", "name", "value"):
        # Not all of it: the job's environment is in there, too.
        condition = f"name IN ({', '.join('?' * len(WANTED))})"
        query = TableQuery("META_DATA", "name, value", condition)
        found = {str(name): _value(value) for name, value in database.rows(query, WANTED)}
        take_metadata(told, found, problems)


def session(database: AscendDatabase) -> tuple[int, int] | None:
    """From when to when the profiler ran, in Unix ns."""
    if not database.has("SESSION_TIME_INFO", "startTimeNs", "endTimeNs"):
        return None
    found = database.first("SESSION_TIME_INFO", "startTimeNs, endTimeNs")
    if found is None:
        return None
    start, end = map(count_of, found)
    return (start, end) if start and end and start < end else None


def _value(text: object) -> object:
    """A value of META_DATA: torch_npu writes JSON."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text
