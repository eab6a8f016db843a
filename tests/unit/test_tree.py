"""The input folder is listed as it is: everything once, nothing followed in circles."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rl_insight.data.tree import File, Tree, scan
from rl_insight.errors import InputError

ODD_NAMES = [
    b"with space.json",
    b"new\nline.json",
    b"not utf-8 \xff\xfe.json",
    b"-leading-dash.json",
    b"{braces}.json",
    b"star * and [glob]?.json",
    b"quote\"'`$(x).json",
    b"back\\slash.json",
    b"Rank0.json",
    b"rank0.json",
    b"e\xcc\x81 decomposed.json",
    b"\xc3\xa9 composed.json",
    b"x" * 250 + b".json",
]


def write(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    return root


def listed(tree: Tree) -> list[str]:
    return [file.path for file in tree.files]


def test_files_are_listed_with_size_and_time_in_the_order_of_their_paths(tmp_path: Path) -> None:
    write(tmp_path, "b/rank1.json", "b/rank0.json", "a.json", "b-x/rank0.json")
    os.utime(tmp_path / "a.json", ns=(1, 1_771_730_291_744_166_997))

    tree = scan(tmp_path)

    assert listed(tree) == ["a.json", "b-x/rank0.json", "b/rank0.json", "b/rank1.json"]
    assert tree.files[0] == File("a.json", 6, 1_771_730_291_744_166_997)
    assert tree.root == tmp_path
    assert tree.unreadable == []
    assert tree.empty_folders == []


def test_a_file_knows_its_name_folder_and_parts() -> None:
    deep, flat = File("a/b/c.json", 1, 1), File("c.json", 1, 1)
    assert (deep.name, deep.folder, deep.parts) == ("c.json", "a/b", ("a", "b", "c.json"))
    assert (flat.name, flat.folder, flat.parts) == ("c.json", "", ("c.json",))


def test_names_of_any_bytes_are_listed_and_can_be_opened(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"a {b}\n\xff")
    folder.mkdir()
    for name in ODD_NAMES:
        (folder / os.fsdecode(name)).write_bytes(name)

    tree = scan(tmp_path)

    assert sorted(os.fsencode(file.name) for file in tree.files) == sorted(ODD_NAMES)
    assert all(tree.head(file.path) == os.fsencode(file.name) for file in tree.files)


def test_folders_that_hold_nothing_are_told(tmp_path: Path) -> None:
    write(tmp_path, "actor_update/rank0.json")
    (tmp_path / "ref_compute_log_prob").mkdir()
    (tmp_path / "deep" / "inside").mkdir(parents=True)
    assert scan(tmp_path).empty_folders == ["deep/inside", "ref_compute_log_prob"]


def test_an_empty_input_folder_is_listed_as_empty_not_refused(tmp_path: Path) -> None:
    tree = scan(tmp_path)
    assert tree.files == []
    assert tree.empty_folders == []


def test_links_in_circles_end(tmp_path: Path) -> None:
    write(tmp_path, "a/b/rank0.json")
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "self").symlink_to(tmp_path / "a")
    (tmp_path / "round").symlink_to(tmp_path / "round")

    tree = scan(tmp_path)

    assert listed(tree) == ["a/b/rank0.json"]
    assert tree.unreadable == [("round", "Too many levels of symbolic links")]


@pytest.mark.parametrize("link", ["a_link", "z_link"])
def test_what_stands_in_the_tree_goes_by_its_own_name_not_by_a_links(
    tmp_path: Path, link: str
) -> None:
    # GIVEN a folder and a file, and links to both whose names come before or after theirs
    write(tmp_path, "run/rank0.json")
    (tmp_path / link).symlink_to("run", target_is_directory=True)
    (tmp_path / f"{link}.json").symlink_to("run/rank0.json")
    # WHEN the folder is listed THEN each capture is there once
    assert listed(scan(tmp_path)) == ["run/rank0.json"]


def test_links_out_of_the_folder_are_followed(tmp_path: Path) -> None:
    elsewhere = write(tmp_path / "disk", "deep/rank1.json", "rank0.json")
    root = tmp_path / "run"
    root.mkdir()
    (root / "data").symlink_to(elsewhere / "deep", target_is_directory=True)
    (root / "again").symlink_to(elsewhere / "deep", target_is_directory=True)
    (root / "rank0.json").symlink_to(elsewhere / "rank0.json")
    assert listed(scan(root)) == ["again/rank1.json", "rank0.json"]


def test_a_link_to_a_folder_above_does_not_lead_through_the_machine(tmp_path: Path) -> None:
    root = write(tmp_path / "mine" / "run", "rank0.json")
    write(tmp_path, "others/rank7.json")
    (root / "up").symlink_to(tmp_path, target_is_directory=True)
    (root / "all").symlink_to("/", target_is_directory=True)
    assert listed(scan(root)) == ["rank0.json"]


def test_a_link_to_nothing_is_told(tmp_path: Path) -> None:
    write(tmp_path, "rank0.json")
    (tmp_path / "rank1.json").symlink_to(tmp_path / "gone.json")
    tree = scan(tmp_path)
    assert listed(tree) == ["rank0.json"]
    assert tree.unreadable == [("rank1.json", "No such file or directory")]


def test_the_input_folder_may_itself_be_a_link(tmp_path: Path) -> None:
    write(tmp_path / "run_17", "rank0.json")
    (tmp_path / "latest").symlink_to("run_17", target_is_directory=True)
    tree = scan(tmp_path / "latest")
    assert listed(tree) == ["rank0.json"]
    assert tree.root == tmp_path / "latest"


def test_pipes_and_sockets_are_told_and_never_opened(tmp_path: Path) -> None:
    write(tmp_path, "rank0.json")
    os.mkfifo(tmp_path / "rank1.json")
    tree = scan(tmp_path)
    assert listed(tree) == ["rank0.json"]
    assert tree.unreadable == [("rank1.json", "not a regular file")]


def test_a_folder_that_may_not_be_listed_costs_nobody_else(ordinary_folder: Path) -> None:
    write(ordinary_folder, "a/rank0.json", "closed/rank1.json", "only-names/rank2.json")
    (ordinary_folder / "closed").chmod(0)
    (ordinary_folder / "only-names").chmod(0o400)

    tree = scan(ordinary_folder)

    assert listed(tree) == ["a/rank0.json"]
    assert tree.unreadable == [
        ("closed", "Permission denied"),
        ("only-names/rank2.json", "Permission denied"),
    ]


def test_hidden_folders_hold_no_captures(tmp_path: Path) -> None:
    write(tmp_path, "rank0.json", ".ipynb_checkpoints/rank0.json", "a/.git/objects/x.json")
    assert listed(scan(tmp_path)) == ["rank0.json"]


def test_an_input_folder_that_is_hidden_itself_is_read(tmp_path: Path) -> None:
    assert listed(scan(write(tmp_path / ".profiles", "rank0.json"))) == ["rank0.json"]


def test_the_output_inside_the_input_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "rank0.json", "output/tables.json", "output/parsed/a.json")
    assert listed(scan(tmp_path, exclude=tmp_path / "output")) == ["rank0.json"]
    # The same under another spelling of its path.
    (tmp_path / "link").symlink_to("output", target_is_directory=True)
    assert listed(scan(tmp_path, exclude=tmp_path / "link")) == ["rank0.json"]


def test_an_output_that_does_not_exist_yet_excludes_nothing(tmp_path: Path) -> None:
    write(tmp_path, "rank0.json")
    assert listed(scan(tmp_path, exclude=tmp_path / "output")) == ["rank0.json"]


def test_the_output_of_another_run_inside_the_input_is_passed_over(tmp_path: Path) -> None:
    # GIVEN an earlier output with a link to the input of its own, which lies elsewhere
    write(tmp_path / "elsewhere", "rank9.json")
    root = write(tmp_path / "run", "rank0.json", "old/manifest.json", "old/parsed/torch/u.json")
    (root / "old" / "parsed" / ".input").symlink_to(tmp_path / "elsewhere")
    assert listed(scan(root)) == ["rank0.json"]


def test_the_input_inside_the_output_is_read(tmp_path: Path) -> None:
    root = write(tmp_path / "output" / "run", "rank0.json")
    assert listed(scan(root, exclude=tmp_path / "output")) == ["rank0.json"]


def test_a_single_file_is_a_folder_of_one(tmp_path: Path) -> None:
    write(tmp_path, "rank0.json", "rank1.json")
    tree = scan(tmp_path / "rank1.json")
    assert tree.root == tmp_path
    assert listed(tree) == ["rank1.json"]
    assert tree.absolute("rank1.json") == tmp_path / "rank1.json"


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "run", "rank0.json")
    monkeypatch.chdir(tmp_path)
    assert scan(Path("run")).root == tmp_path / "run"


def test_a_missing_folder_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    with pytest.raises(InputError) as refused:
        scan(tmp_path / "profile")
    assert str(refused.value) == (
        f"input.path: there is no folder '{tmp_path}/profile'; the nearest is '{tmp_path}/profiles'"
    )


def test_a_missing_folder_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        scan(tmp_path / "no" / "way")
    assert str(refused.value) == (
        f"input.path: there is no folder '{tmp_path}/no/way' (nor '{tmp_path}/no')"
    )


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "rank0.json")
    with pytest.raises(InputError, match="there is no folder"):
        scan(tmp_path / "rank0.json" / "x")


def test_what_is_neither_folder_nor_file_is_refused() -> None:
    with pytest.raises(InputError, match="'/dev/null' is neither a folder nor a regular file"):
        scan(Path("/dev/null"))


@pytest.mark.parametrize("name", ["x" * 5_000, "a\0b", "~no-such-user/run"])
def test_an_impossible_path_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"^input\.path: "):
        scan(tmp_path / name)


def test_a_folder_that_may_not_be_entered_is_refused(ordinary_folder: Path) -> None:
    closed = ordinary_folder / "closed"
    write(closed, "run/rank0.json")
    closed.chmod(0)
    with pytest.raises(InputError, match=r"cannot list '.*closed': Permission denied"):
        scan(closed)
    with pytest.raises(InputError, match=r"cannot read '.*run': Permission denied"):
        scan(closed / "run")


def test_a_path_of_four_thousand_characters_is_listed(tmp_path: Path) -> None:
    # GIVEN a capture so deep that its path comes close to what the system accepts
    folder = tmp_path
    while len(str(folder)) < 3_700:
        folder = folder / ("d" * 200)
    folder.mkdir(parents=True)
    rest = 4_000 - len(str(folder)) - len("/.json")
    (folder / f"{'x' * rest}.json").write_text("{}")
    # WHEN the folder is listed THEN it is there
    (file,) = scan(tmp_path).files
    assert len(str(tmp_path / file.path)) == 4_000


def test_a_folder_deeper_than_the_system_can_name_is_told_and_costs_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN folders in folders, made step by step, as a runaway job makes them
    write(tmp_path, "rank0.json")
    monkeypatch.chdir(tmp_path)
    for _ in range(25):
        Path("d" * 200).mkdir()
        os.chdir("d" * 200)
    monkeypatch.chdir(tmp_path)

    tree = scan(tmp_path)

    assert listed(tree) == ["rank0.json"]
    ((path, reason),) = tree.unreadable
    assert path.startswith("d" * 200)
    assert reason == "File name too long"


def test_what_vanishes_while_the_folder_is_listed_was_never_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a producer that renames and removes while the listing goes on
    write(tmp_path, "a/rank0.json", "b/rank1.json", "c.json.tmp", "d/rank2.json")
    (tmp_path / "a" / "emptied").mkdir()
    real = os.scandir

    @contextlib.contextmanager
    def scandir(path: str) -> Iterator[list[os.DirEntry[str]]]:
        with real(path) as listing:
            entries = list(listing)
        if Path(path) == tmp_path:
            (tmp_path / "c.json.tmp").unlink()
            (tmp_path / "b" / "rank1.json").unlink()
            (tmp_path / "b").rmdir()
        if Path(path) == tmp_path / "d":
            (tmp_path / "a" / "rank0.json").unlink()
            (tmp_path / "a" / "emptied").rmdir()
            (tmp_path / "a").rmdir()
        yield entries

    monkeypatch.setattr(os, "scandir", scandir)
    tree = scan(tmp_path)

    assert listed(tree) == ["d/rank2.json"]
    assert tree.unreadable == []
    assert tree.empty_folders == []


def test_the_first_bytes_of_a_file_are_read_without_the_rest(tmp_path: Path) -> None:
    (tmp_path / "big.json").write_bytes(b"ab" * 100_000)
    tree = scan(tmp_path)
    assert tree.head("big.json", 3) == b"aba"
    assert len(tree.head("big.json")) == 65_536
    assert tree.head("gone.json") == b""
