"""The Hypothesis profile of everyday runs, and the suite's own pytest plugins."""

from __future__ import annotations

import gc
import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester", "tests.support.skips", "tests.support.laws", "tests.support.reached"]

settings.register_profile(
    "default",
    max_examples=100,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")


def pytest_collection_finish() -> None:
    """Leave ten thousand collected tests, which stay, out of all later collections of garbage."""
    gc.collect()
    gc.freeze()
