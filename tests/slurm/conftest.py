"""One Slurm for all tests of a worker."""

import os
from collections.abc import Iterator

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
    with started() as running:
        yield running
