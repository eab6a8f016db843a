"""Settings for all tests."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from rl_insight.pipeline import occupied

# How long an example takes says more about the machine than about us; speed has its benchmarks.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# What `nohup` or a shell's `&` has the tests ignore must not be ignored by what they start.
for number, handler in (
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
    (signal.SIGINT, signal.default_int_handler),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _output_folders_are_let_go() -> Iterator[None]:
    """A run holds its output folder until its process ends, here until its test does."""
    yield
    while occupied._held:
        occupied._held.popitem()[1].close()
