import pytest

from rl_insight.parsers import stages
from rl_insight.parsers.annotations import Annotations, batch_of
from rl_insight.parsers.stages import Capture, Span, find_spans
from rl_insight.problems import Problems

MAIN = "100"
OTHER = "200"

Given = tuple[int, int, str] | tuple[int, int, str, str]


def collect(*given: Given, most: int = 50_000) -> Annotations:
    """Annotations from (start, end, name[, tid])."""
    annotations = Annotations(most)
    for start, end, name, *tid in given:
        annotations.add(start, end, name, tid[0] if tid else MAIN)
    return annotations


def spans_of(
    *given: Given, role: str | None = None, depth: int = 2, end: int | None = None
) -> list[Span]:
    return find_spans(collect(*given), Capture(0, 1_000, end, role), depth, Problems())


def stages_of(*given: Given, role: str | None = None) -> list[tuple[str | None, int, int]]:
    return [
        (span.name, span.start_ns, span.end_ns)
        for span in spans_of(*given, role=role)
        if span.kind == "stage"
    ]


def ranges_of(*given: Given, depth: int = 2) -> list[tuple[str | None, int]]:
    return [(span.name, span.depth) for span in spans_of(*given, depth=depth)][1:]


# -- stages --------------------------------------------------------------------------------------


def test_a_capture_of_one_stage_takes_its_time_from_the_stages_own_annotation() -> None:
    (stage,) = spans_of((100, 900, "update_actor"))
    assert stage == Span(
        kind="stage",
        depth=0,
        start_ns=100,
        end_ns=900,
        name="actor_update",
        raw_name="update_actor",
        role="actor_update",
        tid=MAIN,
    )


def test_without_an_annotation_the_stage_is_first_to_last_event_and_has_no_name() -> None:
    (stage,) = spans_of()
    assert stage == Span(kind="stage", depth=0, start_ns=0, end_ns=1_000)


def test_a_capture_of_a_whole_step_is_split_into_its_stages_in_order() -> None:
    found = stages_of(
        (500, 900, "update_actor"),
        (0, 200, "compute_log_prob"),
        (200, 400, "ref_compute_log_prob"),
        role="train",
    )
    assert found == [
        ("actor_compute_log_prob", 0, 200),
        ("ref_compute_log_prob", 200, 400),
        ("actor_update", 500, 900),
    ]


def test_several_known_stages_split_a_capture_whatever_its_path_says() -> None:
    found = stages_of((0, 200, "compute_log_prob"), (300, 900, "update_actor"), role="actor_update")
    assert [name for name, _, _ in found] == ["actor_compute_log_prob", "actor_update"]


def test_a_stage_that_is_called_twice_gives_two_spans() -> None:
    assert stages_of((0, 200, "compute_values"), (300, 500, "compute_values")) == [
        ("critic_compute_values", 0, 200),
        ("critic_compute_values", 300, 500),
    ]


def test_of_a_stage_inside_itself_the_outermost_counts() -> None:
    assert stages_of((0, 900, "actor_update"), (10, 890, "update_actor")) == [
        ("actor_update", 0, 900)
    ]


def test_a_stage_that_a_second_thread_repeats_counts_once() -> None:
    assert stages_of((0, 900, "actor_update"), (10, 890, "actor_update", OTHER)) == [
        ("actor_update", 0, 900)
    ]


def test_a_known_stage_inside_another_is_a_range_of_it() -> None:
    stage, inner = spans_of((0, 900, "update_actor"), (10, 890, "train_batch"))
    assert (stage.kind, stage.name) == ("stage", "actor_update")
    assert (inner.kind, inner.name, inner.role) == ("range", "train_batch", "actor_update")


def test_different_stages_of_two_threads_may_overlap() -> None:
    assert len(stages_of((0, 900, "update_actor"), (100, 800, "compute_rm_score", OTHER))) == 2


def test_an_unknown_annotation_is_the_stage_when_the_path_names_the_same_role() -> None:
    assert stages_of((50, 700, "env_step"), role="env_step") == [("env_step", 50, 700)]
    assert stages_of((50, 700, "env_step"), role="env_reset") == [(None, 0, 1_000)]


