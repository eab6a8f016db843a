"""`python -m fuzz`: every target in a process of its own, one after the other."""

import argparse
import subprocess
import sys
from pathlib import Path

from fuzz import engines
from fuzz.watch import bound_address_space, check

HERE = Path(__file__).resolve().parent
FINDINGS = HERE / "findings"


def main() -> int:
    """Run the targets that were asked for, or one input again; 1 where there is a finding."""
    from fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--minutes", type=float, default=2, help="for all of them together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("atheris", "hypothesis"))
    parser.add_argument("--again", type=Path, metavar="FILE", help="one input, on one target")
    given = parser.parse_args()
    unknown = [name for name in given.targets if name not in TARGETS]
    if unknown:
        parser.error(f"there is no target {unknown[0]}; there are {', '.join(TARGETS)}")
    names = given.targets or list(TARGETS)
    if given.again:
        check(TARGETS[names[0]], given.again.read_bytes())
        return 0
    engine = given.engine or ("atheris" if engines.has_atheris() else "hypothesis")
    if engine == "hypothesis" and not given.engine:
        print("Atheris is not installed (pip install -e '.[fuzz]'): Hypothesis makes the inputs.")
    seconds = 60 * given.minutes / len(names)
    found = [name for name in names if not _clean(name, seconds, given.seed, engine)]
    if found:
        print(f"\nFindings in {', '.join(found)}; the inputs are in {FINDINGS}. See one again with")
        print(f"  python -m fuzz {found[0]} --again FILE")
    return 1 if found else 0


def _clean(name: str, seconds: float, seed: int, engine: str) -> bool:
    words = [name, str(seconds), str(seed), engine]
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.one", *words],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        print(f"{name}: FINDING\n{done.stdout}{done.stderr}", flush=True)
        return False
    last = done.stdout.strip().splitlines()[-1:] or [""]
    print(f"{name}: nothing found in {_inputs(done.stdout + done.stderr) or last[0]}", flush=True)
    return True


def _inputs(text: str) -> str | None:
    """How many inputs libFuzzer says that it ran."""
    for line in text.splitlines():
        if line.startswith("stat::number_of_executed_units:"):
            return f"{int(line.partition(':')[2].split(':')[-1]):,} inputs"
    return None


if __name__ == "__main__":
    bound_address_space()
    raise SystemExit(main())
