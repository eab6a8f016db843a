"""What SGLang's expert distribution recorder leaves, as rows of expert load."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_insight.data.identity import compile_rules, resolve
from rl_insight.data.tree import scan
from rl_insight.errors import ReadError
from rl_insight.parsers import PARSERS, Parsed, Source
from rl_insight.parsers.sglang import PARSER
from tests.group_lists import save

torch = pytest.importorskip("torch")

STAT = "expert_distribution_recorder_1773285904.123456.pt"
OF_RANK_3 = "expert_distribution_recorder_1773285904.123456_3.pt"


def parse(path: Path, root: Path | None = None) -> tuple[list[dict[str, Any]], Parsed]:
    """Rows and what is said of the one file below `root`."""
    root = root or path.parent
    (found,) = PARSER.discover(scan(root))
    parsed = PARSER.parse(Source("source", found.path, root, found.files), {})
    tables = list(parsed.parts["expert_load"])
    return [row for table in tables for row in table.to_pylist()], parsed


def stat(counts: Any, **more: Any) -> dict[str, Any]:
    return {
        "rank": 0,
        "logical_count": counts,
        "average_utilization_rate_over_window": None,
        **more,
    }


def record(number: int, counts: Any, rank: int = 3) -> dict[str, Any]:
    return {
        "forward_pass_id": number,
        "rank": rank,
        "gatherer_key": "primary",
        "global_physical_count": counts,
    }


def test_the_files_are_known_by_their_names(tmp_path: Path) -> None:
    for name in (STAT, OF_RANK_3, "other.pt", f"{STAT}.tmp", "expert_distribution_recorder_1.json"):
        (tmp_path / name).touch()
    found = list(PARSER.discover(scan(tmp_path)))
    assert [one.path for one in found] == [STAT, OF_RANK_3]
    assert all(one.files == (one.path,) for one in found)
    assert PARSERS.get("sglang").preset == "heatmap"


def test_passes_and_layers_of_the_buffer_are_rows(tmp_path: Path) -> None:
    counts = torch.zeros((4, 2, 3), dtype=torch.int32)
    counts[1] = torch.tensor([[1, 2, 3], [4, 5, 6]])
    counts[2, 0] = torch.tensor([7, 8, 9])
    torch.save(stat(counts, average_utilization_rate_over_window=0.5), tmp_path / STAT)
    rows, parsed = parse(tmp_path / STAT)
    assert [(row["op_index"], row["pass_index"], row["layer"], row["load"]) for row in rows] == [
        (1, 1, 0, [1, 2, 3]),
        (1, 1, 1, [4, 5, 6]),
        (2, 2, 0, [7, 8, 9]),
        # A layer without tokens in a pass that happened is a row.
        (2, 2, 1, [0, 0, 0]),
    ]
    for row in rows:
        assert (row["load_kind"], row["load_kind_from"]) == ("counts", "format")
        assert (row["phase"], row["micro_batch"], row["step"]) == ("forward", None, None)
        assert (row["rank_id"], row["expert_offset"]) == (None, 0)
    assert (parsed.status, parsed.detail, parsed.events) == ("ok", None, 4)
    told = {one.code: (one.severity, one.count) for one in parsed.problems}
    assert told == {"summed_over_ranks": ("info", 1), "unused_passes": ("info", 2)}


def test_replicas_of_an_expert_are_added_up(tmp_path: Path) -> None:
    # Layer 0 has expert 0 twice, layer 1 expert 2.
    experts = torch.tensor([[0, 1, 2, 0], [2, 1, 0, 2]])
    records = [
        record(17, torch.tensor([[1, 2, 3, 4], [1, 2, 3, 4]])),
        record(18, torch.tensor([[0, 0, 0, 5], [5, 0, 0, 5]])),
    ]
    content = {"records": records, "last_physical_to_logical_map": experts}
    torch.save(content, tmp_path / OF_RANK_3)
    rows, parsed = parse(tmp_path / OF_RANK_3)
    assert [(row["pass_index"], row["layer"], row["load"]) for row in rows] == [
        (17, 0, [5, 2, 3]),
        (17, 1, [3, 2, 5]),
        (18, 0, [5, 0, 0]),
        (18, 1, [0, 0, 10]),
    ]
    assert {row["rank_id"] for row in rows} == {3}
    assert (parsed.status, parsed.detail) == ("ok", None)


def test_what_a_record_has_besides_is_passed_over(tmp_path: Path) -> None:
    one = record(1, torch.tensor([[1, 2]]))
    one |= {
        "input_ids": [1, 2, 3],
        "positions": [0, 1, 2],
        "topk_ids_of_layer": torch.zeros((1, 3, 8), dtype=torch.int32),
        "misc_objects": [],
        "forward_mode": 1,
    }
    content = {"records": [one], "last_physical_to_logical_map": torch.tensor([[0, 1]])}
    torch.save(content, tmp_path / OF_RANK_3)
    rows, _ = parse(tmp_path / OF_RANK_3)
    assert [row["load"] for row in rows] == [[1, 2]]


def test_a_tensor_of_a_gpu_is_read_without_one(tmp_path: Path) -> None:
    torch.save(stat(torch.ones((1, 1, 2), dtype=torch.int32)), tmp_path / STAT)
    # The name of the device stands in the pickle, of which the archive keeps a checksum.
    with zipfile.ZipFile(tmp_path / STAT) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    assert any(b"X\x03\x00\x00\x00cpu" in data for data in entries.values())
    with zipfile.ZipFile(tmp_path / STAT, "w") as archive:
        for name, data in entries.items():
            changed = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
            archive.writestr(name, changed)
    rows, _ = parse(tmp_path / STAT)
    assert [row["load"] for row in rows] == [[1, 1]]


@pytest.mark.parametrize(
    ("folder", "role", "replica"),
    [
        ("", "agent_loop_rollout", None),
        ("agent_loop_rollout_replica_2", "agent_loop_rollout", 2),
        ("step_3/rollout_generate", "rollout_generate", None),
    ],
)
def test_the_role_is_a_rollout_unless_the_folders_say_more(
    tmp_path: Path, folder: str, role: str, replica: int | None
) -> None:
    root = tmp_path / "profile"
    (root / folder).mkdir(parents=True)
    path = root / folder / STAT
    torch.save(stat(torch.ones((1, 1, 2), dtype=torch.int32)), path)
    rows, _ = parse(path, root)
    who = resolve(str(path.relative_to(root)), rows[0], compile_rules([]), "profile")
    assert (who.role, who.replica, who.conflicts) == (role, replica, ())


def test_the_rank_is_the_same_in_the_name_and_in_the_record(tmp_path: Path) -> None:
    content = {
        "records": [record(1, torch.tensor([[1, 2]]))],
        "last_physical_to_logical_map": torch.tensor([[0, 1]]),
    }
    torch.save(content, tmp_path / OF_RANK_3)
    rows, _ = parse(tmp_path / OF_RANK_3)
    who = resolve(OF_RANK_3, rows[0], compile_rules([]), "x")
    assert (who.rank_id, who.conflicts) == (3, ())


@pytest.mark.parametrize(
    "content", [[1], None, {"a": 1}, torch.ones(3)], ids=["list", "none", "dict", "tensor"]
)
def test_a_file_of_something_else_says_what_it_lacks(tmp_path: Path, content: object) -> None:
    torch.save(content, tmp_path / STAT)
    with pytest.raises(ReadError, match="it has neither the counts nor the records of SGLang"):
        parse(tmp_path / STAT)


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    (tmp_path / STAT).write_bytes(save(tmp_path / "x.bin", [1, 2]).read_bytes()[:60])
    with pytest.raises(ReadError, match="cut off"):
        parse(tmp_path / STAT)


@pytest.mark.parametrize("counts", [None, torch.ones(3), torch.ones((0, 2, 2)), [1]])
def test_counts_of_another_shape_are_told(tmp_path: Path, counts: object) -> None:
    torch.save(stat(counts), tmp_path / STAT)
    rows, parsed = parse(tmp_path / STAT)
    assert rows == []
    assert parsed.status == "failed"
    assert "not of [passes, layers, experts]" in str(parsed.detail)


def test_an_empty_buffer_is_empty(tmp_path: Path) -> None:
    torch.save(stat(torch.zeros((3, 2, 2), dtype=torch.int32)), tmp_path / STAT)
    rows, parsed = parse(tmp_path / STAT)
    assert rows == []
    assert (parsed.status, parsed.detail) == ("empty", "no forward pass with tokens was recorded")
    torch.save({"records": [], "last_physical_to_logical_map": None}, tmp_path / STAT)
    assert parse(tmp_path / STAT)[1].status == "empty"


def test_an_odd_record_costs_only_itself(tmp_path: Path) -> None:
    good = record(1, torch.tensor([[1, 2]]))
    content = {
        "records": [good, 5, record(2, torch.tensor([1])), record(3, torch.tensor([[1, 2, 3]]))],
        "last_physical_to_logical_map": torch.tensor([[0, 1]]),
    }
    torch.save(content, tmp_path / OF_RANK_3)
    rows, parsed = parse(tmp_path / OF_RANK_3)
    assert [row["load"] for row in rows] == [[1, 2]]
    assert parsed.status == "salvaged"
    assert parsed.detail == (
        "3 records left out, the first record 1: its global_physical_count is missing"
    )


def test_negative_counts_are_left_out(tmp_path: Path) -> None:
    torch.save(stat(torch.tensor([[[1, 2], [-3, 4]]])), tmp_path / STAT)
    rows, parsed = parse(tmp_path / STAT)
    assert [row["load"] for row in rows] == [[1, 2]]
    assert parsed.detail == (
        "1 layer of a pass left out, the first pass 0, layer 1: -3 cannot be a number of tokens"
    )


@pytest.mark.parametrize("odd", [[2**62] * 4, [-5, 9, 1, 1]])
def test_replicas_do_not_hide_what_cannot_be(tmp_path: Path, odd: list[int]) -> None:
    # Added up, the one wraps round to 0 and the other is 6.
    content = {
        "records": [record(1, torch.tensor([[1, 2, 3, 4], odd]))],
        "last_physical_to_logical_map": torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0]]),
    }
    torch.save(content, tmp_path / OF_RANK_3)
    rows, parsed = parse(tmp_path / OF_RANK_3)
    assert [row["load"] for row in rows] == [[3, 7]]
    assert parsed.status == "salvaged"
    assert f"pass 1, layer 1: {odd[0]} cannot be a number of tokens" in str(parsed.detail)


def test_without_a_map_experts_are_counted_as_they_lie(tmp_path: Path) -> None:
    content = {"records": [record(1, torch.tensor([[4, 0, 5]]))]}
    torch.save(content, tmp_path / OF_RANK_3)
    rows, parsed = parse(tmp_path / OF_RANK_3)
    assert [row["load"] for row in rows] == [[4, 0, 5]]
    assert "no_expert_map" in parsed.problems


def test_a_map_of_the_same_experts_in_another_order_moves_the_counts(tmp_path: Path) -> None:
    counts = np.array([[10, 20, 30, 40]])
    content = {
        "records": [record(1, torch.tensor(counts))],
        "last_physical_to_logical_map": torch.tensor([[2, 0, 3, 1]]),
    }
    torch.save(content, tmp_path / OF_RANK_3)
    rows, _ = parse(tmp_path / OF_RANK_3)
    assert rows[0]["load"] == [20, 40, 10, 30]