def test_the_label_of_a_whole_step_is_no_stage() -> None:
    assert stages_of((0, 900, "train"), role="train") == [(None, 0, 1_000)]


# -- ranges --------------------------------------------------------------------------------------


def test_mini_and_micro_batches_are_numbered_ranges_below_their_stage() -> None:
    found = spans_of(
        (0, 900, "update_actor"),
        (10, 400, "mini_batch0"),
        (20, 200, "micro_batch0"),
        (210, 390, "micro_batch1"),
        (410, 890, "mini_batch1"),
        (420, 880, "micro_batch0"),
    )
    assert [
        (span.name, span.parent, span.depth, span.mini_batch, span.micro_batch) for span in found
    ] == [
        ("actor_update", None, 0, None, None),
        ("mini_batch0", 0, 1, 0, None),
        ("micro_batch0", 1, 2, 0, 0),
        ("micro_batch1", 1, 2, 0, 1),
        ("mini_batch1", 0, 1, 1, None),
        ("micro_batch0", 4, 2, 1, 0),
    ]
    assert {span.role for span in found} == {"actor_update"}


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("mini_batch0", (0, None)),
        ("micro_batch12", (None, 12)),
        ("mini-batch_3", (3, None)),
        ("mini_batch", (None, None)),
        ("micro_batch1_forward", (None, None)),
        ("mini_batch99999999999", (None, None)),
    ],
)
def test_only_a_whole_batch_name_has_a_number(
    name: str, numbers: tuple[int | None, int | None]
) -> None:
    assert batch_of(name) == numbers


def test_ranges_are_kept_as_deep_as_asked_and_batches_deeper() -> None:
    given = (
        (0, 900, "update_actor"),
        (10, 800, "outer"),
        (20, 700, "middle"),
        (30, 600, "inner"),
        (40, 500, "micro_batch0"),
        (50, 400, "innermost"),
    )
    assert ranges_of(*given, depth=2) == [("outer", 1), ("middle", 2), ("micro_batch0", 3)]
    assert ranges_of(*given, depth=1) == [("outer", 1), ("micro_batch0", 2)]
    assert ranges_of(*given, depth=0) == []


def test_ranges_outside_every_stage_are_left_out() -> None:
    assert ranges_of((100, 200, "update_actor"), (0, 50, "before"), (300, 400, "after")) == []


def test_ranges_nest_by_thread() -> None:
    found = spans_of((0, 500, "generate"), (10, 400, "prefill"), (20, 300, "copy", OTHER))
    assert [(span.name, span.depth, span.parent) for span in found] == [
        (None, 0, None),
        ("generate", 1, 0),
        ("prefill", 2, 1),
        ("copy", 1, 0),
    ]


def test_below_an_annotated_stage_only_its_own_thread_counts() -> None:
    assert ranges_of((0, 900, "update_actor"), (10, 20, "hook", OTHER)) == []


def test_a_range_that_follows_another_is_not_inside_it() -> None:
    given = ((0, 900, "update_actor"), (10, 20, "a"), (20, 30, "b"), (40, 50, "c"), (41, 50, "d"))
    assert ranges_of(*given) == [("a", 1), ("b", 1), ("c", 1), ("d", 2)]


def test_a_range_inside_one_of_the_same_name_is_that_range_again() -> None:
    assert ranges_of((0, 900, "update_actor"), (10, 90, "fsdp"), (20, 80, "fsdp")) == [("fsdp", 1)]


@pytest.mark.parametrize(
    "name",
    [
        "nccl:all_reduce",
        "gloo:all_reduce",
        "ProfilerStep#7",
        "Optimizer.zero_grad#AdamW.zero_grad",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    ],
)
def test_noise_is_no_range(name: str) -> None:
    assert ranges_of((0, 900, "update_actor"), (10, 90, name), (20, 80, "forward")) == [
        ("forward", 1)
    ]


def test_the_step_of_the_optimizer_is_a_range() -> None:
    name = "Optimizer.step#AdamW.step"
    assert ranges_of((0, 900, "update_actor"), (10, 90, name)) == [(name, 1)]


def test_a_range_that_reaches_the_end_of_the_capture_is_cut() -> None:
    stage, whole, cut = spans_of(
        (0, 900, "update_actor"), (1, 2, "whole"), (5, 900, "cut"), end=900
    )
    assert (stage.truncated, whole.truncated, cut.truncated) == (True, False, True)


