"""When a watch draws again: as soon as something is complete, and not for what still grows."""

from pathlib import Path

import pytest

from rl_insight.data.tree import File, Tree
from rl_insight.pipeline.watch import PATIENCE_S, Retries, Watcher, rest_s

NOON = 1_700_000_000.0
OLD = int((NOON - 3_600) * 1e9)


def tree(**sizes: int) -> Tree:
    """A listing of files that differ by their size alone, all of them old by their date."""
    return Tree(Path("in"), [File(name, size, OLD) for name, size in sorted(sizes.items())])


def begun(listing: Tree, settle_s: float = 2) -> Watcher:
    """A watch that has drawn `listing` at noon."""
    watcher = Watcher(settle_s)
    assert watcher.due(listing, NOON) == bool(listing.files)
    watcher.draw(listing, NOON)
    return watcher


def test_what_is_there_is_drawn_at_once_and_only_once() -> None:
    watcher = Watcher(2)
    assert watcher.due(tree(rank0=1, rank1=1), NOON)
    assert watcher.draw(tree(rank0=1, rank1=1), NOON) == 2
    for later in (1, 3, 1_000):
        assert not watcher.due(tree(rank0=1, rank1=1), NOON + later)


def test_an_empty_folder_is_waited_for() -> None:
    watcher = Watcher(2)
    assert not watcher.due(tree(), NOON)
    assert watcher.due(tree(rank0=1), NOON + 1), "it is old by its date, as a copied one may be"


def test_a_new_file_is_drawn_once_it_was_left_alone() -> None:
    watcher = begun(tree(rank0=1))
    assert not watcher.due(tree(rank0=1, rank1=1), NOON + 10)
    assert not watcher.due(tree(rank0=1, rank1=2), NOON + 11)
    assert not watcher.due(tree(rank0=1, rank1=2), NOON + 12.9)
    assert watcher.due(tree(rank0=1, rank1=2), NOON + 13)
    assert watcher.draw(tree(rank0=1, rank1=2), NOON + 13) == 1
    assert not watcher.due(tree(rank0=1, rank1=2), NOON + 60)


def test_what_is_complete_waits_for_the_others_of_its_step_but_not_for_ever() -> None:
    watcher = begun(tree(rank0=1))
    # rank1 is complete at 12; rank2 goes on growing.
    for second in range(10, 12 + int(PATIENCE_S)):
        assert not watcher.due(tree(rank0=1, rank1=1, rank2=second), NOON + second)
    assert watcher.due(tree(rank0=1, rank1=1, rank2=99), NOON + 12 + PATIENCE_S)


def test_what_still_grew_when_the_others_were_drawn_is_drawn_when_it_is_complete() -> None:
    watcher = begun(tree(rank0=1))
    for second in range(10, 43):
        watcher.due(tree(rank0=1, rank1=1, rank2=second), NOON + second)
    watcher.draw(tree(rank0=1, rank1=1, rank2=42), NOON + 42)
    # It never changes again: what was drawn of it was half of it.
    assert not watcher.due(tree(rank0=1, rank1=1, rank2=42), NOON + 43)
    assert watcher.due(tree(rank0=1, rank1=1, rank2=42), NOON + 44)


def test_a_file_that_goes_away_is_taken_off_the_page() -> None:
    watcher = begun(tree(rank0=1, rank1=1))
    assert watcher.due(tree(rank0=1), NOON + 1)
    assert watcher.draw(tree(rank0=1), NOON + 1) == 1
    assert not watcher.due(tree(rank0=1), NOON + 2)


def test_a_file_that_only_grows_is_no_reason_to_draw() -> None:
    # A log that the job writes into its folder, line by line.
    watcher = begun(tree(rank0=1, log=1))
    assert not any(watcher.due(tree(rank0=1, log=1 + n), NOON + n) for n in range(1, 500))


@pytest.mark.parametrize("age_s", [61.0, -30.0])
def test_what_is_old_at_the_beginning_or_from_the_future_is_drawn_at_once(age_s: float) -> None:
    listing = Tree(Path("in"), [File("rank0", 1, int((NOON - age_s) * 1e9))])
    watcher = begun(listing, settle_s=60)
    assert not watcher.due(listing, NOON + 120)


@pytest.mark.parametrize("age_s", [1.0, 59.0])
def test_what_is_young_at_the_beginning_is_waited_for(age_s: float) -> None:
    listing = Tree(Path("in"), [File("rank0", 1, int((NOON - age_s) * 1e9))])
    watcher = Watcher(60)
    for later in (0, 60 - age_s - 0.5):
        assert not watcher.due(listing, NOON + later)
    assert watcher.due(listing, NOON + 60 - age_s)


def test_a_slow_file_system_is_not_listed_all_the_time() -> None:
    assert rest_s(0.001) == 1
    assert rest_s(3) == 30


def test_what_failed_is_tried_again_ever_more_rarely_until_it_goes_well() -> None:
    retries = Retries()
    assert not retries.due(NOON)
    assert retries.after(False, NOON) == 60
    assert not retries.due(NOON + 59)
    assert retries.due(NOON + 60)
    assert [retries.after(False, NOON) for _ in range(5)] == [120, 240, 480, 960, 960]
    assert retries.after(True, NOON) is None
    assert not retries.due(NOON + 10_000)
    assert retries.after(False, NOON) == 60
