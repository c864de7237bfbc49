"""A terminal of known width without colours, and the project's root as the working directory."""

from __future__ import annotations

from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(PROJECT)
