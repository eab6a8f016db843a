"""`python -m fuzz.damaged_runs`: random damage to one rank of eight, in every form."""

import argparse
import random
import tempfile
from collections import Counter
from pathlib import Path

from fuzz.eight_ranks import FORMS, EightRanks


def main() -> int:
    """Damage and look, again and again; 1 where something was lost that should not be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--damages", type=int, default=400, help="in all forms together")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    failures = 0
    for number, form in enumerate(FORMS):
        share = len(range(number, given.damages, len(FORMS)))
        states: Counter[str] = Counter()
        with tempfile.TemporaryDirectory() as folder:
            run = EightRanks(form, Path(folder))
            for damage in range(share):
                chance = random.Random(f"{given.seed} {form.name} {damage}")
                try:
                    states[run.survive(chance, limited=True)] += 1
                except Exception as error:
                    failures += 1
                    print(f"{form.name}, damage {damage}: {type(error).__name__}: {error}")
        told = ", ".join(f"{count} {state}" for state, count in states.most_common())
        print(f"{form.name}: {share} damages: {told}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
