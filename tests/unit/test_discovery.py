"""From a listing to what is parsed, and what is not, with its reason."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rl_insight.data.identity import compile_rules
from rl_insight.data.tree import Tree, scan
from rl_insight.errors import InputError, PluginError
from rl_insight.parsers import PARSERS, Found, Parser
from rl_insight.pipeline.discovery import Discovery, Filters, Skipped, discover, parser_names
from tests.made_up_parser import NoteParser

NO_RULES = compile_rules([])
ALL = Filters()

Register = Callable[[Parser], None]


def write(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("{}")
    return root


def look(root: Path, *names: str, filters: Filters = ALL, rules: tuple[str, ...] = ()) -> Discovery:
    return discover(scan(root), names or ("notes",), compile_rules(list(rules)), filters)


def found_paths(discovery: Discovery, parser: str = "notes") -> list[str]:
    return [found.path for found in discovery.found.get(parser, [])]


def test_what_a_parser_claims_is_parsed_and_what_it_passes_over_says_why(
    tmp_path: Path, notes: NoteParser
) -> None:
    found = look(write(tmp_path, "a.note", "b.memo", "readme.txt"))
    assert found.found == {"notes": [Found("a.note", ("a.note",))]}
    assert found.skipped == [Skipped("b.memo", "notes", "a memo holds no capture")]


def test_a_path_that_two_parsers_claim_goes_to_the_first_named(
    tmp_path: Path, notes: NoteParser, register_parser: Register
) -> None:
    register_parser(NoteParser(name="others"))
    register_parser(NoteParser(name="memos", suffix=".memo"))
    write(tmp_path, "a.note", "b.memo")

    both = look(tmp_path, "others", "notes", "memos")

    # The memo that two pass over is parsed by the third, so nothing says that it was skipped.
    assert found_paths(both, "others") == ["a.note"]
    assert found_paths(both, "notes") == []
    assert found_paths(both, "memos") == ["b.memo"]
    assert both.skipped == []


class FolderParser(NoteParser):
    """One input is a whole folder `<name>_capture` with all its files."""

    def discover(self, tree: Tree) -> Iterator[Found]:
        folders = {file.folder for file in tree.files if file.folder.endswith("_capture")}
        for folder in sorted(folders):
            files = tuple(file.path for file in tree.files if file.folder == folder)
            yield Found(folder, files)


def test_a_folder_that_one_parser_claims_is_not_skipped_by_another(
    tmp_path: Path, register_parser: Register
) -> None:
    # GIVEN a parser that passes over folders that another one reads
    class PassesOver(FolderParser):
        def discover(self, tree: Tree) -> Iterator[Found]:
            for found in super().discover(tree):
                yield Found(found.path, found.files, skip="a folder of another profiler")

    register_parser(PassesOver(name="picky"))
    register_parser(FolderParser(name="folders"))
    write(tmp_path, "rank0_capture/a.bin", "rank0_capture/b.bin")

    found = look(tmp_path, "picky", "folders")

    assert found_paths(found, "folders") == ["rank0_capture"]
    assert found.skipped == []


def test_folders_that_are_all_filtered_away_are_no_mistake_of_the_input(
    tmp_path: Path, register_parser: Register
) -> None:
    register_parser(FolderParser(name="folders"))
    write(tmp_path, "rank0_capture/a.bin")
    found = look(
        tmp_path,
        "folders",
        filters=Filters(ranks=frozenset({7})),
        rules=(r"rank(?P<rank>\d+)_capture",),
    )
    assert found.found == {}
    assert found.skipped == [
        Skipped("rank0_capture", "folders", "rank 0 is not in input.rank_list")
    ]


def test_only_what_is_certain_is_left_out_before_parsing(tmp_path: Path, notes: NoteParser) -> None:
    # GIVEN names that say a rank, which the file itself may contradict
    write(tmp_path, "actor_update/rank0.note", "actor_update/rank1.note")
    only_rank_1 = Filters(ranks=frozenset({1}))
    # WHEN only rank 1 is wanted THEN both are parsed all the same
    assert len(found_paths(look(tmp_path, filters=only_rank_1))) == 2
    # WHEN the user's own expression tells the rank THEN only that one is
    by_rule = look(tmp_path, filters=only_rank_1, rules=(r"rank(?P<rank>\d+)",))
    assert found_paths(by_rule) == ["actor_update/rank1.note"]
    assert [one.path for one in by_rule.filtered["notes"]] == ["actor_update/rank0.note"]
    assert by_rule.skipped == [
        Skipped("actor_update/rank0.note", "notes", "rank 0 is not in input.rank_list")
    ]


@pytest.mark.parametrize(
    ("filters", "kept", "reason"),
    [
        (Filters(steps=frozenset({2})), "step2", "step 1 is not among the chosen steps"),
        (
            Filters(roles=frozenset({"update_actor"})),
            "update",
            "role ref_compute_log_prob is not among the chosen roles",
        ),
    ],
)
def test_steps_and_roles_are_filtered_by_what_the_users_expression_tells(
    tmp_path: Path, notes: NoteParser, filters: Filters, kept: str, reason: str
) -> None:
    write(tmp_path, "actor_update_step2.note", "ref_compute_log_prob_step1.note")
    found = look(tmp_path, filters=filters, rules=(r"(?P<role>\w+)_step(?P<step>\d+)",))
    assert len(found_paths(found)) == 1
    assert kept in found_paths(found)[0]
    assert [row.reason for row in found.skipped] == [reason]


def test_a_folder_that_cannot_be_listed_has_a_row_and_costs_nobody_else(
    ordinary_folder: Path, notes: NoteParser
) -> None:
    write(ordinary_folder, "a.note", "closed/b.note")
    (ordinary_folder / "closed").chmod(0)
    found = look(ordinary_folder)
    assert found_paths(found) == ["a.note"]
    assert found.skipped == [
        Skipped("closed", "notes", "cannot be read: Permission denied", "failed")
    ]


def test_what_macos_leaves_beside_each_file_is_no_input_and_has_a_row(
    tmp_path: Path, notes: NoteParser
) -> None:
    found = look(write(tmp_path, "a.note", "._a.note", "sub/._b.note"))
    assert found_paths(found) == ["a.note"]
    why = "macOS left this beside a file: it holds no profile"
    assert found.skipped == [
        Skipped("._a.note", "notes", why),
        Skipped("sub/._b.note", "notes", why),
    ]


def test_a_pipe_is_passed_over_and_a_dangling_link_has_failed(
    tmp_path: Path, notes: NoteParser
) -> None:
    write(tmp_path, "a.note")
    os.mkfifo(tmp_path / "b.note")
    (tmp_path / "c.note").symlink_to("gone.note")
    assert look(tmp_path).skipped == [
        Skipped("b.note", "notes", "cannot be read: not a regular file", "skipped"),
        Skipped("c.note", "notes", "cannot be read: No such file or directory", "failed"),
    ]


def test_the_empty_folder_of_a_stage_is_told_another_empty_folder_is_not(
    tmp_path: Path, notes: NoteParser
) -> None:
    write(tmp_path, "actor_update/a.note")
    for folder in ("ref_compute_log_prob", "agent_loop_rollout_replica_3/x", "e2e", "tensorboard"):
        (tmp_path / folder).mkdir(parents=True)
    assert [(row.path, row.status) for row in look(tmp_path).skipped] == [
        ("agent_loop_rollout_replica_3/x", "empty"),
        ("e2e", "empty"),
        ("ref_compute_log_prob", "empty"),
    ]


def test_an_empty_folder_is_refused(tmp_path: Path, notes: NoteParser) -> None:
    (tmp_path / "actor_update").mkdir()
    with pytest.raises(InputError) as refused:
        look(tmp_path)
    assert str(refused.value) == f"input.path: '{tmp_path}' is empty: there is nothing to read"


def test_a_folder_of_other_things_is_refused_and_says_what_they_are(
    tmp_path: Path, notes: NoteParser
) -> None:
    write(tmp_path, "a.txt", "b.txt", "c.pdf", "Makefile")
    with pytest.raises(InputError) as refused:
        look(tmp_path)
    assert str(refused.value) == (
        f"input.path: '{tmp_path}' holds no notes profile among its 4 files "
        "(2 .txt, 1 no suffix, 1 .pdf)"
    )


def test_a_folder_of_another_profilers_files_names_it_and_how_to_choose_it(
    tmp_path: Path, notes: NoteParser, register_parser: Register
) -> None:
    register_parser(NoteParser(name="memos", suffix=".memo"))
    write(tmp_path, "a.memo", "b.memo")
    with pytest.raises(InputError) as refused:
        look(tmp_path)
    assert str(refused.value) == (
        f"input.path: '{tmp_path}' holds no notes profile, but 2 memos inputs: "
        "choose timeline.parser.type=memos (--profiler-type memos)"
    )


def test_a_folder_for_the_heatmap_names_the_preset(
    tmp_path: Path, notes: NoteParser, register_parser: Register
) -> None:
    register_parser(NoteParser(name="loads", preset="heatmap", suffix=".load"))
    write(tmp_path, "a.load")
    with pytest.raises(InputError, match=r"but 1 loads input: choose preset=heatmap"):
        look(tmp_path)


@pytest.mark.parametrize(
    ("names", "remedy"),
    [
        (("gmm",), "choose heatmap.parser.type=sglang"),
        (("notes",), "choose preset=heatmap heatmap.parser.type=sglang"),
    ],
)
def test_a_folder_of_sglang_names_the_parser_since_the_preset_alone_reads_another(
    tmp_path: Path, notes: NoteParser, names: tuple[str, ...], remedy: str
) -> None:
    write(tmp_path, "expert_distribution_recorder_1.5.pt")
    with pytest.raises(InputError) as refused:
        look(tmp_path, *names)
    assert str(refused.value).endswith(f", but 1 sglang input: {remedy}")


def test_a_folder_of_group_lists_names_the_preset_which_reads_them(
    tmp_path: Path, notes: NoteParser
) -> None:
    write(tmp_path, "rank0/dump_tensor_data/NPU.npu_grouped_matmul.0.forward.kwargs.group_list.pt")
    with pytest.raises(InputError, match=r"but 1 gmm input: choose preset=heatmap \(--preset"):
        look(tmp_path)


def test_a_broken_parser_of_somebody_else_does_not_hide_what_is_wrong(
    tmp_path: Path, notes: NoteParser
) -> None:
    PARSERS.register("broken", "no_such_module_at_all:PARSER")
    write(tmp_path, "a.txt")
    with pytest.raises(InputError, match="holds no notes profile among its 1 file "):
        look(tmp_path)


def test_when_all_is_passed_over_the_first_reason_is_told(
    tmp_path: Path, notes: NoteParser
) -> None:
    write(tmp_path, "a.memo", "b.memo")
    with pytest.raises(InputError) as refused:
        look(tmp_path)
    assert str(refused.value) == (
        f"input.path: '{tmp_path}' holds no notes profile among its 2 files (2 .memo); "
        "not read: a.memo: a memo holds no capture, and 1 more"
    )


def test_a_folder_of_which_nothing_can_be_listed_says_why(
    ordinary_folder: Path, notes: NoteParser
) -> None:
    write(ordinary_folder, "closed/b.note")
    (ordinary_folder / "closed").chmod(0)
    with pytest.raises(InputError) as refused:
        look(ordinary_folder)
    assert str(refused.value) == (
        f"input.path: '{ordinary_folder}' holds no notes profile; "
        "not read: closed: Permission denied"
    )


def test_a_parser_that_claims_a_file_that_is_not_there_is_named(
    tmp_path: Path, register_parser: Register
) -> None:
    class Imagines(NoteParser):
        def discover(self, tree: Tree) -> Iterator[Found]:
            yield Found("a", ("a/info.json",))

    register_parser(Imagines(name="dreamer"))
    write(tmp_path, "a.note")
    with pytest.raises(PluginError, match=r"the dreamer parser claims 'a/info\.json', which"):
        look(tmp_path, "dreamer")


def test_auto_stands_for_every_parser_of_the_preset(
    notes: NoteParser, register_parser: Register
) -> None:
    register_parser(NoteParser(name="loads", preset="heatmap"))
    names = parser_names("auto", "timeline")
    assert "notes" in names
    assert "torch" in names
    assert "loads" not in names
    assert parser_names("auto", "heatmap")[-1] == "loads"


def test_parsers_are_named_by_comma_and_a_wrong_name_is_refused(notes: NoteParser) -> None:
    assert parser_names("notes, torch", "timeline") == ["notes", "torch"]
    with pytest.raises(PluginError, match="did you mean 'notes'"):
        parser_names("torch,note", "timeline")


@pytest.mark.parametrize("name", ["my.parser", "a/b", "ünicode", "../x"])
def test_a_parser_whose_name_no_folder_should_have_is_refused(
    register_parser: Register, name: str
) -> None:
    register_parser(NoteParser(name=name))
    with pytest.raises(PluginError, match="cannot be used under the name"):
        parser_names(name, "timeline")


def test_a_parser_that_is_registered_under_another_name_than_its_own_is_refused(
    notes: NoteParser,
) -> None:
    PARSERS.register("memos", notes)
    with pytest.raises(
        PluginError, match="the parser 'notes' cannot be used under the name 'memos'"
    ):
        parser_names("memos", "timeline")
