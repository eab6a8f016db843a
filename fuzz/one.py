"""One target in its own process: `python -m fuzz.one NAME SECONDS SEED ENGINE`."""

import sys
import tempfile
from pathlib import Path

from fuzz import engines

_FINDINGS = Path(__file__).resolve().parent / "findings"


def main(name: str, seconds: str, seed: str, engine: str) -> None:
    """Run it; an exception, or another exit code than 0, is a finding."""
    # Before anything of the package is imported: Atheris changes modules as they come in.
    if engine == "atheris":
        with tempfile.TemporaryDirectory() as corpus:
            engines.atheris(name, float(seconds), int(seed), _FINDINGS, Path(corpus))
    from fuzz.watch import bound_address_space

    bound_address_space()
    count = engines.hypothesis(name, float(seconds), int(seed), _FINDINGS)
    print(f"{count:,} inputs")


if __name__ == "__main__":
    main(*sys.argv[1:])
