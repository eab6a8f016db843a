"""The fuzz targets, for a moment and from a fixed seed; `make fuzz` runs them for minutes."""

import random
import tempfile
from pathlib import Path

import pytest

from fuzz.damage import KINDS, damaged, first_difference, mutated
from fuzz.seeds import seeds
from fuzz.targets import TARGETS, survives

SEEDS = seeds()


def test_every_target_has_inputs_to_start_from() -> None:
    assert SEEDS.keys() == TARGETS.keys()
    assert all(SEEDS.values())


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_survives_its_seeds_and_what_becomes_of_them(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    inputs = [*SEEDS[name], *(mutated(chance.choice(SEEDS[name]), chance) for _ in range(60))]
    for data in inputs:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            survives(TARGETS[name], data, Path(folder))


def test_a_target_that_stumbles_is_a_finding(tmp_path: Path) -> None:
    def stumble(data: bytes, folder: Path) -> None:
        raise KeyError(data)

    with pytest.raises(KeyError):
        survives(stumble, b"x", tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_begins_where_it_is_said_to(kind: object) -> None:
    raw = bytes(range(256)) * 40
    for number in range(30):
        assert callable(kind)
        bad = kind(raw, random.Random(number))
        start = first_difference(raw, bad)
        assert bad[:start] == raw[:start]
        assert bad == raw or bad[start : start + 1] != raw[start : start + 1]
    assert damaged(raw, random.Random(7)) == damaged(raw, random.Random(7))
