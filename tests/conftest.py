"""Settings for all tests."""

from hypothesis import settings

# How long an example takes says more about the machine than about us; speed has its benchmarks.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
