"""Which ranges are stages where none of the known ones is named, and what is left out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rl_insight.parsers import Parsed, nvtx_stages
from rl_insight.parsers.annotations import Annotations
from rl_insight.parsers.nvtx_stages import top_level
from rl_insight.problems import Problems
from tests.nvtx_exports import DOMAIN, PUSH_POP, Row, details, kernel, string, text_range
from tests.unit.test_nvtx_parser import parse, ranges, stages, told

SECOND = 1_000_000_000


def push(start: int, end: int, text: str, **more: Any) -> Row:
    return text_range(start, end, text, kind=PUSH_POP, **more)


def names(parsed: Parsed) -> list[str | None]:
    return [span["name"] for span in stages(parsed)]


def test_the_outermost_ranges_of_the_default_domain_are_stages(tmp_path: Path) -> None:
    rows = [
        push(0, 100, "make experience"),
        push(10, 90, "inner"),
        push(200, 300, "learn"),
        push(400, 500, "make experience"),
    ]
    parsed = parse(tmp_path, details(), *rows)
    assert [(span["name"], span["role"], span["raw_name"]) for span in stages(parsed)] == [
        ("make experience", "make experience", "make experience"),
        ("learn", "learn", "learn"),
        ("make experience", "make experience", "make experience"),
    ]
    (inner,) = ranges(parsed)
    assert (inner["name"], inner["role"]) == ("inner", "make experience")


def test_a_known_stage_leaves_no_other(tmp_path: Path) -> None:
    rows = [push(0, 100, "make experience"), push(200, 300, "update_actor")]
    assert names(parse(tmp_path, *rows)) == ["actor_update"]


def test_a_known_stage_of_one_process_leaves_no_other_in_any(tmp_path: Path) -> None:
    rows = [
        push(0, 100, "update_actor"),
        push(0, 100, "make experience", pid=222),
        string(1, "gemm"),
        kernel(10, 20, 1, pid=222),
    ]
    parsed = parse(tmp_path, *rows)
    assert [(span["lane_id"], span["role"]) for span in stages(parsed)] == [
        ("s-0", "actor_update"),
        ("s-1", None),
    ]


@pytest.mark.parametrize(
    "marker",
    [
        *("step", "step 5", "step_5", "Step#5", "global_step 12", "train_step: 3", "iteration 17"),
        *("iter=3", "epoch 2", "batch 7", "mini_batch0", "micro_batch_1", "17", "warmup", "e2e"),
        *("train", "step 3/100", "iteration 4 of 9", "warm-up 1"),
    ],
)
def test_numbers_of_steps_are_no_stages_but_what_lies_in_them_is(
    tmp_path: Path, marker: str
) -> None:
    rows = [push(0, 100, marker), push(10, 40, "generate"), push(50, 90, "learn")]
    assert names(parse(tmp_path, *rows)) == ["generate", "learn"]


@pytest.mark.parametrize("name", ["stepwise", "iterate", "epochs end", "batch norm", "training"])
def test_words_that_only_begin_like_a_marker_are_stages(tmp_path: Path, name: str) -> None:
    assert names(parse(tmp_path, push(0, 100, name))) == [name]


def test_a_capture_of_steps_alone_is_one_stage_with_the_steps_in_it(tmp_path: Path) -> None:
    rows = [push(n * 100, n * 100 + 90, f"step {n}") for n in range(3)]
    parsed = parse(tmp_path, details(), *rows)
    assert names(parsed) == [None]
    assert [span["name"] for span in ranges(parsed)] == ["step 0", "step 1", "step 2"]


def test_names_that_differ_in_their_number_are_one_role(tmp_path: Path) -> None:
    rows = [push(0, 50, "rollout 1"), push(100, 150, "rollout 2"), push(200, 250, "phase3")]
    parsed = parse(tmp_path, *rows)
    assert [(span["role"], span["raw_name"]) for span in stages(parsed)] == [
        ("rollout", "rollout 1"),
        ("rollout", "rollout 2"),
        ("phase3", "phase3"),
    ]


# -- torch's operators ---------------------------------------------------------------------------


def operators(count: int) -> Iterator[Row]:
    """What `torch.autograd.profiler.emit_nvtx` puts around each operator, and those inside."""
    for n in range(count):
        yield push(n * 100, n * 100 + 90, f"aten::linear, op_id = {n}")
        yield push(n * 100 + 10, n * 100 + 80, f"aten::mm, seq = {n}, op_id = {n}, sizes = [[2]]")


def test_operators_are_no_stages(tmp_path: Path) -> None:
    parsed = parse(tmp_path, details(), *operators(30))
    (whole,) = stages(parsed)
    assert (whole["role"], whole["start_ns"], whole["duration_ns"]) == (
        None,
        35_255_823_190,
        29 * 100 + 90,
    )


def test_operators_are_ranges_that_are_called_by_their_name_alone(tmp_path: Path) -> None:
    parsed = parse(tmp_path, push(0, 1_000, "learn"), *operators(1))
    assert [(span["name"], span["raw_name"], span["depth"]) for span in ranges(parsed)] == [
        ("aten::linear", "aten::linear, op_id = 0", 1),
        ("aten::mm", "aten::mm, seq = 0, op_id = 0, sizes = [[2]]", 2),
    ]
    assert names(parsed) == ["learn"]


def test_of_many_operators_the_longest_are_kept_and_the_others_counted(tmp_path: Path) -> None:
    # GIVEN 20,000 operators of 1 to 20,000 ns
    rows = [push(n * 50_000, n * 50_000 + n + 1, f"aten::mm, op_id = {n}") for n in range(20_000)]
    parsed = parse(tmp_path, *rows)
    # THEN the 2,000 longest are there, and the stage goes from the first to the last of all
    kept = sorted(span["duration_ns"] for span in ranges(parsed))
    assert kept == list(range(18_001, 20_001))
    (whole,) = stages(parsed)
    assert (whole["start_ns"], whole["duration_ns"]) == (0, 19_999 * 50_000 + 20_000)
    assert told(parsed.problems) == {"operators_left_out": 18_000}


# -- limits --------------------------------------------------------------------------------------


def annotations(*given: tuple[int, int, str]) -> Annotations:
    found = Annotations()
    for start, end, name in given:
        found.add(start, end, name, "1")
    return found


def test_what_is_called_too_often_is_no_stage() -> None:
    # GIVEN one stage, and one part that takes little time but is called 5,000 times
    many = [(10_000 + n * 10, 10_000 + n * 10 + 1, "kernel launch") for n in range(5_000)]
    problems = Problems()
    found = top_level(annotations((0, 9_000, "learn"), *many), problems)
    assert found == {"learn": "learn"}
    (problem,) = problems
    assert (problem.code, problem.severity, problem.count) == ("top_level_left_out", "info", 5_000)
    assert problem.example == "'kernel launch' is called too often to be a stage"


def test_where_the_rest_is_the_larger_part_there_are_no_stages() -> None:
    many = [(n * 100, n * 100 + 90, "layer") for n in range(5_000)]
    problems = Problems()
    assert top_level(annotations(*many, (600_000, 601_000, "save")), problems) == {}
    assert problems.count("top_level_left_out") == 5_001


def test_of_many_roles_those_with_the_most_time_are_stages() -> None:
    # GIVEN 16 roles of 900 ns, and 24 of 100 ns between them
    words = [f"{first}{second}" for first in "abcd" for second in "klmnopqrst"]
    given = [
        (n * 1_000, n * 1_000 + (900 if n % 5 < 2 else 100), word) for n, word in enumerate(words)
    ]
    problems = Problems()
    found = top_level(annotations(*given), problems)
    assert list(found) == [word for n, word in enumerate(words) if n % 5 < 2]
    assert problems.count("top_level_left_out") == 24


def test_ten_thousand_layers_do_not_become_stages(tmp_path: Path) -> None:
    rows = [push(n * 100, n * 100 + 90, f"layer {n % 48}") for n in range(10_000)]
    parsed = parse(tmp_path, *rows)
    assert names(parsed) == [None]
    assert told(parsed.problems) == {"top_level_left_out": 10_000}
    assert len(ranges(parsed)) == 10_000


def test_stages_of_other_threads_stand_beside_each_other(tmp_path: Path) -> None:
    rows = [push(0, 100, "learn"), push(50, 80, "load")]
    rows[1]["globalTid"] = 1 << 48 | 111 << 24 | 999
    assert names(parse(tmp_path, *rows)) == ["learn", "load"]


def test_ranges_of_other_domains_are_no_stages(tmp_path: Path) -> None:
    rows = [
        text_range(0, None, "ours", kind=DOMAIN, domainId=4),
        push(0, 100, "outer", domainId=4),
        push(10, 50, "learn"),
    ]
    assert names(parse(tmp_path, *rows)) == ["learn"]


def test_limits_are_as_documented() -> None:
    assert (nvtx_stages.MOST_ROLES, nvtx_stages.MOST_CALLS) == (16, 1_000)
