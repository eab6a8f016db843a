"""What other reports of one process tell about a report of nsys that lost it."""

from typing import Any

from rl_insight.pipeline.siblings import infer_from_siblings

Row = dict[str, Any]
KNOWN: Row = {"rank_id": 3, "global_rank": 3, "world_size": 4, "host": "n1", "pid": 70003}
LOST: Row = {"rank_id": None, "global_rank": None, "world_size": None, "host": None, "pid": 70003}


def inferred(*reports: tuple[str, Row]) -> list[Row]:
    """The lanes of these reports (path and row), one each, once their siblings were asked."""
    rows = [{**row, "source_id": path, "doubts": []} for path, row in reports]
    infer_from_siblings(rows, {path: path for path, _ in reports})
    return rows


def test_rank_and_host_come_from_the_other_reports_of_the_process_and_it_is_said() -> None:
    first, lost, last = inferred(
        ("worker_process_70003.1.jsonl", KNOWN),
        ("worker_process_70003.2.jsonl", LOST),
        ("worker_process_70003.3.jsonl", KNOWN),
    )
    assert {name: lost[name] for name in KNOWN} == KNOWN
    assert lost["doubts"] == [
        ("rank_inferred", "info", "rank 3, as other reports of its process (70003) tell"),
        ("host_inferred", "info", "host n1, as other reports of its process (70003) tell"),
    ]
    assert first["doubts"] == last["doubts"] == []


def test_what_siblings_do_not_agree_about_stays_unknown() -> None:
    *_, lost = inferred(
        ("worker_process_70003.1.jsonl", KNOWN),
        ("worker_process_70003.2.jsonl", {**KNOWN, "rank_id": 2, "global_rank": 2}),
        ("worker_process_70003.3.jsonl", LOST),
    )
    assert (lost["rank_id"], lost["global_rank"], lost["host"]) == (None, None, "n1")


def test_one_process_id_on_two_hosts_tells_nothing() -> None:
    other = {**KNOWN, "host": "n2"}
    *_, lost = inferred(
        ("worker_process_70003.1.jsonl", KNOWN),
        ("worker_process_70003.2.jsonl", other),
        ("worker_process_70003.3.jsonl", LOST),
    )
    assert lost["rank_id"] is lost["host"] is None
    *_, elsewhere = inferred(
        ("worker_process_70003.1.jsonl", KNOWN),
        ("worker_process_70003.3.jsonl", {**LOST, "host": "n2"}),
    )
    assert elsewhere["rank_id"] is None


def test_only_reports_of_the_same_folder_host_and_process_are_siblings() -> None:
    for path, row in (
        ("node1/worker_process_70003.1.jsonl", KNOWN),
        ("worker_process_70004.1.jsonl", {**KNOWN, "pid": 70004}),
        ("actor_n1_worker_process_70003.1.jsonl", KNOWN),
        ("trace_70003.jsonl", KNOWN),
    ):
        *_, lost = inferred((path, row), ("worker_process_70003.2.jsonl", LOST))
        assert lost["rank_id"] is None, path


def test_a_known_rank_is_kept_and_lanes_of_one_report_do_not_tell_each_other() -> None:
    rows = [
        {**KNOWN, "source_id": "a", "doubts": []},
        {**LOST, "source_id": "a", "doubts": []},
    ]
    infer_from_siblings(rows, {"a": "worker_process_70003.1.jsonl"})
    assert [row["rank_id"] for row in rows] == [3, None]
