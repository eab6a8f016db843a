"""What is still being written is told from what is complete."""

import os
from pathlib import Path

import pytest

from rl_insight.data.tree import Tree, scan
from rl_insight.pipeline.growing import Growing, settled

NOON = 1_700_000_000


def written(path: Path, text: str, age_s: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    moment = int((NOON - age_s) * 1e9)
    os.utime(path, ns=(moment, moment))


class Clock:
    """A clock that only sleeping moves; `meanwhile` is what happens during the sleep."""

    def __init__(self, meanwhile: object = None) -> None:
        self.now = float(NOON)
        self.slept: list[float] = []
        self.meanwhile = meanwhile

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        if callable(self.meanwhile):
            self.meanwhile()


def looked(root: Path, settle_s: float, clock: Clock) -> tuple[Tree, Growing]:
    return settled(lambda: scan(root), settle_s, now=lambda: clock.now, sleep=clock.sleep)


def test_nobody_waits_where_all_files_are_old(tmp_path: Path) -> None:
    written(tmp_path / "rank0.json", "[]", age_s=10)
    clock = Clock()
    tree, growing = looked(tmp_path, 1, clock)
    assert [file.path for file in tree.files] == ["rank0.json"]
    assert (growing, clock.slept) == (Growing(), [])


def test_a_new_file_that_is_left_alone_is_complete(tmp_path: Path) -> None:
    written(tmp_path / "rank0.json", "[]", age_s=0.2)
    clock = Clock()
    assert looked(tmp_path, 1, clock)[1] == Growing()
    assert clock.slept == [1]


def test_a_file_that_changes_while_one_looks_is_growing(tmp_path: Path) -> None:
    written(tmp_path / "actor/rank0.json", "[", age_s=0.2)
    written(tmp_path / "actor/rank1.json", "[]", age_s=10)
    clock = Clock(lambda: written(tmp_path / "actor/rank0.json", "[{}", age_s=0.1))
    tree, growing = looked(tmp_path, 1, clock)
    assert growing.files == {"actor/rank0.json"}
    assert growing.touches("actor/rank0.json")
    assert growing.touches("actor"), "a capture may be a folder"
    assert not growing.touches("actor/rank1.json", ("actor/rank1.json",))
    assert growing.touches("actor/rank1.json", ("actor/rank0.json",))
    # What is read is what stands there now.
    assert [file.size_bytes for file in tree.files] == [3, 2]


def test_a_file_that_comes_meanwhile_is_growing(tmp_path: Path) -> None:
    written(tmp_path / "rank0/a.pt", "a", age_s=0.2)
    clock = Clock(lambda: written(tmp_path / "rank0/b.pt", "b", age_s=0.1))
    tree, growing = looked(tmp_path, 1, clock)
    assert [file.path for file in tree.files] == ["rank0/a.pt", "rank0/b.pt"]
    assert growing.files == {"rank0/b.pt"}


def test_a_file_that_goes_meanwhile_was_never_there(tmp_path: Path) -> None:
    written(tmp_path / "rank0.json.tmp", "[", age_s=0.2)
    written(tmp_path / "rank1.json", "[]", age_s=10)
    clock = Clock((tmp_path / "rank0.json.tmp").unlink)
    tree, growing = looked(tmp_path, 1, clock)
    assert [file.path for file in tree.files] == ["rank1.json"]
    assert growing == Growing()


def test_nobody_waits_for_minutes_and_what_is_younger_is_marked_unseen(tmp_path: Path) -> None:
    written(tmp_path / "rank0.json", "[]", age_s=30)
    written(tmp_path / "rank1.json", "[]", age_s=90)
    clock = Clock()
    assert looked(tmp_path, 60, clock)[1].files == {"rank0.json"}
    assert clock.slept == [2]


@pytest.mark.parametrize("ahead_s", [61, 86_400 * 365 * 20])
def test_a_file_from_the_future_is_not_young_for_ever(tmp_path: Path, ahead_s: float) -> None:
    written(tmp_path / "rank0.json", "[]", age_s=-ahead_s)
    assert looked(tmp_path, 60, Clock())[1] == Growing()


def test_without_time_to_settle_everything_is_final(tmp_path: Path) -> None:
    written(tmp_path / "rank0.json", "[]", age_s=0)
    clock = Clock()
    assert looked(tmp_path, 0, clock) == (scan(tmp_path), Growing())
    assert clock.slept == []
