"""The manifest remembers what was seen, and unit files change only when a cache is stale."""

import errno
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rl_insight.data.identity import compile_rules
from rl_insight.data.tree import scan
from rl_insight.errors import CacheError, ConfigError
from rl_insight.parsers import Found
from rl_insight.pipeline import layout, manifest
from rl_insight.pipeline.discovery import Filters, Skipped, discover
from rl_insight.pipeline.manifest import Manifest
from rl_insight.pipeline.unit_file import read_unit
from rl_insight.pipeline.units import source_id
from tests.made_up_parser import NoteParser

RANK_RULE = compile_rules([r"rank(?P<rank>\d+)"])


@pytest.fixture(autouse=True)
def _registered(notes: NoteParser) -> None:
    pass


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An input folder with three captures."""
    folder = tmp_path / "profiles"
    for rank in range(3):
        put(folder / f"rank{rank}.note", f"rank {rank}".encode())
    return folder


def put(path: Path, content: bytes, mtime_ns: int = 1_000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(mtime_ns, mtime_ns))


def look(root: Path, *ranks: int, per_job: int = 1) -> Manifest:
    """Look at `root`, for all ranks or only these, with the output beside it."""
    output = root.parent / "output"
    filters = Filters(ranks=frozenset(ranks) if ranks else None)
    tree = scan(root, exclude=output)
    return manifest.update(
        output, tree, discover(tree, ["notes"], RANK_RULE, filters), {"notes": per_job}
    )


def unit_files(root: Path) -> dict[str, tuple[str, int]]:
    """The text and the inode of every unit file: a file that is rewritten is another one."""
    folder = root.parent / "output" / "parsed" / "notes"
    return {path.name: (path.read_text(), path.stat().st_ino) for path in folder.glob("*.json")}


def skipped(root: Path) -> list[Skipped]:
    return manifest.read_skipped(root.parent / "output" / layout.SKIPPED)


def sources(found: Manifest) -> list[tuple[str, ...]]:
    return sorted(unit.sources for unit in found.units)


def test_a_unit_file_holds_all_that_its_job_needs(root: Path) -> None:
    found = look(root, per_job=2)
    unit = next(unit for unit in found.units if len(unit.sources) == 2)
    path = root.parent / "output" / layout.unit_file("notes", unit.name)

    assert read_unit(path) == (
        "notes",
        [Found("rank0.note", ("rank0.note",)), Found("rank1.note", ("rank1.note",))],
    )
    assert json.loads(path.read_text())["sources"][0]["source_id"] == source_id("rank0.note")
    assert str(root) not in path.read_text()


def test_looking_again_rewrites_nothing(root: Path) -> None:
    look(root)
    before = unit_files(root)
    assert len(before) == 3
    look(root)
    assert unit_files(root) == before


def test_a_folder_that_was_moved_is_not_parsed_again(root: Path, tmp_path: Path) -> None:
    look(root)
    before = unit_files(root)
    moved = root.rename(tmp_path / "step_4")

    found = look(moved)

    assert unit_files(root) == before
    assert (tmp_path / "output" / layout.INPUT_LINK).readlink() == moved
    assert found.root_name == "step_4"


def test_a_gzip_that_was_touched_is_not_parsed_again_but_a_changed_one_is(root: Path) -> None:
    path = root / "rank0.note"
    put(path, gzip.compress(b"one", mtime=0))
    look(root)
    before = unit_files(root)

    put(path, gzip.compress(b"one", mtime=0), mtime_ns=2_000)
    look(root)
    assert unit_files(root) == before

    put(path, gzip.compress(b"two", mtime=0), mtime_ns=3_000)
    look(root)
    after = unit_files(root)
    assert [name for name in after if after[name] != before[name]] == [
        name for name in after if name.startswith("rank0")
    ]


def test_a_file_of_the_same_size_whose_time_was_set_back_is_noticed(root: Path) -> None:
    path = root / "rank0.note"
    put(path, gzip.compress(b"one", mtime=0), mtime_ns=2_000)
    look(root)
    before = unit_files(root)
    put(path, gzip.compress(b"two", mtime=0), mtime_ns=2_000)
    look(root)
    assert [name[:5] for name, text in unit_files(root).items() if text != before[name]] == [
        "rank0"
    ]


def test_a_file_system_without_links_is_named_as_what_is_in_the_way(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path, target: Path, target_is_directory: bool = False) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(self))

    monkeypatch.setattr(Path, "symlink_to", refused)
    with pytest.raises(ConfigError, match=r"without symbolic links .*: choose a folder elsewhere"):
        look(root)


def test_a_removed_file_takes_its_unit_out_of_the_run_and_changes_no_other(root: Path) -> None:
    look(root)
    before = unit_files(root)
    (root / "rank1.note").unlink()
    found = look(root)
    assert sources(found) == [("rank0.note",), ("rank2.note",)]
    assert unit_files(root) == before


def test_a_new_file_makes_one_new_unit_and_changes_no_other(root: Path) -> None:
    look(root, per_job=2)
    before = unit_files(root)
    put(root / "a" / "rank3.note", b"new")
    put(root / "rank1b.note", b"new")
    found = look(root, per_job=2)
    assert before.items() <= unit_files(root).items()
    assert sources(found) == [
        ("a/rank3.note",),
        ("rank0.note", "rank1.note"),
        ("rank1b.note",),
        ("rank2.note",),
    ]


def test_other_packing_changes_no_unit_that_is_there(root: Path) -> None:
    look(root, per_job=2)
    before = unit_files(root)
    look(root, per_job=1)
    look(root, per_job=64)
    assert unit_files(root) == before


def test_a_wider_filter_changes_no_unit_of_what_was_parsed(root: Path) -> None:
    look(root, 1, per_job=2)
    before = unit_files(root)
    assert len(before) == 1
    found = look(root, per_job=2)
    assert before.items() <= unit_files(root).items()
    assert sources(found) == [("rank0.note", "rank2.note"), ("rank1.note",)]


def test_a_narrower_filter_changes_no_unit_and_the_merge_hears_of_each_source_once(
    root: Path,
) -> None:
    # GIVEN ranks 0 and 1 in one job, rank 2 in another
    look(root, per_job=2)
    before = unit_files(root)
    # WHEN only rank 1 is wanted
    found = look(root, 1, per_job=2)
    # THEN its job still has both, whose merge filters rank 0; rank 2 is skipped without a job
    assert unit_files(root) == before
    assert sources(found) == [("rank0.note", "rank1.note")]
    assert [row.path for row in skipped(root)] == ["rank2.note"]


def test_what_is_skipped_reaches_the_merge_with_its_reason_and_status(root: Path) -> None:
    put(root / "x.memo", b"")
    (root / "actor_update").mkdir()
    look(root)
    assert skipped(root) == [
        Skipped("actor_update", "notes", "the folder is empty: nothing was recorded", "empty"),
        Skipped("x.memo", "notes", "a memo holds no capture", "skipped"),
    ]


def test_names_of_any_bytes_go_through_manifest_and_unit_files(root: Path) -> None:
    name = os.fsdecode(b"-a {b}*\n\xff\xe2\x82.note")
    put(root / name, b"x")
    first = look(root)
    before = unit_files(root)

    again = look(root)

    assert unit_files(root) == before
    assert (name,) in sources(again)
    assert again.units == first.units
    unit = next(unit for unit in again.units if unit.sources == (name,))
    _, (found,) = read_unit(root.parent / "output" / layout.unit_file("notes", unit.name))
    assert found == Found(name, (name,))


def test_a_file_that_becomes_readable_is_parsed_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a file that could not be opened, and whose size and time do not change by chmod
    def refuse(*_: object) -> str:
        return "unreadable:13"

    with monkeypatch.context() as closed:
        closed.setattr(manifest, "fingerprint", refuse)
        look(root)
        before = unit_files(root)
    # WHEN it can be opened
    look(root)
    # THEN its unit is stale
    assert all(before[name] != found for name, found in unit_files(root).items())


def test_a_file_that_vanishes_after_the_listing_costs_nobody_else(root: Path) -> None:
    output = root.parent / "output"
    tree = scan(root)
    found = discover(tree, ["notes"], RANK_RULE, Filters())
    (root / "rank1.note").unlink()
    assert len(manifest.update(output, tree, found, {"notes": 1}).units) == 3


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b'{"version": 1}',
        b'{"version": 999, "units": [], "assigned": {}, "prints": {}, "prepared_by": ""}',
        b'{"version": 1, "units": [{}]}',
        b'{"version": 1, "units": "abc"}',
        b'{"version": 1, "assigned": []}',
        b'{"version": 1, "prints": []}',
        b'{"version": 1, "prints": {"rank0.note": [1]}}',
        b'{"version": 1, "prepared_by": 17}',
        b'{"version": 1, "assigned": {"notes": {"rank0.note": "../../elsewhere"}}}',
        b'{"version": 1, "assigned": {"no/tes": {}}}',
        b'{"version": 1, "assigned": {"notes": {"rank0.note": ""}}}',
        b"[" * 100_000,
        b'{"version": 1, "units": ' + b"[" * 100_000,
    ],
)
def test_a_damaged_manifest_or_one_of_another_version_is_made_anew(
    root: Path, damage: bytes
) -> None:
    first = look(root)
    before = unit_files(root)
    (root.parent / "output" / layout.MANIFEST).write_bytes(damage)
    assert manifest.load(root.parent / "output").units == []
    # Jobs of one file each have the names that they had.
    assert look(root).units == first.units
    assert unit_files(root) == before


def test_a_manifest_that_was_cut_anywhere_is_made_anew(root: Path) -> None:
    first = look(root)
    path = root.parent / "output" / layout.MANIFEST
    whole = path.read_bytes()
    for size in range(0, len(whole) - 2, 97):
        path.write_bytes(whole[:size])
        assert manifest.load(root.parent / "output") == Manifest()
    assert look(root).units == first.units


def test_a_manifest_comes_back_as_it_was_written(root: Path) -> None:
    written = look(root, per_job=2)
    assert manifest.load(root.parent / "output") == written
    assert written.root_name == "", "it says nothing, so it may change"


@pytest.mark.parametrize(("parser", "name"), [("notes", "a b"), ("notes", "é"), ("no.tes", "a")])
def test_a_unit_of_a_name_that_no_rule_takes_is_damage(
    tmp_path: Path, parser: str, name: str
) -> None:
    units = [{"parser": parser, "name": name, "sources": ["rank0.note"]}]
    text = json.dumps({"version": 1, "units": units, "root_name": "in"})
    (tmp_path / layout.MANIFEST).write_text(text)
    assert manifest.load(tmp_path) == Manifest()
    (tmp_path / layout.MANIFEST).write_text(
        text.replace(json.dumps(name), '"a"').replace(parser, "notes")
    )
    assert len(manifest.load(tmp_path).units) == 1


def test_no_manifest_is_an_empty_one(tmp_path: Path) -> None:
    assert manifest.load(tmp_path) == Manifest()


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b'{"parser": 1, "sources": []}',
        b'{"parser": "x"}',
        b"[" * 99_999,
    ],
)
def test_a_damaged_unit_file_is_named_with_what_to_do(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "u.json"
    path.write_bytes(damage)
    with pytest.raises(CacheError, match=r"u\.json: damaged .*; delete it and run again"):
        read_unit(path)


@pytest.mark.parametrize("damage", [b"", b"{}", b"null", b"[1]", b'[{"path": "a"}]'])
def test_a_damaged_list_of_skipped_inputs_is_named_with_what_to_do(
    tmp_path: Path, damage: bytes
) -> None:
    path = tmp_path / "skipped.json"
    path.write_bytes(damage)
    with pytest.raises(CacheError, match=r"skipped\.json: damaged .*; delete it and run again"):
        manifest.read_skipped(path)


def test_the_link_to_the_input_follows_the_input(root: Path, tmp_path: Path) -> None:
    look(root)
    link = tmp_path / "output" / layout.INPUT_LINK
    assert (link / "rank0.note").read_bytes() == b"rank 0"
    shutil.copytree(root, tmp_path / "copy")
    look(tmp_path / "copy")
    assert link.readlink() == tmp_path / "copy"


def test_an_output_that_was_copied_with_its_links_followed_says_what_to_delete(
    root: Path, tmp_path: Path
) -> None:
    look(root)
    link = tmp_path / "output" / layout.INPUT_LINK
    link.unlink()
    shutil.copytree(root, link)
    with pytest.raises(CacheError, match=r"\.input is a folder.*delete it and run again"):
        look(root)
    assert (link / "rank0.note").exists()


def test_text_is_written_only_when_it_differs(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.json"
    assert manifest.write_if_changed(path, "one")
    before = path.stat().st_ino
    assert not manifest.write_if_changed(path, "one")
    assert path.stat().st_ino == before
    assert manifest.write_if_changed(path, "two")
    path.write_bytes(b"\xff")
    assert manifest.write_if_changed(path, "two")
    assert path.read_text() == "two"


def test_a_child_of_the_process_that_looked_need_not_look_again(root: Path) -> None:
    found = look(root)
    assert not found.prepared_by_parent()
    asked = (
        "import sys; from pathlib import Path; from rl_insight.pipeline import manifest;"
        "print(manifest.load(Path(sys.argv[1])).prepared_by_parent())"
    )
    words = [sys.executable, "-c", asked, str(root.parent / "output")]
    child = subprocess.run(words, capture_output=True, text=True, check=True)
    assert child.stdout == "True\n"
    # A grandchild is another run.
    shell = ["sh", "-c", '"$@"; exit $?', "sh", *words]
    grandchild = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert grandchild.stdout == "False\n"


def test_a_parent_that_cannot_be_seen_did_not_look(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN the first process of a container, whose parent has the number 0
    monkeypatch.setattr(os, "getppid", lambda: 0)
    # WHEN there is no manifest yet THEN it must look
    assert not Manifest().prepared_by_parent()


def test_a_later_process_of_the_same_number_did_not_look(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("this system does not tell when a process began")
    found = look(root)
    monkeypatch.setattr(os, "getppid", os.getpid)
    assert found.prepared_by_parent()
    host, pid, began = found.prepared_by.split(":")
    found.prepared_by = f"{host}:{pid}:{int(began) - 1}"
    assert not found.prepared_by_parent()
