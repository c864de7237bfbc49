"""How long the commands of simulated containers run, and how they end."""

from __future__ import annotations

import pytest

from stromboli.cluster.lives import Run, commanded


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("sleep 1; sleep 2", Run(3.0, 0)),
        ("sleep 1 && exit 3; sleep 5", Run(1.0, 3)),
        ("exit 4", Run(0.0, 4)),
        ("sleep 1; false; sleep 2; true", Run(3.0, 0)),
    ],
)
def test_a_script_runs_to_its_end_or_to_an_exit(text: str, run: Run) -> None:
    assert commanded(["/bin/sh", "-c", text]) == run