def test_a_stage_taken_from_the_events_of_a_broken_file_is_cut() -> None:
    (stage,) = find_spans(collect(), Capture(0, 10, cut_short=True), 2, Problems())
    assert stage.truncated


def test_annotations_without_length_are_passed_over() -> None:
    assert ranges_of((0, 900, "update_actor"), (10, 10, "nothing"), (30, 20, "less")) == []


# -- bounds --------------------------------------------------------------------------------------


def test_too_many_ranges_are_left_out_from_below_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stages, "MOST_SPANS", 5)
    problems = Problems()
    found = find_spans(
        collect(
            (0, 900, "update_actor"),
            (10, 400, "mini_batch0"),
            (20, 30, "short"),
            (40, 300, "long"),
            (410, 890, "mini_batch1"),
            (420, 440, "shorter"),
            (450, 880, "longest"),
        ),
        Capture(0, 1_000),
        2,
        problems,
    )
    assert [(span.name, span.parent) for span in found] == [
        ("actor_update", None),
        ("mini_batch0", 0),
        ("long", 1),
        ("mini_batch1", 0),
        ("longest", 3),
    ]
    assert problems.count("ranges_left_out") == 2


def test_of_endless_annotations_stages_batches_and_the_longest_are_kept() -> None:
    annotations = collect((0, 10_000, "update_actor"), (1, 3, "micro_batch0"), most=50)
    for number in range(1_000):
        annotations.add(10 * number, 10 * number + 1 + number % 9, f"op {number}", MAIN)
        assert len(annotations) <= 101
    names = {one.name for one in annotations}
    assert {"update_actor", "micro_batch0"} <= names
    assert annotations.left_out + len(annotations) == 1_002
    lengths = [one.end_ns - one.start_ns for one in annotations if one.name.startswith("op")]
    assert sorted(lengths)[-40:] == [9] * 40


def test_annotations_come_in_order_the_outer_before_the_inner() -> None:
    annotations = collect((5, 9, "late"), (0, 4, "inner"), (0, 9, "outer", OTHER))
    assert [tuple(one) for one in annotations] == [
        (0, 9, "outer", OTHER, "default"),
        (0, 4, "inner", MAIN, "default"),
        (5, 9, "late", MAIN, "default"),
    ]


def test_a_name_without_end_is_cut() -> None:
    (one,) = collect((0, 5, "x" * 100_000))
    assert len(one.name) == 500


def test_too_many_stages_are_joined_so_that_none_of_their_time_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stages, "MOST_SPANS", 4)
    problems = Problems()
    # GIVEN ten calls close to each other, and one far behind
    given: list[Given] = [(1_000 * at, 1_000 * at + 900, "update_actor") for at in range(10)]
    given.append((90_000, 90_500, "update_actor"))

    found = find_spans(collect(*given), Capture(0, 100_000), 0, problems)

    # THEN the time of each is still there, and a person is told
    assert [(span.start_ns, span.end_ns) for span in found] == [(0, 9_900), (90_000, 90_500)]
    (problem,) = problems
    assert (problem.code, problem.severity, problem.count) == ("stages_joined", "warning", 9)
    assert "1,000 ns" in str(problem.example)


def test_the_ranges_of_joined_stages_lie_in_the_joined_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "MOST_SPANS", 4)
    given: list[Given] = [(1_000 * at, 1_000 * at + 900, "update_actor") for at in range(5)]
    found = find_spans(collect(*given, (4_100, 4_200, "inner")), Capture(0, 9_000), 2, Problems())
    assert [(span.name, span.parent, span.end_ns) for span in found] == [
        ("actor_update", None, 4_900),
        ("inner", 0, 4_200),
    ]


def test_stages_that_could_not_be_held_are_a_warning() -> None:
    given: list[Given] = [(10 * at, 10 * at + 5, "update_actor") for at in range(101)]
    problems = Problems()
    find_spans(collect(*given, most=50), Capture(0, 2_000), 2, problems)
    (problem,) = problems
    assert (problem.code, problem.severity, problem.count) == ("stages_left_out", "warning", 51)
