"""The Hypothesis profile of everyday runs, the suite's own pytest plugins, and what is done once for all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

from stromboli.framework.config import registry
from stromboli.job_plugins import registry as job_plugins
from stromboli.kube import collecting

pytest_plugins = ["pytester", "tests.support.skips", "tests.support.laws", "tests.support.reached"]

settings.register_profile(
    "default",
    max_examples=100,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")

UNTOUCHED = {"freeze": lambda: None, "unfreeze": lambda: None, "get_count": lambda: (0, 0, 0)}
"""What schedulers do about garbage between cycles, but that there is never any to look for."""


def pytest_collection_finish() -> None:
    """Leave ten thousand collected tests, which stay, out of all later collections of garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def kept_frozen() -> Iterator[None]:
    """A scheduler that ends thaws nothing: it would thaw all collected tests, and a collection look at them again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collecting, "gc", SimpleNamespace(**{**vars(gc), **UNTOUCHED}))
        yield


@pytest.fixture(scope="module")
def freezing() -> Iterator[None]:
    """Tests of a module in which what freezes does so; then the collected tests are frozen again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collecting, "gc", gc)
        yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def packages_read_once() -> Iterator[None]:
    """The metadata of installed packages is read once a run, and not for each scheduler that starts."""
    once = cache(entry_points)
    with pytest.MonkeyPatch.context() as patch:
        for module in (registry, job_plugins):
            patch.setattr(module, "entry_points", once)
        yield
