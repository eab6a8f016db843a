"""What the database of an Ascend capture says of itself."""

import json

from rl_insight.parsers.collectives import count_of
from rl_insight.parsers.mstx_metadata import WANTED, Told, take_device_map, take_metadata
from rl_insight.parsers.mstx_queries import AscendDatabase
from rl_insight.problems import Problems

_LONGEST_HOST = 200


def take(told: Told, database: AscendDatabase, problems: Problems) -> None:
    """Add to `told` the host, ranks and groups that the database tells."""
    if database.has("HOST_INFO", "hostName"):
        for (name,) in database.rows("HOST_INFO", "SELECT hostName FROM HOST_INFO LIMIT 1"):
            if isinstance(name, str) and name.strip():
                told.host = name.strip()[:_LONGEST_HOST]
    if database.has("RANK_DEVICE_MAP", "rankId"):
        device = database.optional("RANK_DEVICE_MAP", "deviceId")
        query = f"SELECT rankId, {device} FROM RANK_DEVICE_MAP"
        rows = database.rows("RANK_DEVICE_MAP", query)
        take_device_map(told, [(rank, number) for rank, number in rows], problems)
    if database.has("META_DATA", "name", "value"):
        # Not all of it: the job's environment is in there, too.
        query = f"SELECT name, value FROM META_DATA WHERE name IN ({', '.join('?' * len(WANTED))})"
        found = {
            str(name): _value(value) for name, value in database.rows("META_DATA", query, WANTED)
        }
        take_metadata(told, found, problems)


def session(database: AscendDatabase) -> tuple[int, int] | None:
    """From when to when the profiler ran, in Unix ns."""
    if not database.has("SESSION_TIME_INFO", "startTimeNs", "endTimeNs"):
        return None
    query = "SELECT startTimeNs, endTimeNs FROM SESSION_TIME_INFO LIMIT 1"
    for start_value, end_value in database.rows("SESSION_TIME_INFO", query):
        start, end = count_of(start_value), count_of(end_value)
        if start and end and start < end:
            return start, end
    return None


def _value(text: object) -> object:
    """A value of META_DATA: torch_npu writes JSON."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text
