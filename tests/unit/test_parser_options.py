"""What parsers share around their work: the options, and the garbage collector's rest."""

import gc
from collections.abc import Iterator

import pytest

from rl_insight.config_model import TimelineParser
from rl_insight.parsers.garbage import without_collection
from rl_insight.parsers.options import RANGE_DEPTH, range_depth


@pytest.fixture(autouse=True)
def collector_as_before() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


def test_the_depth_is_the_configured_one_and_else_the_default_of_the_configuration() -> None:
    assert range_depth({RANGE_DEPTH: 0}) == 0
    assert range_depth({RANGE_DEPTH: 5}) == 5
    assert range_depth({}) == TimelineParser().range_depth


@pytest.mark.parametrize("was_on", [True, False])
def test_collection_is_afterwards_as_it_was_also_after_an_error(was_on: bool) -> None:
    (gc.enable if was_on else gc.disable)()
    with without_collection():
        assert not gc.isenabled()
    assert gc.isenabled() is was_on
    with pytest.raises(KeyError), without_collection():
        raise KeyError
    assert gc.isenabled() is was_on
