"""A record of a scheduler on each kind of server, while jobs come and evict each other, gives every plan again."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.records import half_hour
from e2e.conftest import missing


@pytest.mark.parametrize("server", ["embedded", "real"])
def test_a_record_is_replayed_bit_by_bit(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the real one the scheduler is killed in the middle; ``--seconds 1800`` is the half hour."""
    if reason := missing(server):
        pytest.skip(reason)
    assert half_hour.main([server, str(tmp_path), "--seconds", "40"]) == 0
    assert "cycles equal" in capsys.readouterr().out
