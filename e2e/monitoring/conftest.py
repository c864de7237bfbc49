"""Prometheus for stories of metrics."""

from __future__ import annotations

import pytest

from e2e.monitoring import prometheus


@pytest.fixture(scope="session")
def promtool() -> str:
    """The path of promtool; skips where it cannot be had."""
    return _had("promtool")


@pytest.fixture(scope="session")
def prometheus_server() -> str:
    """The path of Prometheus; skips where it cannot be had."""
    return _had("prometheus")


def _had(name: str) -> str:
    if reason := prometheus.missing():
        pytest.skip(reason)
    return prometheus.tool(name)
