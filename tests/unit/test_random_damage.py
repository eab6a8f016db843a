"""Random damage to one rank of eight costs the other seven nothing, nor what stands before it.

`make fuzz` does the same with 400 damages.
"""

import random
from pathlib import Path

import pytest

from fuzz.eight_ranks import FORMS, EightRanks, Form

DAMAGES = 60


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_damage_costs_one_rank_at_most(form: Form, tmp_path: Path) -> None:
    run = EightRanks(form, tmp_path)
    states = {
        run.survive(random.Random(f"{form.name} {number}"), limited=False)
        for number in range(DAMAGES // len(FORMS))
    }
    assert "salvaged" in states
