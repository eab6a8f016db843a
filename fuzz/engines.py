"""What makes the inputs: Hypothesis, or Atheris where it is installed."""

import hashlib
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from fuzz.damage import mutated

_ROUND = 500
_LONGEST = 1 << 16


def inputs(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """The seeds with changes, and now and then bytes out of the air."""

    def changed(raw: bytes, number: int) -> bytes:
        return mutated(raw, random.Random(number))

    near = st.builds(changed, st.sampled_from(seeds), st.integers(0, 2**32))
    return st.one_of(near, near, near, st.binary(max_size=200))


def hypothesis(name: str, seconds: float, seed: int, findings: Path) -> int:
    """Run the target `name` for some seconds; returns how many inputs it took.

    Raises what the target may not raise, after the input was kept in `findings`.
    """
    from fuzz import watch
    from fuzz.seeds import seeds
    from fuzz.targets import TARGETS

    target, known = TARGETS[name], seeds()[name]
    for data in known:  # also warms up what is imported late
        watch.check(target, data, limited=False)
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:

        @with_seed(seed + count)
        @settings(
            max_examples=_ROUND,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(inputs(known))
        def one_round(data: bytes) -> None:
            nonlocal count
            if time.monotonic() > end:
                return
            count += 1
            try:
                watch.check(target, data)
            except Exception:
                keep(data, name, findings)
                raise

        one_round()
    return count


def keep(data: bytes, name: str, findings: Path) -> Path:
    """Write an input to `findings`, named after its target and its content."""
    findings.mkdir(parents=True, exist_ok=True)
    path = findings / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


def has_atheris() -> bool:
    """Whether Atheris can be used; it has builds for few versions of Python only."""
    try:
        import atheris  # noqa: F401
    except ImportError:
        return False
    return True


def atheris(name: str, seconds: float, seed: int, findings: Path, corpus: Path) -> NoReturn:
    """The same, led by which lines of the package an input reaches; ends the process.

    The exit code is 0 where nothing was found. `corpus` gets the inputs that reach new lines.
    """
    import atheris as engine

    with engine.instrument_imports(include=["rl_insight"]):
        from fuzz import watch
        from fuzz.seeds import seeds
        from fuzz.targets import TARGETS

    target = TARGETS[name]
    for data in seeds()[name]:
        keep(data, "seed", corpus)
        watch.check(target, data, limited=False)
    findings.mkdir(parents=True, exist_ok=True)
    options = {
        "max_total_time": round(max(1, seconds)),
        "seed": seed,
        "max_len": _LONGEST,
        "rss_limit_mb": 2048,
        "print_final_stats": 1,
        "verbosity": 0,
        "artifact_prefix": f"{findings}/{name}-",
    }
    words = [f"-{option}={value}" for option, value in options.items()]
    engine.Setup([sys.argv[0], *words, str(corpus)], lambda data: watch.check(target, data))
    engine.Fuzz()
    raise SystemExit(0)
