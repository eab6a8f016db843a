"""One Slurm for all tests of a worker."""

import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from tests.slurm.cluster import Cluster, missing, started


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A Slurm of our own; where there cannot be one the test is skipped, but not in CI."""
    reason = missing()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must be able to start a Slurm: {reason}")
        pytest.skip(f"needs Slurm: {reason}")
    if threading.current_thread() is threading.main_thread():
        # Whoever tells the tests to end means Slurm and its jobs, too.
        signal.signal(signal.SIGTERM, _interrupt)
    with started() as running:
        yield running


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
