"""For ``pytest -p``: whatever is tested, reservations end with their session."""

from __future__ import annotations

from stromboli.framework.config.config import Config
from stromboli.framework.config.gates import PIPELINED_STATE


def pytest_configure() -> None:
    """Leave the gate off wherever it is read."""
    as_said: property = vars(Config)["gates"]
    off = property(lambda config: as_said.__get__(config) - {PIPELINED_STATE})
    setattr(Config, "gates", off)  # noqa: B010 - mypy takes the property for what it returns
